"""The recording of events: all or none of a batch, chained, counted, queued for embedding."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np

from mneme_server.common import turns
from mneme_server.common.clock import now_us
from mneme_server.common.counting import counted
from mneme_server.common.errors import AlreadyExists, ResourceExhausted
from mneme_server.common.identity import new_id
from mneme_server.common.masking import shape_of
from mneme_server.common.pages import parts
from mneme_server.common.passages import is_long
from mneme_server.engine.corpus.document import Document
from mneme_server.engine.corpus.ports import Matrix, TextEmbedder
from mneme_server.engine.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.events.chain import ForgottenPlace, chain, salts
from mneme_server.features.events.event_types import (
    EVENT,
    KNOWN,
    EventPart,
    EventType,
    role_of,
    traits_of,
)
from mneme_server.features.events.model import (
    Agent,
    Event,
    EventReceipt,
    NewEvent,
    Session,
    SessionStatus,
    user_in_json,
)
from mneme_server.features.events.normalize import normalize
from mneme_server.features.events.outcomes import judged_by_status
from mneme_server.features.events.store.events import SqlEvents
from mneme_server.features.events.store.forgetting import SqlForgotten
from mneme_server.features.events.store.sessions import SqlAgents, SqlSessions

Committed: TypeAlias = Callable[[str], object]
"""Called with the tenant once the transaction is committed."""
_Given: TypeAlias = tuple[int, Event, NewEvent]
_Each: TypeAlias = Callable[
    [Callable[[_Given], EventReceipt], Sequence[_Given]], list[EventReceipt]
]
_STORED = 256
"""Events stored in one step: each step has statements of its own."""
_SOON = 8
"""Texts up to which a caller who waits for them has them embedded first, and recorded with their
vectors in one transaction."""
_AT_ONCE, _SHORT = 2, 1_000
"""Texts, and characters of all of them, that are embedded first though nobody waits for them."""
_OF_THE_RECORD = frozenset(
    {
        "id", "cursor", "sequence", "recorded_us",
        "prev_hash", "hash", "hash_version", "salt", "commitment",
    }
)  # fmt: skip
"""What the server gives an event. All else is what its caller sent, a new field too."""
_MAY_BE_THE_SERVERS = frozenset({"agent_id", "timestamp_us"})
"""What the server gives an event that came without; see `_require_same`."""
_CONTENT = tuple(
    known.name for known in fields(Event) if known.name not in _OF_THE_RECORD | _MAY_BE_THE_SERVERS
)


class SessionListener(Protocol):
    """Wants to know what happens to sessions."""

    def changed(
        self,
        unit: CorpusUnit,
        sessions: Sequence[Session],
        ended_before: Collection[str],
        now_us: int,
    ) -> Committed:
        """Write what follows from it, in this transaction; return what is to be called after it.

        `ended_before` names those that had ended before something was recorded in them.
        """
        ...


class SessionListeners:
    """Tells all who listen. They are added while the server is put together."""

    def __init__(self) -> None:
        self._listeners: list[SessionListener] = []

    def add(self, listener: SessionListener) -> None:
        """Tell one more."""
        self._listeners.append(listener)

    def changed(
        self,
        unit: CorpusUnit,
        sessions: Sequence[Session],
        now_us: int,
        ended_before: Collection[str] = frozenset(),
    ) -> Committed:
        """Tell all of them, as `SessionListener`."""
        after = [one.changed(unit, sessions, ended_before, now_us) for one in self._listeners]

        def committed(tenant_id: str) -> None:
            for call in after:
                call(tenant_id)

        return committed


@dataclass(frozen=True, slots=True)
class RecordEvents:
    """Records batches of events.

    With `embedder`, few events that somebody waits for get their vectors as they are recorded; with
    `at_once`, so does a short one that nobody waits for, where no other call is at work: to queue
    it and to write its vector in a transaction of its own costs more than to embed it.
    """

    tenants: OpenTenants
    listeners: SessionListeners = field(default_factory=SessionListeners)
    embedder: TextEmbedder | None = None
    at_once: TextEmbedder | None = None

    def record(
        self,
        tenant_id: str,
        new_events: Sequence[NewEvent],
        *,
        wait_indexed: bool = False,
        observed: bool = False,
        system: bool = False,
    ) -> list[EventReceipt]:
        """Record the events in their order and return a receipt for each.

        Where they are only `observed`, what ends a session does not say how it turned out.

        With `system` it is Mneme itself that records: what happened to no agent, so that no agent
        has done more for it, and a session that it opens is the system's, until somebody else
        records in it.

        An event whose id is known with the same content is answered as a duplicate. A timestamp
        that was not given is the server's, so it does not count as content.

        Raises:
            AlreadyExists: an id is taken by an event with other content; nothing was recorded.
            ResourceExhausted: too much waits for embedding; nothing was recorded. A batch that
                is recorded already, and was sent again, is answered all the same.
            FailedPrecondition: the batch is larger than the embedding queue.
            Unavailable: `wait_indexed` and the time is up; everything is recorded.
        """
        recorded_us = now_us()

        def normalized(new: NewEvent) -> Event:
            return normalize(new, event_id=new.id or new_id(), now_us=recorded_us)

        with self.tenants.open(tenant_id) as tenant:
            batch = turns.each(normalized, new_events)
            # While others wait it joins their line: who waits for an event waits for those before.
            vectors = {} if tenant.pending else self._embedded(batch, wait_indexed=wait_indexed)
            if not vectors:
                _require_room(tenant, new_events, batch)
            with turns.active(), tenant.write() as unit:
                recording = _Recording(
                    unit, recorded_us, self.listeners, vectors, observed=observed, system=system
                )
                receipts = recording.record(new_events, batch)
            if recording.committed is not None:
                recording.committed(tenant_id)
            if wait_indexed and not vectors:
                with turns.hurry():
                    tenant.wait_embedded(recording.doc_ids)
        return receipts

    def _embedded(self, batch: Sequence[Event], *, wait_indexed: bool) -> Mapping[str, Matrix]:
        """Return the vectors (d,) by the events' ids; none when they are many, long or not to be
        had soon."""
        found = [event for event in batch if event.searchable]
        few = 0 < len(found) <= (_SOON if wait_indexed else _AT_ONCE)
        if not few or any(is_long(event.text) for event in found):
            return {}
        if wait_indexed:
            embedder = self.embedder
        else:
            short = sum(len(event.text) for event in found) <= _SHORT and turns.is_alone()
            embedder = self.at_once if short else None
        vectors = None if embedder is None else embedder.embed([event.text for event in found])
        if vectors is None:
            return {}
        return {event.id: vector for event, vector in zip(found, vectors, strict=True)}


def _require_room(
    tenant: OpenTenant, new_events: Sequence[NewEvent], batch: Sequence[Event]
) -> None:
    try:
        tenant.require_room(sum(event.searchable for event in batch))
    except ResourceExhausted:
        chosen = {new.id for new in new_events}
        if "" in chosen:
            raise
        with tenant.read() as unit:
            if len(unit.get(SqlEvents).by_ids(chosen)) < len(chosen):
                raise


class _Recording:
    """One batch inside its transaction."""

    def __init__(
        self,
        unit: CorpusUnit,
        now: int,
        listeners: SessionListeners,
        vectors: Mapping[str, Matrix],
        *,
        observed: bool,
        system: bool,
    ) -> None:
        self._observed, self._system = observed, system
        self.doc_ids: list[int] = []
        self.committed: Committed | None = None
        self._listeners = listeners
        self._unit = unit
        self._now = now
        self._vectors = vectors  # Of all events that can be recalled, by their ids, or of none.
        self._known: dict[str, Event] = {}
        self._forgotten: Mapping[str, ForgottenPlace] = {}
        self._sessions: dict[str, Session] = {}
        self._agents: dict[str, Agent] = {}
        self._users: dict[str, str] = {}  # Of events that name one.
        self._roles: dict[str, str] = {}
        self._salts: Iterator[bytes] = iter(())
        self._found_user: set[str] = set()  # Sessions that have one by now, and had none.

    def record(self, new_events: Sequence[NewEvent], batch: Sequence[Event]) -> list[EventReceipt]:
        with turns.computing(max(1.0, len(batch) / turns.SMALL)):
            self._look_up(new_events, batch)
            ended = {s.id for s in self._sessions.values() if s.status != SessionStatus.ACTIVE}
            turns.between()
            given = list(zip(range(len(batch)), batch, new_events, strict=True))
            receipts = turns.each(self._take, given)
            answered = zip(batch, receipts, strict=True)
            fresh = [event for event, receipt in answered if not receipt.duplicate]
            for step in self._steps(fresh, ended) if fresh else ():
                turns.between()
                step()
        return receipts

    def _look_up(self, new_events: Sequence[NewEvent], batch: Sequence[Event]) -> None:
        # Only ids that the caller chose can have been used before.
        chosen = [event.id for event, new in zip(batch, new_events, strict=True) if new.id]
        self._known = dict(self._unit.get(SqlEvents).by_ids(chosen)) if chosen else {}
        # What is sent again after it was forgotten stays forgotten.
        unknown = [event_id for event_id in chosen if event_id not in self._known]
        self._forgotten = self._unit.get(SqlForgotten).known(unknown) if unknown else {}
        self._sessions = self._unit.get(SqlSessions).get_many({event.session_id for event in batch})
        self._salts = salts(len(batch))

    def _take(self, given: _Given) -> EventReceipt:
        """Return the receipt of an event; one that is not known is put into its chain."""
        index, event, new = given
        earlier = self._known.get(event.id)
        if earlier is not None:
            _require_same(earlier, event, new, index)
            return EventReceipt(earlier.id, earlier.sequence, earlier.hash, True)
        place = self._forgotten.get(event.id)
        if place is not None:
            return EventReceipt(event.id, place.sequence, place.hash, True)
        self._append(event)
        self._known[event.id] = event
        if role := role_of(event.event_type, new.payload, event.text):
            self._roles[event.id] = role
        return EventReceipt(event.id, event.sequence, event.hash, False)

    def _append(self, event: Event) -> None:
        """Put the event at the end of its session's chain and count it."""
        session = self._sessions.get(event.session_id)
        if session is None:
            session = self._sessions[event.session_id] = opened(
                self._unit, event.session_id, event.timestamp_us
            )
            session.agent_id = event.agent_id
            session.system = self._system
            if session.agent_id and not self._system:
                self._agent(session.agent_id, event.timestamp_us).session_count += 1
        elif not session.declared:
            session.started_us = min(session.started_us, event.timestamp_us)
        session.system = session.system and self._system
        user = user_in_json(event.metadata_json)
        if user:
            self._users[event.id] = user
            if not session.user_id:
                session.user_id = user
                self._found_user.add(session.id)
        event.agent_id = event.agent_id or session.agent_id
        event.sequence = session.event_count + 1
        chain(event, session.head_hash, next(self._salts))
        session.head_hash = event.hash
        part, is_error = traits_of(event.event_type).part, event.is_error
        ends = part is EventPart.END and session.status == SessionStatus.ACTIVE
        _count(session, event, part, is_error=is_error)
        if ends and not session.system:
            session.observed = self._observed
            session = self._sessions[session.id] = judged_by_status(session)
        if event.agent_id and not self._system:
            agent = self._agent(event.agent_id, event.timestamp_us)
            agent.event_count += 1
            agent.tool_call_count += part is EventPart.CALL
            agent.error_count += is_error
            agent.total_cost_usd += event.cost_usd

    def _agent(self, agent_id: str, seen_us: int) -> Agent:
        agent = self._agents.get(agent_id)
        if agent is None:
            agent = self._agents[agent_id] = Agent(
                agent_id, first_seen_us=seen_us, last_seen_us=seen_us
            )
        agent.first_seen_us = min(agent.first_seen_us, seen_us)
        agent.last_seen_us = max(agent.last_seen_us, seen_us)
        return agent

    def _steps(self, fresh: Sequence[Event], ended: set[str]) -> Sequence[Callable[[], object]]:
        """Return what stores the fresh events, in steps of some milliseconds."""
        return [
            partial(self._store_sessions, fresh, ended),
            *(partial(self._unit.get(SqlEvents).append, part) for part in parts(fresh, _STORED)),
            *(partial(self._store_documents, part) for part in parts(fresh, _STORED)),
        ]

    def _store_sessions(self, fresh: Sequence[Event], ended: set[str]) -> None:
        touched = [self._sessions[key] for key in {e.session_id for e in fresh}]
        self._unit.get(SqlSessions).save(touched)
        self.committed = self._listeners.changed(self._unit, touched, self._now, ended)
        self._unit.get(SqlAgents).add_activity(self._agents)
        for session in touched:
            if session.id in self._found_user:
                self._unit.documents.set_user(session.id, session.user_id)
            if session.id in self._found_user and session.event_count > 1:
                self._unit.documents.set_session(
                    EVENT,
                    session.id,
                    user_id=session.user_id,
                    project=session.project,
                    tags=session.tags,
                )

    def _store_documents(self, fresh: Sequence[Event]) -> None:
        found = [event for event in fresh if event.searchable]
        if not found:
            return
        vectors = np.stack([self._vectors[event.id] for event in found]) if self._vectors else None
        added = self._unit.documents.add([self._document(event) for event in found], vectors)
        self.doc_ids += [document.doc_id for document in added]

    def _document(self, event: Event) -> Document:
        session = self._sessions[event.session_id]
        category = event.event_type if event.event_type in KNOWN else EventType.CUSTOM.value
        return Document(
            doc_id=0,
            kind=EVENT,
            source_id=event.id,
            text=event.text,
            timestamp_us=event.timestamp_us,
            session_id=event.session_id,
            position=event.sequence,
            agent_id=event.agent_id,
            user_id=self._users.get(event.id, session.user_id),
            project=session.project,
            category=category,
            type=event.event_type,
            name=event.name,
            role=self._roles.get(event.id, ""),
            severity=event.severity,
            shape=0 if category in EVENT.spoken else shape_of(event.text),
            tags=session.tags,
            commitment=event.commitment,
        )


