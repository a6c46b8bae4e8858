"""A tenant's documents, as a transaction writes them, and how a row becomes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import structlog
from sqlalchemy import BindParameter, Connection, Select, Table, case, delete, select, update

from mneme_server.common.errors import DataLoss
from mneme_server.common.passages import is_long
from mneme_server.common.stored import reads, require_times
from mneme_server.engine.corpus.attributes import ATTRIBUTES
from mneme_server.engine.corpus.cache import CorpusChange
from mneme_server.engine.corpus.document import Document, MemoryKind
from mneme_server.engine.corpus.ports import Matrix
from mneme_server.engine.store.portable import unindexed
from mneme_server.engine.store.reading import read_rows
from mneme_server.engine.store.records import row_writer
from mneme_server.engine.store.rows import (
    chunks,
    decode_tags,
    encode_tags,
    insert_rows,
    take_numbers,
)
from mneme_server.engine.store.schema import documents, embedding_queue, vectors
from mneme_server.engine.store.seen_messages import in_context
from mneme_server.engine.store.vectors import enqueue, insert_vectors

_log = structlog.get_logger(__name__)
COLUMNS: tuple[Any, ...] = tuple(documents.c[attribute.column] for attribute in ATTRIBUTES)
"""What `document_reader` reads, in its order."""
_STORED_TYPES = tuple(attribute.stored for attribute in ATTRIBUTES)
_NAMES = [attribute.name for attribute in ATTRIBUTES]
_KIND, _TIME, _TAGS = (_NAMES.index(name) for name in ("kind", "timestamp_us", "tags"))
_IMPORTANCE, _SEVERITY = (place for place, one in enumerate(ATTRIBUTES) if one.is_byte)
_SMALL = range(256)
"""What an index keeps in a byte."""


class SqlDocuments:
    """Implements `DocumentWriter`."""

    def __init__(
        self, connection: Connection, tenant_id: str, kinds: Mapping[str, MemoryKind]
    ) -> None:
        self._connection = connection
        self._tenant_id = tenant_id
        self._kinds = kinds
        self.changes = CorpusChange()

    def add(self, added: Sequence[Document], embedded: Matrix | None = None) -> list[Document]:
        if not added:
            return []
        first = take_numbers(self._connection, self._tenant_id, documents, len(added))
        for doc_id, document in enumerate(added, first):
            document.doc_id = doc_id
        rows = [document_row(document, self._tenant_id) for document in added]
        insert_rows(self._connection, documents, rows)
        saved = in_context(self._connection, self._tenant_id, list(added))
        self.changes.saved += saved
        waits = [embedded is None or is_long(document.text) for document in saved]
        queued = [document for document, late in zip(saved, waits, strict=True) if late]
        if queued:
            enqueue(self._connection, self._tenant_id, queued)
            self.changes.queued += len(queued)
        if embedded is not None and len(queued) < len(saved):
            short = [place for place, late in enumerate(waits) if not late]
            pairs = [(saved[place].doc_id, saved[place].text) for place in short]
            self.changes.vectors.append(
                insert_vectors(self._connection, self._tenant_id, pairs, embedded[short])
            )
        return saved

    def remove(self, kind: MemoryKind, source_ids: Sequence[str], *, named: bool = True) -> None:
        for some in chunks(source_ids):
            conditions = (
                documents.c.tenant_id == self._tenant_id,
                documents.c.kind == kind.name,
                documents.c.source_id.in_(some),
            )
            found = select(documents.c.doc_id, documents.c.source_id).where(*conditions)
            rows = self._connection.execute(found).all()
            if not rows:
                continue
            gone = [row.doc_id for row in rows]
            unqueued = self._delete(embedding_queue, gone)
            self._delete(vectors, gone)
            self._delete(documents, gone)
            self.changes.removed += gone
            sources = [row.source_id for row in rows] if named else []
            self.changes.gone.append((kind.name, gone, sources))
            self.changes.queued -= unqueued

    def _delete(self, table: Table, doc_ids: Sequence[int]) -> int:
        by_key = unindexed(table.c.tenant_id) if table is documents else table.c.tenant_id
        statement = delete(table).where(by_key == self._tenant_id, table.c.doc_id.in_(doc_ids))
        return self._connection.execute(statement).rowcount

    def set_archived(self, kind: MemoryKind, source_id: str, *, archived: bool) -> None:
        self._update(
            (documents.c.kind == kind.name) & (documents.c.source_id == source_id),
            {"archived": archived},
        )

    def set_value(self, kind: MemoryKind, source_id: str, value: float) -> None:
        self._update(
            (documents.c.kind == kind.name) & (documents.c.source_id == source_id),
            {"value": value},
        )

    def set_session(
        self,
        kind: MemoryKind,
        session_id: str,
        *,
        user_id: str,
        project: str,
        tags: tuple[str, ...],
    ) -> None:
        self._update(
            (documents.c.kind == kind.name) & (documents.c.session_id == session_id),
            {
                # A source may have named its user itself.
                "user_id": case((documents.c.user_id == "", user_id), else_=documents.c.user_id),
                "project": project,
                "tags": encode_tags(tags),
            },
        )

    def set_user(self, session_id: str, user_id: str) -> None:
        kinds = [kind.name for kind in self._kinds.values() if kind.of_session]
        condition = (
            documents.c.kind.in_(kinds)
            & (documents.c.session_id == session_id)
            & (documents.c.user_id != user_id)
        )
        mine = documents.c.tenant_id == self._tenant_id
        found = select(documents.c.doc_id).where(mine & condition)
        doc_ids = self._connection.execute(found).scalars().all()
        for some in chunks(doc_ids):
            self._update(documents.c.doc_id.in_(some), {"user_id": user_id})

    def _update(self, condition: Any, values: Mapping[str, Any]) -> None:
        bound = (documents.c.tenant_id == self._tenant_id) & condition
        self._connection.execute(update(documents).where(bound).values(values))
        # One that is damaged cannot be found anyway, and keeps no other from being changed.
        changed = read_rows(
            self._connection,
            select(*COLUMNS).where(bound).order_by(documents.c.doc_id),
            document_reader(self._kinds),
            kind="memory",
            key="doc_id",
            lost=self._left_out,
        )
        self.changes.saved += in_context(self._connection, self._tenant_id, changed)

    def _left_out(self, loss: DataLoss) -> None:
        _log.warning(
            "a damaged memory is not changed in the index", tenant=self._tenant_id, error=str(loss)
        )


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
            or values[_IMPORTANCE] not in _SMALL
            or values[_SEVERITY] not in _SMALL
        ):
            raise TypeError("a column holds something that was never written there")
        require_times(values[_TIME])
        values[_KIND] = kinds[values[_KIND]]
        values[_TAGS] = decode_tags(values[_TAGS])
        return Document(*values)

    return document_of


document_row = row_writer(
    Document,
    documents,
    made={"kind": lambda document: document.kind.name},
    sets=["tags"],
    elsewhere=["kind", "context", "commitment"],
)
"""Return the row of a document, of a tenant."""
