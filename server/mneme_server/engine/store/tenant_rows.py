"""All that a tenant keeps, row by row.

What there is are the tables that capabilities declare: one that comes later is among them without a
line here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    and_,
    delete,
    func,
    or_,
    select,
    true,
    update,
)

from mneme_server.common.errors import FailedPrecondition, InvalidArgument, Reason
from mneme_server.engine.store.changed_rows import key_columns
from mneme_server.engine.store.numbering import is_numbered, last_number, number_after
from mneme_server.engine.store.rows import chunks, insert_rows
from mneme_server.engine.store.schema import metadata

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

    def having(
        self, table: str, keys: Sequence[tuple[object, ...]]
    ) -> Mapping[tuple[object, ...], tuple[Any, ...]]:
        """Return the rows of a table that have one of these keys, by their keys; see
        `changed_rows`."""
        of = metadata.tables[table]
        names = key_columns(table)
        places = [list(of.columns.keys()).index(name) for name in names]
        found: dict[tuple[object, ...], tuple[Any, ...]] = {}
        for some in chunks(keys):
            chosen = or_(*(and_(*self._named(of, names, key)) for key in some)) if names else true()
            query = select(of).where(of.c.tenant_id == self._tenant_id, chosen)
            for row in self._connection.execute(query):
                found[tuple(row[place] for place in places)] = tuple(row)
        return found

    def put(self, table: str, rows: Mapping[tuple[object, ...], tuple[Any, ...]]) -> None:
        """Have a table hold these rows under their keys, new or in place of others.

        Raises:
            FailedPrecondition: see `add`.
        """
        of = metadata.tables[table]
        names = key_columns(table)
        there = self.having(table, list(rows))
        for key in there.keys() & rows.keys():
            values = {
                column.name: value
                for column, value in zip(of.columns, rows[key], strict=True)
                if column.name not in (*names, "tenant_id")
            }
            if values and there[key] != rows[key]:
                self._connection.execute(update(of).where(*self._at(of, key)).values(**values))
        new = [row for key, row in rows.items() if key not in there]
        for some in chunks(new):
            self.add(table, some)

    def take_out(self, table: str, keys: Sequence[tuple[object, ...]]) -> None:
        """Delete the rows of a table that have one of these keys."""
        of = metadata.tables[table]
        for key in keys:
            self._connection.execute(delete(of).where(*self._at(of, key)))

    def free_names(self, table: str, keys: Sequence[tuple[object, ...]]) -> None:
        """Take their names, where only one row may have each, from rows that are all `put` then:
        one may get the name of another, which gets its own later."""
        of = metadata.tables[table]
        for name in _own_names(of):
            for key in keys:
                freed = {name: f"\x01{key!r}"}
                self._connection.execute(update(of).where(*self._at(of, key)).values(freed))

    def _at(self, of: Table, key: tuple[object, ...]) -> Sequence[ColumnElement[bool]]:
        return of.c.tenant_id == self._tenant_id, *self._named(of, key_columns(of.name), key)

    @staticmethod
    def _named(
        of: Table, names: Sequence[str], key: tuple[object, ...]
    ) -> Sequence[ColumnElement[bool]]:
        return [of.c[name] == value for name, value in zip(names, key, strict=True)]

    def highest(self, table: str) -> int:
        """Return the highest number that a row of a table has; 0 where there is none."""
        of = metadata.tables[table]
        number = next(iter(of.columns))
        query = select(func.max(number)).where(of.c.tenant_id == self._tenant_id)
        return int(self._connection.execute(query).scalar_one() or 0)

    def last_number(self, table: str) -> int | None:
        """Return the highest number that rows of a table ever had; None if they have none. The
        transaction must be one that writes."""
        of = metadata.tables[table]
        return last_number(self._connection, self._tenant_id, of) if is_numbered(of) else None

    def number_after(self, table: str, last: int) -> None:
        """Have the next row of a table get a number after this one."""
        number_after(self._connection, self._tenant_id, metadata.tables[table], last)


def _own_names(table: Table) -> Sequence[str]:
    """Return the columns, besides the key, of whose values a tenant has each once."""
    unique = [list(index.columns.keys()) for index in table.indexes if index.unique]
    return [columns[1] for columns in unique if columns[0] == "tenant_id" and len(columns) == 2]


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
