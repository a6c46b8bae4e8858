"""Ports of context: to storage, to recall and to the capability of learning."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.context.model import (
    Handover,
    QueuedSummary,
    SessionSummary,
)
from mneme_server.features.events.history import ActivityReader
from mneme_server.features.events.ports import EventsUnit
from mneme_server.features.learn.model import FoundReflection, ReflectionFilter
from mneme_server.features.learn.ports import LessonRepository
from mneme_server.features.recall.model import RecallAnswer


class SummaryRepository(Protocol):
    """The summaries of the tenant's sessions."""

    def get_many(self, session_ids: Collection[str]) -> dict[str, SessionSummary]:
        """Return those that exist, by session."""
        ...

    def save(self, summaries: Collection[SessionSummary]) -> None:
        """Insert or replace summaries."""
        ...

    def topics(self, session_ids: Collection[str]) -> Sequence[Sequence[str]]:
        """Return the topics of these sessions, in any order; those without a summary are left
        out."""
        ...

    def sessions_of(self, doc_ids: Sequence[int]) -> Mapping[int, str]:
        """Return the sessions of documents; those that are gone are left out."""
        ...


class HandoverRepository(Protocol):
    """The tenant's handovers."""

    def get_many(self, session_ids: Collection[str]) -> dict[str, Handover]:
        """Return those that exist, by session."""
        ...

    def save(self, handover: Handover) -> None:
        """Insert or replace a session's handover."""
        ...

    def last(self, project: str, agent_id: str, user_id: str) -> Handover | None:
        """Return the last one; of any project, agent or user where they are empty."""
        ...

    def weights(self, session_ids: Collection[str]) -> Mapping[str, int]:
        """Return `Handover.weight` of those that exist, by session."""
        ...


class SummaryQueue(Protocol):
    """The durable queue of sessions whose summaries are to be made."""

    def request(self, due_us: Mapping[str, int]) -> None:
        """Queue sessions for these times; one that is queued for an earlier time stays so."""
        ...

    def due(self, now_us: int, limit: int) -> Sequence[QueuedSummary]:
        """Return up to `limit` sessions whose turn has come, the earliest first."""
        ...

    def next_due_us(self) -> int | None:
        """Return when the next session's turn comes; None when the queue is empty."""
        ...

    def queued(self, session_ids: Collection[str]) -> set[str]:
        """Return those of the sessions that are queued, for whatever time."""
        ...

    def finish(self, session_ids: Collection[str]) -> None:
        """Take sessions off the queue."""
        ...

    def defer(self, session_ids: Collection[str], *, until_us: int, error: str = "") -> None:
        """Put sessions off; with an `error` that counts as an attempt."""
        ...


class ActivityUnit(CorpusUnit, Protocol):
    """One transaction, as far as the events of sessions are read one after another."""

    @property
    def activity(self) -> ActivityReader:
        """What the tenant's sessions held, and when they were active."""
        ...


class ContextUnit(EventsUnit, Protocol):
    """One transaction, as far as context is concerned."""

    @property
    def activity(self) -> ActivityReader:
        """What the tenant's sessions held, and when they were active."""
        ...

    @property
    def summaries(self) -> SummaryRepository:
        """The summaries of the tenant's sessions."""
        ...

    @property
    def handovers(self) -> HandoverRepository:
        """The tenant's handovers."""
        ...

    @property
    def summary_queue(self) -> SummaryQueue:
        """The sessions whose summaries are to be made."""
        ...

    @property
    def lessons(self) -> LessonRepository:
        """The tenant's lessons."""
        ...


class ReflectionSearch(Protocol):
    """Searches reflections; `features.learn.reflections.Reflections` does."""

    def search(
        self,
        tenant_id: str,
        task: str,
        filter_: ReflectionFilter,
        *,
        limit: int,
        min_score: float,
        min_confidence: float = 0.0,
        counted: bool = True,
    ) -> tuple[Sequence[FoundReflection], RecallAnswer]:
        """Return the reflections that bear on a task, and what recall said; count the search if it
        is to be `counted`."""
        ...
