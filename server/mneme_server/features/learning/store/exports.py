"""Exports of sessions that ended, in a tenant's database."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Row, Table, bindparam, delete, select

from mneme_server.common.stored import reads, require_times
from mneme_server.engine.store.guard import Prepared
from mneme_server.engine.store.reading import read_first, read_rows
from mneme_server.engine.store.rows import chunks, insert_rows, upsert
from mneme_server.features.learning.model import Export
from mneme_server.features.learning.store.tables import export_chunks, exports

CHUNK_BYTES = 64 * 1024
"""Of a row: some hundred are in memory at once where a tenant's rows are copied."""
_AT_ONCE = 64
_KIND = "exported model of the learning session"
_PART = "part of an exported model"


class SqlLearningExports:
    """The models that the tenant's sessions exported when they ended, one of each."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def get(self, number: int) -> Export | None:
        """Return what a session exported; None without it."""
        given = {"tenant": self._tenant_id, "which": number}
        return read_first(self._connection, _one(), _export, given, kind=_KIND, key="session")

    def put(self, number: int, export: Export, data: bytes) -> None:
        """Store a session's model, in place of the one before."""
        mine = {"tenant_id": self._tenant_id, "session": number}
        row = {
            **mine,
            "digest": export.digest,
            "size": export.size,
            "exported_at": export.exported_us,
        }
        self._connection.execute(upsert(exports), row)
        before = export_chunks.c.tenant_id == self._tenant_id, export_chunks.c.session == number
        self._connection.execute(delete(export_chunks).where(*before))
        for some in chunks(range(0, len(data), CHUNK_BYTES), _AT_ONCE):
            rows = [
                {**mine, "number": at // CHUNK_BYTES, "data": data[at : at + CHUNK_BYTES]}
                for at in some
            ]
            insert_rows(self._connection, export_chunks, rows)

    def chunks(self, number: int, first: int, count: int) -> Sequence[bytes]:
        """Return so many chunks of a session's model, in their order, from one on (the first is
        0); fewer at its end."""
        given = {
            "tenant": self._tenant_id, "which": number, "first": first, "behind": first + count,
        }  # fmt: skip
        return read_rows(self._connection, _chunks(), _data, given, kind=_PART, key="number")


@reads(_KIND, "session")
def _export(row: Row[Any]) -> Export:
    require_times(row.exported_at)
    return Export(bytes(row.digest), int(row.size), row.exported_at)


@reads(_PART, "number")
def _data(row: Row[Any]) -> bytes:
    return bytes(row.data)


def _of_session(table: Table) -> Any:
    return select(table).where(
        table.c.tenant_id == bindparam("tenant"), table.c.session == bindparam("which")
    )


@cache
def _one() -> Prepared:
    return Prepared(_of_session(exports))


@cache
def _chunks() -> Prepared:
    number = export_chunks.c.number
    these = (number >= bindparam("first"), number < bindparam("behind"))
    return Prepared(_of_session(export_chunks).where(*these).order_by(number))
