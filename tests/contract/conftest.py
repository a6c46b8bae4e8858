"""A tenant that has something of every kind, for the tests that call every RPC."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mneme.v1 import operation_pb2 as operation_pb
from mneme.v1 import operation_service_pb2 as operations_pb
from support.operations import ended
from support.server import LocalServer
from support.world import World, world_of


@pytest.fixture(scope="session")
def _world(server: LocalServer) -> World:
    """One for all of them: it takes seconds to make."""
    return world_of(server.keys)


@pytest.fixture
def world(_world: World) -> Iterator[World]:
    """Wait for what a test has started: a restore or a re-index is in the way of other calls."""
    yield _world
    unfinished = [operation_pb.OPERATION_STATE_QUEUED, operation_pb.OPERATION_STATE_RUNNING]
    asked = operations_pb.ListOperationsRequest(states=unfinished)
    for operation in _world.api.operation.ListOperations(asked).operations:
        ended(_world.api, operation.id)
