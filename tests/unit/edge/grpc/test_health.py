"""What watchers of the health are told, and when."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import cast

import grpc
import pytest
from grpc_health.v1 import health_pb2
from mneme_server.edge.grpc.health import Health
from support.sources import sending_at_once

NOT_SERVING, SERVING = (
    health_pb2.HealthCheckResponse.NOT_SERVING,
    health_pb2.HealthCheckResponse.SERVING,
)
LONG_S = 20.0


class Context:
    """A call's context: notes what is to be done when the caller leaves."""

    def __init__(self) -> None:
        self.leave: Callable[[], None] = lambda: None
        self.refused: grpc.StatusCode | None = None

    def add_callback(self, callback: Callable[[], None]) -> bool:
        self.leave = callback
        return True

    def cancel(self) -> None:
        """Nothing is cut off here."""

    def abort(self, code: grpc.StatusCode, details: str) -> None:
        self.refused = code
        raise Exception(details)


def _health() -> Health:
    return Health([], sending_at_once(), most=2)


def watch(health: Health, send: Callable[[object], None], context: Context | None = None) -> None:
    request = health_pb2.HealthCheckRequest()
    health.Watch(request, cast(grpc.ServicerContext, context or Context()), send)


def heard(told: list[object]) -> Callable[[object], None]:
    return lambda answer: told.append(getattr(answer, "status", None))


def test_a_watcher_hears_of_every_change_once_and_of_the_end() -> None:
    health, told = _health(), list[object]()
    watch(health, heard(told))
    health.serving()
    health.serving()
    health.shut_down()
    assert told == [NOT_SERVING, SERVING, NOT_SERVING, None]


def test_who_watches_after_the_shutdown_hears_of_it_and_of_nothing_more() -> None:
    health, told = _health(), list[object]()
    health.shut_down()
    watch(health, heard(told))
    health.serving()
    assert told == [NOT_SERVING, None]


def test_a_watcher_that_leaves_hears_no_more() -> None:
    health, told, context = _health(), list[object](), Context()
    watch(health, heard(told), context)
    context.leave()
    health.serving()
    assert told == [NOT_SERVING, None], "gRPC tells the end to nobody"


def test_a_watcher_can_leave_while_it_is_being_told() -> None:
    """Sending waits for gRPC's thread, which may be busy with the watcher's leaving."""
    health, context = _health(), Context()
    left = threading.Event()

    def send(answer: object) -> None:
        if getattr(answer, "status", None) == SERVING:
            grpc_thread = threading.Thread(target=lambda: (context.leave(), left.set()))
            grpc_thread.start()
            assert left.wait(LONG_S), "leaving waits for the sending, which waits for leaving"

    watch(health, send, context)
    health.serving()
    assert left.is_set()


def test_there_are_only_so_many_watchers_and_one_that_leaves_makes_room() -> None:
    health, contexts = _health(), [Context() for _ in range(3)]
    for context in contexts[:2]:
        watch(health, heard([]), context)
    with pytest.raises(Exception, match="2 watch the server's health already"):
        watch(health, heard([]), contexts[2])
    assert contexts[2].refused is grpc.StatusCode.RESOURCE_EXHAUSTED
    contexts[0].leave()
    told: list[object] = []
    watch(health, heard(told))
    assert told == [NOT_SERVING]
