"""One call while it is served, and who is calling."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias

import grpc

from mneme_server.common.errors import MnemeError
from mneme_server.common.identity import Caller
from mneme_server.edge.grpc.methods import Method

AT_LEAST_AS_FRESH = "mneme-at-least-as-fresh"
"""The header with the token of a state that the answer must show."""
_MAX_REQUEST_ID = 128
_NEVER_S = 100 * 365 * 86_400.0


Header: TypeAlias = str | bytes


class Authenticator(Protocol):
    """Tells callers by their secrets."""

    def authenticate(self, secret: str) -> Caller:
        """Return whom the secret lets in.

        Raises:
            Unauthenticated: nobody.
        """
        ...

    def known(self, secret: str) -> Caller | None:
        """Return whom the secret lets in, if it did before, without taking time."""
        ...


class CallContext(Protocol):
    """What the edge that took a call knows of it; gRPC's ServicerContext is one."""

    def invocation_metadata(self) -> Iterable[tuple[str, Header]] | None:
        """Return the headers, their names in lower case."""
        ...

    def peer(self) -> str:
        """Return the address that the call came from, e.g. `ipv4:127.0.0.1:40000`."""
        ...

    def is_active(self) -> bool:
        """Return whether anybody still waits for the answer."""
        ...

    def time_remaining(self) -> float | None:
        """Return the seconds until the deadline; None without one."""
        ...

    def cancel(self) -> object:
        """End the call from this side."""
        ...

    def add_callback(self, callback: Callable[[], None]) -> bool:
        """Have `callback` run when the call is over; False when it is already."""
        ...


class Call:
    """One call, whatever edge it came through: who calls, how long there is, and its end.

    It is all that a service sees beside the request. `authorizations` are the headers of that name.
    `request_id` is the caller's `x-request-id`, or one made here. `caller` is set by the
    authentication, `trace_id` where the call is told of as a span; `code` and `reason` once the
    outcome is known; `lost` once the key that let it in is good no longer: what a new call would be
    refused with.
    """

    __slots__ = (
        "_caller",
        "_end_callbacks",
        "_lock",
        "at_least_as_fresh",
        "authorizations",
        "code",
        "edge",
        "ended",
        "error_id",
        "lost",
        "method",
        "reason",
        "request_id",
        "trace_id",
    )

    def __init__(self, method: Method, edge: CallContext) -> None:
        self.method = method
        self.edge = edge
        metadata = edge.invocation_metadata() or ()
        self.authorizations = authorizations_in(metadata)
        self.request_id = self.at_least_as_fresh = ""
        for key, value in metadata:
            if key == AT_LEAST_AS_FRESH and isinstance(value, str):
                self.at_least_as_fresh = value
            elif key == "x-request-id" and isinstance(value, str):
                self.request_id = _clean(value)
        if not self.request_id:
            self.request_id = secrets.token_hex(8)
        self.code: grpc.StatusCode | None = None
        self.reason = ""
        self.error_id = ""
        self.trace_id = ""
        self.ended = False
        self.lost: MnemeError | None = None
        self._caller: Caller | None = None
        self._end_callbacks: list[Callable[[], object]] | None = None
        self._lock = threading.Lock()

    @property
    def caller(self) -> Caller:
        """Who is calling.

        Raises:
            RuntimeError: nobody was authenticated: the method is public, or the server was built
                without the authentication.
        """
        if self._caller is None:
            raise RuntimeError(f"{self.method.path} was not authenticated")
        return self._caller

    @caller.setter
    def caller(self, caller: Caller) -> None:
        self._caller = caller

    @property
    def tenant(self) -> str:
        """The caller's tenant: of everything that the call touches.

        Raises:
            RuntimeError: as `caller`.
        """
        return self.caller.tenant_id

    @property
    def headers(self) -> Mapping[str, Header]:
        """What came with the request, by name in lower case."""
        return dict(self.edge.invocation_metadata() or ())

    @property
    def peer(self) -> str:
        """The address that the call came from."""
        return self.edge.peer()

    def cancel(self) -> None:
        """End the call from this side, e.g. because its answers are not taken."""
        self.edge.cancel()

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return not self.edge.is_active()

    @property
    def tenant_id(self) -> str:
        """The caller's tenant for logs; empty when nobody was authenticated."""
        return "" if self._caller is None else self._caller.tenant_id

    @property
    def key_id(self) -> str:
        """The key that let the call in; empty where none was needed."""
        return "" if self._caller is None else self._caller.key_id

    def lose(self, error: MnemeError) -> None:
        """Have the call end, soon, because its key is good no longer."""
        self.lost = error
        if self.method.stream is not None:
            self.end()

    def time_left(self) -> float | None:
        """Return the seconds until the caller stops waiting: 0 when it has left, or may not be
        answered any more, None if never."""
        if self.lost is not None or not self.edge.is_active():
            return 0.0
        left = self.edge.time_remaining()
        return (
            None if left is None or left > _NEVER_S else left
        )  # gRPC's "no deadline" is centuries away.

    @property
    def abandoned_code(self) -> grpc.StatusCode:
        """Why the caller stopped waiting: DEADLINE_EXCEEDED, or CANCELLED when it left before."""
        remaining = self.edge.time_remaining()
        late = remaining is not None and remaining <= 0
        return grpc.StatusCode.DEADLINE_EXCEEDED if late else grpc.StatusCode.CANCELLED

    def on_end(self, callback: Callable[[], object]) -> None:
        """Have `callback` run once when the stream must end: the client is gone, the server shuts
        down, or the key was revoked. It runs on another thread, or right here when that has already
        happened.

        A servicer of a stream that takes what a client sends stops waiting for more with this, and
        returns; the caller is told why by the layers.
        """
        with self._lock:
            if not self.ended:
                if self._end_callbacks is None:
                    self._end_callbacks = []
                    if not self.edge.add_callback(self.end):
                        self.ended = True
                self._end_callbacks.append(callback)
            if not self.ended:
                return
        callback()

    @property
    def was_cut_short(self) -> bool:
        """Whether the servicer was told to end a stream that it would have gone on with."""
        return self.ended and self._end_callbacks is not None

    def end(self) -> None:
        """Tell the servicer that the stream must end."""
        with self._lock:
            if self.ended:
                return
            self.ended = True
            callbacks = self._end_callbacks
            if callbacks is not None:
                self._end_callbacks = []  # They may hold the call.
        for callback in callbacks or ():
            callback()


def authorizations_in(metadata: Iterable[tuple[str, Header]]) -> Sequence[str]:
    """Return what the headers `authorization` of a call say: one of them, as a rule."""
    return [
        value if isinstance(value, str) else value.decode("latin-1")
        for key, value in metadata
        if key == "authorization"
    ]


def bearer(authorization: str) -> str:
    """Return the secret of the metadata `authorization: Bearer SECRET`; empty if it is not that."""
    scheme, _, secret = authorization.partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def _clean(request_id: str) -> str:
    """Return the part of a caller's id that is safe in logs: printable and not too long."""
    return request_id[:_MAX_REQUEST_ID] if request_id.isprintable() else ""