def opened(unit: CorpusUnit, session_id: str, started_us: int) -> Session:
    """Return a session that is not there yet; the chain of one that was forgotten goes on."""
    session = Session(id=session_id, started_us=started_us)
    before = unit.get(SqlForgotten).revive(session_id)
    if before is not None:
        session.event_count, session.head_hash = before.event_count, before.head_hash
    return session


def _count(session: Session, event: Event, part: EventPart, *, is_error: bool) -> None:
    """Move the session's counters by one event."""
    session.event_count += 1
    session.tool_call_count += part is EventPart.CALL
    session.llm_call_count += part is EventPart.MODEL_CALL
    session.error_count += is_error
    session.total_cost_usd += event.cost_usd
    if event.input_tokens or event.output_tokens:
        session.total_input_tokens = counted(session.total_input_tokens + event.input_tokens)
        session.total_output_tokens = counted(session.total_output_tokens + event.output_tokens)
    session.last_event_us = max(session.last_event_us or 0, event.timestamp_us)
    if session.system:  # It is over when nothing more is recorded.
        session.status, session.ended_us = SessionStatus.COMPLETED, session.last_event_us
    elif part is EventPart.END and session.status == SessionStatus.ACTIVE:
        session.status = SessionStatus.ERROR if is_error else SessionStatus.COMPLETED
        session.ended_us = event.timestamp_us


def _require_same(earlier: Event, event: Event, new: NewEvent, index: int) -> None:
    """Check that a known id comes with the content it came with before."""
    differing = [name for name in _CONTENT if getattr(earlier, name) != getattr(event, name)]
    if new.agent_id and new.agent_id != earlier.agent_id:
        differing.append("agent_id")
    if new.timestamp_us is not None and new.timestamp_us != earlier.timestamp_us:
        differing.append("timestamp_us")
    if differing:
        raise AlreadyExists(
            f"event {event.id} is already recorded with different content"
            f" ({', '.join(_named(name) for name in differing)}); events never"
            " change, choose a new id",
            field="id",
            item=index,
        )


def _named(name: str) -> str:
    """Return the name that a caller knows a field by."""
    return name.removesuffix("_json").removesuffix("_us")
