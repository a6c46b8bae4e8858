"""Reflections: stored, found where they bear on a task, grouped into themes, and counted."""

from __future__ import annotations

import math
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mneme_server.common import deadline, turns
from mneme_server.common.clock import now_us
from mneme_server.common.etags import existing, require_unchanged
from mneme_server.common.identity import new_id
from mneme_server.common.texts import composed
from mneme_server.engine.corpus.document import Document, DocumentFilter
from mneme_server.engine.corpus.ports import Matrix, TextEmbedder
from mneme_server.engine.corpus.revision import revised
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.events.model import Outcome
from mneme_server.features.events.store.sessions import SqlSessions
from mneme_server.features.learn.model import (
    REFLECTION,
    FoundReflection,
    Reflection,
    ReflectionFilter,
    ReflectionLimits,
    ReflectionMetrics,
    ReflectionSummary,
    Saying,
    Theme,
)
from mneme_server.features.learn.store.reflections import SqlCounters, SqlReflections
from mneme_server.features.learn.usage import Usage
from mneme_server.features.recall.model import RecallAnswer, RecallQuery
from mneme_server.features.recall.search import Recall

RELEVANT_SIMILARITY = 0.3
"""A search whose best result is at least this similar, under the default model, counts as a hit."""
_RECENT = 5
SAME_MEANING = 0.6
"""Cosine from which two sayings mean the same: under MiniLM, rewordings of one point lie above it,
different points on the same subject below."""
_BLOCK = 256
"""Wordings that are compared with all founders so far in one go: one by one, a vector's worth of
work would wait for megabytes of them to be read."""
_MAX_IDS = 20
_MAX_VARIANTS = 5
_GAUGES = {
    "reflection_store_count": ("store_count", "Reflections stored"),
    "reflection_search_count": ("search_count", "Searches for reflections"),
    "reflection_hit_rate": ("hit_rate", "Share of those searches that found something relevant"),
    "outcome_improvement_rate": (
        "outcome_improvement_rate",
        "Success rate of attempts with past lessons less that of those without",
    ),
    "cross_session_reuse": (
        "cross_session_reuse",
        "Attempts that applied a reflection of another session",
    ),
}
"""The metrics' names for operators, each with its field of `ReflectionMetrics`."""


