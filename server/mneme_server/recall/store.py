"""What recall shows of a memory beside its text."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import structlog
from sqlalchemy import (
    BindParameter,
    Column,
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    select,
)

from mneme_server.common.canonical import JsonObject
from mneme_server.common.errors import DataLoss
from mneme_server.common.stored import reads
from mneme_server.context.store.tables import session_summaries
from mneme_server.corpus.document import Document, Scope
from mneme_server.events.model import Severity
from mneme_server.events.outcome import Outcome
from mneme_server.events.store.tables import events
from mneme_server.learn.knowledge_model import KnowledgeType, SuccessRate
from mneme_server.learn.lesson_model import Importance
from mneme_server.learn.store.tables import knowledge, lessons, reflections
from mneme_server.recall.ports import Memory
from mneme_server.storage.documents import document_of, select_documents
from mneme_server.storage.reading import read_rows
from mneme_server.storage.rows import listed
from mneme_server.storage.tables import documents

_log = structlog.get_logger(__name__)

# Recall runs it each time: building it anew would cost as much as running it, and asking for the
# events' details apart half as much again.
_TENANT: BindParameter[Any] = bindparam("tenant")
_DETAILED_EVENT = (events.c.event_type, events.c.name, events.c.severity, events.c.sequence)
_MEMORIES = (
    select_documents(_TENANT)
    .add_columns(*_DETAILED_EVENT)
    .outerjoin(
        events,
        and_(
            events.c.tenant_id == _TENANT,
            events.c.id == documents.c.source_id,
            documents.c.scope == int(Scope.EVENT),
        ),
    )
    .where(documents.c.doc_id.in_(listed(bindparam("ids"))))
)
_EVENT_COLUMNS = -len(_DETAILED_EVENT)


class SqlRecalled:
    """Implements `recall.ports.MemoryReader`."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id
        self.lost = 0

    def get_many(self, doc_ids: Sequence[int]) -> dict[int, Memory]:
        found: dict[int, Memory] = {}
        others: dict[Scope, dict[str, Document]] = {}
        wanted = {"tenant": self._tenant_id, "ids": json.dumps(list(doc_ids))}
        for memory in read_rows(
            self._connection, _MEMORIES, _memory, wanted, kind="memory", key="source_id",
            lost=self._left_out,
        ):  # fmt: skip
            document = memory.document
            if document.scope == Scope.EVENT:
                found[document.doc_id] = memory
            else:
                others.setdefault(document.scope, {})[document.source_id] = document
        for scope, documents_of in others.items():
            details = _DETAILS[scope](self, list(documents_of))
            for source_id, document in documents_of.items():
                found[document.doc_id] = Memory(document, details.get(source_id, {}))
        return found

    def _left_out(self, loss: DataLoss) -> None:
        self.lost += 1
        _log.warning("a memory was found and left out", tenant=self._tenant_id, error=str(loss))

    def _lesson_details(self, source_ids: Sequence[str]) -> dict[str, JsonObject]:
        columns = lessons.c
        query = select(
            columns.id, columns.title, columns.category, columns.importance, columns.archived_at
        )
        return self._details(query, columns.id, source_ids, _lesson)

    def _reflection_details(self, source_ids: Sequence[str]) -> dict[str, JsonObject]:
        columns = reflections.c
        query = select(columns.id, columns.outcome, columns.attempt_number, columns.next_strategy)
        return self._details(query, columns.id, source_ids, _reflection)

    def _session_details(self, source_ids: Sequence[str]) -> dict[str, JsonObject]:
        columns = session_summaries.c
        named = (columns.outcome, columns.topics, columns.tools, columns.error_summary)
        query = select(columns.session_id.label("id"), *named)
        return self._details(query, columns.session_id, source_ids, _session)

    def _knowledge_details(self, source_ids: Sequence[str]) -> dict[str, JsonObject]:
        columns = knowledge.c
        query = select(columns.id, columns.project, columns.type, columns.success_rate)
        return self._details(query, columns.id, source_ids, _knowledge)

    def _details(
        self,
        query: Select[Any],
        key: Column[str],
        source_ids: Sequence[str],
        decode: Callable[[Row[Any]], JsonObject],
    ) -> dict[str, JsonObject]:
        """Return the details by id; those that are damaged are left out."""
        mine = query.where(key.table.c.tenant_id == self._tenant_id, key.in_(source_ids))
        found = read_rows(
            self._connection, mine, lambda row: (row.id, decode(row)), kind="memory",
            lost=self._left_out,
        )  # fmt: skip
        return dict(found)


_DETAILS: dict[Scope, Callable[[SqlRecalled, Sequence[str]], dict[str, JsonObject]]] = {
    Scope.SESSION: SqlRecalled._session_details,
    Scope.LESSON: SqlRecalled._lesson_details,
    Scope.REFLECTION: SqlRecalled._reflection_details,
    Scope.KNOWLEDGE: SqlRecalled._knowledge_details,
}


@reads("memory", "source_id")
def _memory(row: Row[Any]) -> Memory:
    return Memory(document_of(row[:_EVENT_COLUMNS]), _event_details(*row[_EVENT_COLUMNS:]))


@reads("lesson")
def _lesson(row: Row[Any]) -> JsonObject:
    return {
        "title": row.title,
        "category": row.category,
        "importance": Importance(row.importance).name,
        "archived": row.archived_at is not None,
    }


@reads("reflection")
def _reflection(row: Row[Any]) -> JsonObject:
    return {
        "outcome": Outcome(row.outcome).name,
        "attempt_number": row.attempt_number,
        "next_strategy": row.next_strategy,
    }


@reads("summary")
def _session(row: Row[Any]) -> JsonObject:
    return {
        "outcome": Outcome(row.outcome).name,
        "topics": json.loads(row.topics),
        "tools": dict(json.loads(row.tools)),
        "error_summary": row.error_summary,
    }


@reads("knowledge entry")
def _knowledge(row: Row[Any]) -> JsonObject:
    rate = SuccessRate.parse(row.success_rate)
    return {
        "project": row.project,
        "type": KnowledgeType(row.type).name,
        "success_rate": {"successes": rate.successes, "tries": rate.tries} if rate else None,
    }


def _event_details(
    event_type: str | None, name: str | None, severity: int | None, sequence: int | None
) -> JsonObject:
    if event_type is None or severity is None:  # The event is gone, its document not yet.
        return {}
    return {
        "event_type": event_type,
        "name": name,
        "severity": Severity(severity).name,
        "sequence": sequence,
    }
