"""Many texts at once match as each does alone."""

from __future__ import annotations

import pytest
import re2
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mneme_server.common.errors import InvalidArgument
from mneme_server.features.memory.patterns.matchers import MOST_MATCHES, RegexMatcher

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
