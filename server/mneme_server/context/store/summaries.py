"""Summaries of sessions, and the queue of those to make, in a tenant's database."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    case,
    delete,
    func,
    or_,
    select,
    tuple_,
    update,
)

from mneme_server.common.stored import reads
from mneme_server.context.model import (
    EventDigest,
    QueuedSummary,
    SessionError,
    SessionScope,
    SessionSummary,
    TouchedFile,
)
from mneme_server.context.store.tables import session_summaries, summary_queue
from mneme_server.events.event_types import ERROR_TYPES, Part, playing
from mneme_server.events.model import Event, Session, Severity
from mneme_server.events.outcome import Outcome
from mneme_server.events.store.records import event_of, session_of
from mneme_server.events.store.tables import events, sessions
from mneme_server.storage.reading import read_rows
from mneme_server.storage.rows import chunks, equal_where_given, read_with, unindexed, upsert
from mneme_server.storage.tables import documents

_MAX_PAYLOAD = 65_536
"""Characters of a payload that a summary looks into."""
_TEXT_CHARS = 2_000
_TOLD_BY_PAYLOAD = (Part.CALL, Part.TALK, Part.REPLY, Part.NOTE)
_WITHOUT_PAYLOAD = sorted(playing(*(part for part in Part if part not in _TOLD_BY_PAYLOAD)))


class SqlSummaries:
    """Implements `context.ports.SummaryRepository`."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def get_many(self, session_ids: Collection[str]) -> dict[str, SessionSummary]:
        found = read_with(
            self._connection,
            session_summaries,
            _summary,
            self._tenant_id,
            session_ids,
            kind="summary",
            key="session_id",
        )
        return {summary.session_id: summary for summary in found}

    def save(self, summaries: Collection[SessionSummary]) -> None:
        if not summaries:
            return
        rows = [_summary_row(summary, self._tenant_id) for summary in summaries]
        self._connection.execute(upsert(session_summaries, keep=("created_at",)), rows)

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

    def latest(self, scope: SessionScope) -> Session | None:
        query = self._scoped(select(sessions), scope)
        query = query.order_by(_active_at().desc(), sessions.c.id.desc()).limit(1)
        row = self._connection.execute(query).first()
        return None if row is None else session_of(row)

    def topics(self, session_ids: Collection[str]) -> Sequence[Sequence[str]]:
        found: list[Sequence[str]] = []
        for some in chunks(session_ids):
            query = select(session_summaries.c.topics).where(
                session_summaries.c.tenant_id == self._tenant_id,
                session_summaries.c.session_id.in_(some),
            )
            found += [json.loads(topics) for topics in self._connection.execute(query).scalars()]
        return found

    def sessions_of(self, doc_ids: Sequence[int]) -> dict[int, str]:
        found: dict[int, str] = {}
        for some in chunks(doc_ids):
            # With the time, which no index holds: SQLite would read a whole index that holds the
            # rest rather than look up these rows.
            query = select(documents.c.doc_id, documents.c.source_id, documents.c.timestamp).where(
                unindexed(documents.c.tenant_id) == self._tenant_id, documents.c.doc_id.in_(some)
            )
            found |= {row.doc_id: row.source_id for row in self._connection.execute(query)}
        return found

    def count(self, scope: SessionScope) -> int:
        query = self._scoped(select(func.count()).select_from(sessions), scope)
        return int(self._connection.execute(query).scalar_one())

    def page(
        self, scope: SessionScope, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Session]:
        query = self._scoped(select(sessions), scope)
        if after is not None:
            query = query.where(tuple_(sessions.c.started_at, sessions.c.id) < tuple_(*after))
        query = query.order_by(sessions.c.started_at.desc(), sessions.c.id.desc()).limit(limit)
        return read_rows(self._connection, query, session_of, kind="session")

    def _scoped(self, query: Select[Any], scope: SessionScope) -> Select[Any]:
        conditions: list[ColumnElement[bool]] = [sessions.c.tenant_id == self._tenant_id]
        conditions += equal_where_given(sessions.c, scope, ("user_id", "agent_id", "project"))
        if scope.start_us is not None:
            conditions.append(_active_at() >= scope.start_us)
        if scope.end_us is not None:
            conditions.append(_active_at() < scope.end_us)
        return query.where(*conditions)


