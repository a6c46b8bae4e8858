"""The scan of a tenant's rows, as fast as PostgreSQL gives them: for questions that come before
there is an index, and for building it.

Neither an index over all tenants' rows nor an extension is used. `@@`, as most operators of text
search, may not look at a row before row-level security has, so that its index is of no use; and an
index over the vectors of all tenants loses most of what it finds to their filter.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from psycopg import Copy
from sqlalchemy import (
    ColumnElement,
    Connection,
    LargeBinary,
    Select,
    and_,
    bindparam,
    func,
    literal,
    or_,
    select,
)
from sqlalchemy.sql.compiler import SQLCompiler

from mneme_server.common import deadline
from mneme_server.engine.corpus.attributes import (
    Among,
    Between,
    NotArchived,
    Tagged,
    conditions,
)
from mneme_server.engine.corpus.cold_search import TextPage
from mneme_server.engine.corpus.document import Document, DocumentFilter, MemoryKind
from mneme_server.engine.corpus.ports import Rows, VectorBatch
from mneme_server.engine.store.connections import Database
from mneme_server.engine.store.corpus_source import SqlCorpusSource
from mneme_server.engine.store.documents import document_reader, select_documents
from mneme_server.engine.store.guard import TenantNotBound, tenant_parameters
from mneme_server.engine.store.portable import listed
from mneme_server.engine.store.postgres.driver import postgres_of
from mneme_server.engine.store.reading import read_rows
from mneme_server.engine.store.rows import encode_tags
from mneme_server.engine.store.schema import documents, metadata
from mneme_server.engine.store.vectors import (
    BATCH_BYTES,
    NO_VECTORS,
    STORED_VECTOR,
    commonest,
)

_PAGE_BYTES = 125_000
"""What comes as one value. Many small ones cost more; for those of 128 KiB and more malloc takes
memory from the system anew each time, and fresh pages cost several times what is done with them."""
_TEXTS_EACH = 1_000
"""Texts that come as one value: about as much, where they are a sentence or two each."""
_BETWEEN = " "
_BYTES = ["bytea"] * 3
"""How the driver reads what is sent: as it comes."""
_ALL_VECTORS = """COPY (
    SELECT part.* FROM
        (SELECT min(seq) AS least, max(seq) AS most FROM vectors WHERE tenant_id = %(tenant)s) had,
        generate_series(had.least, had.most, %(each)s) AS start,
        LATERAL (
            SELECT string_agg(int8send(doc_id), ''::bytea), string_agg(vector, ''::bytea)
            FROM vectors
            WHERE tenant_id = %(tenant)s AND seq >= start AND seq < start + %(each)s
                AND octet_length(vector) = %(size)s
        ) AS part
) TO STDOUT (FORMAT binary)"""
"""As the result of a query they would take PostgreSQL three times as long."""
_ALL_OF_LONG_TEXTS = """COPY (
    SELECT int8send(doc_id), vector FROM vectors
    WHERE tenant_id = %(tenant)s AND octet_length(vector) > %(size)s
        AND octet_length(vector) %% %(size)s = 0
) TO STDOUT (FORMAT binary)"""
"""Each by itself: of a book they take as much as those of a page of others."""
_NONE = np.empty(0, np.int64)
_BIGINT, _INTEGER = np.dtype(">i8"), np.dtype(">i4")
"""How PostgreSQL sends whole numbers."""
_AS_ONE_ROW = """
    SELECT string_agg(int8send(seq), ''::bytea), string_agg(int8send(doc_id), ''::bytea),
        string_agg(int4send(octet_length(vector)), ''::bytea), string_agg(vector, ''::bytea)
"""
_AFTER = f"""{_AS_ONE_ROW} FROM (
        SELECT seq, doc_id, vector,
            sum(octet_length(vector)) OVER (ORDER BY seq) - octet_length(vector) AS before
        FROM (
            SELECT seq, doc_id, vector FROM vectors
            WHERE tenant_id = %(tenant)s AND seq > %(after)s ORDER BY seq LIMIT %(limit)s
        ) AS limited
    ) AS page WHERE before < {BATCH_BYTES}
