"""GetContext and SearchSessions: what bears on a topic, of every kind, past sessions with their key
events above all, and all of it as one text for a prompt."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from mneme_server.common import turns
from mneme_server.common.clock import now_us
from mneme_server.engine.corpus.document import DocumentFilter, MemoryKind
from mneme_server.engine.corpus.ports import TextEmbedder
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.context.attempts import Attempts, attempts_of
from mneme_server.features.context.experience import Attempt, Experience, ProvenSkill
from mneme_server.features.context.items import (
    Composition,
    ContextFormat,
    ContextOutcome,
    attempt_item,
    compose,
    lesson_item,
    recalled_item,
    reflection_item,
    session_items,
    skill_item,
)
from mneme_server.features.context.key_events import key_events
from mneme_server.features.context.learned import Learned, bears_on
from mneme_server.features.context.model import SESSION, ContextSession, PastSession
from mneme_server.features.context.profile import pinned_for
from mneme_server.features.context.sessions import document_filter, load, recency
from mneme_server.features.events.event_types import EVENT
from mneme_server.features.events.history import ActivityFilter, active_us
from mneme_server.features.events.model import Session
from mneme_server.features.events.store.history import SqlActivity
from mneme_server.features.events.store.sessions import SqlSessions
from mneme_server.features.events.tasks import task_label, task_named
from mneme_server.features.learn.model import LESSON, REFLECTION, FoundLesson, FoundReflection
from mneme_server.features.recall.confidence import FACTS_BY_DEFAULT, RECALLED_BY_DEFAULT
from mneme_server.features.recall.model import RecallAnswer, Recalled, RecallQuery
from mneme_server.features.recall.relative import NOW, AsOf
from mneme_server.features.recall.search import Recall

RELEVANCE_WEIGHT = 0.7
RECENCY_WEIGHT = 0.3
_SESSIONS = 50
"""Sessions that are looked at, at least: recency may lift one that is less relevant."""
_EVENTS = 40
_NAMED = 5_000
"""Sessions that a search for events is restricted to by their ids."""
DEFAULT_BUDGET = 2_000
_ATTEMPTS = 50
"""Sessions at one task that are told of, at most."""
_FACTS = 20
"""Memories and other facts that are looked at."""
_NEAR_BEST = 0.5
"""What scores less than this share of the best of its kind is not told: it is what recall returns
for want of anything better."""


@dataclass(frozen=True, slots=True)
class FoundContext:
    """What bears on a topic. `total` counts the sessions that were searched."""

    sessions: Sequence[ContextSession]
    lessons: Sequence[FoundLesson]
    reflections: Sequence[FoundReflection]
    total: int
    composition: Composition
    words_only: bool = False
    attempts: Sequence[Attempt] = ()
    skills: Sequence[ProvenSkill] = ()


@dataclass(frozen=True, slots=True)
class FoundSession:
    """A session and how well it fits."""

    past: PastSession
    score: float
    similarity: float | None


@dataclass(frozen=True, slots=True)
class ContextWanted:
    """How much of a context is wanted, and how it is to be read.

    `limit` is of sessions, and of each kind that is listed apart; `budget` the tokens of the text.
    Whatever recall is less sure of than `min_confidence` is left out; None: than its defaults.
    Days that the topic names relative to it are meant `as_of` when it is asked.
    """

    limit: int
    budget: int = DEFAULT_BUDGET
    written: ContextFormat = ContextFormat.MARKDOWN
    min_confidence: float | None = None
    with_experience: bool = True
    as_of: AsOf = NOW


@dataclass(slots=True)
class _SessionCandidate:
    relevance: float
    similarity: float | None = None
    event_ids: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class GetContext:
    """Finds the sessions, lessons, reflections, episodes and skills that bear on a topic."""

    tenants: OpenTenants
    embedder: TextEmbedder
    recall: Recall
    learned: Learned
    kinds: Mapping[str, MemoryKind]
    experience: Experience = field(default_factory=Experience)

    def on(
        self,
        tenant_id: str,
        topic: str,
        filter_: ActivityFilter,
        wanted: ContextWanted,
        *,
        counted: bool = True,
    ) -> FoundContext:
        """Return what bears on the topic; sessions by 0.7 relevance and 0.3 recency.

        Count what is read of lessons and reflections if it is to be `counted`.

        Relevance is recall's score of the session, by its summary and its events. One that is
        still active and has no summary is found by its best event.

        When the topic cannot be embedded soon, its words alone decide.
        """
        now, limit, least = now_us(), wanted.limit, wanted.min_confidence
        said_surely = RECALLED_BY_DEFAULT if least is None else least
        sure = FACTS_BY_DEFAULT if least is None else least
        candidates, events, words_only = self._candidates(
            tenant_id, topic, filter_, said_surely, max(_SESSIONS, 2 * limit), as_of=wanted.as_of
        )
        with self.tenants.open(tenant_id) as tenant:
            with tenant.read() as unit, turns.piece():
                sessions, attempts_at = _best(unit, candidates, filter_, limit, now)
                total = unit.get(SqlActivity).count(filter_)
                recorded_in = {one.document.session_id for one in events}
                sessions_of = unit.get(SqlSessions).get_many(recorded_in)
                of_agents = {key for key, one in sessions_of.items() if not one.system}
                pinned = pinned_for(unit, filter_, wanted.budget)
            sessions = self._with_events(tenant, topic, sessions, candidates, filter_)
        learned = self.learned
        lessons = learned.lessons_on(
            tenant_id, topic, filter_, limit, counted=counted, min_confidence=sure
        )
        reflections = learned.reflections_on(
            tenant_id, topic, filter_, limit, counted=counted, min_confidence=sure
        )
        attempts: Sequence[Attempt] = ()
        skills: Sequence[ProvenSkill] = ()
        if wanted.with_experience:
            known = self.experience
            attempts = known.attempts_on(
                tenant_id, topic, filter_, limit, bears_on, min_confidence=sure
            )
            skills = known.skills_on(
                tenant_id, topic, filter_, limit, bears_on, min_confidence=sure
            )
        facts = self._facts(tenant_id, topic, filter_, sure, as_of=wanted.as_of)
        with turns.piece():
            items = [
                *map(recalled_item, _near_best(facts)),
                *map(recalled_item, _near_best(_of_agents(events, of_agents))),
                *session_items(
                    sessions, {key: one.relevance for key, one in candidates.items()}, attempts_at
                ),
                *map(lesson_item, lessons),
                *map(reflection_item, reflections),
                *map(attempt_item, attempts),
                *map(skill_item, skills),
            ]
            composition = compose(items, wanted.budget, wanted.written, pinned)
        if not (items or pinned) and not self._stores(tenant_id):
            composition = replace(composition, outcome=ContextOutcome.NOTHING_STORED)
        return FoundContext(
            sessions=sessions,
            lessons=lessons,
            reflections=reflections,
            total=total,
            composition=composition,
            words_only=words_only,
            attempts=attempts,
            skills=skills,
        )

    def _stores(self, tenant_id: str) -> bool:
        with self.tenants.open(tenant_id) as tenant:
            return tenant.index.select(DocumentFilter()).count > 0

    def _facts(
        self,
        tenant_id: str,
        topic: str,
        filter_: ActivityFilter,
        min_confidence: float,
        *,
        as_of: AsOf,
    ) -> Sequence[Recalled]:
        """Return memories and other facts: of every kind that is not looked for otherwise."""
        others = {SESSION, EVENT, LESSON, REFLECTION} | self.experience.kinds
        documents = replace(
            document_filter(filter_),
            kinds=frozenset(self.kinds.values()) - others,
            include_archived=False,
        )
        with self.tenants.open(tenant_id) as tenant:
            if not tenant.index.select(documents).count:
                return ()
        found = self._recalled(tenant_id, topic, documents, _FACTS, min_confidence, as_of=as_of)
        return found.results

    def _candidates(
        self,
        tenant_id: str,
        topic: str,
        filter_: ActivityFilter,
        min_confidence: float,
        limit: int,
        *,
        as_of: AsOf,
    ) -> tuple[dict[str, _SessionCandidate], Sequence[Recalled], bool]:
        """Return what recall finds, by session; the events that it finds; and whether it went by
        words only.

        What does not bear on the topic, by its summary or an event, is left out.
        """
        sessions = self._recalled(
            tenant_id, topic, document_filter(filter_), limit, min_confidence, as_of=as_of
        )
        ranked = {found.document.source_id: found for found in sessions.results}
        candidates = {
            key: _SessionCandidate(found.score, found.similarity)
            for key, found in ranked.items()
            if bears_on(topic, found, self.recall.scale)
        }
        documents = self._events_of(tenant_id, filter_)
        events = self._recalled(tenant_id, topic, documents, _EVENTS, min_confidence, as_of=as_of)
        for event in events.results:
            if bears_on(topic, event, self.recall.scale):
                key = event.document.session_id
                found = ranked.get(key, event)
                similarity = found.similarity if key in ranked else None
                candidate = candidates.setdefault(key, _SessionCandidate(found.score, similarity))
                candidate.event_ids.append(event.document.source_id)
        return candidates, events.results, sessions.words_only or events.words_only

    def _recalled(
        self,
        tenant_id: str,
        topic: str,
        documents: DocumentFilter,
        limit: int,
        min_confidence: float,
        *,
        as_of: AsOf,
    ) -> RecallAnswer:
        query = RecallQuery(
            text=topic,
            filter=documents,
            limit=limit,
            min_confidence=min_confidence,
            as_of=as_of,
        )
        return self.recall.search(tenant_id, query)

    def _events_of(self, tenant_id: str, filter_: ActivityFilter) -> DocumentFilter:
        """Return the filter for the events of these sessions.

        An event may be older than the end of its session, by which sessions are filtered, and of
        another agent. So the sessions are named, unless they are very many: then most of what is
        found is theirs. What names another user than the session's is not the user's.
        """
        of_project = DocumentFilter(
            kinds=frozenset({EVENT}),
            project=filter_.project,
            user_id=filter_.user_id,
            shared=filter_.shared,
        )
        if filter_ == ActivityFilter(project=filter_.project, shared=filter_.shared):
            return of_project
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            ids = unit.get(SqlActivity).ids(filter_, _NAMED + 1)
        if len(ids) > _NAMED:
            return replace(document_filter(filter_, EVENT), start_us=None)
        return replace(of_project, session_ids=frozenset(ids))

    def _with_events(
        self,
        tenant: OpenTenant,
        topic: str,
        found: Sequence[ContextSession],
        candidates: Mapping[str, _SessionCandidate],
        filter_: ActivityFilter,
    ) -> list[ContextSession]:
        if not found:
            return []
        made = self.embedder.embed([topic])  # Recall has embedded it: it is in the cache.
        vector = None if made is None else made[0]
        recalled = {key: candidate.event_ids for key, candidate in candidates.items()}
        with tenant.read() as unit, turns.piece():
            chosen = key_events(
                unit,
                tenant.index,
                [one.past for one in found],
                vector,
                recalled,
                user_id=filter_.user_id,
                shared=filter_.shared,
            )
        return [replace(one, key_events=chosen[one.past.session.id]) for one in found]


@dataclass(frozen=True, slots=True)
class SearchSessions:
    """Searches sessions by their summaries, handovers and events."""

    tenants: OpenTenants
    recall: Recall

    def search(
        self,
        tenant_id: str,
        query: str,
        filter_: ActivityFilter,
        *,
        limit: int,
        min_score: float,
        as_of: AsOf = NOW,
    ) -> tuple[list[FoundSession], RecallAnswer]:
        """Return the sessions that fit best, and what recall said."""
        answer = self.recall.search(
            tenant_id,
            RecallQuery(
                text=query,
                filter=document_filter(filter_),
                limit=limit,
                min_score=min_score,
                as_of=as_of,
            ),
        )
        ids = [result.document.source_id for result in answer.results]
        with self.tenants.open(tenant_id) as tenant, tenant.read() as unit:
            known = load(unit, ids)
        found = [
            FoundSession(known[key], result.score, result.similarity)
            for key, result in zip(ids, answer.results, strict=True)
            if key in known
        ]
        return found, answer


def _best(
    unit: CorpusUnit,
    candidates: Mapping[str, _SessionCandidate],
    filter_: ActivityFilter,
    limit: int,
    now: int,
) -> tuple[list[ContextSession], dict[str, Attempts]]:
    """Return the candidates that rank highest, the best first; and, by the first session of each
    task that several of the candidates were at, these attempts."""
    sessions = unit.get(SqlSessions).get_many(list(candidates))
    ranked = [
        (
            RELEVANCE_WEIGHT * candidates[key].relevance
            + RECENCY_WEIGHT * recency(active_us(session), now),
            key,
        )
        for key, session in sessions.items()
        if filter_.lets_through(session)
    ]
    ranked.sort(key=lambda item: (-item[0], item[1]))
    best = ranked[:limit]
    tasks = _by_task(unit, [sessions[key] for _, key in ranked], {key for _, key in best}, filter_)
    known = load(unit, {key for _, key in best} | {key for keys in tasks.values() for key in keys})
    found = [
        ContextSession(known[key], score, candidates[key].similarity)
        for score, key in best
        if key in known
    ]
    attempts = {
        keys[0]: attempts_of(task, [known[key] for key in keys if key in known])
        for task, keys in tasks.items()
    }
    return found, attempts


def _by_task(
    unit: CorpusUnit, ranked: Sequence[Session], best: Set[str], filter_: ActivityFilter
) -> dict[str, list[str]]:
    """Return the sessions at each task that one of the best was at, where there are several.

    Those that were found come first, then the latest of others that are labelled with the task.
    """
    found: dict[str, list[str]] = {}
    for session in ranked:
        if task := task_named(session.metadata_json, session.tags):
            found.setdefault(task, []).append(session.id)
    activity = unit.get(SqlActivity)
    by_task = {
        task: list(dict.fromkeys([*keys, *activity.labelled(task_label(task), filter_, _ATTEMPTS)]))
        for task, keys in found.items()
        if not best.isdisjoint(keys)
    }
    return {task: keys[:_ATTEMPTS] for task, keys in by_task.items() if len(keys) > 1}


def _of_agents(found: Sequence[Recalled], sessions: Container[str]) -> list[Recalled]:
    """Return what was recorded in these sessions, which agents ran; what the server itself records
    of its alerts is nobody's work."""
    return [one for one in found if one.document.session_id in sessions]


def _near_best(found: Sequence[Recalled]) -> Iterator[Recalled]:
    """Yield what scores not much less than the best."""
    least = _NEAR_BEST * max((one.score for one in found), default=0.0)
    return (one for one in found if one.score >= least)
