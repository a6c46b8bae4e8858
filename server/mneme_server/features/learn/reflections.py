"""Storing reflections, and finding those that bear on a task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from mneme_server.common.clock import now_us
from mneme_server.common.errors import AlreadyExists
from mneme_server.common.identity import new_id
from mneme_server.engine.corpus.document import Document, DocumentFilter
from mneme_server.engine.corpus.ports import Matrix, TextEmbedder
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.engine.scheduling.foreground import Foreground
from mneme_server.features.events.outcome import Outcome
from mneme_server.features.learn.kinds import REFLECTION
from mneme_server.features.learn.ports import ReflectionsUnit
from mneme_server.features.learn.reflection_metrics import Counter, Tally, metrics_of
from mneme_server.features.learn.reflection_model import (
    FoundReflection,
    Reflection,
    ReflectionFilter,
    ReflectionLimits,
    ReflectionSummary,
    Saying,
)
from mneme_server.features.learn.themes import themes_of
from mneme_server.features.learn.usage import Usage
from mneme_server.features.recall.search import Answer, Recall, RecallQuery

RELEVANT_SIMILARITY = 0.3
"""A search whose best result is at least this similar, under the default model, counts as a hit."""
_RECENT = 5


@dataclass(frozen=True, slots=True)
class Reflections:
    """The use cases of reflections."""

    tenants: OpenTenants[ReflectionsUnit]
    embedder: TextEmbedder
    recall: Recall
    limits: ReflectionLimits
    tally: Tally
    usage: Usage
    foreground: Foreground = field(default_factory=Foreground)

    def store(self, tenant_id: str, given: Reflection) -> tuple[Reflection, int]:
        """Store the reflection; return it, and how many older ones left to make room.

        An empty id is made; attempt number 0 is counted. The same content again under the same id
        changes nothing.

        Raises:
            AlreadyExists: the id is taken by other content.
            ResourceExhausted: it cannot be embedded soon, and too much waits; nothing is stored.
        """
        reflection = replace(
            given,
            id=given.id or new_id(),
            tags=tuple(sorted(set(given.tags))),
            created_us=now_us(),
        )
        sayings = [*reflection.what_worked, *reflection.what_did_not_work]
        vectors = self.embedder.embed([reflection.text, *sayings])
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            known = unit.reflections.get_many([reflection.id]).get(reflection.id)
            if known is not None:
                _require_same(known, reflection)
                return known, 0
            if not reflection.attempt_number:
                before = unit.reflections.attempts(reflection.session_id, reflection.task_key)
                reflection = replace(reflection, attempt_number=before + 1)
            session = unit.sessions.get(reflection.session_id)
            document = _document(reflection, "" if session is None else session.user_id)
            if vectors is None:
                tenant.require_room(1)
                unit.reflections.add(reflection, None)
                unit.documents.add([document])
            else:
                unit.reflections.add(reflection, vectors[1:])
                unit.documents.add([document], vectors[:1])
            counts = _counts(unit, reflection)
            unit.counters.add(counts)
            pruned = unit.reflections.beyond(reflection, self.limits)
            if pruned:
                unit.reflections.remove(pruned)
                unit.documents.remove(REFLECTION, pruned)
        self.tally.add(counts)
        return reflection, len(pruned)

    def page(
        self,
        tenant_id: str,
        filter_: ReflectionFilter,
        after: tuple[int, str] | None,
        limit: int,
    ) -> tuple[Sequence[Reflection], int]:
        """Return reflections, newest first, after (created_us, id); and how many match."""
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            page = self.foreground.read_page(
                partial(unit.reflections.page, filter_),
                after,
                limit,
                lambda one: (one.created_us, one.id),
            )
            return page, unit.reflections.count(filter_)

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
    ) -> tuple[Sequence[FoundReflection], Answer]:
        """Return the reflections that bear on a task, and what recall said; count the search if it
        is to be `counted`."""
        answer = self.recall(
            tenant_id,
            RecallQuery(
                text=task,
                filter=_document_filter(filter_),
                limit=limit,
                min_score=min_score,
                min_confidence=min_confidence,
            ),
        )
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            stored = unit.reflections.get_many([r.document.source_id for r in answer.results])
        if counted:
            self._count_search(tenant_id, answer)
        found = [
            FoundReflection(stored[result.document.source_id], result.score, result.similarity)
            for result in answer.results
            if result.document.source_id in stored
        ]
        return found, answer

    def _count_search(self, tenant_id: str, answer: Answer) -> None:
        best = max((result.similarity or 0.0 for result in answer.results), default=0.0)
        enough = self.recall.scale.of_usual(RELEVANT_SIMILARITY)
        counts = {Counter.SEARCHED: 1, Counter.HIT: int(best >= enough)}
        self.usage.counted(tenant_id, counts)
        self.tally.add(counts)

    def summarize(self, tenant_id: str, filter_: ReflectionFilter, limit: int) -> ReflectionSummary:
        """Summarize every reflection that matches."""
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            outcomes = unit.reflections.outcomes(filter_)
            failures = unit.reflections.sayings(
                filter_, worked=False, outcomes={Outcome.FAILURE, Outcome.PARTIAL}
            )
            strategies = unit.reflections.sayings(filter_, worked=True, outcomes={Outcome.SUCCESS})
            recent = unit.reflections.page(filter_, None, _RECENT)
            counters = unit.counters.all()
        metrics = metrics_of(self.usage.counters(tenant_id, counters))
        failures, strategies = self._embedded(*failures), self._embedded(*strategies)
        total = sum(outcomes.values())
        return ReflectionSummary(
            total=total,
            success_rate=outcomes.get(Outcome.SUCCESS, 0) / total if total else 0.0,
            common_failures=themes_of(*failures, limit),
            effective_strategies=themes_of(*strategies, limit),
            recent=recent,
            metrics=metrics,
        )

    def _embedded(self, said: Sequence[Saying], vectors: Matrix) -> tuple[Sequence[Saying], Matrix]:
        """Fill in the vectors that could not be had when their reflections were stored.

        Those that are not to be had now either stay zero, like nothing but their own wording.
        """
        missing: list[int] = np.flatnonzero(~vectors.any(axis=1)).tolist()
        made = self.embedder.embed([said[row].text for row in missing]) if missing else None
        if made is None:
            return said, vectors
        filled = np.zeros((len(said), made.shape[1]), np.float32)
        filled[:, : vectors.shape[1]] = vectors
        filled[missing] = made
        return said, filled


def _counts(unit: ReflectionsUnit, reflection: Reflection) -> dict[str, int]:
    """Return what a new reflection adds to the counters."""
    applied = unit.reflections.get_many(reflection.applied_reflection_ids)
    elsewhere = any(one.session_id != reflection.session_id for one in applied.values())
    informed = bool(reflection.applied_reflection_ids)
    return {
        Counter.STORED: 1,
        Counter.ATTEMPTS[informed]: 1,
        Counter.SUCCESSES[informed]: int(reflection.outcome == Outcome.SUCCESS),
        Counter.CROSS_SESSION: int(elsewhere),
    }


def _require_same(known: Reflection, given: Reflection) -> None:
    differing = known.differing(given)
    if differing:
        raise AlreadyExists(
            f"reflection {known.id!r} exists with another {', '.join(differing)}",
            field="id",
        )


def _document(reflection: Reflection, user_id: str) -> Document:
    return Document(
        doc_id=0,
        kind=REFLECTION,
        source_id=reflection.id,
        text=reflection.text,
        timestamp_us=reflection.created_us,
        session_id=reflection.session_id,
        agent_id=reflection.agent_id,
        user_id=user_id,
        project=reflection.project,
        category=reflection.outcome.name.lower(),
        tags=reflection.tags,
    )


def _document_filter(filter_: ReflectionFilter) -> DocumentFilter:
    return DocumentFilter(
        kinds=frozenset({REFLECTION}),
        session_id=filter_.session_id,
        project=filter_.project,
        agent_id=filter_.agent_id,
        user_id=filter_.user_id,
        categories=_names(filter_.outcomes),
        tags=frozenset(filter_.tags),
    )


def _names(outcomes: Iterable[Outcome]) -> frozenset[str]:
    return frozenset(outcome.name.lower() for outcome in outcomes)
