"""Structures match what a JSON Schema says, and a schema can neither read on nor run away."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mneme_server.common.errors import InvalidArgument
from mneme_server.features.memory.patterns.matchers import StructuralMatcher
from mneme_server.features.memory.patterns.model import StructureOf


def matching(schema: Any, *items: Any, of: StructureOf = StructureOf.METADATA) -> list[int]:
    joined = b"\0".join(
        (item if isinstance(item, str) else json.dumps(item)).encode() for item in items
    )
    return list(StructuralMatcher(schema, of).matching(joined))


def test_items_that_are_valid_match() -> None:
    schema = {"required": ["kind"], "properties": {"kind": {"enum": ["a", "b"]}}}
    assert matching(schema, {"kind": "a"}, {"kind": "c"}, {}, {"kind": "b", "more": 1}) == [0, 3]


def test_references_lead_to_other_parts_of_the_schema() -> None:
    schema = {
        "$defs": {"a/b": {"type": "integer"}, "list": {"items": {"$ref": "#/$defs/a~1b"}}},
        "properties": {"n": {"$ref": "#/$defs/a~1b"}, "all": {"$ref": "#/$defs/list"}},
    }
    assert matching(schema, {"n": 1}, {"n": "1"}, {"all": [1, 2]}, {"all": [1, "2"]}) == [0, 2]


def test_a_property_may_be_called_like_a_keyword_and_data_is_no_schema() -> None:
    schema = {"properties": {"$ref": {"type": "string"}, "id": {"const": {"$ref": "http://a.b/c"}}}}
    assert matching(schema, {"$ref": "x"}, {"$ref": 1}, {"id": {"$ref": "http://a.b/c"}}) == [0, 2]


def test_texts_match_where_they_are_json() -> None:
    texts = ['{"a": 1}', "no JSON", '{"a": "1"}', "[1]", " {broken", "7", "true", "-", '"a"']
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert matching(schema, *texts, of=StructureOf.TEXT) == [0]
    assert matching({"type": "integer"}, *texts, of=StructureOf.TEXT) == [5]
    assert matching({"type": "string"}, *texts, of=StructureOf.TEXT) == [8]
    deep = "[" * 100_000 + "]" * 100_000
    assert matching({}, deep, "1" * 10_000, of=StructureOf.TEXT) in ([], [1])


def doubling(levels: int) -> dict[str, Any]:
    """A schema of which each level refers to the next twice."""
    steps: dict[str, Any] = {
        f"s{n}": {"allOf": [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(levels)
    }
    return {"$defs": steps | {f"s{levels}": {}}, "$ref": "#/$defs/s0"}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"$ref": "http://127.0.0.1:1/schema.json"}, "leads outside"),
        ({"$ref": "file:///etc/passwd"}, "leads outside"),
        ({"properties": {"a": {"$ref": "other.json"}}}, "leads outside"),
        ({"$ref": 7}, "leads outside"),
        ({"$ref": "#/nowhere"}, "leads nowhere"),
        ({"$ref": "#anchor"}, "leads nowhere"),
        ({"$ref": "#"}, "leads back"),
        ({"properties": {"child": {"$ref": "#"}}}, "leads back"),
        ({"properties": {"a": {"items": {"$ref": "#/properties/a"}}}}, "leads back"),
        ({"$dynamicRef": "#a"}, "$dynamicRef is not supported"),
        ({"properties": {"a": {"$id": "http://a.b/c"}}}, "belong to the top"),
        ({"$schema": "http://a.b/meta"}, "cannot be used"),
        ({"type": "nothing"}, "cannot be used"),
        ({"pattern": "(?=a)"}, "cannot be used"),
        (doubling(20), "parts"),
        (doubling(400), "cannot be used"),
    ],
)
def test_a_schema_that_leads_away_or_runs_away_is_refused(schema: Any, said: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        StructuralMatcher(schema, StructureOf.METADATA)
    assert said in error.value.message
    assert error.value.field == "structural.schema"


def test_an_expression_in_a_schema_takes_time_in_proportion_to_the_text() -> None:
    assert matching({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 50_000 + "!"}) == []
