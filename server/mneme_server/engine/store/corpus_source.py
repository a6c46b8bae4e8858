"""The source that an index is built from: a tenant's database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

import structlog
from sqlalchemy import Connection, Row

from mneme_server.common.errors import DataLoss
from mneme_server.engine.corpus.document import Document, MemoryKind
from mneme_server.engine.corpus.feed import FeedRow, Position, ranges
from mneme_server.engine.corpus.ports import VectorBatch
from mneme_server.engine.store.connections import Database
from mneme_server.engine.store.documents import document_reader, select_documents
from mneme_server.engine.store.feed import SqlFeed
from mneme_server.engine.store.portable import unindexed
from mneme_server.engine.store.reading import read_rows
from mneme_server.engine.store.rows import chunks
from mneme_server.engine.store.schema import documents, vectors
from mneme_server.engine.store.seen_messages import in_context
from mneme_server.engine.store.vectors import (
    BATCH_BYTES,
    SELECT_VECTORS,
    vector_batch,
    vector_bytes,
)

_log = structlog.get_logger(__name__)

_PAGE = 1_000
_NEAR = 64
"""Ids between two that are asked for: to read those too is faster than to read twice."""


class SqlCorpusSource:
    """Implements `CorpusSource`; each call reads its own snapshot."""

    def __init__(self, database: Database, tenant_id: str, kinds: Mapping[str, MemoryKind]) -> None:
        self._database = database
        self._tenant_id = tenant_id
        self._document_of = document_reader(kinds)
        self._vector_bytes: int | None = None
        self.layout = _layout(kinds)

    def head(self) -> Position:
        with self._database.read() as connection:
            return SqlFeed(connection, self._tenant_id).head()

    def changes_after(self, place: Position, limit: int) -> Sequence[FeedRow]:
        with self._database.read() as connection:
            return SqlFeed(connection, self._tenant_id).changes_after(place, limit)

    def documents_after(self, doc_id: int, limit: int) -> Sequence[Document]:
        with self._database.read() as connection:
            return self._page(connection, doc_id, limit)

    def documents_of(self, doc_ids: Sequence[int]) -> Sequence[Document]:
        # Read as runs, because contexts come from the documents before; the ids asked for nearly
        # are some.
        wanted, found = set(doc_ids), []
        with self._database.read() as connection:
            for first, last in ranges(doc_ids, gap=_NEAR):
                after = first - 1
                while after < last:
                    page = self._page(connection, after, min(_PAGE, last - after))
                    in_context(connection, self._tenant_id, page)
                    found += [document for document in page if document.doc_id in wanted]
                    after = page[-1].doc_id if page else last
        return found

    def vectors_after(self, seq: int, limit: int) -> VectorBatch:
        query = (
            SELECT_VECTORS.where(
                unindexed(vectors.c.tenant_id) == self._tenant_id, vectors.c.seq > seq
            )
            .order_by(vectors.c.seq)
            .limit(limit)
        )
        with self._database.read() as connection:
            rows: list[Row[Any]] = []
            size = 0
            with closing(connection.execute(query)) as found:
                for row in found:
                    rows.append(row)
                    size += len(row.vector)
                    if size >= BATCH_BYTES:
                        break
            return vector_batch(rows, self._length(connection))

    def vectors_of(self, doc_ids: Sequence[int]) -> VectorBatch:
        rows: list[Row[Any]] = []
        with self._database.read() as connection:
            for some in chunks(doc_ids):
                query = SELECT_VECTORS.where(
                    vectors.c.tenant_id == self._tenant_id, vectors.c.doc_id.in_(some)
                )
                rows += connection.execute(query)
            return vector_batch(rows, self._length(connection))

    def _length(self, connection: Connection) -> int | None:
        """Return how long vectors are in bytes, which is asked once; None where it is not known."""
        if self._vector_bytes is None:
            self._vector_bytes = vector_bytes(connection, self._tenant_id)
        return self._vector_bytes

    def _page(self, connection: Connection, doc_id: int, limit: int) -> list[Document]:
        query = (
            select_documents(self._tenant_id)
            .where(documents.c.doc_id > doc_id)
            .order_by(documents.c.doc_id)
            .limit(limit)
        )
        return read_rows(
            connection, query, self._document_of, kind="memory", key="doc_id", lost=self._left_out
        )

    def _left_out(self, loss: DataLoss) -> None:
        _log.warning("a memory cannot be found any more", tenant=self._tenant_id, error=str(loss))


def _layout(kinds: Mapping[str, MemoryKind]) -> str:
    """Return the kinds, and which of their memories are said or report a failure."""
    named = [
        f"{name}({','.join(sorted(kind.spoken))}|{','.join(sorted(kind.failed))})"
        for name, kind in sorted(kinds.items())
    ]
    return " ".join(named)
