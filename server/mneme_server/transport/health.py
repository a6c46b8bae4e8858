"""grpc.health.v1: whether the server, and each of its services, takes calls.

Written here because the stock servicer cannot end its watchers: one open Watch would hold a
shutdown up until its deadline.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

_Send = Callable[[health_pb2.HealthCheckResponse | None], None]
_Status = health_pb2.HealthCheckResponse


class _Watcher:
    """One watch: it is told the latest status, once.

    Args:
        look: returns the status of what is watched.
        send: sends an answer, or None for the end. It waits until gRPC has sent the one before.
    """

    def __init__(self, look: Callable[[], int], send: _Send) -> None:
        self._look = look
        self._send = send
        self._sending = threading.Lock()
        self._told: int | None = None
        self._ended = False

    def update(self) -> None:
        """Send the status, unless it is known."""
        with self._sending:
            status = self._look()
            if not self._ended and status != self._told:
                self._told = status
                self._send(_Status(status=status))

    def end(self) -> None:
        """End the watch."""
        with self._sending:
            if not self._ended:
                self._ended = True
                self._send(None)


class Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """The health of `services`, by full name, and of the server as a whole, under "".

    Everything is NOT_SERVING until `serving` says otherwise.
    """

    def __init__(self, services: Iterable[str]) -> None:
        # Never held while something is sent: sending waits for gRPC's thread, which takes it when
        # a watcher leaves.
        self._lock = threading.Lock()
        self._services = frozenset(services) | {""}
        self._status = _Status.NOT_SERVING
        self._watchers: set[_Watcher] = set()
        self._last_watched = time.monotonic()
        self._closed = False

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
            watcher.end()

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
        send: _Send,
    ) -> None:
        """Send the status now and at every change, without holding a thread."""
        known = request.service in self._services
        watcher = _Watcher(lambda: self._status if known else _Status.SERVICE_UNKNOWN, send)

        def leave() -> None:
            with self._lock:
                self._watchers.discard(watcher)
                self._last_watched = time.monotonic()

        with self._lock:
            closed = self._closed
            if not closed:
                self._watchers.add(watcher)
        watcher.update()
        if closed:
            watcher.end()
        elif not context.add_callback(leave):
            leave()

    # gRPC's way to serve a stream from callbacks instead of from a thread of the pool.
    Watch.experimental_non_blocking = True  # type: ignore[attr-defined]

    def _tell(self, status: int) -> None:
        with self._lock:
            self._status = status
            watchers = list(self._watchers)
        for watcher in watchers:
            watcher.update()
