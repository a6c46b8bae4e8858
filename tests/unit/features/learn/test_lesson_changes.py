"""A lesson that somebody else changes between an update's look at it and its write."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast
from unittest import mock

import numpy as np
import pytest
from mneme_server.common.errors import Aborted, FailedPrecondition
from mneme_server.engine.corpus.ports import Matrix
from mneme_server.features.learn.lessons import Lessons
from mneme_server.features.learn.model import Lesson
from mneme_server.features.learn.usage import Usage


class Shelf:
    """The lessons of a tenant in memory, also as its transactions, its only repository."""

    def __init__(self) -> None:
        self.kept: dict[str, Lesson] = {}
        self.documents = mock.Mock()

    @contextmanager
    def open(self, *_: object) -> Iterator[Shelf]:
        yield self

    read = write = open

    def get(self, _repository: type) -> Shelf:
        return self

    def get_many(self, ids: Collection[str]) -> dict[str, Lesson]:
        return {id_: self.kept[id_] for id_ in ids if id_ in self.kept}

    def save(self, lessons: Collection[Lesson]) -> None:
        self.kept |= {lesson.id: lesson for lesson in lessons}


class Interrupted:
    """An embedder that lets something happen, once, while it works."""

    def __init__(self) -> None:
        self.meanwhile: Callable[[], object] | None = None

    def embed(self, texts: Sequence[str]) -> Matrix:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return np.zeros((len(texts), 3), np.float32)


@pytest.fixture
def embedder() -> Interrupted:
    return Interrupted()


@pytest.fixture
def lessons(embedder: Interrupted) -> Lessons:
    lessons = Lessons(cast("Any", Shelf()), embedder, mock.Mock(), Usage())
    lessons.create("t", Lesson(id="l", title="T", content="C", category="general"))
    return lessons


def _now(lessons: Lessons) -> Lesson:
    shelf = cast("Shelf", lessons.tenants)
    return shelf.kept["l"]


def test_an_update_without_an_etag_keeps_what_others_changed(
    lessons: Lessons, embedder: Interrupted
) -> None:
    embedder.meanwhile = lambda: lessons.update("t", "l", {"title": "theirs"})
    lessons.update("t", "l", {"content": "mine"})
    assert (_now(lessons).title, _now(lessons).content) == ("theirs", "mine")


def test_an_update_with_an_etag_is_refused_and_changes_nothing(
    lessons: Lessons, embedder: Interrupted
) -> None:
    embedder.meanwhile = lambda: lessons.update("t", "l", {"title": "theirs"})
    with pytest.raises(Aborted, match=r"lesson 'l' has changed: '\w+' is no longer its etag"):
        lessons.update("t", "l", {"content": "mine"}, etag=_now(lessons).etag)
    assert (_now(lessons).title, _now(lessons).content) == ("theirs", "C")


def test_a_change_to_and_fro_is_a_change(lessons: Lessons, embedder: Interrupted) -> None:
    def to_and_fro() -> None:
        lessons.update("t", "l", {"title": "theirs"})
        lessons.update("t", "l", {"title": "T"})

    embedder.meanwhile = to_and_fro
    with pytest.raises(Aborted):
        lessons.update("t", "l", {"content": "mine"}, etag=_now(lessons).etag)
    embedder.meanwhile = to_and_fro
    before = _now(lessons)
    after = lessons.update("t", "l", {"content": "mine"})
    assert after.updated_us > before.updated_us + 2, "later than both changes"


def test_an_update_of_what_is_archived_meanwhile_says_so(
    lessons: Lessons, embedder: Interrupted
) -> None:
    embedder.meanwhile = lambda: lessons.archive("t", "l")
    with pytest.raises(FailedPrecondition, match="is archived"):
        lessons.update("t", "l", {"content": "mine"})
    lessons.restore("t", "l")
    embedder.meanwhile = lambda: lessons.archive("t", "l")
    with pytest.raises(Aborted):
        lessons.update("t", "l", {"content": "mine"}, etag=_now(lessons).etag)
