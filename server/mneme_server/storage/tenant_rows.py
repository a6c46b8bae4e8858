"""All that a tenant keeps, row by row.

What there is are the tables that capabilities declare: one that comes later is among them without a
line here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Table, func, select

from mneme_server.common.errors import FailedPrecondition, InvalidArgument, Reason
from mneme_server.storage.numbering import is_numbered, last_number, number_after
from mneme_server.storage.rows import insert_rows
from mneme_server.storage.schema import metadata

AT_ONCE = 500
"""Rows that are read at once."""


class SqlRows:
    """The rows of one tenant, of all tables."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    @staticmethod
    def tables() -> Sequence[str]:
        """Return the tables, each after those that its rows refer to."""
        return [table.name for table in metadata.sorted_tables]

    def count(self, table: str) -> int:
        """Return how many rows there are of a table."""
        of = metadata.tables[table]
        query = select(func.count()).select_from(of).where(of.c.tenant_id == self._tenant_id)
        return int(self._connection.execute(query).scalar_one())

    def of(self, table: str) -> Iterator[Sequence[tuple[Any, ...]]]:
        """Yield the rows of a table in the order of their keys, some at a time."""
        of = metadata.tables[table]
        query = select(of).where(of.c.tenant_id == self._tenant_id).order_by(*of.primary_key)
        found = self._connection.execute(query, execution_options={"yield_per": AT_ONCE})
        for some in found.partitions():
            yield [tuple(row) for row in some]

    def add(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add rows to a table.

        Raises:
            FailedPrecondition: the database cannot keep a value that one of them has.
        """
        of = metadata.tables[table]
        names = [column.name for column in of.columns]
        try:
            insert_rows(self._connection, of, [dict(zip(names, row, strict=True)) for row in rows])
        except InvalidArgument as error:
            raise FailedPrecondition(
                f"{_row_with_nul(of, rows)} holds U+0000, which PostgreSQL stores in no text; the"
                " tenant stays where it is",
                reason=Reason.DATABASE_ERROR,
            ) from error

    def last_number(self, table: str) -> int | None:
        """Return the highest number that rows of a table ever had; None if they have none. The
        transaction must be one that writes."""
        of = metadata.tables[table]
        return last_number(self._connection, self._tenant_id, of) if is_numbered(of) else None

    def number_after(self, table: str, last: int) -> None:
        """Have the next row of a table get a number after this one."""
        number_after(self._connection, self._tenant_id, metadata.tables[table], last)


def _row_with_nul(table: Table, rows: Sequence[tuple[Any, ...]]) -> str:
    """Return what a row is called that holds what cannot be kept, and where."""
    names = [column.name for column in table.columns]
    keys = [column.name for column in table.primary_key if column.name != "tenant_id"]
    for row in rows:
        for name, value in zip(names, row, strict=True):
            if isinstance(value, str) and "\0" in value:
                row_of = dict(zip(names, row, strict=True))
                key = ", ".join(f"{one} {row_of[one]!r}" for one in keys)
                return f"{name} of the row of {table.name} with {key}"
    return f"a row of {table.name}"
