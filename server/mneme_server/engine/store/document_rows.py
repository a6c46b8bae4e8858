"""Between documents and their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import BindParameter, Select, select

from mneme_server.common.stored import reads, require_times
from mneme_server.engine.corpus.document import Document
from mneme_server.engine.corpus.kinds import MemoryKind
from mneme_server.engine.store.rows import decode_tags, encode_tags
from mneme_server.engine.store.tables import documents
from mneme_server.engine.store.unindexed import unindexed

COLUMNS: tuple[Any, ...] = (
    documents.c.doc_id,
    documents.c.kind,
    documents.c.source_id,
    documents.c.text,
    documents.c.timestamp,
    documents.c.session_id,
    documents.c.position,
    documents.c.agent_id,
    documents.c.user_id,
    documents.c.project,
    documents.c.category,
    documents.c.importance,
    documents.c.archived,
    documents.c.type,
    documents.c.name,
    documents.c.role,
    documents.c.severity,
    documents.c.shape,
    documents.c.value,
    documents.c.tags,
)
"""What `document_reader` reads, in its order."""
_STORED_TYPES = (
    *(int, str, str, str, int, str, int, str, str, str, str, int, bool),
    *(str, str, str, int, int, float, str),
)
_SMALL = range(256)
"""What an index keeps in a byte."""


def select_documents(tenant_id: str | BindParameter[Any]) -> Select[Any]:
    """Select a tenant's documents, by a condition on `doc_id`, as `document_reader` reads them."""
    return select(*COLUMNS).where(unindexed(documents.c.tenant_id) == tenant_id)


def document_reader(kinds: Mapping[str, MemoryKind]) -> Callable[[Sequence[Any]], Document]:
    """Return what makes a document, without its context, of a row of `select_documents`.

    It reads by place: opening a tenant does this for every document, and names cost more than all
    the rest. A document of a kind that nobody brings cannot be read.
    """

    @reads("memory", "doc_id")
    def document_of(row: Sequence[Any]) -> Document:
        values: list[Any] = [*row]
        if (
            (*map(type, values),) != _STORED_TYPES
            or values[11] not in _SMALL
            or values[16] not in _SMALL
        ):
            raise TypeError("a column holds something that was never written there")
        require_times(values[4])
        values[1] = kinds[values[1]]
        values[-1] = decode_tags(values[-1])
        return Document(*values)

    return document_of


def document_row(document: Document, tenant_id: str) -> dict[str, Any]:
    """Return the row of a document."""
    return {
        "doc_id": document.doc_id,
        "tenant_id": tenant_id,
        "kind": document.kind.name,
        "source_id": document.source_id,
        "text": document.text,
        "timestamp": document.timestamp_us,
        "session_id": document.session_id,
        "position": document.position,
        "agent_id": document.agent_id,
        "user_id": document.user_id,
        "project": document.project,
        "category": document.category,
        "importance": document.importance,
        "archived": document.archived,
        "type": document.type,
        "name": document.name,
        "role": document.role,
        "severity": document.severity,
        "shape": document.shape,
        "value": document.value,
        "tags": encode_tags(document.tags),
    }
