"""What recall shows of a memory beside its text."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import BindParameter, Connection, bindparam, select

from mneme_server.common.canonical import JsonObject
from mneme_server.corpus.document import Document, Scope
from mneme_server.events.model import EventType, Severity
from mneme_server.events.outcome import Outcome
from mneme_server.learn.knowledge_model import KnowledgeType
from mneme_server.learn.model import Importance
from mneme_server.storage.documents import document_of, select_documents
from mneme_server.storage.rows import chunks
from mneme_server.storage.tables import (
    documents,
    events,
    knowledge,
    lessons,
    reflections,
    session_summaries,
)

# Recall runs these each time: building them anew would cost as much as running them.
_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_DOCUMENTS = select_documents(bindparam("tenant")).where(documents.c.doc_id.in_(_IDS))
_EVENTS = select(
    events.c.id, events.c.event_type, events.c.name, events.c.severity, events.c.sequence
).where(events.c.tenant_id == bindparam("tenant"), events.c.id.in_(_IDS))


class SqlMemories:
    """Implements `recall.ports.MemoryReader`."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def documents_of(self, doc_ids: Sequence[int]) -> dict[int, Document]:
        found: dict[int, Document] = {}
        for some in chunks(doc_ids):
            rows = self._connection.execute(_DOCUMENTS, {"tenant": self._tenant_id, "ids": some})
            found |= {row.doc_id: document_of(row) for row in rows}
        return found

    def details_of(self, scope: Scope, source_ids: Sequence[str]) -> dict[str, JsonObject]:
        details = _DETAILS.get(scope)
        return details(self, source_ids) if details and source_ids else {}

    def _event_details(self, source_ids: Sequence[str]) -> dict[str, JsonObject]:
        rows = self._connection.execute(_EVENTS, {"tenant": self._tenant_id, "ids": source_ids})
        return {
            row.id: {
                "event_type": EventType(row.event_type).name,
                "name": row.name,
                "severity": Severity(row.severity).name,
                "sequence": row.sequence,
            }
            for row in rows
        }

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
    Scope.EVENT: SqlMemories._event_details,
    Scope.SESSION: SqlMemories._session_details,
    Scope.LESSON: SqlMemories._lesson_details,
    Scope.REFLECTION: SqlMemories._reflection_details,
    Scope.KNOWLEDGE: SqlMemories._knowledge_details,
}
