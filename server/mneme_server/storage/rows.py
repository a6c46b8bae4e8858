"""Between rows and the domain: small conversions that several repositories share."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Row,
    Select,
    Table,
    bindparam,
    func,
    select,
)
from sqlalchemy.dialects.sqlite import Insert, insert
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.visitors import InternalTraversal

from mneme_server.storage.reading import read_rows

T = TypeVar("T")

MAX_BOUND = 500
"""Values in one IN list: short lists keep the number of distinct statements small."""


def chunks(items: Collection[T], size: int = MAX_BOUND) -> Iterator[Sequence[T]]:
    """Yield the items in lists of at most `size`."""
    ordered = list(items)
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]


def encode_tags(tags: Collection[str]) -> str:
    """Return tags as a JSON array, sorted, without repeats."""
    return json.dumps(sorted(set(tags)), ensure_ascii=False) if tags else "[]"


def decode_tags(text: str) -> tuple[str, ...]:
    """Return the tags of a JSON array."""
    return () if text == "[]" else tuple(json.loads(text))


def total(connection: Connection, table: Table, tenant_id: str, *conditions: Any) -> int:
    """Return how many rows of the table the tenant has, of those that meet the conditions."""
    query = select(func.count()).select_from(table).where(table.c.tenant_id == tenant_id)
    return int(connection.execute(query.where(*conditions)).scalar_one())


def listed(array: BindParameter[Any]) -> Select[Any]:
    """Select the values of a bound JSON array, for `IN`.

    Where a statement runs often: an IN list is written out anew, value by value, each time.
    """
    each = func.json_each(array).table_valued("value")
    return select(each.c.value)


def read_with(
    connection: Connection,
    table: Table,
    decode: Callable[[Row[Any]], T],
    tenant_id: str,
    values: Collection[str],
    *,
    kind: str,
    key: str = "id",
) -> list[T]:
    """Return what `decode` makes of the tenant's rows whose column `key` has one of the values.

    Raises:
        DataLoss: a row cannot be read; the error names it.
    """
    wanted = {"tenant": tenant_id, "values": json.dumps(list(values))}
    return read_rows(connection, _having(table, key), decode, wanted, kind=kind, key=key)


@cache
def _having(table: Table, key: str) -> Select[Any]:
    return select(table).where(
        table.c.tenant_id == bindparam("tenant"), table.c[key].in_(listed(bindparam("values")))
    )


class unindexed(ColumnElement[Any]):  # noqa: N801  # used like a function of SQL
    """A column that SQLite's planner must not look up in an index; the column itself elsewhere.

    In a tenant's own file `tenant_id` has one value, but the planner takes it for selective and
    reads a whole index of it, where a key stands in the same condition.
    """

    inherit_cache = True

    def __init__(self, column: ColumnElement[Any]) -> None:
        self.column = column
        self.type = column.type

    def get_children(self, **_: Any) -> Iterator[ColumnElement[Any]]:
        """Return the column: the statement's tables are found by it."""
        return iter((self.column,))


unindexed._traverse_internals = [("column", InternalTraversal.dp_clauseelement)]


@compiles(unindexed)
def _plain(element: unindexed, compiler: Any, **options: Any) -> str:
    return str(compiler.process(element.column, **options))


@compiles(unindexed, "sqlite")
def _with_plus(element: unindexed, compiler: Any, **options: Any) -> str:
    return f"+{compiler.process(element.column, **options)}"


def equal_where_given(
    columns: Any, filter_: object, names: Sequence[str]
) -> list[ColumnElement[bool]]:
    """Return a condition for each of the filter's texts that is not empty: its column equals it."""
    given = ((name, getattr(filter_, name)) for name in names)
    return [columns[name] == value for name, value in given if value]


@cache
def upsert(table: Table, keep: tuple[str, ...] = ()) -> Insert:
    """Return what inserts rows; of one whose key is there, every column is set but `keep`.

    Built once for a table: building it costs more than running it.
    """
    statement = insert(table)
    changed = {
        column.name: statement.excluded[column.name]
        for column in table.columns
        if not column.primary_key and column.name not in keep
    }
    return statement.on_conflict_do_update(index_elements=[*table.primary_key], set_=changed)


def insert_rows(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Insert rows that all name the same columns.

    Says the same as `connection.execute(table.insert(), rows)` without SQLAlchemy's work for each
    row, which costs more than SQLite's own: recording events spends most of its time here.
    """
    names = tuple(rows[0])
    values = [tuple(row.values()) for row in rows]
    connection.exec_driver_sql(_insert_statement(table, names), values)


@cache
def _insert_statement(table: Table, names: tuple[str, ...]) -> str:
    places = ", ".join("?" * len(names))
    columns = ", ".join(f'"{name}"' for name in names)
    return f"INSERT INTO {table.name} ({columns}) VALUES ({places})"
