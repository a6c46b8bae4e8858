"""What every tool says of itself, those of toolsets to come too."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mneme_mcp.arguments import CamelArguments
from mneme_mcp.text import count_tokens
from mneme_mcp.toolsets import DEFAULT, TOOLSETS, UnknownToolset, home_of, parse, tools_of

SPECS = tools_of(TOOLSETS)
# As counted here; JSON's punctuation costs common tokenizers about half of that.
DEFAULT_TOKENS = 6000


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
    shown = json.dumps(schema)
    assert "$ref" not in shown
    assert '"null"' not in shown


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


def test_the_default_tools_leave_room_in_the_context_window() -> None:
    shown = [(s.name, s.description, s.arguments.schema_for_hosts()) for s in tools_of(DEFAULT)]
    assert count_tokens(json.dumps(shown)) < DEFAULT_TOKENS


def test_toolsets_are_chosen_by_name() -> None:
    assert parse("") == DEFAULT
    assert parse("knowledge, core") == ("core", "knowledge")
    assert parse("all") == tuple(TOOLSETS)
    assert parse("default,events") == (*DEFAULT, "events")


def test_an_unknown_toolset_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UnknownToolset, match="'dreams'; choose from core, sessions"):
        parse("dreams")


def test_a_tool_knows_its_toolset() -> None:
    assert home_of("memory_log") == "knowledge"
    assert home_of("nothing") is None
