"""Events, sessions and agents in a tenant's database."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    bindparam,
    func,
    select,
    tuple_,
)
from sqlalchemy.dialects.sqlite import Insert, insert

from mneme_server.common.stored import reads, require_enum, require_times
from mneme_server.events.event_types import require_name
from mneme_server.events.model import (
    Agent,
    Event,
    EventFilter,
    Session,
    SessionFilter,
    SessionStatus,
    Severity,
)
from mneme_server.events.store.tables import agents, events, session_tags, sessions
from mneme_server.storage.guard import Prepared
from mneme_server.storage.reading import read_first, read_rows
from mneme_server.storage.rows import (
    decode_tags,
    encode_tags,
    equal_where_given,
    insert_rows,
    read_with,
    upsert,
    written_out,
)
from mneme_server.storage.totals import add_to_total, known, total
from mneme_server.storage.unindexed import unindexed

_SEVERITIES = frozenset(map(int, Severity))


class SqlSessions:
    """Implements `SessionRepository`."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def total(self) -> int:
        return total(self._connection, self._tenant_id, "sessions")

    def get(self, session_id: str) -> Session | None:
        wanted = {"tenant": self._tenant_id, "id": session_id}
        return read_first(self._connection, _session(), session_of, wanted, kind="session")

    def get_many(self, session_ids: Collection[str]) -> dict[str, Session]:
        found = read_with(
            self._connection, sessions, session_of, self._tenant_id, session_ids, kind="session"
        )
        return {session.id: session for session in found}

    def save(self, saved: Collection[Session]) -> None:
        rows = [_session_row(session, self._tenant_id) for session in saved]
        ids = {session.id for session in saved}
        new = len(ids) - known(self._connection, self._tenant_id, sessions.c.id, ids)
        self._connection.execute(upsert(sessions), rows)
        add_to_total(self._connection, self._tenant_id, "sessions", new)
        # Tags are given once, when a session is started, and never change after.
        tags = [
            {"tenant_id": self._tenant_id, "session_id": session.id, "tag": tag}
            for session in saved
            for tag in session.tags
        ]
        if tags:
            self._connection.execute(insert(session_tags).on_conflict_do_nothing(), tags)

    def page(
        self, filter_: SessionFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Session]:
        query = self._filtered(select(sessions), filter_)
        if after is not None:
            query = query.where(tuple_(sessions.c.started_at, sessions.c.id) < tuple_(*after))
        query = query.order_by(sessions.c.started_at.desc(), sessions.c.id.desc()).limit(limit)
        return self._read(query)

    def count(self, filter_: SessionFilter) -> int:
        if filter_ == SessionFilter():
            return self.total()
        query = self._filtered(select(func.count()).select_from(sessions), filter_)
        return int(self._connection.execute(query).scalar_one())

    def ids(self) -> Iterator[str]:
        last = ""
        while True:
            query = (
                select(sessions.c.id)
                .where(sessions.c.tenant_id == self._tenant_id, sessions.c.id > last)
                .order_by(sessions.c.id)
                .limit(1000)
            )
            page = self._connection.execute(query).scalars().all()
            if not page:
                return
            yield from page
            last = page[-1]

    def _read(self, query: Select[Any]) -> list[Session]:
        return read_rows(self._connection, query, session_of, kind="session")

    def _filtered(self, query: Select[Any], filter_: SessionFilter) -> Select[Any]:
        columns = sessions.c
        conditions: list[ColumnElement[bool]] = [columns.tenant_id == self._tenant_id]
        conditions += equal_where_given(columns, filter_, ("agent_id", "user_id", "project"))
        if filter_.status is not None:
            conditions.append(columns.status == int(filter_.status))
        if filter_.start_us is not None:
            conditions.append(columns.started_at >= filter_.start_us)
        if filter_.end_us is not None:
            conditions.append(columns.started_at < filter_.end_us)
        for tag in filter_.tags:
            tagged = select(session_tags.c.session_id).where(
                session_tags.c.tenant_id == self._tenant_id, session_tags.c.tag == tag
            )
            conditions.append(columns.id.in_(tagged))
        return query.where(*conditions)


@cache
def _session() -> Prepared:
    return Prepared(
        select(sessions).where(
            sessions.c.tenant_id == bindparam("tenant"), sessions.c.id == bindparam("id")
        )
    )


