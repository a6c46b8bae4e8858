"""What an index is built from, where the rows come from PostgreSQL: vectors as whole pages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mneme_server.engine.corpus.ports import Rows, VectorBatch
from mneme_server.engine.store.corpus_source import SqlCorpusSource
from mneme_server.engine.store.postgres.driver import postgres_of
from mneme_server.engine.store.vectors import NO_VECTORS, STORED_VECTOR, commonest

_BIGINT, _INTEGER = np.dtype(">i8"), np.dtype(">i4")
"""How PostgreSQL sends whole numbers."""
_AS_ONE_ROW = """
    SELECT string_agg(int8send(seq), ''::bytea), string_agg(int8send(doc_id), ''::bytea),
        string_agg(int4send(octet_length(vector)), ''::bytea), string_agg(vector, ''::bytea)
"""
_AFTER = f"""{_AS_ONE_ROW} FROM (
        SELECT seq, doc_id, vector FROM vectors WHERE tenant_id = %(tenant)s AND seq > %(after)s
        ORDER BY seq LIMIT %(limit)s
    ) AS page
"""
_OF = f"""{_AS_ONE_ROW} FROM vectors
    WHERE tenant_id = %(tenant)s AND doc_id = ANY(CAST(%(ids)s AS bigint[]))
"""


def bigints(sent: bytes) -> Rows:
    """Return what `int8send` gave, one after the other."""
    return np.frombuffer(sent, _BIGINT).astype(np.int64)


def integers(sent: bytes) -> Rows:
    """Return what `int4send` gave, one after the other."""
    return np.frombuffer(sent, _INTEGER).astype(np.int64)


class PostgresCorpusSource(SqlCorpusSource):
    """Implements `CorpusSource`; each call reads its own snapshot.

    Vectors come as one row: a row for each would cost several times as much.
    """

    def vectors_after(self, seq: int, limit: int) -> VectorBatch:
        """See `CorpusSource`."""
        return self._vectors(_AFTER, {"after": seq, "limit": limit})

    def vectors_of(self, doc_ids: Sequence[int]) -> VectorBatch:
        """See `CorpusSource`."""
        return self._vectors(_OF, {"ids": list(doc_ids)})

    def _vectors(self, query: str, wanted: dict[str, object]) -> VectorBatch:
        wanted["tenant"] = self._tenant_id
        with self._database.read() as connection:
            row = postgres_of(connection).execute(query, wanted, binary=True).fetchone()
            length = self._length(connection)
        return NO_VECTORS if row is None or row[0] is None else _batch(*row, length=length)


def _batch(
    seqs: bytes, doc_ids: bytes, sizes: bytes, vectors: bytes, *, length: int | None
) -> VectorBatch:
    """Return the vectors that are whole; see `vector_batch`."""
    lengths = integers(sizes)
    kept = np.flatnonzero(lengths == (commonest(lengths.tolist()) if length is None else length))
    if not kept.size:
        return NO_VECTORS
    if kept.size < lengths.size:
        ends = np.cumsum(lengths)
        parts = zip((ends - lengths)[kept].tolist(), ends[kept].tolist(), strict=True)
        vectors = b"".join([vectors[start:end] for start, end in parts])
    return VectorBatch(
        bigints(seqs)[kept],
        bigints(doc_ids)[kept],
        np.frombuffer(vectors, STORED_VECTOR).reshape(kept.size, -1),
    )
