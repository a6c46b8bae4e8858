"""Vectors as rows, and the queue of the documents that wait for theirs."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    bindparam,
    delete,
    func,
    select,
    update,
)

from mneme_server.common.texts import composed
from mneme_server.engine.corpus.cache import CorpusChange
from mneme_server.engine.corpus.document import Document
from mneme_server.engine.corpus.ports import Matrix, VectorBatch
from mneme_server.engine.corpus.tenant_store import QueuedText
from mneme_server.engine.store.guard import Prepared
from mneme_server.engine.store.portable import unindexed
from mneme_server.engine.store.reading import all_rows
from mneme_server.engine.store.rows import chunks, insert_rows, take_numbers, written_out
from mneme_server.engine.store.schema import documents, embedding_queue, settings, vectors
from mneme_server.engine.store.seen_messages import readable

STORED_VECTOR = np.dtype("<f4")
"""How vectors lie in the database."""
SELECT_VECTORS: Select[Any] = select(vectors.c.seq, vectors.c.doc_id, vectors.c.vector)
BATCH_BYTES = 64_000_000
"""Of vectors that are read at once, but for those of one text: a long one has hundreds."""
NO_VECTORS = VectorBatch(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 0), np.float32))

# Only what failed waits for a time: a clock that is set back must not stop the queue.
_AT_ONCE = 0

_DIMENSIONS = Prepared(
    select(settings.c.value).where(
        settings.c.tenant_id == bindparam("tenant"), settings.c.key == "embedding_dimensions"
    )
)
_DEPTH = Prepared(
    select(func.count())
    .select_from(embedding_queue)
    .where(embedding_queue.c.tenant_id == bindparam("tenant"))
)
_DUE = Prepared(
    select(embedding_queue.c.doc_id, embedding_queue.c.attempts, documents.c.text)
    .join(
        documents,
        (unindexed(documents.c.tenant_id) == embedding_queue.c.tenant_id)
        & (documents.c.doc_id == embedding_queue.c.doc_id),
    )
    .where(
        embedding_queue.c.tenant_id == bindparam("tenant"),
        embedding_queue.c.due_at <= bindparam("now"),
    )
    .order_by(embedding_queue.c.doc_id)
    .limit(bindparam("most"))
)
_NEXT_DUE = Prepared(
    select(func.min(embedding_queue.c.due_at)).where(
        embedding_queue.c.tenant_id == bindparam("tenant")
    )
)
_WAITS = Prepared(
    select(embedding_queue.c.doc_id).where(
        embedding_queue.c.tenant_id == bindparam("tenant"),
        embedding_queue.c.doc_id == bindparam("doc"),
    )
)
_KNOWN = Prepared(
    select(vectors.c.content_hash, vectors.c.vector).where(
        vectors.c.tenant_id == bindparam("tenant"), vectors.c.content_hash == bindparam("hash")
    )
)
_FEW = 8
"""Rows that are looked up one by one: it takes less than to have a statement written for them."""


def content_hash(text: str) -> bytes:
    """Return what tells equal texts, whichever of Unicode's forms they are in: a SHA-256."""
    return hashlib.sha256(composed(text).encode()).digest()


def insert_vectors(
    connection: Connection,
    tenant_id: str,
    embedded: Sequence[tuple[int, str]],
    matrices: Sequence[Matrix] | Matrix,
) -> VectorBatch:
    """Store the vectors of n (doc_id, text), a row (d,) or several (k, d) each, and return them
    with their numbers."""
    first = take_numbers(connection, tenant_id, vectors, len(embedded))
    stored = [np.ascontiguousarray(one, dtype=STORED_VECTOR) for one in matrices]
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
    many = np.array([len(one) if one.ndim > 1 else 1 for one in stored], np.int64)
    numbers = range(first, first + len(embedded))
    doc_ids = [doc_id for doc_id, _ in embedded]
    return VectorBatch.of_texts(numbers, doc_ids, many, np.vstack(stored))


def vector_bytes(connection: Connection, tenant_id: str) -> int | None:
    """Return how long a tenant's vectors are, as they lie in the database; None before its model
    was noted. What is no whole number of them is damaged."""
    row = _DIMENSIONS.first(connection, {"tenant": tenant_id})
    return None if row is None else int(row[0]) * STORED_VECTOR.itemsize


def commonest(lengths: Iterable[int]) -> int:
    """Return how long vectors are where that is not known: as most texts have one."""
    return Counter(lengths).most_common(1)[0][0]


def is_whole(vector: object, length: int) -> bool:
    """Tell whether a stored value is one or more vectors of this length in bytes."""
    if not isinstance(vector, bytes) or not length:
        return False
    return len(vector) == length or (len(vector) > length and len(vector) % length == 0)


