"""Every kind of memory is got, listed, changed and deleted in one way, and has an etag."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import pytest
from google.protobuf.descriptor import MethodDescriptor
from mneme.v1 import errors_pb2, options_pb2
from support.api import METHODS
from support.descriptors import services


class Kind(NamedTuple):
    """How RPCs name a kind: its service, one of it, and several.

    `holds` is its message, where that is not called as one of it is.
    """

    service: str
    one: str
    many: str
    holds: str = ""


KINDS = [
    Kind("LearnService", "Lesson", "Lessons"),
    Kind("LearnService", "Reflection", "Reflections"),
    Kind("LearnService", "Knowledge", "Knowledge", holds="KnowledgeEntry"),
    Kind("SkillService", "Episode", "Episodes"),
    Kind("SkillService", "Skill", "Skills"),
    Kind("CausalService", "Edge", "Edges", holds="CausalEdge"),
    Kind("CausalService", "Experiment", "Experiments"),
    Kind("AlertService", "AlertRule", "AlertRules"),
    Kind("MemoryService", "Pattern", "Patterns"),
]
"""What is kept and may be changed."""

OTHERWISE = {
    "memory": "DeleteMemories takes several ids, or a filter",
    "event": "it says what happened",
    "session": "it says what happened; it ends by its own RPC",
}
"""The kinds that Recall knows and that the table does not have, and why."""

each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.one)


def rpc(kind: Kind, name: str) -> MethodDescriptor:
    return METHODS[f"mneme.v1.{kind.service}/{name}"]


def part_of(message: Any, kind: Kind) -> str:
    """The field of a message that holds one of a kind."""
    (found,) = (
        field.name
        for field in message.fields
        if field.message_type is not None and field.message_type.name == (kind.holds or kind.one)
    )
    return str(found)


def test_every_kind_that_recall_knows_is_in_one_of_the_tables() -> None:
    brings = cast(Any, options_pb2.brings_kinds)
    known = {kind.name for one in services() for kind in one.GetOptions().Extensions[brings]}
    assert known - OTHERWISE.keys() <= {kind.one.lower() for kind in KINDS}
    assert OTHERWISE.keys() <= known


@each_kind
def test_one_is_got_by_its_id(kind: Kind) -> None:
    method = rpc(kind, f"Get{kind.one}")
    assert method.input_type.fields[0].name.endswith(("_id", "name"))
    assert part_of(method.output_type, kind)


@each_kind
def test_all_are_listed_in_pages_and_counted(kind: Kind) -> None:
    method = rpc(kind, f"List{kind.many}")
    asked = set(method.input_type.fields_by_name)
    assert {"page_size", "page_token"} <= asked
    narrowed = asked - {"page_size", "page_token"}
    assert "filter" in narrowed or len(narrowed) <= 1, "what has several filters has them in one"
    answered = method.output_type.fields_by_name
    assert {"next_page_token", "total_size"} <= set(answered)
    assert answered[part_of(method.output_type, kind)].is_repeated


@each_kind
def test_the_fields_that_a_mask_names_are_changed(kind: Kind) -> None:
    method = rpc(kind, f"Update{kind.one}")
    part = part_of(method.input_type, kind)
    mask = method.input_type.fields_by_name["update_mask"]
    named = cast(Any, mask.GetOptions()).Extensions[options_pb2.changeable].paths
    held = method.input_type.fields_by_name[part].message_type.fields_by_name
    assert named
    assert set(named) <= set(held) - {"id", "etag", "created_at", "updated_at"}
    assert part_of(method.output_type, kind) == part


@each_kind
def test_one_is_deleted_and_answered_as_it_was(kind: Kind) -> None:
    method = rpc(kind, f"Delete{kind.one}")
    assert {"etag", rpc(kind, f"Get{kind.one}").input_type.fields[0].name} == set(
        method.input_type.fields_by_name
    )
    assert part_of(method.output_type, kind)


@each_kind
def test_a_change_and_a_deletion_of_what_was_not_read_are_refused(kind: Kind) -> None:
    update = rpc(kind, f"Update{kind.one}")
    held = update.input_type.fields_by_name[part_of(update.input_type, kind)].message_type
    assert "etag" in held.fields_by_name
    for method in (update, rpc(kind, f"Delete{kind.one}")):
        errors = cast(Any, method.GetOptions()).Extensions[options_pb2.errors]
        assert "ERROR_REASON_ETAG_MISMATCH" in {
            errors_pb2.ErrorReason.Name(error.reason) for error in errors
        }