class SqlEvents:
    """Implements `EventRepository`."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def total(self) -> int:
        return total(self._connection, self._tenant_id, "events")

    def by_ids(self, event_ids: Collection[str]) -> dict[str, Event]:
        found = read_with(
            self._connection, events, event_of, self._tenant_id, event_ids, kind="event"
        )
        return {event.id: event for event in found}

    def append(self, appended: Sequence[Event]) -> None:
        rows = [_event_row(event, self._tenant_id) for event in appended]
        insert_rows(self._connection, events, rows)
        add_to_total(self._connection, self._tenant_id, "events", len(rows))

    def page(
        self,
        filter_: EventFilter,
        after: tuple[int, int] | None,
        limit: int,
        *,
        descending: bool,
    ) -> Sequence[Event]:
        key = tuple_(events.c.timestamp, events.c.cursor)
        query = self._filtered(filter_)
        if after is not None:
            query = query.where(key < tuple_(*after) if descending else key > tuple_(*after))
        order = (events.c.timestamp, events.c.cursor)
        query = query.order_by(*(column.desc() for column in order) if descending else order)
        return self._read(query.limit(limit))

    def recorded_after(self, cursor: int, filter_: EventFilter, limit: int) -> Sequence[Event]:
        # By the primary key: what is new is little, whatever is looked for in it.
        conditions = self._conditions(filter_, unindexed(events.c.tenant_id))
        query = select(events).where(events.c.cursor > cursor, *conditions)
        query = query.order_by(events.c.cursor).limit(limit)
        return self._read(query)

    def last_cursor(self) -> int:
        query = select(events.c.cursor).where(unindexed(events.c.tenant_id) == self._tenant_id)
        last = query.order_by(events.c.cursor.desc()).limit(1)
        return self._connection.execute(last).scalar() or 0

    def chain(self, session_id: str, after_sequence: int, limit: int) -> Sequence[Event]:
        query = (
            select(events)
            .where(
                events.c.tenant_id == self._tenant_id,
                events.c.session_id == session_id,
                events.c.sequence > after_sequence,
            )
            .order_by(events.c.sequence)
            .limit(limit)
        )
        return self._read(query)

    def _read(self, query: Select[Any]) -> list[Event]:
        return read_rows(self._connection, query, event_of, kind="event")

    def _filtered(self, filter_: EventFilter) -> Select[Any]:
        return select(events).where(*self._conditions(filter_, events.c.tenant_id))

    def _conditions(
        self, filter_: EventFilter, tenant: ColumnElement[str]
    ) -> list[ColumnElement[bool]]:
        columns = events.c
        conditions: list[ColumnElement[bool]] = [tenant == self._tenant_id]
        conditions += equal_where_given(columns, filter_, ("session_id", "agent_id", "name"))
        if filter_.event_types:
            conditions.append(columns.event_type.in_(filter_.event_types))
        if filter_.min_severity is not None:
            conditions.append(columns.severity >= int(filter_.min_severity))
            if filter_.min_severity >= Severity.ERROR:  # In the words of the partial index.
                conditions.append(columns.severity >= written_out(int(Severity.ERROR)))
        if filter_.start_us is not None:
            conditions.append(columns.timestamp >= filter_.start_us)
        if filter_.end_us is not None:
            conditions.append(columns.timestamp < filter_.end_us)
        return conditions


class SqlAgents:
    """Implements `AgentRepository`."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def total(self) -> int:
        return total(self._connection, self._tenant_id, "agents")

    def add_activity(self, activity: Mapping[str, Agent]) -> None:
        if not activity:
            return
        rows = [_agent_row(agent, self._tenant_id) for agent in activity.values()]
        new = len(activity) - known(self._connection, self._tenant_id, agents.c.id, activity)
        self._connection.execute(_add_activity(), rows)
        add_to_total(self._connection, self._tenant_id, "agents", new)

    def page(self, after: str | None, limit: int) -> Sequence[Agent]:
        query = select(agents).where(
            agents.c.tenant_id == self._tenant_id, agents.c.id > (after or "")
        )
        query = query.order_by(agents.c.id).limit(limit)
        return read_rows(self._connection, query, _agent, kind="agent")


@cache
def _add_activity() -> Insert:
    """Return what adds agents, or their activity to what is known of them."""
    statement = insert(agents)
    new, old = statement.excluded, agents.c
    counters = ("session_count", "event_count", "tool_call_count", "error_count", "total_cost_usd")
    changed: dict[str, ColumnElement[Any]] = {name: old[name] + new[name] for name in counters}
    changed["name"] = func.coalesce(func.nullif(new.name, ""), old.name)
    changed["first_seen_at"] = func.min(old.first_seen_at, new.first_seen_at)
    changed["last_seen_at"] = func.max(old.last_seen_at, new.last_seen_at)
    return statement.on_conflict_do_update(index_elements=["tenant_id", "id"], set_=changed)


