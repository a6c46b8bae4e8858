"""What recall shows of a memory beside its text."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import BindParameter, Connection, and_, bindparam, select

from mneme_server.common.canonical import JsonObject
from mneme_server.corpus.document import Document, Scope
from mneme_server.events.model import EventType, Severity
from mneme_server.events.outcome import Outcome
from mneme_server.learn.knowledge_model import KnowledgeType
from mneme_server.learn.model import Importance
from mneme_server.recall.ports import Memory
from mneme_server.storage.documents import document_of, select_documents
from mneme_server.storage.rows import listed
from mneme_server.storage.tables import (
    documents,
    events,
    knowledge,
    lessons,
    reflections,
    session_summaries,
)

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


class SqlMemories:
    """Implements `recall.ports.MemoryReader`."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def get_many(self, doc_ids: Sequence[int]) -> dict[int, Memory]:
        found: dict[int, Memory] = {}
        others: dict[Scope, dict[str, Document]] = {}
        wanted = {"tenant": self._tenant_id, "ids": json.dumps(list(doc_ids))}
        for row in self._connection.execute(_MEMORIES, wanted).all():
            document = document_of(row[:_EVENT_COLUMNS])
            if document.scope == Scope.EVENT:
                found[document.doc_id] = Memory(document, _event_details(*row[_EVENT_COLUMNS:]))
            else:
                others.setdefault(document.scope, {})[document.source_id] = document
        for scope, documents_of in others.items():
            details = _DETAILS[scope](self, list(documents_of))
            for source_id, document in documents_of.items():
                found[document.doc_id] = Memory(document, details.get(source_id, {}))
        return found

    def _lesson_details(self, source_ids: Sequence[str]) -> dict[str, JsonObject]:
        columns = lessons.c
        query = select(
            columns.id, columns.title, columns.category, columns.importance, columns.archived_at
        )
        return {
            row.id: {
                "title": row.title,
                "category": row.category,
                "importance": Importance(row.importance).name,
                "archived": row.archived_at is not None,
            }
            for row in self._rows(query, columns, source_ids)
        }

    def _reflection_details(self, source_ids: Sequence[str]) -> dict[str, JsonObject]:
        columns = reflections.c
        query = select(columns.id, columns.outcome, columns.attempt_number, columns.next_strategy)
        return {
            row.id: {
                "outcome": Outcome(row.outcome).name,
                "attempt_number": row.attempt_number,
                "next_strategy": row.next_strategy,
            }
            for row in self._rows(query, columns, source_ids)
        }

    def _session_details(self, source_ids: Sequence[str]) -> dict[str, JsonObject]:
        columns = session_summaries.c
        named = (columns.outcome, columns.topics, columns.tools, columns.error_summary)
        query = select(columns.session_id, *named).where(
            columns.tenant_id == self._tenant_id, columns.session_id.in_(source_ids)
        )
        return {
            row.session_id: {
                "outcome": Outcome(row.outcome).name,
                "topics": json.loads(row.topics),
                "tools": dict(json.loads(row.tools)),
                "error_summary": row.error_summary,
            }
            for row in self._connection.execute(query)
        }

    def _knowledge_details(self, source_ids: Sequence[str]) -> dict[str, JsonObject]:
        columns = knowledge.c
        query = select(columns.id, columns.repo, columns.type, columns.success_rate)
        return {
            row.id: {
                "repo": row.repo,
                "type": KnowledgeType(row.type).name,
                "success_rate": row.success_rate,
            }
            for row in self._rows(query, columns, source_ids)
        }

    def _rows(self, query: Any, columns: Any, source_ids: Sequence[str]) -> list[Any]:
        mine = query.where(columns.tenant_id == self._tenant_id, columns.id.in_(source_ids))
        return list(self._connection.execute(mine))


_DETAILS: dict[Scope, Callable[[SqlMemories, Sequence[str]], dict[str, JsonObject]]] = {
    Scope.SESSION: SqlMemories._session_details,
    Scope.LESSON: SqlMemories._lesson_details,
    Scope.REFLECTION: SqlMemories._reflection_details,
    Scope.KNOWLEDGE: SqlMemories._knowledge_details,
}


def _event_details(
    event_type: int | None, name: str | None, severity: int | None, sequence: int | None
) -> JsonObject:
    if event_type is None or severity is None:  # The event is gone, its document not yet.
        return {}
    return {
        "event_type": EventType(event_type).name,
        "name": name,
        "severity": Severity(severity).name,
        "sequence": sequence,
    }
