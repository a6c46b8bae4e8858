"""A lesson's etag, and the knowledge log's success rates, tokens and markdown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.common.canonical import canonical_json
from mneme_server.features.learn import messages, model
from mneme_server.features.learn.model import (
    CONTENT_FIELDS,
    FoundKnowledge,
    KnowledgeEntry,
    KnowledgeType,
    Lesson,
    LessonImportance,
    SuccessRate,
    count_tokens,
    markdown_of,
)

LESSON = Lesson(
    id="l", title="T", content="C", category="general", created_us=1, updated_us=2, access_count=3
)
OTHERS: dict[str, Any] = dict.fromkeys(CONTENT_FIELDS, "x") | {
    "importance": LessonImportance.HIGH, "tags": ("x",), "context_json": '{"x":1}',
    "id": "x", "created_us": 9, "updated_us": 9, "archived_us": 9,
}  # fmt: skip

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
# Messages hold whole numbers as JSON spells them.
numbers = st.floats(-1e9, 1e9).map(lambda x: int(x) if x.is_integer() else x)
lessons = st.builds(
    Lesson,
    id=words,
    title=words,
    content=words,
    category=words,
    importance=st.sampled_from(LessonImportance),
    agent_id=words,
    project=words,
    tags=st.frozensets(words, max_size=3).map(lambda tags: tuple(sorted(tags))),
    context_json=st.dictionaries(words, words | numbers).map(canonical_json),
    created_us=st.integers(0, 2**50),
    updated_us=st.integers(0, 2**50),
    archived_us=st.none() | st.integers(0, 2**50),
)


@pytest.mark.parametrize("name", OTHERS)
def test_what_a_caller_changes_changes_the_etag(name: str) -> None:
    assert replace(LESSON, **{name: OTHERS[name]}).etag != LESSON.etag


def test_reading_a_lesson_does_not_change_its_etag() -> None:
    assert replace(LESSON, access_count=4, last_accessed_us=9).etag == LESSON.etag


def test_words_that_move_from_one_field_to_the_next_change_the_etag() -> None:
    assert replace(LESSON, title="TC", content="").etag != LESSON.etag


@given(lessons)
def test_an_exported_lesson_has_the_same_etag_where_it_is_imported(lesson: Lesson) -> None:
    message = messages.lesson(lesson)
    assert messages.read_lesson(message, "lessons[0]").etag == message.etag == lesson.etag


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


def test_what_does_not_fit_the_budget_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [found("deploy " * 1_000, "check it " * 1_000) for _ in range(100)]
    counted: list[str] = []
    monkeypatch.setattr(
        model, "count_tokens", lambda text: counted.append(text) or count_tokens(text)
    )
    for budget in (1, 100_000):
        counted.clear()
        answer = markdown_of(entries, budget)
        assert len(answer.found) == budget // 5_004
        # Each line by itself: those that fit, and the first that does not.
        assert sum("deploy" in text for text in counted) == len(answer.found) + 1
        assert max(map(len, counted)) < 20_000


@given(st.text(), st.text())
def test_tokens_of_a_whole_are_no_fewer_than_those_of_a_part(a: str, b: str) -> None:
    assert count_tokens(a) <= count_tokens(a + " " + b)
