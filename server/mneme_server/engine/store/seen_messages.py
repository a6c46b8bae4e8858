"""Messages seen just before a document in its session: its context."""

from __future__ import annotations

from collections import deque

from sqlalchemy import Connection, bindparam, select

from mneme_server.engine.corpus.document import CONTEXT_DOCUMENTS, Document
from mneme_server.engine.store.guard import Prepared
from mneme_server.engine.store.portable import array_of, listed
from mneme_server.engine.store.reading import all_rows
from mneme_server.engine.store.schema import documents

# Recording a batch runs it for each session.
_TEXTS_BEFORE = Prepared(
    select(documents.c.text)
    .where(
        documents.c.tenant_id == bindparam("tenant"),
        documents.c.session_id == bindparam("session"),
        documents.c.position < bindparam("position"),
        documents.c.kind == bindparam("kind"),
        documents.c.category.in_(listed(bindparam("spoken"))),
    )
    .order_by(documents.c.position.desc())
    .limit(CONTEXT_DOCUMENTS)
)


def in_context(connection: Connection, tenant_id: str, found: list[Document]) -> list[Document]:
    """Fill in what is said just before each spoken document in its session; return all documents.

    Of a session that is among them, they must be a run without gaps, in order, as documents are
    when they are written and when they are read by `doc_id`.
    """
    lines: dict[str, deque[str]] = {}
    for document in found:
        if not document.spoken or not document.session_id:
            continue
        before = lines.get(document.session_id)
        if before is None:
            before = lines[document.session_id] = deque(
                _texts_before(connection, tenant_id, document), maxlen=CONTEXT_DOCUMENTS
            )
        document.context = "\n".join(before)
        before.append(document.text)
    return found


def _texts_before(connection: Connection, tenant_id: str, document: Document) -> list[str]:
    if document.position <= 1:
        return []
    place = {
        "tenant": tenant_id,
        "session": document.session_id,
        "position": document.position,
        "kind": document.kind.name,
        "spoken": array_of(sorted(document.kind.spoken)),
    }
    rows = all_rows(connection, _TEXTS_BEFORE, place).rows
    return [readable(text) for (text,) in reversed(rows)]


def readable(text: object) -> str:
    """Return a stored text, with marks in place of what is damaged in it."""
    if isinstance(text, bytes):
        return text.decode(errors="replace")
    return str(text)