@reads("session")
def session_of(row: Row[Any]) -> Session:
    """Return the session of a row."""
    require_times(row.started_at, row.ended_at, row.last_event_at)
    return Session(
        id=row.id,
        agent_id=row.agent_id,
        agent_name=row.agent_name,
        user_id=row.user_id,
        project=row.project,
        tags=decode_tags(row.tags),
        metadata_json=row.metadata,
        status=SessionStatus(row.status),
        started_us=row.started_at,
        ended_us=row.ended_at,
        last_event_us=row.last_event_at,
        event_count=row.event_count,
        tool_call_count=row.tool_call_count,
        error_count=row.error_count,
        llm_call_count=row.llm_call_count,
        total_cost_usd=row.total_cost_usd,
        total_input_tokens=row.total_input_tokens,
        total_output_tokens=row.total_output_tokens,
        head_hash=row.head_hash,
        declared=bool(row.declared),
    )


def _session_row(session: Session, tenant_id: str) -> dict[str, Any]:
    return {
        "tenant_id": tenant_id,
        "id": session.id,
        "agent_id": session.agent_id,
        "agent_name": session.agent_name,
        "user_id": session.user_id,
        "project": session.project,
        "tags": encode_tags(session.tags),
        "metadata": session.metadata_json,
        "status": int(session.status),
        "started_at": session.started_us,
        "ended_at": session.ended_us,
        "last_event_at": session.last_event_us,
        "event_count": session.event_count,
        "tool_call_count": session.tool_call_count,
        "error_count": session.error_count,
        "llm_call_count": session.llm_call_count,
        "total_cost_usd": session.total_cost_usd,
        "total_input_tokens": session.total_input_tokens,
        "total_output_tokens": session.total_output_tokens,
        "head_hash": session.head_hash,
        "declared": session.declared,
    }


@reads("event")
def event_of(row: Row[Any]) -> Event:
    """Return the event of a row."""
    require_name(row.event_type)
    require_enum(_SEVERITIES, row.severity, "its severity")
    require_times(row.timestamp, row.recorded_at)
    return Event(
        id=row.id,
        session_id=row.session_id,
        agent_id=row.agent_id,
        event_type=row.event_type,
        severity=row.severity,
        timestamp_us=row.timestamp,
        text=row.text,
        name=row.name,
        call_id=row.call_id,
        error=row.error,
        model=row.model,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        cost_usd=row.cost_usd,
        duration_us=row.duration,
        payload_json=row.payload,
        metadata_json=row.metadata,
        searchable=row.searchable,
        sequence=row.sequence,
        recorded_us=row.recorded_at,
        prev_hash=row.prev_hash,
        hash=row.hash,
        hash_version=row.hash_version,
        salt=row.salt or b"",
        commitment=row.commitment or b"",
        cursor=row.cursor,
    )


def _event_row(event: Event, tenant_id: str) -> dict[str, Any]:
    return {
        "tenant_id": tenant_id,
        "id": event.id,
        "session_id": event.session_id,
        "sequence": event.sequence,
        "agent_id": event.agent_id,
        "event_type": event.event_type,
        "severity": int(event.severity),
        "timestamp": event.timestamp_us,
        "text": event.text,
        "name": event.name,
        "call_id": event.call_id,
        "error": event.error,
        "model": event.model,
        "input_tokens": event.input_tokens,
        "output_tokens": event.output_tokens,
        "cost_usd": event.cost_usd,
        "duration": event.duration_us,
        "payload": event.payload_json,
        "metadata": event.metadata_json,
        "searchable": event.searchable,
        "recorded_at": event.recorded_us,
        "prev_hash": event.prev_hash,
        "hash": event.hash,
        "hash_version": event.hash_version,
        "salt": event.salt,
        "commitment": event.commitment,
    }


@reads("agent")
def _agent(row: Row[Any]) -> Agent:
    return Agent(
        id=row.id,
        name=row.name,
        first_seen_us=row.first_seen_at,
        last_seen_us=row.last_seen_at,
        session_count=row.session_count,
        event_count=row.event_count,
        tool_call_count=row.tool_call_count,
        error_count=row.error_count,
        total_cost_usd=row.total_cost_usd,
    )


def _agent_row(agent: Agent, tenant_id: str) -> dict[str, Any]:
    return {
        "tenant_id": tenant_id,
        "id": agent.id,
        "name": agent.name,
        "first_seen_at": agent.first_seen_us,
        "last_seen_at": agent.last_seen_us,
        "session_count": agent.session_count,
        "event_count": agent.event_count,
        "tool_call_count": agent.tool_call_count,
        "error_count": agent.error_count,
        "total_cost_usd": agent.total_cost_usd,
    }