"""
_OF = f"""{_AS_ONE_ROW} FROM vectors
    WHERE tenant_id = %(tenant)s AND doc_id = ANY(CAST(%(ids)s AS bigint[]))
"""


class PostgresScan:
    """Implements `engine.corpus.cold_search.Scan`.

    Args:
        database: the tenant's transactions.
        tenant_id: the tenant.
        kinds: all kinds of memory.
    """

    def __init__(self, database: Database, tenant_id: str, kinds: Mapping[str, MemoryKind]) -> None:
        self._database = database
        self._tenant_id = tenant_id
        self._document_of = document_reader(kinds)

    def more_than(self, documents: int) -> bool:
        """See `Scan`."""
        return self._number_before(documents) is not None

    def has(self, kinds: Collection[MemoryKind]) -> bool:
        """See `Scan`."""
        conditions = _conditions(DocumentFilter(kinds=frozenset(kinds)))
        query = (
            select(documents.c.doc_id)
            .where(documents.c.tenant_id == self._tenant_id, *conditions)
            .limit(1)
        )
        with self._database.read() as connection:
            return connection.execute(query).first() is not None

    def texts(self, filter_: DocumentFilter, limit: int) -> Generator[TextPage, None, None]:
        """See `Scan`."""
        before = self._number_before(limit)
        query = self._pages_of_texts([*_conditions(filter_)], -1 if before is None else before)
        with self._database.read() as connection, copying(connection, query) as sent:
            sent.set_types(_BYTES)
            for ids, sizes, joined in sent.rows():
                deadline.check()
                if ids is not None:
                    yield TextPage(bigints(ids), integers(sizes), joined)

    def _pages_of_texts(
        self, conditions: Sequence[ColumnElement[bool]], before: int
    ) -> Select[Any]:
        """Select pages of texts in the order of their numbers: to sort them would take PostgreSQL
        half as long again."""
        column = documents.c
        own = (column.tenant_id == self._tenant_id, column.doc_id > before)
        first, last = func.min(column.doc_id), func.max(column.doc_id)
        pages = (
            select(func.generate_series(first, last, _TEXTS_EACH).label("start"))
            .where(*own)
            .subquery("pages")
        )
        start = pages.c.start
        page = (
            select(
                _joined(func.int8send(column.doc_id)),
                _joined(func.int4send(func.octet_length(column.text))),
                func.string_agg(column.text, _BETWEEN),
            )
            .where(*own, column.doc_id >= start, column.doc_id < start + _TEXTS_EACH, *conditions)
            .lateral("page")
        )
        return select(page).select_from(pages, page)

    def vectors(self, dimensions: int) -> Generator[VectorBatch, None, None]:
        """See `Scan`."""
        size = dimensions * STORED_VECTOR.itemsize
        wanted = {"tenant": self._tenant_id, "size": size, "each": max(1, _PAGE_BYTES // size)}
        with self._database.read() as connection:
            for query in (_ALL_VECTORS, _ALL_OF_LONG_TEXTS):
                with postgres_of(connection).cursor().copy(query, wanted) as sent:
                    sent.set_types(_BYTES[:2])
                    for ids, sent_vectors in sent.rows():
                        deadline.check()
                        if ids is not None:
                            found = np.frombuffer(sent_vectors, STORED_VECTOR)
                            vectors = found.reshape(-1, dimensions)
                            of = bigints(ids)
                            yield VectorBatch(_NONE, of.repeat(len(vectors) // of.size), vectors)

    def with_neighbours(self, doc_ids: Sequence[int], reach: int = 1) -> Sequence[Document]:
        """See `Scan`."""
        found = documents.alias("found")
        chosen = listed(bindparam("ids", json.dumps(list(doc_ids))), numbers=True)
        near = (
            select(documents.c.doc_id)
            .join(
                found,
                (documents.c.tenant_id == found.c.tenant_id)
                & (documents.c.session_id == found.c.session_id)
                & documents.c.position.between(found.c.position - reach, found.c.position + reach),
            )
            .where(
                documents.c.tenant_id == self._tenant_id,
                found.c.tenant_id == self._tenant_id,
                found.c.doc_id.in_(chosen),
                found.c.session_id != "",
            )
        )
        with self._database.read() as connection:
            ids = {*doc_ids, *connection.execute(near).scalars()}
            query = (
                select_documents(self._tenant_id)
                .where(documents.c.doc_id.in_(listed(bindparam("all"), numbers=True)))
                .order_by(documents.c.doc_id)
            )
            return read_rows(
                connection,
                query,
                self._document_of,
                {"all": json.dumps(sorted(ids))},
                kind="memory",
                key="doc_id",
                lost=lambda _loss: None,
            )

    def _number_before(self, limit: int) -> int | None:
        """Return the number of the newest document that `limit` are newer than; None without."""
        newest_first = (
            select(documents.c.doc_id)
            .where(documents.c.tenant_id == self._tenant_id)
            .order_by(documents.c.doc_id.desc())
        )
        with self._database.read() as connection:
            newest = connection.execute(newest_first.limit(1)).scalar() or 0
            if newest <= limit:  # Numbers are never used again, so there are no more than that.
                return None
            return connection.execute(newest_first.offset(limit).limit(1)).scalar()


def _tagged(tag: str) -> ColumnElement[bool]:
    return documents.c.tags.contains(encode_tags([tag])[1:-1], autoescape=True)


def _joined(value: ColumnElement[bytes]) -> ColumnElement[bytes]:
    return func.string_agg(value, literal(b"", LargeBinary))


def _conditions(wanted: DocumentFilter) -> Iterator[ColumnElement[bool]]:
    """Yield what holds of all that the filter lets through; of what it does not, perhaps, too: of
    who said a text the database knows nothing."""
    for condition in conditions(wanted):
        match condition:
            case Among(attribute, values):
                yield documents.c[attribute.column].in_(values)
            case Between(attribute, least, end):
                column = documents.c[attribute.column]
                if least is not None:
                    yield column >= least
                if end is not None:
                    yield column < end
            case Tagged(tags, every):
                yield (and_ if every else or_)(*map(_tagged, tags))
            case NotArchived(besides):
                kept = documents.c.kind.in_([kind.name for kind in besides])
                yield (documents.c.archived == False) | kept  # noqa: E712  # SQL's.


@contextmanager
def copying(connection: Connection, query: Select[Any]) -> Iterator[Copy]:
    """Lend what reads the rows of a query, in the database's own format for binary ones: one
    by one as they are found, and in a third of the time where they are large.

    Raises:
        TenantNotBound: the query does not say whose rows it means, or means those of another tenant
            than the transaction is by.
    """
    compiled = query.compile(
        dialect=connection.dialect, compile_kwargs={"render_postcompile": True}
    )
    assert isinstance(compiled, SQLCompiler)
    driver, values = postgres_of(connection), compiled.params
    for name in tenant_parameters(compiled, metadata.tables.keys()):
        if values[name] != driver.tenant_id:
            raise TenantNotBound(f"another tenant is bound in: {compiled}")
    given = [values[name] for name in compiled.positiontup or ()]
    with driver.cursor().copy(f"COPY ({compiled}) TO STDOUT (FORMAT binary)", given) as sent:
        yield sent


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
    length = length or commonest(lengths.tolist())
    kept = np.flatnonzero((lengths > 0) & (lengths % length == 0))
    if not kept.size:
        return NO_VECTORS
    if kept.size < lengths.size:
        ends = np.cumsum(lengths)
        parts = zip((ends - lengths)[kept].tolist(), ends[kept].tolist(), strict=True)
        vectors = b"".join([vectors[start:end] for start, end in parts])
    many = lengths[kept] // length
    matrix = np.frombuffer(vectors, STORED_VECTOR).reshape(int(many.sum()), -1)
    return VectorBatch.of_texts(bigints(seqs)[kept], bigints(doc_ids)[kept], many, matrix)
