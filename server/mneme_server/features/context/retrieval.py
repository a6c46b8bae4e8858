"""GetContext and SearchSessions: past sessions that bear on a topic, their key events, and all of
it as text for a prompt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from mneme.visible import QUOTED, visible, visible_line

from mneme_server.common import turns
from mneme_server.common.clock import now_us
from mneme_server.common.humanize import ago
from mneme_server.engine.corpus.document import DocumentFilter
from mneme_server.engine.corpus.ports import CorpusIndex, Matrix, Rows, TextEmbedder
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.context.experience import Attempt, Experience, ProvenSkill, told
from mneme_server.features.context.learned import Learned, bears_on
from mneme_server.features.context.model import KeyEvent, PastSession
from mneme_server.features.context.sessions import (
    document_filter,
    load,
    nearest,
    recency,
    source_ids,
)
from mneme_server.features.context.words import cut, telling, without_tokens
from mneme_server.features.events.event_types import EVENT, EventPart, traits_of
from mneme_server.features.events.history import ActivityFilter, active_us
from mneme_server.features.events.model import Event, Outcome, is_of_user
from mneme_server.features.events.store.events import SqlEvents
from mneme_server.features.events.store.history import SqlActivity
from mneme_server.features.events.store.sessions import SqlSessions
from mneme_server.features.learn.model import FoundLesson, FoundReflection
from mneme_server.features.learn.model import prompt_of as reflections_prompt
from mneme_server.features.recall.confidence import RECALLED_BY_DEFAULT
from mneme_server.features.recall.model import RecallAnswer, RecallQuery
from mneme_server.features.recall.search import Recall

RELEVANCE_WEIGHT = 0.7
RECENCY_WEIGHT = 0.3
_SESSIONS = 50
"""Sessions that are looked at, at least: recency may lift one that is less relevant."""
_EVENTS = 40
_NAMED = 5_000
"""Sessions that a search for events is restricted to by their ids."""
MAX_KEY_EVENTS = 5
_SIMILAR = 3
_EVENT_CHARS = 300
NOTHING = "No relevant past context found."
_SUMMARY_CHARS = 600
_CONTENT_CHARS = 300
_NO_ROWS: Rows = np.empty(0, np.int64)


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
    attempts: Sequence[Attempt] = ()
    skills: Sequence[ProvenSkill] = ()


@dataclass(frozen=True, slots=True)
class FoundSession:
    """A session and how well it fits."""

    past: PastSession
    score: float
    similarity: float | None


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
    experience: Experience = field(default_factory=Experience)

    def on(
        self,
        tenant_id: str,
        topic: str,
        filter_: ActivityFilter,
        limit: int,
        *,
        with_experience: bool = True,
        counted: bool = True,
    ) -> FoundContext:
        """Return what bears on the topic; sessions by 0.7 relevance and 0.3 recency.

        Count what is read of lessons and reflections if it is to be `counted`.

        Relevance is recall's score of the session, by its summary and its events. One that is
        still active and has no summary is found by its best event.

        When the topic cannot be embedded soon, its words alone decide.
        """
        now = now_us()
        candidates, words_only = self._candidates(
            tenant_id, topic, filter_, max(_SESSIONS, 2 * limit)
        )
        with self.tenants.open(tenant_id) as tenant:
            with tenant.read() as unit, turns.piece():
                sessions = _best(unit, candidates, filter_, limit, now)
                total = unit.get(SqlActivity).count(filter_)
            sessions = self._with_events(tenant, topic, sessions, candidates, filter_)
        learned = self.learned
        lessons = learned.lessons_on(tenant_id, topic, filter_, limit, counted=counted)
        reflections = learned.reflections_on(tenant_id, topic, filter_, limit, counted=counted)
        attempts: Sequence[Attempt] = ()
        skills: Sequence[ProvenSkill] = ()
        if with_experience:
            known = self.experience
            attempts = known.attempts_on(tenant_id, topic, filter_, limit, bears_on)
            skills = known.skills_on(tenant_id, topic, filter_, limit, bears_on)
        with turns.piece():
            parts = prompt_parts(topic, sessions, lessons, reflections, now)
            parts += told(attempts, skills, now)
        return FoundContext(
            sessions=sessions,
            lessons=lessons,
            reflections=reflections,
            total=total,
            prompt=visible("\n\n".join([QUOTED, *parts])) if parts else NOTHING,
            words_only=words_only,
            attempts=attempts,
            skills=skills,
        )

    def _candidates(
        self, tenant_id: str, topic: str, filter_: ActivityFilter, limit: int
    ) -> tuple[dict[str, _SessionCandidate], bool]:
        """Return what recall finds, by session, and whether by words only.

        What does not bear on the topic, by its summary or an event, is left out.
        """
        sessions = self._recalled(tenant_id, topic, document_filter(filter_), limit)
        ranked = {found.document.source_id: found for found in sessions.results}
        candidates = {
            key: _SessionCandidate(found.score, found.similarity)
            for key, found in ranked.items()
            if bears_on(topic, found, self.recall.scale)
        }
        events = self._recalled(tenant_id, topic, self._events_of(tenant_id, filter_), _EVENTS)
        for event in events.results:
            if bears_on(topic, event, self.recall.scale):
                key = event.document.session_id
                found = ranked.get(key, event)
                similarity = found.similarity if key in ranked else None
                candidate = candidates.setdefault(key, _SessionCandidate(found.score, similarity))
                candidate.event_ids.append(event.document.source_id)
        return candidates, sessions.words_only or events.words_only

    def _recalled(
        self, tenant_id: str, topic: str, documents: DocumentFilter, limit: int
    ) -> RecallAnswer:
        query = RecallQuery(
            text=topic, filter=documents, limit=limit, min_confidence=RECALLED_BY_DEFAULT
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
        self, tenant_id: str, query: str, filter_: ActivityFilter, *, limit: int, min_score: float
    ) -> tuple[list[FoundSession], RecallAnswer]:
        """Return the sessions that fit best, and what recall said."""
        answer = self.recall.search(
            tenant_id,
            RecallQuery(
                text=query, filter=document_filter(filter_), limit=limit, min_score=min_score
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
) -> list[ContextSession]:
    """Return the candidates that rank highest, the best first."""
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
    known = load(unit, [key for _, key in best])
    return [
        ContextSession(known[key], score, candidates[key].similarity)
        for score, key in best
        if key in known
    ]


def key_events(
    unit: CorpusUnit,
    index: CorpusIndex,
    sessions: Sequence[PastSession],
    vector: Matrix | None,
    recalled: Mapping[str, Sequence[str]],
    *,
    user_id: str = "",
    shared: bool = False,
) -> dict[str, list[KeyEvent]]:
    """Return each session's events most like a topic's vector (d,), then its errors, in time.

    Without a vector, those that recall found alone are like it.

    Args:
        unit: the transaction.
        index: the tenant's index.
        sessions: the sessions.
        vector: the topic's.
        recalled: by session, the events that recall found for the topic, the best first.
        user_id: the user whose they must be; "" for any.
        shared: whether they may be nobody's, too.
    """
    similar = {
        past.session.id: _nearest(index, past.session.id, vector, user_id, shared=shared)
        for past in sessions
        if vector is not None
        and len(recalled[past.session.id]) < min(_SIMILAR, past.session.event_count)
    }
    rows = np.concatenate([_NO_ROWS, *similar.values()])
    names = dict(zip(rows.tolist(), source_ids(unit, index, rows), strict=True))
    wanted: dict[str, list[str]] = {}
    for past in sessions:
        ids = list(recalled[past.session.id][:_SIMILAR])
        ids += [names[row] for row in similar.get(past.session.id, _NO_ROWS).tolist()]
        wanted[past.session.id] = list(dict.fromkeys(filter(None, ids)))
    stored = unit.get(SqlEvents).by_ids([key for ids in wanted.values() for key in ids])
    failed = [past.session.id for past in sessions if past.session.error_count]
    errors = {
        key: [event for event in of_session if is_of_user(event.metadata_json, user_id)]
        for key, of_session in unit.get(SqlActivity).errors_of(failed, MAX_KEY_EVENTS).items()
    }
    return {
        session_id: _chosen([stored[key] for key in ids if key in stored], errors.get(session_id))
        for session_id, ids in wanted.items()
    }


def _nearest(
    index: CorpusIndex, session_id: str, vector: Matrix, user_id: str, *, shared: bool
) -> Rows:
    filter_ = DocumentFilter(
        kinds=frozenset({EVENT}), session_id=session_id, user_id=user_id, shared=shared
    )
    rows, _ = nearest(index, vector, index.select(filter_), MAX_KEY_EVENTS)
    return rows


def _chosen(similar: Sequence[Event], errors: Sequence[Event] | None) -> list[KeyEvent]:
    similar = [event for event in similar if _tells(event)]
    chosen = {event.id: event for event in similar[:_SIMILAR]}
    for event in [*(errors or ()), *similar[_SIMILAR:]]:
        if len(chosen) < MAX_KEY_EVENTS:
            chosen.setdefault(event.id, event)
    in_time = sorted(chosen.values(), key=lambda event: (event.timestamp_us, event.sequence))
    return [_key_event(event) for event in in_time]


def _tells(event: Event) -> bool:
    """Tell whether an event is more than a courtesy: "Yes, please" is no key event."""
    return traits_of(event.event_type).part is not EventPart.TALK or bool(telling(event.text))


def _key_event(event: Event) -> KeyEvent:
    said = without_tokens(event.text) or ": ".join(filter(None, [event.name, event.error]))
    return KeyEvent(event.id, event.event_type, cut(said, _EVENT_CHARS), event.timestamp_us)


def prompt_parts(
    topic: str,
    sessions: Sequence[ContextSession],
    lessons: Sequence[FoundLesson],
    reflections: Sequence[FoundReflection],
    now_us: int,
) -> list[str]:
    """Return sessions, lessons and reflections as paragraphs of markdown.

    What is stored stays on its line, behind what says what it is: it is never a heading.
    """
    parts = []
    if sessions:
        parts.append(f"## Past sessions on “{cut(topic, 100)}”")
        parts += ["\n".join(_session(found, now_us)) for found in sessions]
    if lessons:
        parts.append("## Lessons")
        parts.append(
            "\n".join(
                f"- {visible_line(found.lesson.title)}: {cut(found.lesson.content, _CONTENT_CHARS)}"
                for found in lessons
            )
        )
    if reflections:
        parts.append(reflections_prompt([found.reflection for found in reflections]).strip())
    return parts


def _session(found: ContextSession, now_us: int) -> Iterator[str]:
    session = found.past.session
    about = [ago(active_us(session), now_us), visible_line(session.agent_name or session.agent_id)]
    if found.past.summary and found.past.summary.outcome != Outcome.UNKNOWN:
        about.append(found.past.summary.outcome.name.lower())
    yield f"### Session {visible_line(session.id)} ({', '.join(filter(None, about))})"
    if found.past.summary is not None:
        yield f"> {cut(found.past.summary.text, _SUMMARY_CHARS)}"
    for event in found.key_events:
        yield f"- {event.text}"
