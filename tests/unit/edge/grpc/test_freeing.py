"""A call is freed when it ends: while it lives, its stream counts among its connection's."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from mneme.v1 import event_service_pb2 as pb
from mneme_server.common.errors import NotFound
from mneme_server.edge.grpc.call import Call
from support.sources import Given
from unit.edge.grpc.edge import Client, Edge

GET, UPLOAD, WATCH = (
    "EventService/GetSession", "EventService/StreamEvents", "EventService/WatchEvents",
)  # fmt: skip
REQUEST = pb.GetSessionRequest(session_id="s")


@pytest.fixture(autouse=True)
def _no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Ends:
    """Counts the calls that were freed."""

    def __init__(self, edge: Edge) -> None:
        self._freed = threading.Semaphore(0)
        self._edge = edge

    def behave(self, path: str, then: Any) -> None:
        """Have a method do something, and its call counted when it is freed."""
        freed = self._freed

        class Canary:
            def __del__(self) -> None:
                freed.release()

        def behaviour(request: Any, call: Call) -> Any:
            # It is freed with the context, which gRPC's own state of the call holds.
            call.edge.canary = Canary()  # type: ignore[attr-defined]
            return then(request)

        self._edge.on(path, behaviour)

    def wait(self, calls: int) -> bool:
        """Wait until so many calls were freed; tell whether they were."""
        return all(self._freed.acquire(timeout=10) for _ in range(calls))


@pytest.fixture
def ends(edge: Edge) -> Ends:
    return Ends(edge)


def test_a_call_that_was_answered_is_freed(ends: Ends, client: Client) -> None:
    ends.behave(GET, lambda _: pb.GetSessionResponse())
    for _ in range(100):  # More than a connection may have at once.
        client.call(GET, REQUEST)
    assert ends.wait(100)


def test_a_call_that_was_refused_is_freed(ends: Ends, client: Client) -> None:
    def refuse(_: object) -> None:
        raise NotFound("there is no session")

    ends.behave(GET, refuse)
    for _ in range(100):
        assert client.code(GET, REQUEST) is grpc.StatusCode.NOT_FOUND
    assert ends.wait(100)


def test_streams_are_freed(ends: Ends, client: Client) -> None:
    ends.behave(UPLOAD, lambda requests: iter([list(requests), pb.StreamEventsResponse()][1:]))
    ends.behave(WATCH, lambda _: Given(pb.WatchEventsResponse(), ends=True))
    for _ in range(40):
        list(client.open(UPLOAD, iter([])))
        client.call(WATCH, pb.WatchEventsRequest())
    assert ends.wait(80)


def test_streams_that_their_callers_leave_are_freed(ends: Ends, client: Client) -> None:
    ends.behave(WATCH, lambda _: Given(pb.WatchEventsResponse()))
    for _ in range(40):  # More than have seats, one after the other.
        stream = client.open(WATCH, pb.WatchEventsRequest())
        next(stream)
        stream.cancel()
        assert ends.wait(1)
