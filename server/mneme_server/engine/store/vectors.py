"""Between vectors and their rows."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, Select, bindparam, select

from mneme_server.common.texts import composed
from mneme_server.engine.corpus.ports import Matrix, VectorBatch
from mneme_server.engine.store.guard import Prepared
from mneme_server.engine.store.numbering import take_numbers
from mneme_server.engine.store.rows import insert_rows
from mneme_server.engine.store.tables import settings, vectors

STORED_VECTOR = np.dtype("<f4")
"""How vectors lie in the database."""
SELECT_VECTORS: Select[Any] = select(vectors.c.seq, vectors.c.doc_id, vectors.c.vector)
NO_VECTORS = VectorBatch(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 0), np.float32))
_DIMENSIONS = Prepared(
    select(settings.c.value).where(
        settings.c.tenant_id == bindparam("tenant"), settings.c.key == "embedding_dimensions"
    )
)


def content_hash(text: str) -> bytes:
    """Return what tells equal texts, whichever of Unicode's forms they are in: a SHA-256."""
    return hashlib.sha256(composed(text).encode()).digest()


def insert_vectors(
    connection: Connection, tenant_id: str, embedded: Sequence[tuple[int, str]], matrix: Matrix
) -> VectorBatch:
    """Store the vectors (n, d) of n (doc_id, text) and return them with their numbers."""
    first = take_numbers(connection, tenant_id, vectors, len(embedded))
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


def vector_bytes(connection: Connection, tenant_id: str) -> int | None:
    """Return how long a tenant's vectors are, as they lie in the database; None before its model
    was noted. One of another length is damaged."""
    row = _DIMENSIONS.first(connection, {"tenant": tenant_id})
    return None if row is None else int(row[0]) * STORED_VECTOR.itemsize


def commonest(lengths: Iterable[int]) -> int:
    """Return how long vectors are where that is not known: as most of them."""
    return Counter(lengths).most_common(1)[0][0]


def is_whole(vector: object, length: int) -> bool:
    """Tell whether a stored value is a vector of this length in bytes."""
    return isinstance(vector, bytes) and len(vector) == length


def vector_batch(rows: Sequence[Row[Any]], length: int | None) -> VectorBatch:
    """Return the vectors of rows of `SELECT_VECTORS`, which are so long in bytes; as most, where
    that is not known. Damaged ones are left out: their memories are still found by their words."""
    if rows and length is None:
        length = commonest(len(row.vector) for row in rows)
    rows = [row for row in rows if is_whole(row.vector, length or 0)]
    if not rows:
        return NO_VECTORS
    joined = b"".join(row.vector for row in rows)
    return VectorBatch(
        np.array([row.seq for row in rows], dtype=np.int64),
        np.array([row.doc_id for row in rows], dtype=np.int64),
        np.frombuffer(joined, STORED_VECTOR).reshape(len(rows), -1),
    )
