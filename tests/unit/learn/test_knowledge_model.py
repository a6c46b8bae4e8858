"""Success rates, tokens and markdown of the knowledge log."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.learn.knowledge_model import (
    FoundKnowledge,
    KnowledgeEntry,
    KnowledgeType,
    count_tokens,
    markdown_of,
    success_lower_bound,
)


def found(context: str, lesson: str) -> FoundKnowledge:
    entry = KnowledgeEntry("repo", KnowledgeType.ERROR, context, lesson, timestamp_us=1)
    return FoundKnowledge(entry, 1.0, None, None)


@pytest.mark.parametrize(
    ("rate", "bound"), [("1/1", 0.2065), ("90/100", 0.8256), ("0/5", 0.0), ("5/5", 0.5655)]
)
def test_the_wilson_bound_is_that_of_the_textbook(rate: str, bound: float) -> None:
    assert success_lower_bound(rate) == pytest.approx(bound, abs=1e-3)


@given(st.integers(1, 1000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_bound_lies_below_the_rate_and_above_nothing(rate: tuple[int, int]) -> None:
    wins, tries = rate
    bound = success_lower_bound(f"{wins}/{tries}")
    assert bound is not None
    assert 0 <= bound <= wins / tries + 1e-9


@given(st.integers(1, 500), st.integers(0, 500))
def test_more_successes_out_of_as_many_never_lower_the_bound(tries: int, wins: int) -> None:
    wins = min(wins, tries - 1)
    lower, higher = (
        success_lower_bound(f"{wins}/{tries}"),
        success_lower_bound(f"{wins + 1}/{tries}"),
    )
    assert lower is not None
    assert higher is not None
    assert lower < higher


@given(
    st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), max_size=8), st.integers(50, 400)
)
def test_markdown_never_exceeds_its_budget(entries: list[tuple[str, str]], budget: int) -> None:
    answer = markdown_of([found(*entry) for entry in entries], budget)
    assert answer.tokens == count_tokens(answer.markdown) <= budget
    assert len(answer.found) + answer.omitted == len(entries)


@given(st.text(), st.text())
def test_tokens_of_a_whole_are_no_fewer_than_those_of_a_part(a: str, b: str) -> None:
    assert count_tokens(a) <= count_tokens(a + " " + b)
