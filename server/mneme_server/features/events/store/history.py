"""A tenant's record, read by columns for the analyses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    case,
    func,
    or_,
    select,
)

from mneme_server.engine.store.portable import ending
from mneme_server.engine.store.rows import chunks, decode_tags, equal_where_given
from mneme_server.engine.store.unindexed import unindexed
from mneme_server.features.events.event_types import ERROR_TYPES
from mneme_server.features.events.history import Column, EventFact, HistoryFilter, SessionRow
from mneme_server.features.events.model import Severity
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


_tenant_without_index = unindexed(events.c.tenant_id)


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
}


class SqlHistory:
    """Implements `HistoryReader`."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def sessions(self, filter_: HistoryFilter) -> Iterator[SessionRow]:
        query = self._sessions(
            select(
                sessions.c.id, sessions.c.agent_id, sessions.c.tags, sessions.c.status,
                sessions.c.metadata, sessions.c.started_at, sessions.c.user_id,
                sessions.c.project, sessions.c.declared,
            ),
            filter_,
        )  # fmt: skip
        for row in self._connection.execute(query):
            yield SessionRow(
                row.id, row.agent_id, decode_tags(row.tags), row.status, row.metadata,
                row.started_at, row.user_id, row.project, row.declared,
            )  # fmt: skip

    def scan(
        self, filter_: HistoryFilter, columns: Sequence[Column]
    ) -> Iterator[Sequence[Sequence[Any]]]:
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
        for some in chunks(cursors, _PAYLOADS_AT_ONCE):
            query = select(events.c.cursor, events.c.payload).where(
                _tenant_without_index == self._tenant_id, events.c.cursor.in_(some)
            )
            for row in self._connection.execute(query.order_by(events.c.cursor)):
                yield row.cursor, row.payload

    def facts(self, cursors: Sequence[int]) -> Mapping[int, EventFact]:
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
