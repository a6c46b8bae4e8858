"""Every tool can be passed on to every model: its schema breaks no maker's rules, and what models
send that is almost right is understood."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from mneme_mcp.toolsets import TOOLSETS, tools_of
from pydantic import ValidationError
from support.host_schemas import faults, made_strict

SPECS = list({spec.name: spec for spec in tools_of(TOOLSETS)}.values())
every_tool = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
LIFTED = {"resolve_threshold"}  # An empty one takes it away from an alert's rule.
ALTERNATIVES = ("anyOf", "oneOf", "allOf", "const")


@every_tool
def test_no_maker_of_models_refuses_the_tool(spec: Any) -> None:
    assert faults(spec.name, spec.arguments.schema_for_hosts()) == []


@every_tool
def test_each_argument_has_one_type(spec: Any) -> None:
    for node in _nodes(spec.arguments.schema_for_hosts()):
        assert isinstance(node["type"], str)
        assert not node.keys() & set(ALTERNATIVES)


@every_tool
def test_an_answer_has_no_alternatives(spec: Any) -> None:
    schema = spec.output.schema_for_hosts()
    assert schema["type"] == "object"
    for node in _nodes(schema):
        assert not node.keys() & set(ALTERNATIVES)
        assert not isinstance(node.get("type"), list)


@every_tool
def test_an_example_means_the_same_with_its_lists_objects_and_numbers_as_text(spec: Any) -> None:
    for example in _examples(spec.description):
        written = {name: _as_text(value) for name, value in example.items()}
        taken = spec.arguments.model_validate(example)
        assert spec.arguments.model_validate(written).request() == taken.request()
        assert spec.arguments.model_validate(written) == taken


@every_tool
def test_what_a_strict_model_leaves_open_is_as_if_it_were_not_given(spec: Any) -> None:
    schema = made_strict(spec.arguments.schema_for_hosts())
    required = spec.arguments.schema_for_hosts().get("required", ())
    for example in _examples(spec.description):
        given = {spec.arguments.field_named(name) for name in example}
        open_ = {
            name: ""
            for name, inner in schema["properties"].items()
            if inner["type"] in ("integer", "number", "boolean", "array", "object")
            and name not in {*required, *LIFTED}
            and spec.arguments.field_named(name) not in given
        }
        taken = spec.arguments.model_validate(example | open_)
        assert taken == spec.arguments.model_validate(example)


REFUSED = [
    ("a b", {"type": "object", "properties": {}}, "OpenAI: the name"),
    ("t", {"type": "object", "anyOf": [{"type": "object"}]}, "Anthropic: ['anyOf'] at the root"),
    ("t", {"type": "object", "properties": {"a": {"type": ["string", "number"]}}}, "Gemini: .a: t"),
    ("t", {"type": "object", "properties": {"a": {"type": "object"}}}, "OpenAI: .a: an object of"),
    ("t", {"type": "object", "properties": {"a": {"type": "array"}}}, "Gemini: .a: a list of noth"),
    ("t", {"type": "object", "properties": {"a": {"type": "string", "enum": [""]}}}, "Gemini: .a:"),
    (
        "t",
        {"type": "object", "properties": {"a": {"type": "string", "oneOf": [1]}}},
        "OpenAI: .a: [",
    ),
    ("t", {"type": "object", "properties": {"$a": {"type": "string"}}}, "Gemini: : the name '$a'"),
]


@pytest.mark.parametrize(("name", "schema", "said"), REFUSED, ids=[said for _, _, said in REFUSED])
def test_the_checker_finds_what_makers_refuse(name: str, schema: Any, said: str) -> None:
    assert any(fault.startswith(said) for fault in faults(name, schema)), faults(name, schema)


def test_an_argument_that_must_be_given_is_not_left_open() -> None:
    (recall,) = (spec for spec in SPECS if spec.name == "agentlens_recall")
    with pytest.raises(ValidationError, match="at least 1 character"):
        recall.arguments.model_validate({"query": ""})


def _as_text(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json.dumps(value)
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if numeric else value


def _examples(description: str) -> Iterator[dict[str, Any]]:
    text = description.partition("Example")[2]
    while "{" in text:
        text = text[text.index("{") :]
        example, length = json.JSONDecoder().raw_decode(text)
        yield example
        text = text[length:]


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from _nodes(inner)
    if "items" in schema:
        yield from _nodes(schema["items"])
