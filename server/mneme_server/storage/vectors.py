"""Between vectors and their rows."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, Select, select

from mneme_server.corpus.ports import Matrix, VectorBatch
from mneme_server.storage.numbering import take_numbers
from mneme_server.storage.rows import insert_rows
from mneme_server.storage.tables import vectors

STORED_VECTOR = np.dtype("<f4")
"""How vectors lie in the database."""
SELECT_VECTORS: Select[Any] = select(vectors.c.seq, vectors.c.doc_id, vectors.c.vector)


def content_hash(text: str) -> bytes:
    """Return what tells equal texts: their SHA-256."""
    return hashlib.sha256(text.encode()).digest()


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


def vector_batch(rows: Sequence[Row[Any]]) -> VectorBatch:
    """Return the vectors of rows of `SELECT_VECTORS`; damaged ones are left out: their memories are
    still found by their words."""
    if not rows:
        return VectorBatch(
            np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 0), np.float32)
        )
    length = Counter(len(row.vector) for row in rows).most_common(1)[0][0]
    rows = [row for row in rows if len(row.vector) == length]
    joined = b"".join(row.vector for row in rows)
    return VectorBatch(
        np.array([row.seq for row in rows], dtype=np.int64),
        np.array([row.doc_id for row in rows], dtype=np.int64),
        np.frombuffer(joined, STORED_VECTOR).reshape(len(rows), -1),
    )
