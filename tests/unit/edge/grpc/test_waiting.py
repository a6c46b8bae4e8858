"""Calls whose caller is gone: not begun, and told so below."""

from __future__ import annotations

import threading
from typing import Any

import grpc
import pytest
from mneme.v1 import event_service_pb2 as pb
from mneme_server.common.deadline import time_left
from mneme_server.edge.grpc.call import Call
from unit.edge.grpc.conftest import MakeEdge
from unit.edge.grpc.edge import Client, Edge

GET = "EventService/GetSession"
STREAM = "EventService/StreamEvents"
REQUEST = pb.GetSessionRequest(session_id="s")
EVENT = pb.StreamEventsRequest(event=pb.NewEvent(session_id="s", event_type="message", text="x"))


@pytest.mark.parametrize(("path", "request_"), [(GET, REQUEST), (STREAM, EVENT)])
def test_a_call_whose_deadline_passed_in_the_queue_is_not_begun(
    path: str, request_: Any, make_edge: MakeEdge
) -> None:
    edge = make_edge(workers=1)
    client = edge.client(edge.key().secret)
    holds, may_end = threading.Event(), threading.Event()
    begun: list[str] = []

    def hold(request: Any, call: Call) -> Any:
        holds.set()
        assert may_end.wait(20)
        return pb.EndSessionResponse()

    def begin(request: Any, call: Call) -> Any:
        begun.append(path)
        return pb.GetSessionResponse() if path == GET else iter([pb.StreamEventsResponse()])

    edge.on("EventService/EndSession", hold)
    edge.on(path, begin)
    holding = threading.Thread(
        target=client.call, args=("EventService/EndSession", pb.EndSessionRequest(session_id="s"))
    )
    holding.start()
    assert holds.wait(20)
    with pytest.raises(grpc.RpcError) as late:
        client.call(path, request_, timeout=0.2)
    assert late.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    # The server's clock for the call started when the call arrived there, a little later.
    threading.Event().wait(0.5)
    may_end.set()
    holding.join(20)
    client.call("EventService/ListAgents")  # Comes after it in the queue of the one worker.
    assert begun == []


def test_what_serves_a_call_can_ask_how_long_its_caller_waits(edge: Edge, client: Client) -> None:
    seen: list[float | None] = []
    left, ended = threading.Event(), threading.Event()

    def behave(request: Any, call: Call) -> Any:
        call.on_end(left.set)
        seen.append(time_left())
        assert left.wait(20)
        seen.append(time_left())
        ended.set()
        return pb.GetSessionResponse()

    edge.on(GET, behave)
    client.call("EventService/ListAgents")  # So that the time is not spent on connecting.
    with pytest.raises(grpc.RpcError):
        client.call(GET, REQUEST, timeout=1)
    assert ended.wait(20)
    assert seen[0] is not None
    assert 0 < seen[0] < 2  # Its clock is a little behind at times.
    assert seen[1] == 0
    assert time_left() is None


def test_a_caller_without_a_deadline_has_no_limit(edge: Edge, client: Client) -> None:
    seen: list[float | None] = []

    def behave(request: Any, call: Call) -> Any:
        seen.append(time_left())
        return pb.GetSessionResponse()

    edge.on(GET, behave)
    client.call(GET, REQUEST, timeout=None)
    assert seen == [None]
