"""Summaries of sessions, and the queue of those to make, in the database of a tenant."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    Connection,
    Row,
    delete,
    func,
    select,
    update,
)

from mneme_server.common.canonical import JsonObject
from mneme_server.common.stored import reads
from mneme_server.engine.store.guard import Prepared
from mneme_server.engine.store.memories import Details
from mneme_server.engine.store.portable import insert, unindexed
from mneme_server.engine.store.rows import chunks, read_with, upsert
from mneme_server.engine.store.schema import documents
from mneme_server.features.context.model import (
    QueuedSummary,
    SessionError,
    SessionSummary,
    TouchedFile,
)
from mneme_server.features.context.store.tables import session_summaries, summary_queue
from mneme_server.features.events.model import Outcome

_COLUMNS = session_summaries.c


class SqlSummaries:
    """The summaries of the tenant's sessions."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def get_many(self, session_ids: Collection[str]) -> dict[str, SessionSummary]:
        """Return those that exist, by session."""
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
        """Insert or replace summaries."""
        if not summaries:
            return
        rows = [_summary_row(summary, self._tenant_id) for summary in summaries]
        self._connection.execute(upsert(session_summaries, keep=("created_at",)), rows)

    def topics(self, session_ids: Collection[str]) -> Sequence[Sequence[str]]:
        """Return the topics of these sessions, in any order; those without a summary are left
        out."""
        found: list[Sequence[str]] = []
        for some in chunks(session_ids):
            query = select(session_summaries.c.topics).where(
                session_summaries.c.tenant_id == self._tenant_id,
                session_summaries.c.session_id.in_(some),
            )
            found += [json.loads(topics) for topics in self._connection.execute(query).scalars()]
        return found

    def sessions_of(self, doc_ids: Sequence[int]) -> dict[int, str]:
        """Return the sessions of documents; those that are gone are left out."""
        found: dict[int, str] = {}
        for some in chunks(doc_ids):
            # With the time, which no index holds: SQLite would read a whole index that holds the
            # rest rather than look up these rows.
            query = select(documents.c.doc_id, documents.c.source_id, documents.c.timestamp).where(
                unindexed(documents.c.tenant_id) == self._tenant_id, documents.c.doc_id.in_(some)
            )
            found |= {row.doc_id: row.source_id for row in self._connection.execute(query)}
        return found


class SqlSummaryQueue:
    """The durable queue of sessions whose summaries are to be made."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def request(self, due_us: Mapping[str, int]) -> None:
        """Queue sessions for these times; one that is queued for an earlier time stays so."""
        rows = [
            {
                "tenant_id": self._tenant_id,
                "session_id": session_id,
                "due_at": due,
                "attempts": 0,
                "last_error": "",
            }
            for session_id, due in due_us.items()
        ]
        if rows:
            _request().insert(self._connection, rows)

    def due(self, now_us: int, limit: int) -> Sequence[QueuedSummary]:
        """Return up to `limit` sessions whose turn has come, the earliest first."""
        query = (
            select(summary_queue.c.session_id, summary_queue.c.attempts)
            .where(summary_queue.c.tenant_id == self._tenant_id, summary_queue.c.due_at <= now_us)
            .order_by(summary_queue.c.due_at, summary_queue.c.session_id)
            .limit(limit)
        )
        return [QueuedSummary(*row) for row in self._connection.execute(query)]

    def next_due_us(self) -> int | None:
        """Return when the next session's turn comes; None when the queue is empty."""
        query = select(func.min(summary_queue.c.due_at)).where(
            summary_queue.c.tenant_id == self._tenant_id
        )
        earliest: int | None = self._connection.execute(query).scalar_one()
        return earliest

    def queued(self, session_ids: Collection[str]) -> set[str]:
        """Return those of the sessions that are queued, for whatever time."""
        found: set[str] = set()
        for some in chunks(session_ids):
            query = select(summary_queue.c.session_id).where(
                summary_queue.c.tenant_id == self._tenant_id,
                summary_queue.c.session_id.in_(some),
            )
            found.update(self._connection.execute(query).scalars())
        return found

    def finish(self, session_ids: Collection[str]) -> None:
        """Take sessions off the queue."""
        for some in chunks(session_ids):
            self._connection.execute(
                delete(summary_queue).where(
                    summary_queue.c.tenant_id == self._tenant_id,
                    summary_queue.c.session_id.in_(some),
                )
            )

    def defer(self, session_ids: Collection[str], *, until_us: int, error: str = "") -> None:
        """Put sessions off; with an `error` that counts as an attempt."""
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


@cache
def _request() -> Prepared:
    """Return what asks for summaries; every batch of events comes through here."""
    statement = insert(summary_queue)
    sooner = statement.excluded.due_at
    return Prepared(
        statement.on_conflict_do_update(
            index_elements=["tenant_id", "session_id"],
            set_={"due_at": sooner},
            where=sooner < summary_queue.c.due_at,
        ),
        ["tenant_id", "session_id", "due_at", "attempts", "last_error"],
    )


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


def _details(outcome: int, topics: str, tools: str, error_summary: str) -> JsonObject:
    return {
        "outcome": Outcome(outcome).name,
        "topics": json.loads(topics),
        "tools": dict(json.loads(tools)),
        "error_summary": error_summary,
    }


SESSION_DETAILS = Details(
    key=_COLUMNS.session_id,
    columns=(_COLUMNS.outcome, _COLUMNS.topics, _COLUMNS.tools, _COLUMNS.error_summary),
    decode=_details,
    followed=True,
)
