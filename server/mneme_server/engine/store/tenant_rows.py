"""All that a tenant keeps, row by row, and the notes of which rows change while it is copied.

What there is are the tables that capabilities declare: one that comes later is among them without a
line here.
"""

from __future__ import annotations

import json
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
from mneme_server.engine.store.connections import sqlite_of
from mneme_server.engine.store.rows import (
    chunks,
    insert_rows,
    is_numbered,
    last_number,
    number_after,
)
from mneme_server.engine.store.schema import metadata

Keys = Mapping[str, Sequence[tuple[object, ...]]]
"""Keys of rows, without the tenant's id, by table."""

AT_ONCE = 500
"""Rows that are read at once."""
_NOTES = "changed_rows"
_TRIGGER = "note_changed"


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
        `SqlChangedRows`."""
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


class SqlChangedRows:
    """The notes of which rows of a tenant change, from one moment on: what a copy has to catch up
    with. In one transaction on SQLite, where a tenant has a file of its own.

    Triggers note the keys of all rows that a transaction inserts, updates or deletes, in that
    transaction, whatever wrote them. They are there only while the tenant is copied.
    """

    def __init__(self, connection: Connection) -> None:
        self._driver = sqlite_of(connection)

    def begin(self) -> None:
        """Note from now on what changes, and forget what was noted. In a transaction that
        writes."""
        self.end()
        self._driver.execute(
            f"CREATE TABLE {_NOTES} (number INTEGER PRIMARY KEY AUTOINCREMENT,"
            " name TEXT NOT NULL, row_key TEXT NOT NULL)"
        )
        for statement in _triggers():
            self._driver.execute(statement)

    def end(self) -> None:
        """Note nothing any more, and overwrite what was noted: keys may be names. In a transaction
        that writes; there may be nothing to end."""
        self._driver.execute("PRAGMA secure_delete = ON")
        found = self._driver.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE ?",
            (f"{_TRIGGER}_%",),
        ).fetchall()
        for (name,) in found:
            self._driver.execute(f"DROP TRIGGER {name}")
        self._driver.execute(f"DROP TABLE IF EXISTS {_NOTES}")

    def there(self) -> bool:
        """Tell whether anything is noted."""
        found = self._driver.execute(
            "SELECT count(*) FROM sqlite_master WHERE name = ?", (_NOTES,)
        ).fetchone()
        return bool(found[0])

    def after(self, number: int) -> tuple[int, Keys]:
        """Return the last note, and the keys of the rows that were noted after one; 0: all."""
        found: dict[str, dict[tuple[object, ...], None]] = {}
        last = number
        rows = self._driver.execute(
            f"SELECT number, name, row_key FROM {_NOTES} WHERE number > ? ORDER BY number",
            (number,),
        )
        for noted, name, key in rows:
            found.setdefault(name, {})[tuple(json.loads(key))] = None
            last = noted
        return last, {name: list(keys) for name, keys in found.items()}


def key_columns(table: str) -> list[str]:
    """Return the columns that name a row of a table among its tenant's."""
    return [one.name for one in metadata.tables[table].primary_key if one.name != "tenant_id"]


def _triggers() -> Iterator[str]:
    for table in metadata.sorted_tables:
        for event, rows in (("INSERT", ["NEW"]), ("UPDATE", ["OLD", "NEW"]), ("DELETE", ["OLD"])):
            notes = " ".join(
                f"INSERT INTO {_NOTES} (name, row_key) VALUES ('{table.name}', json_array("
                + ", ".join(f'{row}."{column}"' for column in key_columns(table.name))
                + "));"
                for row in rows
            )
            yield (
                f"CREATE TRIGGER {_TRIGGER}_{table.name}_{event.lower()} AFTER {event}"
                f' ON "{table.name}" BEGIN {notes} END'
            )