@dataclass(frozen=True, slots=True)
class Reflections:
    """The use cases of reflections."""

    tenants: OpenTenants
    embedder: TextEmbedder
    recall: Recall
    limits: ReflectionLimits
    tally: ReflectionTotals
    usage: Usage

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
        vectors = self.embedder.embed([reflection.text, *reflection.sayings])
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            reflections = unit.get(SqlReflections)
            known = reflections.get_many([reflection.id]).get(reflection.id)
            if known is not None:
                require_unchanged("reflection", known, known.differing(reflection))
                return known, 0
            if not reflection.attempt_number:
                before = reflections.attempts(reflection.session_id, reflection.task_key)
                reflection = replace(reflection, attempt_number=before + 1)
            if vectors is None:
                tenant.require_room(1)
            _add(unit, reflection, vectors)
            counts = _counts(unit, reflection)
            unit.get(SqlCounters).add(counts)
            pruned = reflections.beyond(reflection, self.limits)
            if pruned:
                _remove(unit, pruned)
        self.tally.add(counts)
        return reflection, len(pruned)

    def get(self, tenant_id: str, reflection_id: str) -> Reflection:
        """Return the reflection.

        Raises:
            NotFound: there is no such reflection.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            return _existing(unit, reflection_id)

    def update(
        self, tenant_id: str, reflection_id: str, changes: Mapping[str, Any], *, etag: str = ""
    ) -> Reflection:
        """Change the given fields: what is concluded, not what was attempted and how it ended.

        What others change meanwhile is kept; with an `etag` it is the reason to refuse.

        Raises:
            NotFound: there is no such reflection.
            Aborted: `etag` is given and is not the reflection's any more.
            ResourceExhausted: it cannot be embedded soon, and too much waits; nothing is changed.
        """
        with self.tenants.open(tenant_id) as tenant:
            return revised(
                tenant,
                self.embedder,
                read=lambda unit: _existing(unit, reflection_id, etag),
                change=lambda before: replace(before, **changes),
                texts=lambda after: [after.text, *after.sayings],
                save=_rewrite,
            )

    def delete(self, tenant_id: str, reflection_id: str, *, etag: str = "") -> Reflection:
        """Delete the reflection, and return it as it was. The counters keep what it added.

        Raises:
            NotFound: there is no such reflection.
            Aborted: `etag` is given and is not the reflection's any more.
        """
        with self.tenants.open(tenant_id) as tenant, tenant.write() as unit:
            reflection = _existing(unit, reflection_id, etag)
            _remove(unit, [reflection_id])
        return reflection

    def page(
        self,
        tenant_id: str,
        filter_: ReflectionFilter,
        after: tuple[int, str] | None,
        limit: int,
    ) -> tuple[Sequence[Reflection], int]:
        """Return reflections, newest first, after (created_us, id); and how many match."""
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            page = turns.read_page(
                partial(unit.get(SqlReflections).page, filter_),
                after,
                limit,
                lambda one: (one.created_us, one.id),
            )
            return page, unit.get(SqlReflections).count(filter_)

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
        shared: bool = False,
    ) -> tuple[Sequence[FoundReflection], RecallAnswer]:
        """Return the reflections that bear on a task, and what recall said; count the search if it
        is to be `counted`. With `shared` also those of no user, agent or project."""
        answer = self.recall.search(
            tenant_id,
            RecallQuery(
                text=task,
                filter=replace(_document_filter(filter_), shared=shared),
                limit=limit,
                min_score=min_score,
                min_confidence=min_confidence,
            ),
        )
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            stored = unit.get(SqlReflections).get_many(
                [r.document.source_id for r in answer.results]
            )
        if counted:
            self._count_search(tenant_id, answer)
        found = [
            FoundReflection(stored[result.document.source_id], result.score, result.similarity)
            for result in answer.results
            if result.document.source_id in stored
        ]
        return found, answer

    def _count_search(self, tenant_id: str, answer: RecallAnswer) -> None:
        best = max((result.similarity or 0.0 for result in answer.results), default=0.0)
        enough = self.recall.scale.of_usual(RELEVANT_SIMILARITY)
        counts = {ReflectionCounter.SEARCHED: 1, ReflectionCounter.HIT: int(best >= enough)}
        self.usage.counted(tenant_id, counts)
        self.tally.add(counts)

    def summarize(self, tenant_id: str, filter_: ReflectionFilter, limit: int) -> ReflectionSummary:
        """Summarize every reflection that matches."""
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            reflections = unit.get(SqlReflections)
            outcomes = reflections.outcomes(filter_)
            failures = reflections.sayings(
                filter_, worked=False, outcomes={Outcome.FAILURE, Outcome.PARTIAL}
            )
            strategies = reflections.sayings(filter_, worked=True, outcomes={Outcome.SUCCESS})
            recent = reflections.page(filter_, None, _RECENT)
            counters = unit.get(SqlCounters).all()
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


def _existing(unit: CorpusUnit, reflection_id: str, etag: str = "") -> Reflection:
    """Return the reflection, which must still have this etag, if one is given."""
    found = unit.get(SqlReflections).get_many([reflection_id])
    return existing("reflection", found.get(reflection_id), reflection_id, etag)


def _add(unit: CorpusUnit, reflection: Reflection, vectors: Matrix | None) -> None:
    """Add a reflection and its document.

    The vectors (1 + n, d) are of its text and of its n sayings; None while they have none.
    """
    session = unit.get(SqlSessions).get(reflection.session_id)
    document = _document(reflection, "" if session is None else session.user_id)
    unit.get(SqlReflections).add(reflection, None if vectors is None else vectors[1:])
    unit.documents.add([document], None if vectors is None else vectors[:1])


def _remove(unit: CorpusUnit, reflection_ids: Sequence[str]) -> None:
    """Remove reflections and their documents."""
    unit.get(SqlReflections).remove(reflection_ids)
    unit.documents.remove(REFLECTION, reflection_ids)


def _rewrite(
    unit: CorpusUnit, after: Reflection, now: Reflection, vectors: Matrix | None
) -> Reflection:
    _remove(unit, [now.id])
    _add(unit, after, vectors)
    return after


def _counts(unit: CorpusUnit, reflection: Reflection) -> dict[str, int]:
    """Return what a new reflection adds to the counters."""
    applied = unit.get(SqlReflections).get_many(reflection.applied_reflection_ids)
    elsewhere = any(one.session_id != reflection.session_id for one in applied.values())
    informed = bool(reflection.applied_reflection_ids)
    return {
        ReflectionCounter.STORED: 1,
        ReflectionCounter.ATTEMPTS[informed]: 1,
        ReflectionCounter.SUCCESSES[informed]: int(reflection.outcome == Outcome.SUCCESS),
        ReflectionCounter.CROSS_SESSION: int(elsewhere),
    }


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


def themes_of(sayings: Sequence[Saying], vectors: Matrix, limit: int) -> list[Theme]:
    """Return the largest groups of sayings (n) that mean the same, by their vectors (n, d).

    The most frequent wordings found groups, and each later one joins the nearest founder that is
    near enough, so that the result does not depend on the order of the sayings.
    """
    if not sayings:
        return []
    wording: dict[str, list[int]] = defaultdict(list)
    for row, saying in enumerate(sayings):
        wording[" ".join(composed(saying.text).lower().split())].append(row)
    keys = sorted(wording, key=lambda key: (-len(wording[key]), key))
    distinct = vectors[[wording[key][0] for key in keys]]
    groups: dict[int, list[int]] = {}
    for place, founder in enumerate(_founders(distinct)):
        groups.setdefault(founder, []).extend(wording[keys[place]])
    ranked = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return [_theme([sayings[row] for row in rows]) for _, rows in ranked[:limit]]


def _founders(vectors: Matrix) -> list[int]:
    """Return for each row the row that founded its group."""
    founders: list[int] = []
    result: list[int] = []
    found = np.empty_like(vectors)
    for start in range(0, len(vectors), _BLOCK):
        deadline.check()
        block, known = vectors[start : start + _BLOCK], len(founders)
        near = np.empty((len(block), known + len(block)), vectors.dtype)
        near[:, :known] = block @ found[:known].T
        for place, vector in enumerate(block):
            count = len(founders)
            near[place, known:count] = found[known:count] @ vector
            best = int(near[place, :count].argmax()) if count else -1
            if best >= 0 and near[place, best] >= SAME_MEANING:
                result.append(founders[best])
            else:
                found[count] = vector
                founders.append(start + place)
                result.append(start + place)
    return result


def _theme(group: Sequence[Saying]) -> Theme:
    newest = sorted(group, key=lambda saying: (-saying.created_us, saying.reflection_id))
    wordings = Counter(saying.text for saying in newest)
    ordered = [text for text, _ in wordings.most_common()]
    return Theme(
        text=ordered[0],
        count=len(group),
        reflection_ids=list(dict.fromkeys(s.reflection_id for s in newest))[:_MAX_IDS],
        variants=ordered[1 : 1 + _MAX_VARIANTS],
    )


class ReflectionCounter:
    """The names of the counters that the metrics are made of."""

    STORED = "reflections_stored"
    SEARCHED = "reflections_searched"
    HIT = "reflections_hit"
    CROSS_SESSION = "reflections_cross_session"
    ATTEMPTS = ("attempts_without_lessons", "attempts_with_lessons")
    SUCCESSES = ("successes_without_lessons", "successes_with_lessons")


class ReflectionTotals:
    """What the tenants' counters moved by since the server's start, all tenants together."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()

    def add(self, counts: Mapping[str, int]) -> None:
        """Add what a transaction added, once it is committed."""
        with self._lock:
            for name, count in counts.items():
                self._counts[name] = self._counts.get(name, 0) + count

    def metrics(self) -> ReflectionMetrics:
        """The metrics over all tenants since the start."""
        with self._lock:
            return metrics_of(self._counts)

    def gauges(self) -> Iterator[tuple[str, str, Callable[[], float]]]:
        """Each metric's name, meaning and value; what means nothing yet is not a number."""
        for name, (counted, meaning) in _GAUGES.items():
            yield name, f"{meaning}, of all tenants since the start.", partial(self._value, counted)

    def _value(self, field: str) -> float:
        value: float | None = getattr(self.metrics(), field)
        return math.nan if value is None else float(value)


def metrics_of(counts: Mapping[str, int]) -> ReflectionMetrics:
    """Return what reflections were good for, as these counters give it: in each tenant's database,
    and since the start."""
    searched = counts.get(ReflectionCounter.SEARCHED, 0)
    rates = [
        counts.get(won, 0) / counts[tried] if counts.get(tried) else None
        for tried, won in zip(ReflectionCounter.ATTEMPTS, ReflectionCounter.SUCCESSES, strict=True)
    ]
    without, with_ = rates
    improvement = None if without is None or with_ is None else with_ - without
    return ReflectionMetrics(
        store_count=counts.get(ReflectionCounter.STORED, 0),
        search_count=searched,
        hit_rate=counts.get(ReflectionCounter.HIT, 0) / searched if searched else None,
        outcome_improvement_rate=improvement,
        cross_session_reuse=counts.get(ReflectionCounter.CROSS_SESSION, 0),
    )
