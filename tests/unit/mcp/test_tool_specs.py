"""What every tool says of itself, those of toolsets to come too."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from mneme_mcp.arguments import CamelArguments
from mneme_mcp.names import OTHER_NAMES
from mneme_mcp.spelling import to_camel, to_snake
from mneme_mcp.text import count_tokens
from mneme_mcp.toolsets import (
    DEFAULT,
    EARLIER,
    TOOLSETS,
    UnknownToolset,
    home_of,
    parse,
    shown,
    tools_of,
    unlisted,
)

SPECS = tools_of(TOOLSETS)
MOST_TOKENS = 1_800
"""Of the default tools' names, descriptions and schemas together, as counted here, on the safe
side: o200k_base counts almost half less of schemas, whose punctuation it joins."""
API_WORDS = re.compile(r"`|\bunset\b|\bRPC|\bREST\b|[A-Z]{2,}_|[a-z](Request|Response)\b|\b[sS]ee ")
"""What says nothing to a model: it sees no documentation of the API."""


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_a_description_says_what_when_and_what_comes_back(spec: Any) -> None:
    assert "Example" in spec.description
    assert "{" in spec.description
    if spec.name not in ("agentlens_session_end", "reflection_get", "reflection_summary"):
        assert "Use it" in spec.description
        assert "Returns" in spec.description
    assert count_tokens(spec.description) < 300


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_an_example_in_a_description_is_valid(spec: Any) -> None:
    decoder = json.JSONDecoder()
    examples = spec.description.partition("Example")[2]
    place = examples.find("{")
    found = 0
    while place != -1:
        example, length = decoder.raw_decode(examples[place:])
        spec.arguments.model_validate(example)
        found += 1
        place = examples.find("{", place + length)
    assert found


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_every_argument_is_described(spec: Any) -> None:
    schema = spec.arguments.schema_for_hosts()
    for name, inner in schema["properties"].items():
        assert inner.get("description"), name
        assert "title" not in inner
        assert not API_WORDS.search(inner["description"]), name
    shown = json.dumps(schema)
    assert "$ref" not in shown
    assert '"null"' not in shown


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_each_default_is_valid_under_the_schema_that_it_stands_in(spec: Any) -> None:
    for schema in (spec.arguments.schema_for_hosts(), spec.output.schema_for_hosts()):
        jsonschema_rs.meta.validate(schema)
        for place in with_defaults(schema):
            jsonschema_rs.validate(place, place["default"])


def test_a_time_may_be_seconds_too_as_a_number_or_a_text() -> None:
    (delete,) = (spec for spec in SPECS if spec.name == "agentdb_delete")
    taken = [
        delete.arguments.model_validate({"filters": {"before_timestamp": time}})
        for time in (4_000_000_000, "4000000000", "2096-10-02T07:06:40Z")
    ]
    assert taken[0] == taken[1] == taken[2]


def with_defaults(schema: Any) -> Iterator[dict[str, Any]]:
    """The parts of a schema that have a default."""
    if isinstance(schema, dict):
        if "default" in schema:
            yield schema
        for inner in schema.values():
            yield from with_defaults(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from with_defaults(inner)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_names_are_shown_in_the_spelling_of_the_document_that_asks_for_the_tool(spec: Any) -> None:
    camel = spec.name.startswith(("agentlens_", "reflection_"))
    assert issubclass(spec.arguments, CamelArguments) == camel
    names = spec.arguments.schema_for_hosts()["properties"]
    assert not any("_" in name for name in names) or not camel


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_annotations_do_not_contradict_each_other(spec: Any) -> None:
    assert not (spec.read_only and spec.destructive)


def test_tool_names_are_unique() -> None:
    names = [spec.name for spec in SPECS]
    assert len(names) == len(set(names))


def test_the_default_tools_are_six_and_leave_room_in_the_context_window() -> None:
    specs = tools_of(DEFAULT)
    assert [spec.name for spec in specs] == [
        "mneme_remember",
        "mneme_recall",
        "mneme_get",
        "mneme_update",
        "mneme_forget",
        "mneme_context",
    ]
    shown = [(spec.name, spec.description, spec.arguments.schema_for_hosts()) for spec in specs]
    assert count_tokens(json.dumps(shown)) <= MOST_TOKENS


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_the_same_argument_has_the_same_name_in_every_tool(spec: Any) -> None:
    shown = {to_snake(name) for name in spec.arguments.schema_for_hosts()["properties"]}
    own = {"text", "task", "task_description"} if not shown & {"query"} else set()  # What to keep.
    for name, others in OTHER_NAMES.items():
        assert not shown & (set(others) - own), f"{spec.name} shows another name of {name}"


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_an_argument_is_taken_by_each_of_its_other_names(spec: Any) -> None:
    names = {to_snake(name) for name in spec.arguments.schema_for_hosts()["properties"]}
    for name in names & set(OTHER_NAMES):
        for other in set(OTHER_NAMES[name]) - names:
            for spelling in (other, to_camel(other)):
                assert spec.arguments.field_named(spelling).strip("_") == name, spelling


def test_the_names_of_the_documents_that_ask_for_the_tools_are_taken() -> None:
    for tool, names in {
        "agentlens_context": {"topic": "query", "userId": "user_id"},
        "agentlens_recall": {"scope": "scope", "from": "from_", "minScore": "min_score"},
        "agentlens_learn": {"id": "lesson_id", "sourceSessionId": "source_session_id"},
        "reflection_store": {"projectId": "project", "taskDescription": "task_description"},
        "reflection_search": {"taskDescription": "query", "outcomeFilter": "outcome_filter"},
        "reflection_summary": {"projectId": "project"},
        "memory_log": {"repo": "project", "event_type": "event_type"},
    }.items():
        (spec,) = (spec for spec in SPECS if spec.name == tool)
        for name, field in names.items():
            assert spec.arguments.field_named(name) == field


def test_a_call_that_may_store_something_else_the_next_time_is_not_said_to_be_idempotent() -> None:
    said = {spec.name for spec in SPECS if spec.idempotent}
    assert said == {"memory_log", "agentlens_session_end", "learning_end_session"}


def test_the_guides_list_each_toolset_with_its_tools_and_count_them() -> None:
    guides = Path(__file__).parents[3] / "docs/guides"
    guide, compat = ((guides / name).read_text() for name in ("mcp.md", "mcp-compat.md"))
    for name, toolset in TOOLSETS.items():
        label = f"`{name}`{' (default)' if toolset.default else ''}"
        (row,) = re.findall(rf"^\| {re.escape(label)} \| ([^|]*) \|", guide, re.MULTILINE)
        if name != "compat":
            assert re.findall(r"`(\w+)`", row) == [spec.name for spec in toolset.tools()]
    assert f"There are {len(SPECS)} tools; {len(tools_of(DEFAULT))} of them" in guide
    for name in (*EARLIER, "sessions", "skills", "learning", "proof"):
        (row,) = re.findall(rf"^\| `{name}` \| ([^|]*) \|", compat, re.MULTILINE)
        assert re.findall(r"`(\w+)`", row) == [spec.name for spec in tools_of([name])]
    assert f"`compat` has {len(tools_of(['compat']))} tools" in compat


def test_toolsets_are_chosen_by_name() -> None:
    assert parse("") == DEFAULT
    assert parse("lessons, sessions") == ("sessions", "lessons")
    assert parse("all") == tuple(TOOLSETS)
    assert parse("default,operations") == (*DEFAULT, "operations")


def test_a_toolset_by_an_earlier_name_has_the_tools_that_it_had() -> None:
    assert parse("knowledge, core") == ("core", "knowledge")
    earlier = {
        "core": ["agentlens_recall", "agentlens_learn", "agentlens_reflect", "agentlens_context"],
        "sessions": ["sleep", "wake_up", "semantic_session_search"],
        "knowledge": ["memory_log", "memory_query"],
        "skills": ["reflexion_store", "reflexion_retrieve", "skill_create", "skill_search",
                   "skill_consolidate"],
        "proof": ["recall_with_certificate"],
    }  # fmt: skip
    for name, tools in earlier.items():
        assert [spec.name for spec in tools_of(parse(name))] == tools
    assert parse("default,events") == (*DEFAULT, "events")


def test_compat_has_every_tool_that_the_others_have_but_those_of_mnemes_own_names() -> None:
    names = {spec.name for spec in tools_of(["compat"])}
    assert len(names) == 58
    rest = {spec.name for spec in tools_of(name for name in TOOLSETS if name != "compat")}
    assert rest - names == {spec.name for spec in tools_of(DEFAULT)} | {"mneme_profile"}
    assert {spec.name for spec in tools_of(EARLIER)} < names


def test_beside_the_plain_tools_those_that_were_the_default_are_answered_unlisted() -> None:
    assert len(unlisted(DEFAULT)) == 13
    assert [spec.name for spec in unlisted(parse("default,reflection,lessons"))] == [
        "agentlens_recall",
        "agentlens_context",
        "sleep",
        "wake_up",
        "semantic_session_search",
    ]
    assert unlisted(parse("knowledge")) == []


def test_beside_the_plain_tools_no_other_speaks_of_a_tool_that_they_replace() -> None:
    for chosen in ("default,operations", "default,sessions,reflection", "default,skills"):
        text = " ".join(spec.description + spec.if_missing for spec in shown(parse(chosen)))
        assert not re.search(r"agentlens_(recall|context)|agentdb_(insert|search)\b", text), chosen
    alone = " ".join(spec.description for spec in shown(parse("all")))
    assert "agentlens_recall looks everywhere" in alone


def test_an_unknown_toolset_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UnknownToolset, match="'dreams'; choose from plain, sessions"):
        parse("dreams")


def test_a_tool_knows_its_toolset() -> None:
    assert home_of("memory_log") == "reflection"
    assert home_of("agentdb_insert") == "compat"
    assert home_of("nothing") is None
