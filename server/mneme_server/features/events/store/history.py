"""A tenant's record, read by columns, added up, and as digests of its sessions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Row,
    Select,
    and_,
    case,
    cast,
    func,
    literal,
    or_,
    select,
)

from mneme_server.common.masking import TRACEBACK
from mneme_server.engine.store.portable import ending, unindexed
from mneme_server.engine.store.reading import read_rows
from mneme_server.engine.store.rows import chunks, decode_tags, equal_where_given, latest_after
from mneme_server.engine.store.totals import total
from mneme_server.features.events.event_types import (
    ALERT_TYPES,
    CALL_ANSWERS,
    ERROR_TYPES,
    REPLIES,
    EventPart,
    playing,
)
from mneme_server.features.events.history import (
    ESCAPE,
    ActivityFilter,
    Column,
    EventDigest,
    EventFact,
    HistoryFilter,
    SessionRow,
    Totals,
)
from mneme_server.features.events.model import Event, Outcome, Session, SessionStatus, Severity
from mneme_server.features.events.outcomes import judged
from mneme_server.features.events.store.events import event_of
from mneme_server.features.events.store.sessions import outcome_column, session_of, system_count
from mneme_server.features.events.store.tables import events, session_tags, sessions

_CHUNK = 10_000
"""Rows that are in memory as objects at the same time."""
_MESSAGE_END = 2_000
_SHOWN = 2_000
_PAYLOADS_AT_ONCE = 200

_is_error: ColumnElement[bool] = or_(
    events.c.event_type.in_(sorted(ERROR_TYPES)),
    events.c.severity >= int(Severity.ERROR),
)
_tenant_without_index = unindexed(events.c.tenant_id)
_e, _s = events.c, sessions.c
_ALERTS = sorted(ALERT_TYPES)
_searched_message = case((_e.error != "", _e.error), else_=_e.text)
_failed = outcome_column() == int(Outcome.FAILURE)
_MAX_PAYLOAD = 65_536
"""Characters of a payload that a summary looks into."""
_TEXT_CHARS = 2_000
_TOLD_BY_PAYLOAD = (EventPart.CALL, EventPart.TALK, EventPart.REPLY, EventPart.NOTE)
_WITHOUT_PAYLOAD = sorted(playing(*(part for part in EventPart if part not in _TOLD_BY_PAYLOAD)))


def _message() -> ColumnElement[str]:
    """The error's message, or the text that was derived from the payload; of a long one its
    beginning and its end."""
    # What `normalize` puts before a text that it derives is no part of the message.
    label: ColumnElement[str] = events.c.event_type + ": "
    named: ColumnElement[str] = case(
        (events.c.name != "", label + events.c.name + ": "), else_=label
    )
    stripped = case(
        (
            func.substr(events.c.text, 1, func.length(named)) == named,
            func.substr(events.c.text, func.length(named) + 1),
        ),
        else_=events.c.text,
    )
    full = case((events.c.error != "", events.c.error), else_=stripped)
    return case(
        (func.length(full) <= 2 * _MESSAGE_END, full),
        else_=func.substr(full, 1, _MESSAGE_END) + "\n" + ending(full, _MESSAGE_END),
    )


_COLUMNS: Mapping[Column, ColumnElement[Any]] = {
    Column.SESSION: events.c.session_id,
    Column.TIME: events.c.timestamp,
    Column.SEQUENCE: events.c.sequence,
    Column.KIND: events.c.event_type,
    Column.SEVERITY: events.c.severity,
    Column.CURSOR: events.c.cursor,
    Column.AGENT: events.c.agent_id,
    Column.NAME: events.c.name,
    Column.CALL: events.c.call_id,
    Column.MODEL: events.c.model,
    Column.COST: events.c.cost_usd,
    Column.INPUT_TOKENS: events.c.input_tokens,
    Column.OUTPUT_TOKENS: events.c.output_tokens,
    Column.DURATION: func.coalesce(events.c.duration, -1),
    Column.MESSAGE: case((_is_error, _message()), else_=None),
    Column.TRACE: case(
        (
            events.c.event_type.in_(sorted(CALL_ANSWERS))
            & ~_is_error
            & events.c.text.like(f"%{TRACEBACK}%"),
            1,
        ),
        else_=0,
    ),
}


def _outcome(row: Row[Any]) -> int:
    """Return how a session turned out: where nobody said, as its metadata or status say."""
    if row.outcome is not None:
        return int(row.outcome)
    status = SessionStatus(row.status)
    return judged(Session(row.id, metadata_json=row.metadata, status=status)).outcome


class SqlHistory:
    """Implements `HistoryReader`."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def sessions(self, filter_: HistoryFilter) -> Iterator[SessionRow]:
        """Yield the sessions of the filter's user, project and labels, at whatever time."""
        query = self._sessions(
            select(
                sessions.c.id, sessions.c.agent_id, sessions.c.tags, sessions.c.status,
                sessions.c.metadata, sessions.c.started_at, sessions.c.user_id,
                sessions.c.project, sessions.c.declared, sessions.c.outcome,
            ),
            filter_,
        )  # fmt: skip
        for row in self._connection.execute(query):
            yield SessionRow(
                row.id, row.agent_id, decode_tags(row.tags), row.status, row.metadata,
                row.started_at, row.user_id, row.project, _outcome(row), row.declared,
            )  # fmt: skip

    def scan(
        self, filter_: HistoryFilter, columns: Sequence[Column]
    ) -> Iterator[Sequence[Sequence[Any]]]:
        """Yield the events that match, some thousands at once: a sequence for each column."""
        by_session = bool(filter_.user_id or filter_.project or filter_.tags)
        by_time = filter_.start_us is not None or filter_.end_us is not None
        tenant = events.c.tenant_id if by_session or by_time else _tenant_without_index
        query = select(*(_COLUMNS[column] for column in columns)).select_from(events)
        query = query.where(tenant == self._tenant_id)
        query = query.where(*equal_where_given(events.c, filter_, ("agent_id",)))
        if filter_.start_us is not None:
            query = query.where(events.c.timestamp >= filter_.start_us)
        if filter_.end_us is not None:
            query = query.where(events.c.timestamp < filter_.end_us)
        if by_session:
            query = query.where(
                events.c.session_id.in_(self._sessions(select(sessions.c.id), filter_))
            )
        system = select(sessions.c.id).where(
            sessions.c.tenant_id == self._tenant_id, sessions.c.system
        )
        if self._connection.execute(system.limit(1)).first() is not None:
            query = query.where(events.c.session_id.not_in(system))
        # The rows come straight from the driver: objects for a million rows would cost seconds.
        result = self._connection.execute(query)
        cursor = result.cursor
        assert cursor is not None
        try:
            while rows := cursor.fetchmany(_CHUNK):
                yield tuple(zip(*rows, strict=True))
        finally:
            result.close()

    def payloads(self, cursors: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Yield these events' cursors and payloads (canonical JSON), by cursor."""
        for some in chunks(cursors, _PAYLOADS_AT_ONCE):
            query = select(events.c.cursor, events.c.payload).where(
                _tenant_without_index == self._tenant_id, events.c.cursor.in_(some)
            )
            for row in self._connection.execute(query.order_by(events.c.cursor)):
                yield row.cursor, row.payload

    def facts(self, cursors: Sequence[int]) -> Mapping[int, EventFact]:
        """Return these events by cursor; texts are cut to what a finding shows."""
        found: dict[int, EventFact] = {}
        for some in chunks(cursors):
            query = select(
                events.c.cursor, events.c.id, events.c.session_id, events.c.timestamp,
                events.c.event_type, events.c.name, events.c.model,
                func.substr(events.c.text, 1, _SHOWN).label("shown"),
                func.substr(_message(), 1, _SHOWN).label("message"),
                events.c.input_tokens, events.c.output_tokens,
            )  # fmt: skip
            query = query.where(_tenant_without_index == self._tenant_id, events.c.cursor.in_(some))
            for row in self._connection.execute(query):
                found[row.cursor] = EventFact(*row[1:])
        return found

    def _sessions(self, query: Select[Any], filter_: HistoryFilter) -> Select[Any]:
        query = query.where(sessions.c.tenant_id == self._tenant_id, ~sessions.c.system)
        query = query.where(*equal_where_given(sessions.c, filter_, ("user_id", "project")))
        for tag in filter_.tags:
            tagged = select(session_tags.c.session_id).where(
                session_tags.c.tenant_id == self._tenant_id, session_tags.c.tag == tag
            )
            query = query.where(sessions.c.id.in_(tagged))
        return query


class SqlRecordMeasures:
    """What a tenant's record comes to, added up by the database. Events that tell of alerts are
    left out everywhere."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def totals(self, filter_: HistoryFilter, message_like: str = "") -> Totals:
        """Return what events come to; `message_like` is a pattern of `LIKE`, with `ESCAPE`."""
        matches = _matches(message_like) if message_like else literal(False)
        query = select(
            func.count(),
            _number_of(_is_error),
            func.coalesce(func.sum(_e.cost_usd), 0.0),
            func.count(_e.duration),
            func.coalesce(func.sum(cast(_e.duration, Float)), 0.0),
            _number_of(matches),
            func.min(_e.timestamp),
            _number_of(_e.event_type.in_(sorted(CALL_ANSWERS))),
            _number_of(_e.event_type.in_(sorted(CALL_ANSWERS)) & ~_is_error),
            _number_of(_e.event_type.in_(sorted(REPLIES)) & ~_is_error),
        ).select_from(events)
        return Totals(*self._connection.execute(self._of(query, filter_)).one())

    def matching(self, filter_: HistoryFilter, message_like: str) -> Sequence[int]:
        """Return the cursors of the errors whose messages match a pattern of `LIKE`, as `totals`
        counts them."""
        query = self._of(select(_e.cursor), filter_).where(_matches(message_like))
        return self._connection.execute(query).scalars().all()

    def last_us(self, filter_: HistoryFilter, until_us: int) -> int | None:
        """Return when the last event up to a time was."""
        query = self._of(select(_e.timestamp), filter_).where(_e.timestamp <= until_us)
        query = query.order_by(_e.timestamp.desc()).limit(1)
        return self._connection.execute(query).scalar_one_or_none()

    def next_us(self, filter_: HistoryFilter, after_us: int) -> int | None:
        """Return when the first event after a time is: clocks of agents may be ahead."""
        query = self._of(select(_e.timestamp), filter_).where(_e.timestamp > after_us)
        query = query.order_by(_e.timestamp).limit(1)
        return self._connection.execute(query).scalar_one_or_none()

    def ended(self, filter_: HistoryFilter) -> tuple[int, int]:
        """Return how many sessions ended, and how many of them in failure."""
        failures = func.coalesce(func.sum(case((_failed, 1), else_=0)), 0)
        query = select(func.count(), failures).select_from(sessions)
        row = self._connection.execute(self._ended(query, filter_)).one()
        return int(row[0]), int(row[1])

    def first_failure_us(self, filter_: HistoryFilter) -> int | None:
        """Return when the first of the sessions that ended in failure did."""
        query = self._ended(select(func.min(_s.ended_at)), filter_).where(_failed)
        found: int | None = self._connection.execute(query).scalar_one()
        return found

    def nth_latest_us(self, filter_: HistoryFilter, number: int) -> int | None:
        """Return the time of the event after so many later ones; None if there are not so many."""
        query = self._of(select(_e.timestamp), filter_).order_by(_e.timestamp.desc())
        return self._connection.execute(query.offset(number).limit(1)).scalar_one_or_none()

    def endings(self, filter_: HistoryFilter) -> Sequence[tuple[int, bool]]:
        """Return when sessions ended, the earliest first, and whether in failure."""
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


class SqlActivity:
    """What sessions held, one event after another, and when they were active."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def digests(self, session_id: str, after: int, limit: int) -> Sequence[EventDigest]:
        """Return a session's events in the order of their sequence, after that one."""
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
        """Return when the session's last event was recorded; None without events."""
        query = (
            select(events.c.recorded_at)
            .where(events.c.tenant_id == self._tenant_id, events.c.session_id == session_id)
            .order_by(events.c.sequence.desc())
            .limit(1)
        )
        return self._connection.execute(query).scalar_one_or_none()

    def errors_of(self, session_ids: Collection[str], limit: int) -> dict[str, list[Event]]:
        """Return the latest errors of each session, up to `limit`, the latest first."""
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
        """Return the session that was active last."""
        query = self._filtered(select(sessions), filter_)
        query = query.order_by(_active_at().desc(), sessions.c.id.desc()).limit(1)
        row = self._connection.execute(query).first()
        return None if row is None else session_of(row)

    def count(self, filter_: ActivityFilter) -> int:
        """Return how many sessions there are."""
        if filter_ == ActivityFilter():
            mine = self._connection, self._tenant_id
            return total(*mine, "sessions") - system_count(*mine)
        query = self._filtered(select(func.count()).select_from(sessions), filter_)
        return int(self._connection.execute(query).scalar_one())

    def ids(self, filter_: ActivityFilter, limit: int) -> Sequence[str]:
        """Return up to `limit` of the sessions, in no particular order."""
        query = self._filtered(select(sessions.c.id), filter_).limit(limit)
        return list(self._connection.execute(query).scalars())

    def labelled(self, label: str, filter_: ActivityFilter, limit: int) -> Sequence[str]:
        """Return up to `limit` of the sessions with this label, those that started last."""
        query = self._filtered(select(sessions.c.id), filter_).join(
            session_tags,
            and_(
                session_tags.c.tenant_id == sessions.c.tenant_id,
                session_tags.c.session_id == sessions.c.id,
                session_tags.c.tag == label,
            ),
        )
        query = query.order_by(sessions.c.started_at.desc(), sessions.c.id.desc()).limit(limit)
        return list(self._connection.execute(query).scalars())

    def page(
        self, filter_: ActivityFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Session]:
        """Return sessions, latest start first, that come after the key (started_us, id)."""
        query = self._filtered(select(sessions), filter_)
        query = latest_after(query, sessions.c.started_at, sessions.c.id, after, limit)
        return read_rows(self._connection, query, session_of, kind="session")

    def _filtered(self, query: Select[Any], filter_: ActivityFilter) -> Select[Any]:
        conditions: list[ColumnElement[bool]] = [
            sessions.c.tenant_id == self._tenant_id, ~sessions.c.system
        ]  # fmt: skip
        names = ("user_id", "agent_id", "project")
        conditions += equal_where_given(sessions.c, filter_, names, shared=filter_.shared)
        if filter_.start_us is not None:
            conditions.append(_active_at() >= filter_.start_us)
        if filter_.end_us is not None:
            conditions.append(_active_at() < filter_.end_us)
        return query.where(*conditions)


def _active_at() -> ColumnElement[int]:
    """When a session ended, else was last active: `features.events.history.active_us` in SQL."""
    return func.coalesce(sessions.c.ended_at, sessions.c.last_event_at, sessions.c.started_at)


def _number_of(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)


def _matches(message_like: str) -> ColumnElement[bool]:
    return and_(_is_error, _searched_message.ilike(message_like, escape=ESCAPE))
