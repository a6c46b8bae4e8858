"""Documents, their vectors and the embedding queue in a tenant's database."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import structlog
from sqlalchemy import (
    BindParameter,
    Connection,
    Row,
    Select,
    Table,
    bindparam,
    case,
    delete,
    func,
    select,
    update,
)

from mneme_server.common.errors import DataLoss
from mneme_server.common.stored import reads, require_times
from mneme_server.corpus.change import CorpusChange
from mneme_server.corpus.document import CONTEXT_DOCUMENTS, Document
from mneme_server.corpus.feed import FeedRow, Position, ranges
from mneme_server.corpus.kinds import MemoryKind
from mneme_server.corpus.ports import Matrix, VectorBatch
from mneme_server.corpus.tenant_store import QueuedText
from mneme_server.storage.engine import Database
from mneme_server.storage.feed import SqlFeed
from mneme_server.storage.reading import all_rows, read_rows
from mneme_server.storage.rows import (
    chunks,
    decode_tags,
    encode_tags,
    insert_rows,
    next_number,
    written_out,
)
from mneme_server.storage.tables import documents, embedding_queue, vectors
from mneme_server.storage.unindexed import unindexed

_log = structlog.get_logger(__name__)

STORED_VECTOR = np.dtype("<f4")
"""How vectors lie in the database."""
_PAGE = 1_000
_NEAR = 64
"""Ids between two that are asked for: to read those too is faster than to read twice."""
# Only what failed waits for a time: a clock that is set back must not stop the queue.
_AT_ONCE = 0
_VECTORS: Select[Any] = select(vectors.c.seq, vectors.c.doc_id, vectors.c.vector)

# Recording a batch runs it for each session.
_TEXTS_BEFORE = (
    select(documents.c.text)
    .where(
        documents.c.tenant_id == bindparam("tenant"),
        documents.c.session_id == bindparam("session"),
        documents.c.position < bindparam("position"),
        documents.c.kind == bindparam("kind"),
        documents.c.category.in_(bindparam("spoken", expanding=True)),
    )
    .order_by(documents.c.position.desc())
    .limit(CONTEXT_DOCUMENTS)
)


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
        for doc_id, document in enumerate(added, self._next_doc_id()):
            document.doc_id = doc_id
        rows = [_document_row(document, self._tenant_id) for document in added]
        insert_rows(self._connection, documents, rows)
        saved = in_context(self._connection, self._tenant_id, list(added))
        self.changes.saved += saved
        if embedded is None:
            self._enqueue(saved)
        else:
            pairs = [(document.doc_id, document.text) for document in saved]
            self.changes.vectors.append(
                insert_vectors(self._connection, self._tenant_id, pairs, embedded)
            )
        return saved

    def remove(self, kind: MemoryKind, source_ids: Sequence[str]) -> None:
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
            self.changes.gone.append((kind.name, gone, [row.source_id for row in rows]))
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

    def _update(self, condition: Any, values: Mapping[str, Any]) -> None:
        bound = (documents.c.tenant_id == self._tenant_id) & condition
        self._connection.execute(update(documents).where(bound).values(values))
        changed = self._connection.execute(
            select(*_COLUMNS).where(bound).order_by(documents.c.doc_id)
        )
        read = document_reader(self._kinds)
        self.changes.saved += in_context(
            self._connection, self._tenant_id, [read(row) for row in changed]
        )

    def _next_doc_id(self) -> int:
        return next_number(self._connection, documents)

    def _enqueue(self, queued: Sequence[Document]) -> None:
        rows = [
            {
                "tenant_id": self._tenant_id,
                "doc_id": document.doc_id,
                "attempts": 0,
                "due_at": _AT_ONCE,
                "last_error": "",
            }
            for document in queued
        ]
        insert_rows(self._connection, embedding_queue, rows)
        self.changes.queued += len(queued)


class SqlEmbeddingQueue:
    """Implements `EmbeddingQueue`."""

    def __init__(self, connection: Connection, tenant_id: str, changes: CorpusChange) -> None:
        self._connection = connection
        self._tenant_id = tenant_id
        self._changes = changes

    def due(self, now: int, limit: int) -> Sequence[QueuedText]:
        query = (
            select(embedding_queue.c.doc_id, embedding_queue.c.attempts, documents.c.text)
            .join(
                documents,
                (unindexed(documents.c.tenant_id) == embedding_queue.c.tenant_id)
                & (documents.c.doc_id == embedding_queue.c.doc_id),
            )
            .where(embedding_queue.c.tenant_id == self._tenant_id, embedding_queue.c.due_at <= now)
            .order_by(embedding_queue.c.doc_id)
            .limit(limit)
        )
        rows = all_rows(self._connection, query).rows
        # A damaged text is embedded as far as it can be read: it must not hold up the others.
        return [QueuedText(row.doc_id, row.attempts, _readable(row.text)) for row in rows]

    def next_due_us(self) -> int | None:
        query = select(func.min(embedding_queue.c.due_at)).where(
            embedding_queue.c.tenant_id == self._tenant_id
        )
        earliest: int | None = self._connection.execute(query).scalar_one()
        return earliest

    def depth(self) -> int:
        return self._count()

    def waiting_of(self, doc_ids: Sequence[int]) -> int:
        return sum(self._count(embedding_queue.c.doc_id.in_(some)) for some in chunks(doc_ids))

    def known_vectors(self, texts: Sequence[str]) -> Mapping[str, Matrix]:
        by_hash = {content_hash(text): text for text in texts}
        found: dict[str, Matrix] = {}
        for some in chunks(by_hash):
            query = select(vectors.c.content_hash, vectors.c.vector).where(
                vectors.c.tenant_id == self._tenant_id, vectors.c.content_hash.in_(some)
            )
            for digest, vector in self._connection.execute(query):
                found[by_hash[digest]] = np.frombuffer(vector, STORED_VECTOR)
        return found

    def finish(self, embedded: Sequence[QueuedText], matrix: Matrix) -> None:
        doc_ids = [item.doc_id for item in embedded]
        left: set[int] = set()
        for some in chunks(doc_ids):
            mine = (
                embedding_queue.c.tenant_id == self._tenant_id,
                embedding_queue.c.doc_id.in_(some),
            )
            left.update(
                self._connection.execute(select(embedding_queue.c.doc_id).where(*mine)).scalars()
            )
            self._connection.execute(delete(embedding_queue).where(*mine))
        rows = [row for row, doc_id in enumerate(doc_ids) if doc_id in left]
        if not rows:
            return
        pairs = [(embedded[row].doc_id, embedded[row].text) for row in rows]
        self._changes.vectors.append(
            insert_vectors(self._connection, self._tenant_id, pairs, matrix[rows])
        )
        self._changes.queued -= len(rows)

    def defer(self, doc_ids: Sequence[int], *, until_us: int, error: str) -> None:
        statement = (
            update(embedding_queue)
            .where(
                embedding_queue.c.tenant_id == self._tenant_id,
                embedding_queue.c.doc_id == bindparam("which"),
            )
            .values(
                attempts=embedding_queue.c.attempts + 1, due_at=until_us, last_error=error[:1000]
            )
        )
        self._connection.execute(statement, [{"which": doc_id} for doc_id in doc_ids])

    def failed(self) -> int:
        """Return how many documents wait after an attempt that failed."""
        return self._count(embedding_queue.c.attempts > written_out(0))

    def _count(self, *conditions: Any) -> int:
        query = (
            select(func.count())
            .select_from(embedding_queue)
            .where(embedding_queue.c.tenant_id == self._tenant_id, *conditions)
        )
        return self._connection.execute(query).scalar_one()


class SqlCorpusSource:
    """Implements `CorpusSource`; each call reads its own snapshot."""

    def __init__(self, database: Database, tenant_id: str, kinds: Mapping[str, MemoryKind]) -> None:
        self._database = database
        self._tenant_id = tenant_id
        self._document_of = document_reader(kinds)

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
            _VECTORS.where(unindexed(vectors.c.tenant_id) == self._tenant_id, vectors.c.seq > seq)
            .order_by(vectors.c.seq)
            .limit(limit)
        )
        with self._database.read() as connection:
            return _batch(connection.execute(query).all())

    def vectors_of(self, doc_ids: Sequence[int]) -> VectorBatch:
        rows: list[Row[Any]] = []
        with self._database.read() as connection:
            for some in chunks(doc_ids):
                query = _VECTORS.where(
                    vectors.c.tenant_id == self._tenant_id, vectors.c.doc_id.in_(some)
                )
                rows += connection.execute(query)
        return _batch(rows)

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


def content_hash(text: str) -> bytes:
    """Return what tells equal texts: their SHA-256."""
    return hashlib.sha256(text.encode()).digest()


def insert_vectors(
    connection: Connection, tenant_id: str, embedded: Sequence[tuple[int, str]], matrix: Matrix
) -> VectorBatch:
    """Store the vectors (n, d) of n (doc_id, text) and return them with their numbers."""
    first = next_number(connection, vectors)
    stored = np.ascontiguousarray(matrix, dtype=STORED_VECTOR)
    rows = [
        {
            "seq": first + index,
            "tenant_id": tenant_id,
            "doc_id": doc_id,
            "content_hash": content_hash(text),
            "vector": stored[index].tobytes(),
        }
        for index, (doc_id, text) in enumerate(embedded)
    ]
    insert_rows(connection, vectors, rows)
    return VectorBatch(
        np.arange(first, first + len(embedded), dtype=np.int64),
        np.array([doc_id for doc_id, _ in embedded], dtype=np.int64),
        stored,
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
        "spoken": sorted(document.kind.spoken),
    }
    rows = all_rows(connection, _TEXTS_BEFORE, place).rows
    return [_readable(text) for (text,) in reversed(rows)]


def _readable(text: object) -> str:
    """Return a stored text, with marks in place of what is damaged in it."""
    if isinstance(text, bytes):
        return text.decode(errors="replace")
    return str(text)


def _batch(rows: Sequence[Row[Any]]) -> VectorBatch:
    if not rows:
        return VectorBatch(
            np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 0), np.float32)
        )
    # A damaged vector is left out: the memory is still found by its words.
    length = Counter(len(row.vector) for row in rows).most_common(1)[0][0]
    rows = [row for row in rows if len(row.vector) == length]
    joined = b"".join(row.vector for row in rows)
    return VectorBatch(
        np.array([row.seq for row in rows], dtype=np.int64),
        np.array([row.doc_id for row in rows], dtype=np.int64),
        np.frombuffer(joined, STORED_VECTOR).reshape(len(rows), -1),
    )


_COLUMNS: tuple[Any, ...] = (
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
    documents.c.tags,
)
_STORED_TYPES = (
    *(int, str, str, str, int, str, int, str, str, str, str, int, bool),
    *(str, str, str, int, int, str),
)
_SMALL = range(256)
"""What an index keeps in a byte."""


def select_documents(tenant_id: str | BindParameter[Any]) -> Select[Any]:
    """Select a tenant's documents, by a condition on `doc_id`, as `document_reader` reads them."""
    return select(*_COLUMNS).where(unindexed(documents.c.tenant_id) == tenant_id)


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


def _document_row(document: Document, tenant_id: str) -> dict[str, Any]:
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
        "tags": encode_tags(document.tags),
    }
