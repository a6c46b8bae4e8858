"""How many calls a connection may have, and when one counts no longer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import grpc
from mneme.v1 import event_service_pb2 as pb
from mneme_server.common.errors import NotFound
from mneme_server.edge.grpc.call import Call
from unit.edge.grpc.conftest import MakeEdge
from unit.edge.grpc.edge import Client, Edge

GET = "EventService/GetSession"
PATH = "/mneme.v1.EventService/GetSession"
REQUEST = pb.GetSessionRequest(session_id="s")
ANNOUNCED = 8


def test_a_call_that_has_ended_takes_no_room_though_the_server_has_not_let_go_of_it(
    make_edge: MakeEdge,
) -> None:
    edge = make_edge(max_connection_streams=ANNOUNCED)
    held: list[Call] = []

    def hold(_request: Any, call: Call) -> pb.GetSessionResponse:
        held.append(call)  # gRPC counts it among the streams that it has memory for.
        return pb.GetSessionResponse()

    edge.on(GET, hold)
    client = edge.client(edge.key().secret)
    for _ in range(4 * ANNOUNCED):
        client.call(GET, REQUEST)
    assert len(held) == 4 * ANNOUNCED


def test_calls_beyond_what_a_connection_may_have_wait_at_the_client_and_none_fails(
    make_edge: MakeEdge,
) -> None:
    edge = make_edge(max_connection_streams=ANNOUNCED)
    assert _burst(edge, edge.channel(), 60 * ANNOUNCED) == {"OK": 60 * ANNOUNCED}


def test_calls_that_fail_free_their_places_as_those_that_are_answered_do(
    make_edge: MakeEdge,
) -> None:
    edge = make_edge(max_connection_streams=ANNOUNCED)

    def fail(_request: Any, _call: Call) -> None:
        raise NotFound("no session has this id")

    edge.on(GET, fail)
    assert _burst(edge, edge.channel(), 60 * ANNOUNCED) == {"NOT_FOUND": 60 * ANNOUNCED}


def test_many_calls_of_one_connection_take_nothing_from_another(make_edge: MakeEdge) -> None:
    edge = make_edge(max_connection_streams=ANNOUNCED)
    busy = _begin(edge, edge.channel(), 60 * ANNOUNCED)
    apart = grpc.insecure_channel(edge.address, [("grpc.use_local_subchannel_pool", 1)])
    other = Client(apart, edge.key("other").secret)
    for _ in range(20):
        other.call(GET, REQUEST)
    assert _ends(busy) == {"OK": 60 * ANNOUNCED}
    apart.close()


def _burst(edge: Edge, channel: grpc.Channel, calls: int) -> Counter[str]:
    """Make calls at once with gRPC's own client, which tries nothing again; count their ends."""
    return _ends(_begin(edge, channel, calls))


def _begin(edge: Edge, channel: grpc.Channel, calls: int) -> Sequence[Any]:
    get = channel.unary_unary(
        PATH,
        request_serializer=pb.GetSessionRequest.SerializeToString,
        response_deserializer=pb.GetSessionResponse.FromString,
    )
    metadata = [("authorization", f"Bearer {edge.key().secret}")]
    return [get.future(REQUEST, metadata=metadata) for _ in range(calls)]


def _ends(calls: Sequence[Any]) -> Counter[str]:
    return Counter(call.code().name for call in calls)
