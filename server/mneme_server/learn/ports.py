"""What the use cases of lessons need from storage and from the embedder."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from mneme_server.corpus.ports import Matrix
from mneme_server.corpus.tenant import CorpusUnit
from mneme_server.learn.model import Lesson, LessonFilter


class LessonRepository(Protocol):
    """The tenant's lessons."""

    def get_many(self, lesson_ids: Collection[str]) -> dict[str, Lesson]:
        """Return those that exist, by id."""
        ...

    def save(self, lessons: Collection[Lesson]) -> None:
        """Insert or replace these lessons."""
        ...

    def count_access(self, lesson_ids: Collection[str], at_us: int) -> None:
        """Count that these lessons were returned."""
        ...

    def page(
        self, filter_: LessonFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Lesson]:
        """Return lessons, latest update first, that come after the key (updated_us, id)."""
        ...

    def by_id(self, filter_: LessonFilter, after: str, limit: int) -> Sequence[Lesson]:
        """Return lessons by id, after that id."""
        ...

    def count(self, filter_: LessonFilter) -> int:
        """Return how many match."""
        ...


class LessonsUnit(CorpusUnit, Protocol):
    """One transaction, as far as lessons are concerned."""

    @property
    def lessons(self) -> LessonRepository:
        """The tenant's lessons."""
        ...


class TextEmbedder(Protocol):
    """Embeds texts while a caller waits."""

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return unit vectors (n, d)."""
        ...
