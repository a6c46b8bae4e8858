"""What a tenant's record comes to, added up by the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Select,
    and_,
    case,
    cast,
    func,
    literal,
    or_,
    select,
)

from mneme_server.engine.store.rows import equal_where_given
from mneme_server.features.events.event_types import ALERT_TYPES, ERROR_TYPES
from mneme_server.features.events.history import HistoryFilter
from mneme_server.features.events.measures import ESCAPE, Totals
from mneme_server.features.events.model import SessionStatus, Severity
from mneme_server.features.events.store.tables import events, session_tags, sessions

_e, _s = events.c, sessions.c
_ALERTS = sorted(ALERT_TYPES)
_is_error = or_(_e.event_type.in_(sorted(ERROR_TYPES)), _e.severity >= int(Severity.ERROR))
_message = case((_e.error != "", _e.error), else_=_e.text)
_failed = _s.status == int(SessionStatus.ERROR)


def _matches(message_like: str) -> ColumnElement[bool]:
    return and_(_is_error, _message.ilike(message_like, escape=ESCAPE))


class SqlRecordMeasures:
    """Implements `features.events.measures.RecordMeasures`."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def totals(self, filter_: HistoryFilter, message_like: str = "") -> Totals:
        matches = _matches(message_like) if message_like else literal(False)
        query = select(
            func.count(),
            func.coalesce(func.sum(case((_is_error, 1), else_=0)), 0),
            func.coalesce(func.sum(_e.cost_usd), 0.0),
            func.count(_e.duration),
            func.coalesce(func.sum(cast(_e.duration, Float)), 0.0),
            func.coalesce(func.sum(case((matches, 1), else_=0)), 0),
            func.min(_e.timestamp),
        ).select_from(events)
        return Totals(*self._connection.execute(self._of(query, filter_)).one())

    def matching(self, filter_: HistoryFilter, message_like: str) -> Sequence[int]:
        query = self._of(select(_e.cursor), filter_).where(_matches(message_like))
        return self._connection.execute(query).scalars().all()

    def last_us(self, filter_: HistoryFilter, until_us: int) -> int | None:
        query = self._of(select(_e.timestamp), filter_).where(_e.timestamp <= until_us)
        query = query.order_by(_e.timestamp.desc()).limit(1)
        return self._connection.execute(query).scalar_one_or_none()

    def next_us(self, filter_: HistoryFilter, after_us: int) -> int | None:
        query = self._of(select(_e.timestamp), filter_).where(_e.timestamp > after_us)
        query = query.order_by(_e.timestamp).limit(1)
        return self._connection.execute(query).scalar_one_or_none()

    def ended(self, filter_: HistoryFilter) -> tuple[int, int]:
        failures = func.coalesce(func.sum(case((_failed, 1), else_=0)), 0)
        query = select(func.count(), failures).select_from(sessions)
        row = self._connection.execute(self._ended(query, filter_)).one()
        return int(row[0]), int(row[1])

    def first_failure_us(self, filter_: HistoryFilter) -> int | None:
        query = self._ended(select(func.min(_s.ended_at)), filter_).where(_failed)
        found: int | None = self._connection.execute(query).scalar_one()
        return found

    def nth_latest_us(self, filter_: HistoryFilter, number: int) -> int | None:
        query = self._of(select(_e.timestamp), filter_).order_by(_e.timestamp.desc())
        return self._connection.execute(query.offset(number).limit(1)).scalar_one_or_none()

    def endings(self, filter_: HistoryFilter) -> Sequence[tuple[int, bool]]:
        query = self._ended(select(_s.ended_at, _failed), filter_).order_by(_s.ended_at)
        return [(int(row[0]), bool(row[1])) for row in self._connection.execute(query)]

    def _of(self, query: Select[Any], filter_: HistoryFilter) -> Select[Any]:
        query = query.where(_e.tenant_id == self._tenant_id, _e.event_type.not_in(_ALERTS))
        query = query.where(*equal_where_given(_e, filter_, ("agent_id",)))
        if filter_.start_us is not None:
            query = query.where(_e.timestamp >= filter_.start_us)
        if filter_.end_us is not None:
            query = query.where(_e.timestamp < filter_.end_us)
        if filter_.project or filter_.tags or filter_.user_id:
            query = query.where(_e.session_id.in_(self._sessions(select(_s.id), filter_)))
        return query

    def _ended(self, query: Select[Any], filter_: HistoryFilter) -> Select[Any]:
        query = self._sessions(query, filter_).where(_s.ended_at.is_not(None), ~_s.system)
        query = query.where(*equal_where_given(_s, filter_, ("agent_id",)))
        if filter_.start_us is not None:
            query = query.where(_s.ended_at >= filter_.start_us)
        if filter_.end_us is not None:
            query = query.where(_s.ended_at < filter_.end_us)
        return query

    def _sessions(self, query: Select[Any], filter_: HistoryFilter) -> Select[Any]:
        query = query.where(_s.tenant_id == self._tenant_id)
        query = query.where(*equal_where_given(_s, filter_, ("user_id", "project")))
        for tag in filter_.tags:
            tagged = select(session_tags.c.session_id).where(
                session_tags.c.tenant_id == self._tenant_id, session_tags.c.tag == tag
            )
            query = query.where(_s.id.in_(tagged))
        return query
