"""A lesson's etag: another for another state, the same for the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.common.canonical import canonical_json
from mneme_server.features.learn import messages
from mneme_server.features.learn.model import CONTENT_FIELDS, Lesson, LessonImportance

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
    assert messages.imported_lesson(message, "lessons[0]").etag == message.etag == lesson.etag
