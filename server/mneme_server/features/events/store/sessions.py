"""Sessions and agents in a tenant's database."""

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
    case,
    func,
    select,
)

from mneme_server.common.stored import reads
from mneme_server.engine.store.guard import Prepared
from mneme_server.engine.store.portable import greatest, insert, least
from mneme_server.engine.store.reading import read_first, read_rows
from mneme_server.engine.store.records import row_reader, row_writer
from mneme_server.engine.store.rows import (
    equal_where_given,
    latest_after,
    read_with,
    upsert,
)
from mneme_server.engine.store.totals import add_to_total, known, total
from mneme_server.features.events.model import (
    Agent,
    GradeSource,
    Outcome,
    Session,
    SessionFilter,
    SessionStatus,
)
from mneme_server.features.events.outcomes import BY_STATUS, judged
from mneme_server.features.events.store.tables import agents, session_tags, sessions


class SqlSessions:
    """The tenant's sessions."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id
        # Which sessions there are, of those that this transaction has looked for.
        self._there: dict[str, bool] = {}

    def total(self) -> int:
        return total(self._connection, self._tenant_id, "sessions")

    def get(self, session_id: str) -> Session | None:
        """Return the session, or None."""
        wanted = {"tenant": self._tenant_id, "id": session_id}
        found = read_first(self._connection, _session(), session_of, wanted, kind="session")
        self._there[session_id] = found is not None
        return found

    def get_many(self, session_ids: Collection[str]) -> dict[str, Session]:
        """Return those that exist, by id."""
        found = read_with(
            self._connection, sessions, session_of, self._tenant_id, session_ids, kind="session"
        )
        by_id = {session.id: session for session in found}
        self._there |= {session_id: session_id in by_id for session_id in session_ids}
        return by_id

    def save(self, saved: Collection[Session]) -> None:
        """Insert or replace these sessions."""
        rows = [_session_row(session, self._tenant_id) for session in saved]
        new = self._new_ones({session.id for session in saved})
        _upsert().insert(self._connection, rows)
        add_to_total(self._connection, self._tenant_id, "sessions", new)
        # Tags are given once, when a session is started, and never change after.
        tags = [
            {"tenant_id": self._tenant_id, "session_id": session.id, "tag": tag}
            for session in saved
            for tag in session.tags
        ]
        if tags:
            self._connection.execute(insert(session_tags).on_conflict_do_nothing(), tags)

    def _new_ones(self, saved: set[str]) -> int:
        """Return how many of these are not there yet; they are, from now on."""
        asked = saved - self._there.keys()
        there = known(self._connection, self._tenant_id, sessions.c.id, asked)
        new = len(asked) - there + sum(not self._there[name] for name in saved - asked)
        self._there |= dict.fromkeys(saved, True)
        return new

    def page(
        self, filter_: SessionFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Session]:
        """Return sessions, latest start first, that come after the key (started_us, id)."""
        query = self._filtered(select(sessions), filter_)
        query = latest_after(query, sessions.c.started_at, sessions.c.id, after, limit)
        return self._read(query)

    def count(self, filter_: SessionFilter) -> int:
        """Return how many match."""
        if filter_ == SessionFilter(with_system=True):
            return self.total()
        if filter_ == SessionFilter():
            return self.total() - system_count(self._connection, self._tenant_id)
        query = self._filtered(select(func.count()).select_from(sessions), filter_)
        return int(self._connection.execute(query).scalar_one())

    def ids(self) -> Iterator[str]:
        """Return every session's id, in order."""
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
        if not filter_.with_system:
            conditions.append(~columns.system)
        if filter_.status is not None:
            conditions.append(columns.status == int(filter_.status))
        if filter_.outcome is not None:
            conditions.append(outcome_column() == int(filter_.outcome))
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


def system_count(connection: Connection, tenant_id: str) -> int:
    """Return how many sessions Mneme itself has recorded: one for each alert rule that fired."""
    query = select(func.count()).select_from(sessions)
    query = query.where(sessions.c.tenant_id == tenant_id, sessions.c.system)
    return int(connection.execute(query).scalar_one())


@cache
def _upsert() -> Prepared:
    return Prepared(upsert(sessions), [column.name for column in sessions.columns])


@cache
def _session() -> Prepared:
    return Prepared(
        select(sessions).where(
            sessions.c.tenant_id == bindparam("tenant"), sessions.c.id == bindparam("id")
        )
    )


_read_session = row_reader(
    sessions,
    Session,
    parts={
        "outcome": lambda number: Outcome(number or 0),
        "outcome_by": lambda number: GradeSource(number or 0),
    },
)


@reads("session")
def session_of(row: Row[Any]) -> Session:
    """Return the session of a row."""
    session = _read_session(row)
    return judged(session) if row.outcome is None else session


def _outcome(session: Session) -> int | None:
    """Return what a row says: null as long as nobody said anything, so that a server of the version
    before may still end the session, and its status say so."""
    open_ = session.status == SessionStatus.ACTIVE and session.outcome_by == GradeSource.NOBODY
    return None if open_ else int(session.outcome)


_session_row = row_writer(Session, sessions, sets=["tags"], made={"outcome": _outcome})


def outcome_column() -> ColumnElement[int]:
    """Return how sessions turned out, as a column of SQL."""
    by_status = {int(status): int(outcome) for status, outcome in BY_STATUS.items()}
    return func.coalesce(sessions.c.outcome, case(by_status, value=sessions.c.status))


class SqlAgents:
    """The tenant's agents."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def total(self) -> int:
        return total(self._connection, self._tenant_id, "agents")

    def add_activity(self, activity: Mapping[str, Agent]) -> None:
        """Add these counters to the agents', creating those that are new."""
        if not activity:
            return
        rows = [_agent_row(agent, self._tenant_id) for agent in activity.values()]
        new = len(activity) - known(self._connection, self._tenant_id, agents.c.id, activity)
        _add_activity().insert(self._connection, rows)
        add_to_total(self._connection, self._tenant_id, "agents", new)

    def page(self, after: str | None, limit: int) -> Sequence[Agent]:
        """Return agents by id, after that id."""
        query = select(agents).where(
            agents.c.tenant_id == self._tenant_id, agents.c.id > (after or "")
        )
        query = query.order_by(agents.c.id).limit(limit)
        return read_rows(self._connection, query, _agent, kind="agent")


@cache
def _add_activity() -> Prepared:
    """Return what adds agents, or their activity to what is known of them."""
    statement = insert(agents)
    new, old = statement.excluded, agents.c
    counters = ("session_count", "event_count", "tool_call_count", "error_count", "total_cost_usd")
    changed: dict[str, ColumnElement[Any]] = {name: old[name] + new[name] for name in counters}
    changed["name"] = func.coalesce(func.nullif(new.name, ""), old.name)
    changed["first_seen_at"] = least(old.first_seen_at, new.first_seen_at)
    changed["last_seen_at"] = greatest(old.last_seen_at, new.last_seen_at)
    return Prepared(
        statement.on_conflict_do_update(index_elements=["tenant_id", "id"], set_=changed),
        [column.name for column in agents.columns],
    )


_agent = reads("agent")(row_reader(agents, Agent))
_agent_row = row_writer(Agent, agents)