class SqlSummaryQueue:
    """Implements `context.ports.SummaryQueue` and `events.ports.SummaryRequests`."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def request(self, due_us: Mapping[str, int]) -> None:
        # Said by hand, as `insert_rows` does: every batch of events comes through here.
        rows = [(self._tenant_id, session_id, due) for session_id, due in due_us.items()]
        if rows:
            self._connection.exec_driver_sql(_REQUEST, rows)

    def due(self, now_us: int, limit: int) -> Sequence[QueuedSummary]:
        query = (
            select(summary_queue.c.session_id, summary_queue.c.attempts)
            .where(summary_queue.c.tenant_id == self._tenant_id, summary_queue.c.due_at <= now_us)
            .order_by(summary_queue.c.due_at, summary_queue.c.session_id)
            .limit(limit)
        )
        return [QueuedSummary(*row) for row in self._connection.execute(query)]

    def next_due_us(self) -> int | None:
        query = select(func.min(summary_queue.c.due_at)).where(
            summary_queue.c.tenant_id == self._tenant_id
        )
        earliest: int | None = self._connection.execute(query).scalar_one()
        return earliest

    def finish(self, session_ids: Collection[str]) -> None:
        for some in chunks(session_ids):
            self._connection.execute(
                delete(summary_queue).where(
                    summary_queue.c.tenant_id == self._tenant_id,
                    summary_queue.c.session_id.in_(some),
                )
            )

    def defer(self, session_ids: Collection[str], *, until_us: int, error: str = "") -> None:
        for some in chunks(session_ids):
            self._connection.execute(
                update(summary_queue)
                .where(
                    summary_queue.c.tenant_id == self._tenant_id,
                    summary_queue.c.session_id.in_(some),
                )
                .values(
                    due_at=until_us,
                    attempts=summary_queue.c.attempts + (1 if error else 0),
                    last_error=error[:1000],
                )
            )


_REQUEST = (
    "INSERT INTO summary_queue (tenant_id, session_id, due_at, attempts, last_error)"
    " VALUES (?, ?, ?, 0, '') ON CONFLICT (tenant_id, session_id) DO UPDATE"
    " SET due_at = excluded.due_at WHERE excluded.due_at < summary_queue.due_at"
)


def _active_at() -> ColumnElement[int]:
    """When a session ended, else was last active: `context.model.active_us` in SQL."""
    return func.coalesce(sessions.c.ended_at, sessions.c.last_event_at, sessions.c.started_at)


@reads("summary", "session_id")
def _summary(row: Row[Any]) -> SessionSummary:
    return SessionSummary(
        session_id=row.session_id,
        text=row.summary,
        topics=tuple(json.loads(row.topics)),
        tools=tuple((name, count) for name, count in json.loads(row.tools)),
        tool_sequence=tuple(json.loads(row.tool_sequence)),
        error_summary=row.error_summary,
        errors=tuple(
            SessionError(template, example, tool, count, tuple(event_ids), resolved)
            for template, example, tool, count, event_ids, resolved in json.loads(row.errors)
        ),
        files=tuple(TouchedFile(*file) for file in json.loads(row.files)),
        outcome=Outcome(row.outcome),
        created_us=row.created_at,
        updated_us=row.updated_at,
    )


def _summary_row(summary: SessionSummary, tenant_id: str) -> dict[str, Any]:
    errors = [
        [e.template, e.example, e.tool, e.count, e.event_ids, e.resolved] for e in summary.errors
    ]
    return {
        "tenant_id": tenant_id,
        "session_id": summary.session_id,
        "summary": summary.text,
        "topics": _json(summary.topics),
        "tools": _json(summary.tools),
        "tool_sequence": _json(summary.tool_sequence),
        "error_summary": summary.error_summary,
        "errors": _json(errors),
        "files": _json([[f.path, f.event_id, f.changed] for f in summary.files]),
        "outcome": int(summary.outcome),
        "created_at": summary.created_us,
        "updated_at": summary.updated_us,
    }


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
