"""The tokens that writes are answered with, where a store does not answer."""

from __future__ import annotations

import pytest
from mneme.v1 import event_service_pb2 as pb
from mneme.v1.event_service_pb2_grpc import EventServiceStub
from mneme_server.common.consistency import ConsistencyToken
from mneme_server.common.errors import Unavailable
from mneme_server.edge.grpc.interceptors.consistency import TOKEN
from unit.edge.grpc.conftest import MakeEdge
from unit.edge.grpc.edge import Edge


def token_of_a_write(edge: Edge) -> str | None:
    metadata = [("authorization", f"Bearer {edge.key().secret}")]
    request = pb.EndSessionRequest(session_id="s")
    _, call = EventServiceStub(edge.channel()).EndSession.with_call(request, metadata=metadata)
    return dict(call.trailing_metadata()).get(TOKEN)


def test_a_write_that_changed_nothing_is_answered_with_a_token_of_what_there_is(
    make_edge: MakeEdge,
) -> None:
    token = ConsistencyToken(1, 2, 3)
    edge = make_edge(newest=lambda _tenant: token)
    assert token_of_a_write(edge) == str(token)


@pytest.mark.parametrize("error", [Unavailable("lost"), OSError("lost")])
def test_a_write_is_answered_without_a_token_where_the_store_cannot_be_asked(
    make_edge: MakeEdge, error: Exception
) -> None:
    def lost(_tenant: str) -> ConsistencyToken:
        raise error

    edge = make_edge(newest=lost)
    assert token_of_a_write(edge) is None
