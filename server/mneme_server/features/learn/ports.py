"""Ports to what the use cases of learning need from storage."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

from mneme_server.engine.corpus.ports import Matrix
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.events.model import Outcome
from mneme_server.features.events.ports import SessionRepository
from mneme_server.features.learn.model import (
    Access,
    KnowledgeEntry,
    Lesson,
    LessonFilter,
    LessonText,
    Reflection,
    ReflectionFilter,
    ReflectionLimits,
    Saying,
)


class LessonRepository(Protocol):
    """The tenant's lessons."""

    def get_many(self, lesson_ids: Collection[str]) -> dict[str, Lesson]:
        """Return those that exist, by id."""
        ...

    def save(self, lessons: Collection[Lesson]) -> None:
        """Insert or replace these lessons."""
        ...

    def count_accesses(self, accesses: Mapping[str, Access]) -> None:
        """Add to the accesses of lessons, by id; unknown ones are ignored."""
        ...

    def page(
        self, filter_: LessonFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Lesson]:
        """Return lessons, latest update first, that come after the key (updated_us, id)."""
        ...

    def by_id(self, filter_: LessonFilter, after: str, limit: int) -> Sequence[Lesson]:
        """Return lessons by id, after that id."""
        ...

    def texts(self, filter_: LessonFilter) -> Iterator[Sequence[LessonText]]:
        """Yield the texts of all that match, some at a time."""
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


class ReflectionRepository(Protocol):
    """The tenant's reflections."""

    def get_many(self, reflection_ids: Collection[str]) -> dict[str, Reflection]:
        """Return those that exist, by id."""
        ...

    def add(self, reflection: Reflection, sayings: Matrix | None) -> None:
        """Insert a reflection with the vectors (n, d) of what worked, then of what did not; None
        while they have none."""
        ...

    def remove(self, reflection_ids: Collection[str]) -> None:
        """Remove reflections with their sayings."""
        ...

    def attempts(self, session_id: str, task_key: str) -> int:
        """Return the highest attempt number of a task in a session; 0 without any."""
        ...

    def beyond(self, newest: Reflection, limits: ReflectionLimits) -> Sequence[str]:
        """Return the oldest reflections that `newest`'s session and project have too many."""
        ...

    def page(
        self, filter_: ReflectionFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Reflection]:
        """Return reflections, newest first, that come after the key (created_us, id)."""
        ...

    def count(self, filter_: ReflectionFilter) -> int:
        """Return how many match."""
        ...

    def outcomes(self, filter_: ReflectionFilter) -> Mapping[Outcome, int]:
        """Return how many of those that match ended how."""
        ...

    def sayings(
        self, filter_: ReflectionFilter, *, worked: bool, outcomes: Collection[Outcome]
    ) -> tuple[Sequence[Saying], Matrix]:
        """Return what worked, or did not, in reflections with these outcomes, and the vectors
        (n, d): zeros for those that have none yet."""
        ...


class CounterRepository(Protocol):
    """Counts that outlive the rows they were taken from."""

    def add(self, counts: Mapping[str, int]) -> None:
        """Add to the counters."""
        ...

    def all(self) -> dict[str, int]:
        """Return every counter."""
        ...


class ReflectionsUnit(CorpusUnit, Protocol):
    """One transaction, as far as reflections are concerned."""

    @property
    def reflections(self) -> ReflectionRepository:
        """The tenant's reflections."""
        ...

    @property
    def sessions(self) -> SessionRepository:
        """The tenant's sessions."""
        ...

    @property
    def counters(self) -> CounterRepository:
        """The tenant's counters."""
        ...


class KnowledgeRepository(Protocol):
    """The tenant's knowledge log."""

    def get_many(self, entry_ids: Collection[str]) -> dict[str, KnowledgeEntry]:
        """Return those that exist, by id."""
        ...

    def add(self, entry: KnowledgeEntry) -> None:
        """Insert an entry."""
        ...


class KnowledgeUnit(CorpusUnit, Protocol):
    """One transaction, as far as the knowledge log is concerned."""

    @property
    def knowledge(self) -> KnowledgeRepository:
        """The tenant's knowledge log."""
        ...
