"""grpc.health.v1: whether the server, and each of its services, takes calls.

Written here because the stock servicer cannot end its watchers: one open Watch would hold a
shutdown up until its deadline.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

_Send = Callable[[health_pb2.HealthCheckResponse | None], None]
_Status = health_pb2.HealthCheckResponse


class Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """The health of `services`, by full name, and of the server as a whole, under "".

    Everything is NOT_SERVING until `serving` says otherwise.
    """

    def __init__(self, services: Iterable[str]) -> None:
        self._lock = threading.Lock()
        self._services = frozenset(services) | {""}
        self._status = _Status.NOT_SERVING
        self._watchers: defaultdict[str, set[_Send]] = defaultdict(set)
        self._closed = False

    def serving(self) -> None:
        """Say that calls are taken."""
        self._tell(_Status.SERVING)

    def shut_down(self) -> None:
        """Say that no calls are taken, and end all watches."""
        self._tell(_Status.NOT_SERVING)
        with self._lock:
            self._closed = True
            watchers = [send for sends in self._watchers.values() for send in sends]
            self._watchers.clear()
        for send in watchers:
            send(None)

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

        def leave() -> None:
            with self._lock:
                self._watchers[request.service].discard(send)

        with self._lock:
            closed = self._closed
            send(_Status(status=self._status if known else _Status.SERVICE_UNKNOWN))
            if not closed:
                self._watchers[request.service].add(send)
        if closed:
            send(None)
        elif not context.add_callback(leave):
            leave()

    # gRPC's way to serve a stream from callbacks instead of from a thread of the pool.
    Watch.experimental_non_blocking = True  # type: ignore[attr-defined]

    def _tell(self, status: int) -> None:
        with self._lock:
            self._status = status
            for service, sends in self._watchers.items():
                if service in self._services:
                    for send in sends:
                        send(_Status(status=status))
