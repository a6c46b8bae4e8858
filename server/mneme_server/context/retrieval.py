"""GetContext and SearchSessions: past sessions that bear on a topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mneme_server.common.clock import now_us
from mneme_server.context.beside import LearnedBeside
from mneme_server.context.key_events import key_events
from mneme_server.context.model import KeyEvent, PastSession, SessionScope, active_us
from mneme_server.context.ports import ContextUnit
from mneme_server.context.prompt import prompt_of
from mneme_server.context.relevance import bears_on
from mneme_server.context.sessions import document_filter, load, recency
from mneme_server.corpus.document import Scope
from mneme_server.corpus.tenant import TenantMemory, Tenants
from mneme_server.learn.model import FoundLesson
from mneme_server.learn.ports import TextEmbedder
from mneme_server.learn.reflection_model import FoundReflection
from mneme_server.recall.search import Answer, Recall, Recalled, RecallQuery

RELEVANCE_WEIGHT = 0.7
RECENCY_WEIGHT = 0.3
_SESSIONS = 25
"""Summaries that are looked at, at least: recency may lift one that is less relevant."""
_EVENTS = 40


@dataclass(frozen=True, slots=True)
class ContextSession:
    """A past session that bears on a topic. `score` is 0 to 1; `similarity` the cosine of the
    summary, None where there is none."""

    past: PastSession
    score: float
    similarity: float | None
    key_events: Sequence[KeyEvent] = ()


@dataclass(frozen=True, slots=True)
class FoundContext:
    """What bears on a topic. `total` counts the sessions that were searched."""

    sessions: Sequence[ContextSession]
    lessons: Sequence[FoundLesson]
    reflections: Sequence[FoundReflection]
    total: int
    prompt: str
    words_only: bool = False


@dataclass(slots=True)
class _Candidate:
    relevance: float
    similarity: float | None = None
    event_ids: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class GetContext:
    """Finds the sessions, lessons and reflections that bear on a topic."""

    tenants: Tenants[ContextUnit]
    embedder: TextEmbedder
    recall: Recall
    learned: LearnedBeside

    def __call__(self, tenant_id: str, topic: str, scope: SessionScope, limit: int) -> FoundContext:
        """Return what bears on the topic; sessions by 0.7 relevance and 0.3 recency.

        Relevance is recall's score of the session's summary or of its best event, whichever is
        higher. A session that is still active and has no summary is found by its events.

        When the topic cannot be embedded soon, its words alone decide.
        """
        now = now_us()
        candidates, words_only = self._candidates(
            tenant_id, topic, scope, max(_SESSIONS, 2 * limit)
        )
        with self.tenants.open(tenant_id) as memory:
            with memory.read() as unit:
                sessions = unit.sessions.get_many(list(candidates))
                ranked = [
                    (
                        RELEVANCE_WEIGHT * candidates[key].relevance
                        + RECENCY_WEIGHT * recency(active_us(session), now),
                        key,
                    )
                    for key, session in sessions.items()
                    if scope.lets_through(session)
                ]
                ranked.sort(key=lambda item: (-item[0], item[1]))
                best = ranked[:limit]
                known = load(unit, [key for _, key in best])
                total = unit.summaries.count(scope)
            found = [
                ContextSession(known[key], score, candidates[key].similarity)
                for score, key in best
                if key in known
            ]
            found = self._with_events(memory, topic, found, candidates)
        lessons = self.learned.lessons(tenant_id, topic, scope, limit)
        reflections = self.learned.found_reflections(tenant_id, topic, scope, limit)
        prompt = prompt_of(topic, found, lessons, reflections, now)
        return FoundContext(found, lessons, reflections, total, prompt, words_only)

    def _candidates(
        self, tenant_id: str, topic: str, scope: SessionScope, limit: int
    ) -> tuple[dict[str, _Candidate], bool]:
        """Return what recall finds, by session, and whether by words only.

        What does not bear on the topic is left out.
        """
        candidates: dict[str, _Candidate] = {}
        sessions = self._recalled(tenant_id, topic, scope, Scope.SESSION, limit)
        for found in _bearing_on(topic, sessions):
            candidates[found.document.source_id] = _Candidate(found.score, found.similarity)
        events = self._recalled(tenant_id, topic, scope, Scope.EVENT, _EVENTS)
        for found in _bearing_on(topic, events):
            candidate = candidates.setdefault(found.document.session_id, _Candidate(0.0))
            candidate.relevance = max(candidate.relevance, found.score)
            candidate.event_ids.append(found.document.source_id)
        return candidates, sessions.words_only or events.words_only

    def _recalled(
        self, tenant_id: str, topic: str, scope: SessionScope, kind: Scope, limit: int
    ) -> Answer:
        filter_ = document_filter(scope, kind)
        if kind == Scope.EVENT:
            # An event may be older than the end of its session, by which sessions are filtered.
            filter_ = replace(filter_, start_us=None)
        return self.recall(tenant_id, RecallQuery(text=topic, filter=filter_, limit=limit))

    def _with_events(
        self,
        memory: TenantMemory[ContextUnit],
        topic: str,
        found: Sequence[ContextSession],
        candidates: Mapping[str, _Candidate],
    ) -> list[ContextSession]:
        if not found:
            return []
        made = self.embedder.embed([topic])  # Recall has embedded it: it is in the cache.
        vector = None if made is None else made[0]
        recalled = {key: candidate.event_ids for key, candidate in candidates.items()}
        with memory.read() as unit:
            chosen = key_events(unit, memory.index, [one.past for one in found], vector, recalled)
        return [replace(one, key_events=chosen[one.past.session.id]) for one in found]


def _bearing_on(topic: str, answer: Answer) -> list[Recalled]:
    return [found for found in answer.results if bears_on(topic, found)]


@dataclass(frozen=True, slots=True)
class FoundSession:
    """A session and how well it fits."""

    past: PastSession
    score: float
    similarity: float | None


@dataclass(frozen=True, slots=True)
class SearchSessions:
    """Searches sessions by their summaries and handovers."""

    tenants: Tenants[ContextUnit]
    recall: Recall

    def __call__(
        self, tenant_id: str, query: str, scope: SessionScope, *, limit: int, min_score: float
    ) -> tuple[list[FoundSession], Answer]:
        """Return the sessions that fit best, and what recall said."""
        answer = self.recall(
            tenant_id,
            RecallQuery(
                text=query, filter=document_filter(scope), limit=limit, min_score=min_score
            ),
        )
        ids = [result.document.source_id for result in answer.results]
        with self.tenants.open(tenant_id) as memory, memory.read() as unit:
            known = load(unit, ids)
        found = [
            FoundSession(known[key], result.score, result.similarity)
            for key, result in zip(ids, answer.results, strict=True)
            if key in known
        ]
        return found, answer
