"""Matchers: many texts match as each does alone, places are those of the text as it is stored, a
schema can neither read on nor run away, and what is compiled is kept.
"""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
import re2
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mneme_server.common.errors import InvalidArgument
from mneme_server.features.memory.patterns.matchers import (
    MOST_MATCHES,
    KeptMatchers,
    RegexMatcher,
    Searched,
    StructuralMatcher,
)
from mneme_server.features.memory.patterns.model import Regex, StructureOf

EXPRESSIONS = (
    "a", "a*", "^a", "a$", "^$", "^a?b$", r"\Aa", r"a\z", "[^a]+b", r"\W", r"\s", "a.b", "(?s)a.b",
    "(?m)^b", "(?-m:^a)", r"\bb", r"\Ba", "(?i)A", "a|^b$", r"[^\n]b", "é", r"\x0a", "(a|b)+é$",
    r"\Qa.\E", "",
)  # fmt: skip
TEXTS = st.lists(st.text("ab é\n.", min_size=1, max_size=6), min_size=1, max_size=8)


@given(TEXTS, st.sampled_from(EXPRESSIONS))
@example(["a", "b"], "a[^x]b")
@example(["b\na", "a", "a\n"], "^a$")
@settings(max_examples=300, deadline=None)
def test_many_texts_match_as_each_does_alone(texts: list[str], expression: str) -> None:
    matcher = RegexMatcher(expression)
    alone = re2.compile(expression)
    expected = [place for place, text in enumerate(texts) if alone.search(text) is not None]
    assert list(matcher.matching("\0".join(texts).encode())) == expected


def test_places_count_characters_and_groups_that_hold_nothing_are_empty() -> None:
    found = RegexMatcher(r"(\d+)(€)?").matches("é 12€, 7")
    assert [(one.text, one.start, one.end, list(one.groups)) for one in found] == [
        ("12€", 2, 5, ["12", "€"]),
        ("7", 7, 8, ["7", ""]),
    ]


def test_empty_matches_are_no_places_and_a_text_has_so_many_at_most() -> None:
    assert RegexMatcher("x*").matches("abc") == []
    assert len(RegexMatcher("a").matches("a" * 1000)) == MOST_MATCHES


def test_what_hangs_other_engines_answers_at_once() -> None:
    # Where an engine goes back and tries again, this takes longer than the universe has.
    matcher = RegexMatcher("(a+)+$")
    assert matcher.matching(b"\0".join([b"a" * 5_000 + b"!"] * 100)) == []
    assert matcher.matching(b"a" * 5_000) == [0]


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("(a", "missing )"),
        ("(?=a)", "invalid perl operator"),
        (r"(a)\1", "invalid escape"),
        (r"\C", "half a character"),
        (r"\\\C", "half a character"),
        ("((a{1000}){1000})", "repetition"),
    ],
)
def test_an_expression_that_cannot_be_used_is_refused_with_the_reason(
    expression: str, said: str
) -> None:
    with pytest.raises(InvalidArgument) as error:
        RegexMatcher(expression)
    assert said in error.value.message
    assert error.value.field == "regex.expression"


def test_a_backslash_before_a_c_is_a_backslash() -> None:
    assert RegexMatcher(r"\\C").matching(rb"a\C") == [0]


PIECES = ["a", "é", "e\u0301", "\u0323\u0302", "ậ", "서", "\u1109\u1165", "か\u3099", " ", "\u0958",
          "\u212b", "\u09c7\u09be", "\u0344"]  # fmt: skip
SEARCHED_TEXTS = st.text() | st.lists(st.sampled_from(PIECES)).map("".join)


@given(SEARCHED_TEXTS)
@example("e\u0301\u1109\u1165\u0958a")
def test_every_part_of_a_text_is_found_where_it_is_stored(text: str) -> None:
    searched = Searched(text)
    whole, start, end = searched.stored(0, len(searched.text))
    assert (whole, start, end) == (text, 0, len(text))
    parts = [searched.stored(place, place + 1)[0] for place in range(len(searched.text))]
    assert "".join(parts) == text


@given(before=SEARCHED_TEXTS, after=SEARCHED_TEXTS)
def test_a_match_is_what_the_stored_text_has_there(before: str, after: str) -> None:
    for form in ("NFC", "NFD"):
        text = f"{before} {unicodedata.normalize(form, 'Brücke')} {after}"
        for asked in ("NFC", "NFD"):
            matcher = RegexMatcher(unicodedata.normalize(asked, "(Brü)cke"))
            match = matcher.matches(text)[0]
            assert match.text == text[match.start : match.end]
            assert unicodedata.normalize("NFC", match.text) == "Brücke"
            assert unicodedata.normalize("NFC", match.groups[0]) == "Brü"
            if "\0" not in text:
                assert matcher.matching(text.encode()) == [0]


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


def test_a_pattern_is_compiled_once_for_each_tenant_and_cleared_for_one() -> None:
    now = 1000.0
    kept = KeptMatchers(clock=lambda: now)
    first = kept.of("ann", Regex("a"))
    assert kept.of("ann", Regex("a")) is first
    assert kept.of("bob", Regex("a")) is not first
    now = 1010.0
    assert kept.clear("ann", older_s=11) == 0
    assert kept.clear("ann", older_s=10) == 1
    assert kept.clear("ann") == 0
    assert kept.clear("bob") == 1


def test_only_the_last_ones_are_kept() -> None:
    kept = KeptMatchers()
    for number in range(100):
        kept.of("ann", Regex(str(number)))
    assert 0 < kept.clear("ann") < 100
