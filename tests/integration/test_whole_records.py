"""Records with every field set are answered as before, whatever they are converted through.

A record goes from a message through a model to a row and back, in lists, updates and exports as
well. An answer that is meant to change is written anew with `make generate`. What answers hold
besides records, the examples of the API show.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor
from support.api import METHODS
from support.examples import full_name
from support.server import LocalServer
from support.whole_records import CALLS, answers_of

RECORDS = frozenset(
    {"Agent", "AlertRule", "CausalEdge", "DiscoverySchedule", "Episode", "Event", "Experiment"}
    | {"Handover", "KnowledgeEntry", "LearningSession", "Lesson", "Memory", "Pattern", "Reflection"}
    | {"Session", "Skill", "SkillLink", "Trajectory", "AlertScope", "BoxSpace", "DictSpace"}
    | {"DiscreteSpace", "MultiDiscreteSpace", "NamedSpace", "RegexPattern", "SemanticPattern"}
    | {"SkillRecord", "SkillSignature", "Space", "StructuralPattern"}
)
# What the server sets later, or from more than a few calls.
UNSET = frozenset(
    {"AlertRule.last_triggered_at", "AlertRule.notify_held_reason"}
    | {"DiscoverySchedule.last_operation_id", "DiscoverySchedule.last_run_at"}
    | {"Session.system", "Skill.findings", "SkillRecord.episode_count"}
)


@pytest.fixture(scope="module")
def answers(server: LocalServer) -> list[Any]:
    return answers_of(server)


def test_whole_records_are_answered_as_before(answers: list[Any]) -> None:
    for i, (answer, kept) in enumerate(zip(answers, CALLS, strict=True)):
        was, now = (
            json.dumps(one, indent=1, sort_keys=True).splitlines()
            for one in (kept["answer"], answer)
        )
        changed = "\n".join(unified_diff(was, now, "kept", "now", lineterm=""))
        assert not changed, (
            f"call {i}, {kept['rpc']}, is answered in another way;"
            f" if it is meant: make generate\n{changed}"
        )


def _set_fields(message: Descriptor, value: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields that are set anywhere in an answer, as `Message.field`."""
    for name, inner in value.items():
        field = message.fields_by_name[name]
        yield f"{message.name}.{name}"
        if field.message_type is not None and field.message_type.file.package == "mneme.v1":
            for one in inner if isinstance(inner, list) else [inner]:
                if isinstance(one, dict):  # What is measured is not told.
                    yield from _set_fields(field.message_type, one)


def test_every_field_of_a_record_is_set_in_some_answer(answers: list[Any]) -> None:
    found: set[str] = set()
    messages: dict[str, Descriptor] = {}
    for call, said in zip(CALLS, answers, strict=True):
        if "shows" in call:
            continue
        message = METHODS[full_name(call["rpc"])].output_type
        messages |= message.file.message_types_by_name
        for one in said if isinstance(said, list) else [said]:
            found.update(_set_fields(message, one))
    wanted = set()
    for method in METHODS.values():
        for file in (method.output_type.file, *method.output_type.file.dependencies):
            messages |= file.message_types_by_name
    for name in RECORDS:
        wanted |= {f"{name}.{field.name}" for field in messages[name].fields}
    assert sorted(wanted - found) == sorted(UNSET)


def test_each_filter_of_a_list_is_tried_alone() -> None:
    tried: dict[str, set[str]] = defaultdict(set)
    for call in CALLS:
        if "shows" in call:
            given = call["request"].get("filter", call["request"])
            assert len(given) == 1
            tried[full_name(call["rpc"])] |= set(given)
    assert len(tried) > 10
    for rpc, names in tried.items():
        assert names == set(_filters(METHODS[rpc].input_type)), rpc


def _filters(request: Descriptor) -> Iterator[str]:
    """Yield what narrows or orders a list."""
    for field in request.fields:
        if field.name == "filter":
            yield from field.message_type.fields_by_name
        elif field.name not in ("page_size", "page_token"):
            yield field.name
