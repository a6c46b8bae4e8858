"""grpc.health.v1: whether the server, and each of its services, takes calls.

Written here because the stock servicer cannot end its watchers: one open Watch would hold a
shutdown up until its deadline.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from mneme_server.edge.grpc.open_stream import OpenStream, Send, Sending

_Status = health_pb2.HealthCheckResponse


class _Watcher:
    """One watch, a source: it is told the latest status, once.

    Args:
        look: returns the status of what is watched.
    """

    def __init__(self, look: Callable[[], int]) -> None:
        self._look = look
        self._told: int | None = None
        self.left = False
        self.ended = False
        self.wake: Callable[[], None] = lambda: None

    def on_ready(self, wake: Callable[[], None]) -> None:
        """See `Source`."""
        self.wake = wake

    def take(self) -> Sequence[health_pb2.HealthCheckResponse] | None:
        """Return the status, unless it is known; None once there will be no other."""
        ended, status = self.ended, self._look()
        if status == self._told:
            return None if ended else ()
        self._told = status
        return [_Status(status=status)]

    def close(self) -> None:
        """See `Source`."""


class Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """The health of `services`, by full name, and of the server as a whole, under "".

    Everything is NOT_SERVING until `serving` says otherwise.

    Args:
        services: their full names.
        sending: sends to those who watch.
        most: watches at once; anyone may watch, so there must be an end.
    """

    def __init__(self, services: Iterable[str], sending: Sending, most: int) -> None:
        self._sending = sending
        self._most = most
        self._lock = threading.Lock()
        self._services = frozenset(services) | {""}
        self._status = _Status.NOT_SERVING
        self._watchers: set[_Watcher] = set()
        self._last_watched = time.monotonic()
        self._closed = False

    @property
    def is_serving(self) -> bool:
        """Whether calls are taken."""
        return bool(self._status == _Status.SERVING)

    def serving(self) -> None:
        """Say that calls are taken."""
        self._tell(_Status.SERVING)

    def shut_down(self) -> None:
        """Say that no calls are taken, and end all watches."""
        self._tell(_Status.NOT_SERVING)
        with self._lock:
            self._closed = True
            watchers, self._watchers = self._watchers, set()
        for watcher in watchers:
            watcher.ended = True
            watcher.wake()

    def end_if_unwatched(self, seconds: float) -> bool:
        """Take no further watch, and return True, when there was none for so long."""
        with self._lock:
            if self._watchers:
                self._last_watched = time.monotonic()
            elif time.monotonic() - self._last_watched >= seconds:
                self._closed = True
                self._status = _Status.NOT_SERVING
        return self._closed

    def Check(  # noqa: N802
        self, request: health_pb2.HealthCheckRequest, context: grpc.ServicerContext
    ) -> health_pb2.HealthCheckResponse:
        """Answer with the status; NOT_FOUND for an unknown service."""
        if request.service not in self._services:
            context.abort(grpc.StatusCode.NOT_FOUND, f"there is no service {request.service}")
        return _Status(status=self._status)

    def Watch(  # noqa: N802
        self,
        request: health_pb2.HealthCheckRequest,
        context: grpc.ServicerContext,
        send: Send,
    ) -> None:
        """Send the status now and at every change, without holding a thread."""
        known = request.service in self._services
        watcher = _Watcher(lambda: self._status if known else _Status.SERVICE_UNKNOWN)

        def leave() -> None:
            with self._lock:
                if watcher in self._watchers:
                    self._watchers.discard(watcher)
                    self._last_watched = time.monotonic()
            watcher.left = True
            watcher.wake()

        with self._lock:
            full = len(self._watchers) >= self._most
            if self._closed:
                watcher.ended = True
            elif not full:
                self._watchers.add(watcher)
        if full:
            context.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"{self._most} watch the server's health already; try again later, or use Check",
            )
        OpenStream(
            watcher,
            send,
            self._sending,
            tenant_id="",
            is_over=lambda: watcher.left,
            cut_off=context.cancel,
            finish=lambda _error: send(None),
        ).start()
        if not context.add_callback(leave):
            leave()

    # gRPC's way to serve a stream from callbacks instead of from a thread of the pool.
    Watch.experimental_non_blocking = True  # type: ignore[attr-defined]

    def _tell(self, status: int) -> None:
        with self._lock:
            self._status = status
            watchers = list(self._watchers)
        for watcher in watchers:
            watcher.wake()
