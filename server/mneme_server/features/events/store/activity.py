"""What sessions held, and when they were active, from a tenant's database."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, case, func, or_, select, tuple_

from mneme_server.engine.store.reading import read_rows
from mneme_server.engine.store.rows import equal_where_given
from mneme_server.engine.store.totals import total
from mneme_server.features.events.activity import ActivityFilter, EventDigest
from mneme_server.features.events.event_types import ERROR_TYPES, Part, playing
from mneme_server.features.events.model import Event, Session, Severity
from mneme_server.features.events.store.events import event_of
from mneme_server.features.events.store.sessions import session_of, system_count
from mneme_server.features.events.store.tables import events, sessions

_MAX_PAYLOAD = 65_536
"""Characters of a payload that a summary looks into."""
_TEXT_CHARS = 2_000
_TOLD_BY_PAYLOAD = (Part.CALL, Part.TALK, Part.REPLY, Part.NOTE)
_WITHOUT_PAYLOAD = sorted(playing(*(part for part in Part if part not in _TOLD_BY_PAYLOAD)))


class SqlActivity:
    """Implements `features.events.activity.ActivityReader`."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def digests(self, session_id: str, after: int, limit: int) -> Sequence[EventDigest]:
        wanted = events.c.event_type.not_in(_WITHOUT_PAYLOAD) & (
            func.length(events.c.payload) <= _MAX_PAYLOAD
        )
        query = (
            select(
                events.c.id,
                events.c.sequence,
                events.c.event_type,
                events.c.severity,
                events.c.timestamp,
                func.substr(events.c.text, 1, _TEXT_CHARS),
                events.c.name,
                events.c.call_id,
                func.substr(events.c.error, 1, _TEXT_CHARS),
                events.c.model,
                case((wanted, events.c.payload), else_=""),
            )
            .where(
                events.c.tenant_id == self._tenant_id,
                events.c.session_id == session_id,
                events.c.sequence > after,
            )
            .order_by(events.c.sequence)
            .limit(limit)
        )
        return [EventDigest(*row) for row in self._connection.execute(query)]

    def recorded_us(self, session_id: str) -> int | None:
        query = (
            select(events.c.recorded_at)
            .where(events.c.tenant_id == self._tenant_id, events.c.session_id == session_id)
            .order_by(events.c.sequence.desc())
            .limit(1)
        )
        return self._connection.execute(query).scalar_one_or_none()

    def errors_of(self, session_ids: Collection[str], limit: int) -> dict[str, list[Event]]:
        is_error = or_(
            events.c.event_type.in_(sorted(ERROR_TYPES)),
            events.c.severity >= int(Severity.ERROR),
        )
        found: dict[str, list[Event]] = {}
        for session_id in session_ids:
            query = (
                select(events)
                .where(
                    events.c.tenant_id == self._tenant_id,
                    events.c.session_id == session_id,
                    is_error,
                )
                .order_by(events.c.sequence.desc())
                .limit(limit)
            )
            found[session_id] = read_rows(self._connection, query, event_of, kind="event")
        return found

    def latest(self, filter_: ActivityFilter) -> Session | None:
        query = self._filtered(select(sessions), filter_)
        query = query.order_by(_active_at().desc(), sessions.c.id.desc()).limit(1)
        row = self._connection.execute(query).first()
        return None if row is None else session_of(row)

    def count(self, filter_: ActivityFilter) -> int:
        if filter_ == ActivityFilter():
            mine = self._connection, self._tenant_id
            return total(*mine, "sessions") - system_count(*mine)
        query = self._filtered(select(func.count()).select_from(sessions), filter_)
        return int(self._connection.execute(query).scalar_one())

    def ids(self, filter_: ActivityFilter, limit: int) -> Sequence[str]:
        query = self._filtered(select(sessions.c.id), filter_).limit(limit)
        return list(self._connection.execute(query).scalars())

    def page(
        self, filter_: ActivityFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Session]:
        query = self._filtered(select(sessions), filter_)
        if after is not None:
            query = query.where(tuple_(sessions.c.started_at, sessions.c.id) < tuple_(*after))
        query = query.order_by(sessions.c.started_at.desc(), sessions.c.id.desc()).limit(limit)
        return read_rows(self._connection, query, session_of, kind="session")

    def _filtered(self, query: Select[Any], filter_: ActivityFilter) -> Select[Any]:
        conditions: list[ColumnElement[bool]] = [
            sessions.c.tenant_id == self._tenant_id, ~sessions.c.system
        ]  # fmt: skip
        conditions += equal_where_given(sessions.c, filter_, ("user_id", "agent_id", "project"))
        if filter_.start_us is not None:
            conditions.append(_active_at() >= filter_.start_us)
        if filter_.end_us is not None:
            conditions.append(_active_at() < filter_.end_us)
        return query.where(*conditions)


def _active_at() -> ColumnElement[int]:
    """When a session ended, else was last active: `features.events.activity.active_us` in SQL."""
    return func.coalesce(sessions.c.ended_at, sessions.c.last_event_at, sessions.c.started_at)
