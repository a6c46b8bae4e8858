"""One request over HTTP, as the transport's layers know a call."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn, cast

import grpc
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]

from mneme_server.common.errors import ResourceExhausted
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.entrance import Serve
from mneme_server.edge.grpc.errors import DETAILS_KEY
from mneme_server.edge.http.errors import plain_status

Headers = Sequence[tuple[str, str]]


class CallAborted(Exception):  # What gRPC's own context raises has no better name.
    """The call was ended with a status, which its `HttpCall` has."""


class HttpCall:
    """What a layer asks its edge for, and what it leaves there. Thread-safe.

    Args:
        headers: of the request, their names in lower case.
        peer: where it came from.
        timeout_s: how long the caller waits; None: without end.
    """

    def __init__(self, headers: Headers, peer: str, timeout_s: float | None = None) -> None:
        self._headers = headers
        self._peer = peer
        self._until = None if timeout_s is None else time.monotonic() + timeout_s
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []
        self._over = False
        self._code: grpc.StatusCode | None = None
        self._message = ""
        self.trailers: Sequence[tuple[str, Any]] = ()
        self.offset = 0
        self.tenant_id = ""
        """The tenant that the answer says it is of."""
        self.sender = ""
        """The tenant that it is of, as its head says; "" of a stranger."""
        self.has_read: Callable[[], bool] = lambda: True
        """Tells whether there is room for an answer beside those that its tenant has not read."""
        self.cut: Callable[[], None] = lambda: None
        """Cuts the connection, for a peer that does not take its answer."""

    def invocation_metadata(self) -> Headers:
        """Return the headers."""
        return self._headers

    def peer(self) -> str:
        """Return the address that the call came from."""
        return self._peer

    def is_active(self) -> bool:
        """Return whether anybody still waits for the answer."""
        return not self._over and (self._until is None or time.monotonic() < self._until)

    def time_remaining(self) -> float | None:
        """Return the seconds until the deadline; None without one."""
        return None if self._until is None else self._until - time.monotonic()

    def add_callback(self, callback: Callable[[], None]) -> bool:
        """Have `callback` run when the call is over; False when it is already."""
        with self._lock:
            if self._over:
                return False
            self._callbacks.append(callback)
            return True

    def end(self) -> None:
        """Say that nobody waits for the answer any more, or that it was sent."""
        with self._lock:
            callbacks, self._callbacks = self._callbacks, []
            self._over = True
        for callback in callbacks:
            callback()

    def cancel(self) -> None:
        """End the call from this side."""
        self.end()
        self.cut()

    def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        """End the call with a status.

        Raises:
            CallAborted: always.
        """
        self._code, self._message = code, details
        raise CallAborted

    def code(self) -> grpc.StatusCode | None:
        """Return the status that was set."""
        return self._code

    def set_code(self, code: grpc.StatusCode) -> None:
        """Set the status."""
        self._code = code

    def set_trailing_metadata(self, trailers: Sequence[tuple[str, Any]]) -> None:
        """Set what goes with the answer."""
        self.trailers = trailers

    def status(self) -> Status | None:
        """Return the status that the call ended with; None when it succeeded."""
        if self._code is None:
            return None
        details = dict(self.trailers).get(DETAILS_KEY)
        status = Status(code=self._code.value[0], message=self._message)
        if details is not None:
            with suppress(ValueError):
                status = Status.FromString(details)
        return status

    def failure(self) -> Status:
        """Return the status of a call that did not succeed."""
        return self.status() or plain_status(grpc.StatusCode.INTERNAL, "internal error")

    def late(self) -> Status | None:
        """Return the status of a call that was not answered; None when its caller left."""
        remaining = self.time_remaining()
        if remaining is None or remaining > 0:
            return None
        why = "the call was not answered in the time that it was given"
        return plain_status(grpc.StatusCode.DEADLINE_EXCEEDED, why)

    def answered_with(self) -> Mapping[str, str]:
        """Return the headers that go with the answer, such as its consistency token."""
        return {key: value for key, value in self.trailers if isinstance(value, str)}


def only_for_who_reads(serve: Serve) -> Serve:
    """Have a call served only while its tenant reads the answers to others."""

    def served(request: Any, call: Call) -> Any:
        if not cast(HttpCall, call.edge).has_read():
            raise ResourceExhausted(
                "too much of what was answered before has not been read; read it, and try again",
                retry_after_s=1.0,
            )
        return serve(request, call)

    return served
