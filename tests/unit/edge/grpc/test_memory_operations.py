"""Which RPCs are operations on memory is told by their names and fields: all of them exist."""

from __future__ import annotations

import pytest
from google.protobuf.descriptor import Descriptor
from mneme_server.edge.grpc.memory_operations import OPERATIONS, MemoryOperation
from unit.edge.grpc.edge import all_methods

METHODS = {f"{method.containing_service.name}/{method.name}": method for method in all_methods()}


def has(message: Descriptor, path: str) -> bool:
    for name in path.split("."):
        field = message.fields_by_name.get(name)
        if field is None:
            return False
        message = field.message_type or message
    return True


@pytest.mark.parametrize(("rpc", "operation"), OPERATIONS.items())
def test_an_operation_names_fields_that_its_messages_have(
    rpc: str, operation: MemoryOperation
) -> None:
    method = METHODS[rpc]
    asked = [name for name in (operation.asked, operation.query, operation.store) if name]
    told = [name for name in (operation.record, *operation.counts) if name]
    assert [name for name in asked if not has(method.input_type, name)] == []
    assert [name for name in told if not has(method.output_type, name)] == []


def test_what_searches_creates_updates_or_deletes_memories_is_an_operation() -> None:
    """Whoever adds such an RPC to these services is told of the table."""
    verbs = ("Search", "Retrieve", "Recall", "Create", "Insert", "Store", "Update", "Delete")
    services = ("RecallService", "MemoryService", "LearnService", "SkillService")
    meant = {
        rpc
        for rpc in METHODS
        if rpc.startswith(services) and rpc.partition("/")[2].startswith(verbs)
    }
    assert meant - set(OPERATIONS) == {
        # Patterns are looked for in memories, and are none themselves.
        "MemoryService/CreatePattern", "MemoryService/UpdatePattern",
        "MemoryService/DeletePattern",
    }  # fmt: skip