def vector_batch(rows: Sequence[Row[Any]], length: int | None) -> VectorBatch:
    """Return the vectors of rows of `SELECT_VECTORS`, each so long in bytes; as most, where that
    is not known. Damaged ones are left out: their memories are still found by their words."""
    if rows and length is None:
        length = commonest(len(row.vector) for row in rows)
    rows = [row for row in rows if is_whole(row.vector, length or 0)]
    if not rows:
        return NO_VECTORS
    assert length
    joined = b"".join(row.vector for row in rows)
    many = np.array([len(row.vector) // length for row in rows], np.int64)
    matrix = np.frombuffer(joined, STORED_VECTOR).reshape(int(many.sum()), -1)
    return VectorBatch.of_texts(
        [row.seq for row in rows], [row.doc_id for row in rows], many, matrix
    )


class SqlEmbeddingQueue:
    """Implements `EmbeddingQueue`."""

    def __init__(self, connection: Connection, tenant_id: str, changes: CorpusChange) -> None:
        self._connection = connection
        self._tenant_id = tenant_id
        self._changes = changes

    def due(self, now: int, limit: int) -> Sequence[QueuedText]:
        given = {"tenant": self._tenant_id, "now": now, "most": limit}
        rows = all_rows(self._connection, _DUE, given).rows
        # A damaged text is embedded as far as it can be read: it must not hold up the others.
        return [QueuedText(row.doc_id, row.attempts, readable(row.text)) for row in rows]

    def next_due_us(self) -> int | None:
        row = _NEXT_DUE.first(self._connection, {"tenant": self._tenant_id})
        return None if row is None or row[0] is None else int(row[0])

    def depth(self) -> int:
        found = _DEPTH.first(self._connection, {"tenant": self._tenant_id})
        assert found is not None
        return int(found[0])

    def waiting_of(self, doc_ids: Sequence[int]) -> int:
        return sum(self._count(embedding_queue.c.doc_id.in_(some)) for some in chunks(doc_ids))

    def known_vectors(self, texts: Sequence[str]) -> Mapping[str, Matrix]:
        hashes = {text: content_hash(text) for text in texts}
        rows = self._with_hashes(set(hashes.values()))
        length = vector_bytes(self._connection, self._tenant_id) if rows else None
        length = length or (commonest(len(row.vector) for row in rows) if rows else 0)
        found = {
            row.content_hash: np.frombuffer(row.vector, STORED_VECTOR).reshape(
                -1, length // STORED_VECTOR.itemsize
            )
            for row in rows
            if is_whole(row.vector, length)  # Else it is damaged.
        }
        return {text: found[hash_] for text, hash_ in hashes.items() if hash_ in found}

    def _with_hashes(self, hashes: Collection[bytes]) -> list[Row[Any]]:
        rows: list[Row[Any]] = []
        if len(hashes) <= _FEW:
            for one in hashes:
                rows += _KNOWN.all(self._connection, {"tenant": self._tenant_id, "hash": one})
            return rows
        for some in chunks(hashes):
            query = select(vectors.c.content_hash, vectors.c.vector).where(
                vectors.c.tenant_id == self._tenant_id, vectors.c.content_hash.in_(some)
            )
            rows += self._connection.execute(query)
        return rows

    def finish(self, embedded: Sequence[QueuedText], matrices: Sequence[Matrix]) -> None:
        doc_ids = [item.doc_id for item in embedded]
        left = self._those_left(doc_ids)
        for some in chunks(doc_ids):
            self._connection.execute(
                delete(embedding_queue).where(
                    embedding_queue.c.tenant_id == self._tenant_id,
                    embedding_queue.c.doc_id.in_(some),
                )
            )
        rows = [row for row, doc_id in enumerate(doc_ids) if doc_id in left]
        if not rows:
            return
        pairs = [(embedded[row].doc_id, embedded[row].text) for row in rows]
        self._changes.vectors.append(
            insert_vectors(
                self._connection, self._tenant_id, pairs, [matrices[row] for row in rows]
            )
        )
        self._changes.queued -= len(rows)

    def _those_left(self, doc_ids: Sequence[int]) -> set[int]:
        """Return which of these documents still wait."""
        if len(doc_ids) <= _FEW:
            given = ({"tenant": self._tenant_id, "doc": doc_id} for doc_id in doc_ids)
            return {row[0] for one in given for row in _WAITS.all(self._connection, one)}
        left: set[int] = set()
        for some in chunks(doc_ids):
            query = select(embedding_queue.c.doc_id).where(
                embedding_queue.c.tenant_id == self._tenant_id,
                embedding_queue.c.doc_id.in_(some),
            )
            left.update(self._connection.execute(query).scalars())
        return left

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

    def give_up(self, doc_ids: Sequence[int]) -> None:
        for some in chunks(doc_ids):
            gone = self._connection.execute(
                delete(embedding_queue).where(
                    embedding_queue.c.tenant_id == self._tenant_id,
                    embedding_queue.c.doc_id.in_(some),
                )
            )
            self._changes.queued -= gone.rowcount

    def failed(self) -> int:
        """Return how many documents wait after an attempt that failed."""
        return self._count(embedding_queue.c.attempts > written_out(0))

    def _count(self, condition: ColumnElement[bool]) -> int:
        query = (
            select(func.count())
            .select_from(embedding_queue)
            .where(embedding_queue.c.tenant_id == self._tenant_id, condition)
        )
        return self._connection.execute(query).scalar_one()


def enqueue(connection: Connection, tenant_id: str, queued: Sequence[Document]) -> None:
    """Have these documents embedded, in their order."""
    rows = [
        {
            "tenant_id": tenant_id,
            "doc_id": document.doc_id,
            "attempts": 0,
            "due_at": _AT_ONCE,
            "last_error": "",
        }
        for document in queued
    ]
    insert_rows(connection, embedding_queue, rows)
