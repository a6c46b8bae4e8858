"""Events in a tenant's database."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, select, tuple_

from mneme_server.common.canonical import JsonObject
from mneme_server.common.stored import reads, require_enum
from mneme_server.engine.corpus.document import Document
from mneme_server.engine.store.portable import unindexed
from mneme_server.engine.store.reading import read_rows
from mneme_server.engine.store.records import row_reader, row_writer, time_of
from mneme_server.engine.store.rows import (
    equal_where_given,
    insert_numbered,
    read_with,
    written_out,
)
from mneme_server.engine.store.totals import add_to_total, total
from mneme_server.features.events.event_types import require_name
from mneme_server.features.events.model import Event, EventFilter, Severity
from mneme_server.features.events.store.tables import events, sessions

_SEVERITIES = frozenset(map(int, Severity))
_SEVERITY_NAMES = {int(severity): severity.name for severity in Severity}


class SqlEvents:
    """The tenant's events."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def total(self) -> int:
        return total(self._connection, self._tenant_id, "events")

    def by_ids(self, event_ids: Collection[str]) -> dict[str, Event]:
        """Return those that exist, by id."""
        found = read_with(
            self._connection, events, event_of, self._tenant_id, event_ids, kind="event"
        )
        return {event.id: event for event in found}

    def append(self, appended: Sequence[Event]) -> None:
        """Insert events; they must be chained already."""
        rows = [_event_row(event, self._tenant_id) for event in appended]
        insert_numbered(self._connection, self._tenant_id, events, rows)
        add_to_total(self._connection, self._tenant_id, "events", len(rows))

    def page(
        self, filter_: EventFilter, after: tuple[int, int] | None, limit: int, *, descending: bool
    ) -> Sequence[Event]:
        """Return events by (timestamp_us, cursor) that come after that key."""
        key = tuple_(events.c.timestamp, events.c.cursor)
        query = self._filtered(filter_)
        if after is not None:
            query = query.where(key < tuple_(*after) if descending else key > tuple_(*after))
        order = (events.c.timestamp, events.c.cursor)
        query = query.order_by(*(column.desc() for column in order) if descending else order)
        return self._read(query.limit(limit))

    def recorded_after(self, cursor: int, filter_: EventFilter, limit: int) -> Sequence[Event]:
        # By the primary key: what is new is little, whatever is looked for in it.
        """Return events in the order of recording that come after the cursor."""
        conditions = self._conditions(filter_, unindexed(events.c.tenant_id))
        query = select(events).where(events.c.cursor > cursor, *conditions)
        query = query.order_by(events.c.cursor).limit(limit)
        return self._read(query)

    def last_cursor(self) -> int:
        """Return the cursor of the event recorded last; 0 when there is none."""
        query = select(events.c.cursor).where(unindexed(events.c.tenant_id) == self._tenant_id)
        last = query.order_by(events.c.cursor.desc()).limit(1)
        return self._connection.execute(last).scalar() or 0

    def chain(self, session_id: str, after_sequence: int, limit: int) -> Sequence[Event]:
        """Return a session's events in the order of their sequence, after that one."""
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
        if filter_.project:
            of_project = select(sessions.c.id).where(
                sessions.c.tenant_id == self._tenant_id, sessions.c.project == filter_.project
            )
            conditions.append(columns.session_id.in_(of_project))
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


def _event_type(name: str) -> str:
    require_name(name)
    return name


def _severity(number: int) -> int:
    require_enum(_SEVERITIES, number, "its severity")
    return number


def _bytes(kept: bytes | None) -> bytes:
    return kept or b""


event_of = reads("event")(
    row_reader(
        events,
        Event,
        parts={
            "event_type": _event_type,
            "severity": _severity,
            "timestamp_us": time_of,
            "salt": _bytes,
            "commitment": _bytes,
        },
    )
)
"""Return the event of a row."""
_event_row = row_writer(
    Event,
    events,
    made={"severity": lambda event: int(event.severity)},
    besides=["cursor"],
    elsewhere=["cursor"],
)


def event_details(document: Document) -> JsonObject:
    """Return what is shown of a recalled event beside its text: what its document tells of it."""
    return {
        "event_type": document.type,
        "name": document.name,
        "severity": _SEVERITY_NAMES[document.severity],
        "sequence": document.position,
    }
