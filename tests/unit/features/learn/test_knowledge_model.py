"""Success rates, tokens and markdown of the knowledge log."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.features.learn.model import (
    FoundKnowledge,
    KnowledgeEntry,
    KnowledgeType,
    SuccessRate,
    count_tokens,
    markdown_of,
)


def found(context: str, lesson: str) -> FoundKnowledge:
    entry = KnowledgeEntry("project", KnowledgeType.ERROR, context, lesson, timestamp_us=1)
    return FoundKnowledge(entry, 1.0, None, None)


def said(text: str) -> SuccessRate:
    rate = SuccessRate.parse(text)
    assert rate is not None
    return rate


@given(st.integers(1, 999_999_999).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_rate_is_stored_as_text_and_read_again(rate: tuple[int, int]) -> None:
    assert said(str(SuccessRate(*rate))) == SuccessRate(*rate)
    assert SuccessRate.parse("") is None


@pytest.mark.parametrize("text", ["3/2", "1/0", "-1/2", "1", "x/y", "1/1/1"])
def test_a_text_that_says_no_rate_is_damage(text: str) -> None:
    with pytest.raises(ValueError, match=r"rate|unpack|literal"):
        SuccessRate.parse(text)


def test_an_entry_has_the_id_that_it_had_when_its_rate_was_text() -> None:
    entry = KnowledgeEntry(
        "project", KnowledgeType.ERROR, "context", "lesson", success_rate=SuccessRate(9, 10)
    )
    assert entry.identified(5).id == "ae4a981ec2a2a8e8fb364890fe1a0f25"


@pytest.mark.parametrize(
    ("rate", "bound"), [("1/1", 0.2065), ("90/100", 0.8256), ("0/5", 0.0), ("5/5", 0.5655)]
)
def test_the_wilson_bound_is_that_of_the_textbook(rate: str, bound: float) -> None:
    assert said(rate).lower_bound == pytest.approx(bound, abs=1e-3)


@given(st.integers(1, 1000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_bound_lies_below_the_rate_and_above_nothing(rate: tuple[int, int]) -> None:
    wins, tries = rate
    assert 0 <= SuccessRate(wins, tries).lower_bound <= wins / tries + 1e-9


@given(st.integers(1, 500), st.integers(0, 500))
def test_more_successes_out_of_as_many_never_lower_the_bound(tries: int, wins: int) -> None:
    wins = min(wins, tries - 1)
    assert SuccessRate(wins, tries).lower_bound < SuccessRate(wins + 1, tries).lower_bound


@given(
    st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), max_size=8), st.integers(50, 400)
)
def test_markdown_never_exceeds_its_budget(entries: list[tuple[str, str]], budget: int) -> None:
    answer = markdown_of([found(*entry) for entry in entries], budget)
    assert answer.tokens == count_tokens(answer.markdown) <= budget
    assert len(answer.found) + answer.omitted == len(entries)


def test_what_does_not_fit_the_budget_is_counted_once() -> None:
    entries = [found("deploy " * 1_000, "check it " * 1_000) for _ in range(100)]
    for budget in (1, 100_000):
        began = time.thread_time()
        answer = markdown_of(entries, budget)
        assert time.thread_time() - began < 1.0
        assert len(answer.found) == budget // 5_004


@given(st.text(), st.text())
def test_tokens_of_a_whole_are_no_fewer_than_those_of_a_part(a: str, b: str) -> None:
    assert count_tokens(a) <= count_tokens(a + " " + b)
