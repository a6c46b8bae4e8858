"""GetContext and SearchSessions: what bears on a topic, of every kind, past sessions with their key
events above all, and all of it as one text for a prompt."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import numpy as np

from mneme_server.common import turns
from mneme_server.common.clock import now_us
from mneme_server.engine.corpus.document import DocumentFilter, MemoryKind
from mneme_server.engine.corpus.ports import CorpusIndex, Matrix, Rows, TextEmbedder
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.context.experience import (
    Attempt,
    Experience,
    ProvenSkill,
    attempt_item,
    skill_item,
)
from mneme_server.features.context.items import (
    Attempts,
    Composition,
    ContextFormat,
    ContextItem,
    ContextOutcome,
    TriedSession,
    attempts_of,
    compose,
    told,
)
from mneme_server.features.context.learned import Learned, bears_on
from mneme_server.features.context.model import SESSION, KeyEvent, PastSession
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
from mneme_server.features.events.model import Event, Session, is_of_user
from mneme_server.features.events.store.events import SqlEvents
from mneme_server.features.events.store.history import SqlActivity
from mneme_server.features.events.store.sessions import SqlSessions
from mneme_server.features.events.tasks import task_label, task_named
from mneme_server.features.learn.model import (
    LESSON,
    REFLECTION,
    FoundLesson,
    FoundReflection,
    Reflection,
)
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
MAX_KEY_EVENTS = 5
_SIMILAR = 3
_EVENT_CHARS = 300
DEFAULT_BUDGET = 2_000
_ATTEMPTS = 50
"""Sessions at one task that are told of, at most."""
_FACTS = 20
"""Memories and other facts that are looked at."""
_NEAR_BEST = 0.5
"""What scores less than this share of the best of its kind is not told: it is what recall returns
for want of anything better."""
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
                *map(_recalled, _near_best(facts)),
                *map(_recalled, _near_best(_of_agents(events, of_agents))),
                *_session_items(sessions, candidates, attempts_at),
                *map(_lesson, lessons),
                *map(_reflection, reflections),
                *map(attempt_item, attempts),
                *map(skill_item, skills),
            ]
            composition = compose(items, wanted.budget, wanted.written)
        if not items and not self._stores(tenant_id):
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
        keys[0]: attempts_of(task, [_tried(known[key]) for key in keys if key in known])
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


def _tried(past: PastSession) -> TriedSession:
    return TriedSession(
        past.session.id,
        past.session.outcome,
        active_us(past.session),
        frozenset(past.tools),
    )


def _of_agents(found: Sequence[Recalled], sessions: Container[str]) -> list[Recalled]:
    """Return what was recorded in these sessions, which agents ran; what the server itself records
    of its alerts is nobody's work."""
    return [one for one in found if one.document.session_id in sessions]


def _near_best(found: Sequence[Recalled]) -> Iterator[Recalled]:
    """Yield what scores not much less than the best."""
    least = _NEAR_BEST * max((one.score for one in found), default=0.0)
    return (one for one in found if one.score >= least)


def _recalled(found: Recalled) -> ContextItem:
    document = found.document
    return ContextItem(
        kind=document.kind.name,
        id=document.source_id,
        text=without_tokens(document.text),
        at_us=document.timestamp_us,
        worth=found.score,
        similarity=found.similarity,
        session_id=document.session_id,
        said_by=document.role,
    )


def _session_items(
    found: Sequence[ContextSession],
    candidates: Mapping[str, _SessionCandidate],
    attempts_at: Mapping[str, Attempts],
) -> Iterator[ContextItem]:
    """Yield an item for each session, and one for all attempts at a task together."""
    at_a_task = {one.session_id: first for first, at in attempts_at.items() for one in at.sessions}
    told_already: set[str] = set()
    for one in found:
        key = one.past.session.id
        first = at_a_task.get(key, "")
        if first in told_already or not one.past.summary:
            continue
        said, attempts = one.past.summary.text, attempts_at.get(first)
        if attempts is not None:
            told_already.add(first)
            said = f"{told(attempts)}. {said}"
        yield ContextItem(
            kind=SESSION.name,
            id=key,
            text=said,
            at_us=active_us(one.past.session),
            worth=candidates[key].relevance,
            similarity=one.similarity,
            session_id=key,
            attempts=attempts,
        )


def _lesson(found: FoundLesson) -> ContextItem:
    lesson = found.lesson
    return ContextItem(
        kind=LESSON.name,
        id=lesson.id,
        text=f"{lesson.title}: {lesson.content}",
        at_us=lesson.updated_us,
        worth=found.score,
        similarity=found.similarity,
        session_id=lesson.source_session_id,
    )


def _reflection(found: FoundReflection) -> ContextItem:
    reflection = found.reflection
    return ContextItem(
        kind=REFLECTION.name,
        id=reflection.id,
        text=_said(reflection),
        at_us=reflection.created_us,
        worth=found.score,
        similarity=found.similarity,
        session_id=reflection.session_id,
    )


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


def _said(reflection: Reflection) -> str:
    parts = [
        f"“{reflection.task_description}”: {reflection.outcome.name.lower()}",
        _listed("worked", reflection.what_worked),
        _listed("did not work", reflection.what_did_not_work),
        f"next strategy: {reflection.next_strategy}" if reflection.next_strategy else "",
    ]
    return "; ".join(filter(None, parts))


def _listed(what: str, said: Sequence[str]) -> str:
    return f"{what}: {', '.join(said)}" if said else ""
