"""A tenant's rows, read as fast as PostgreSQL gives them: for questions that come before there is
an index.

Neither an index over all tenants' rows nor an extension is used. `@@`, as most operators of text
search, may not look at a row before row-level security has, so that its index is of no use; and an
index over the vectors of all tenants loses most of what it finds to their filter.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence

import numpy as np
from sqlalchemy import ColumnElement, LargeBinary, bindparam, func, literal, or_, select
from sqlalchemy.types import NullType

from mneme_server.corpus.document import Document, DocumentFilter
from mneme_server.corpus.kinds import MemoryKind
from mneme_server.corpus.ports import VectorBatch
from mneme_server.corpus.scanning import Texts
from mneme_server.storage.database import Database
from mneme_server.storage.document_rows import document_reader, select_documents
from mneme_server.storage.portable import listed
from mneme_server.storage.postgres.driver import postgres_of
from mneme_server.storage.postgres.source import bigints, integers
from mneme_server.storage.reading import read_rows
from mneme_server.storage.rows import encode_tags
from mneme_server.storage.tables import documents
from mneme_server.storage.vectors import STORED_VECTOR

_TEXTS_EACH = 1_000
"""Texts that come as one value."""
_BETWEEN = " "
_AS_IT_COMES = NullType()
"""The driver's own reading."""
_SORT_IN_MEMORY = "SELECT set_config('work_mem', '64MB', true)"
"""Of this transaction alone: to sort the texts on the disk would take as long again."""
_VECTORS_EACH = 200
"""Vectors that come as one value: a row for each would cost several times as much, and of more the
memory is taken from the system anew each time."""
_ALL_VECTORS = f"""COPY (
    SELECT part.* FROM
        (SELECT min(seq) AS least, max(seq) AS most FROM vectors WHERE tenant_id = %(tenant)s) had,
        generate_series(had.least, had.most, {_VECTORS_EACH}) AS start,
        LATERAL (
            SELECT string_agg(int8send(doc_id), ''::bytea), string_agg(vector, ''::bytea)
            FROM vectors
            WHERE tenant_id = %(tenant)s AND seq >= start AND seq < start + {_VECTORS_EACH}
                AND octet_length(vector) = %(size)s
        ) AS part
) TO STDOUT (FORMAT binary)"""
"""As the result of a query they would take PostgreSQL three times as long."""
_NONE = np.empty(0, np.int64)


class PostgresScan:
    """Implements `corpus.scanning.Scan`.

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

    def texts(self, filter_: DocumentFilter, limit: int) -> Texts:
        """See `Scan`."""
        conditions = list(_conditions(filter_))
        before = self._number_before(limit)
        if before is not None:
            conditions.append(documents.c.doc_id > before)
        column = documents.c
        # A value for each row would take three times as long.
        query = (
            select(
                _joined(func.int8send(column.doc_id)),
                _joined(func.int4send(func.octet_length(column.text))),
                func.string_agg(column.text, _BETWEEN),
            )
            .where(column.tenant_id == self._tenant_id, *conditions)
            .group_by(column.doc_id // _TEXTS_EACH)
        )
        with self._database.read() as connection:
            postgres_of(connection).execute(_SORT_IN_MEMORY)
            rows = connection.execute(query).all()
        ids, sizes, texts = zip(*rows, strict=True) if rows else ((), (), ())
        return Texts(
            bigints(b"".join(ids)),
            integers(b"".join(sizes)),
            _BETWEEN.join(texts).encode(),
        )

    def vectors(self, dimensions: int) -> Generator[VectorBatch, None, None]:
        """See `Scan`."""
        wanted = {"tenant": self._tenant_id, "size": dimensions * STORED_VECTOR.itemsize}
        with (
            self._database.read() as connection,
            postgres_of(connection).cursor().copy(_ALL_VECTORS, wanted) as sent,
        ):
            sent.set_types(["bytea", "bytea"])
            for ids, vectors in sent.rows():
                if ids is not None:
                    yield VectorBatch(
                        _NONE,
                        bigints(ids),
                        np.frombuffer(vectors, STORED_VECTOR).reshape(-1, dimensions),
                    )

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
    return func.string_agg(value, literal(b"", LargeBinary), type_=_AS_IT_COMES)


def _conditions(wanted: DocumentFilter) -> Iterator[ColumnElement[bool]]:
    """Yield what holds of all that the filter lets through; of what it does not, perhaps, too."""
    column = documents.c
    if wanted.kinds:
        yield column.kind.in_(sorted(kind.name for kind in wanted.kinds))
    for one, value, shared in (
        (column.session_id, wanted.session_id, False),
        (column.agent_id, wanted.agent_id, wanted.shared),
        (column.user_id, wanted.user_id, False),
        (column.project, wanted.project, wanted.shared),
        (column.name, wanted.name, False),
    ):
        if value:
            yield one.in_(["", value] if shared else [value])
    for one, values in (
        (column.category, wanted.categories or None),
        (column.type, wanted.types or None),
        (column.session_id, wanted.session_ids),
        (column.user_id, {""} if wanted.of_no_user else None),
    ):
        if values is not None:
            yield one.in_(sorted(values))
    yield from (_tagged(tag) for tag in sorted(wanted.tags))
    if wanted.any_tags:
        yield or_(*map(_tagged, sorted(wanted.any_tags)))
    if wanted.importance:
        yield column.importance == wanted.importance
    if wanted.min_severity:
        yield column.severity >= wanted.min_severity
    if wanted.min_value is not None:
        yield column.value >= wanted.min_value
    if wanted.start_us is not None:
        yield column.timestamp >= wanted.start_us
    if wanted.end_us is not None:
        yield column.timestamp < wanted.end_us
    if not wanted.include_archived:
        yield column.archived == False  # noqa: E712  # SQL's.
