"""Rows as several repositories read, insert and number them.

Rows that are numbered have the numbers of their tenant's order, and no number is ever used twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    Row,
    Select,
    Table,
    bindparam,
    column,
    delete,
    select,
    tuple_,
)
from sqlalchemy import table as alone

from mneme_server.common.pages import parts
from mneme_server.engine.store.connections import driver_of
from mneme_server.engine.store.guard import Prepared
from mneme_server.engine.store.portable import Insert, array_of, insert, listed
from mneme_server.engine.store.reading import read_rows

T = TypeVar("T")
TakeNumbers: TypeAlias = Callable[[Connection, str, str, int], int]
"""Takes numbers from a tenant's counter: for the transaction, the tenant, the name of a table, so
many. Returns the first of them."""
MAX_BOUND = 500
"""Values in one IN list: short lists keep the number of distinct statements small."""
COUNTER = "mneme_counter"
"""The option of an engine that holds a `TakeNumbers`. Without it the database numbers rows by
itself, as SQLite does where a column is AUTOINCREMENT."""
# Where AUTOINCREMENT keeps the highest number ever used.
_numbers = alone("sqlite_sequence", column("name"), column("seq"))


def chunks(items: Collection[T], size: int = MAX_BOUND) -> Iterator[Sequence[T]]:
    """Yield the items in lists of at most `size`."""
    return parts(list(items), size)


def encode_tags(tags: Collection[str]) -> str:
    """Return tags as a JSON array, sorted, without repeats."""
    return json.dumps(sorted(set(tags)), ensure_ascii=False) if tags else "[]"


def decode_tags(text: str) -> tuple[str, ...]:
    """Return the tags of a JSON array."""
    return () if text == "[]" else tuple(json.loads(text))


def written_out(number: int) -> BindParameter[int]:
    """Return a number that stands in the SQL: SQLite finds no partial index by a parameter."""
    return bindparam(None, number, literal_execute=True)


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
    wanted = {"tenant": tenant_id, "values": array_of(values)}
    return read_rows(connection, _having(table, key), decode, wanted, kind=kind, key=key)


@cache
def _having(table: Table, key: str) -> Prepared:
    return Prepared(
        select(table).where(
            table.c.tenant_id == bindparam("tenant"), table.c[key].in_(listed(bindparam("values")))
        )
    )


def equal_where_given(
    columns: Any, filter_: object, names: Sequence[str], *, shared: bool = False
) -> list[ColumnElement[bool]]:
    """Return a condition for each of the filter's texts that is not empty: its column equals it, or
    with `shared` is empty."""
    given = [(columns[name], value) for name in names if (value := getattr(filter_, name))]
    return [column.in_([value, ""]) if shared else column == value for column, value in given]


def rows_among(
    connection: Connection,
    tenant_id: str,
    query: Select[Any],
    column: Column[Any],
    values: Collection[Any],
) -> Iterator[Row[Any]]:
    """Yield the rows of a query that are the tenant's, and of which a column has one of these
    values, however many these are."""
    query = query.where(column.table.c.tenant_id == tenant_id)
    for some in chunks(values):
        yield from connection.execute(query.where(column.in_(some)))


def delete_among(
    connection: Connection, tenant_id: str, column: Column[Any], values: Collection[Any]
) -> int:
    """Delete the tenant's rows of which a column has one of these values, however many these are;
    return how many rows there were."""
    gone, table = 0, column.table
    for some in chunks(values):
        of_these = delete(table).where(table.c.tenant_id == tenant_id, column.in_(some))
        gone += connection.execute(of_these).rowcount
    return gone


def latest_after(
    query: Select[Any],
    time: Column[int],
    id_: Column[str],
    after: tuple[int, str] | None,
    limit: int,
) -> Select[Any]:
    """Return the query of a page, the latest first: of the rows that come after a key, a time with
    an id, up to `limit`; None begins."""
    if after is not None:
        query = query.where(tuple_(time, id_) < tuple_(*after))
    return query.order_by(time.desc(), id_.desc()).limit(limit)


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
    """Insert rows that all name the same columns; recording events spends most of its time here."""
    _insert(table, tuple(rows[0])).insert(connection, rows)


@cache
def _insert(table: Table, names: tuple[str, ...]) -> Prepared:
    return Prepared(insert(table), names)


def take_numbers(connection: Connection, tenant_id: str, table: Table, count: int) -> int:
    """Return the first of as many numbers for new rows of a table.

    The transaction must be one that writes, and insert the rows: nobody else takes these numbers
    before it ends.
    """
    take: TakeNumbers | None = connection.get_execution_options().get(COUNTER)
    if take is not None:
        return take(connection, tenant_id, table.name, count)
    row = _highest().first(connection, {"table": table.name})
    return (0 if row is None else int(row.seq)) + 1


def insert_numbered(
    connection: Connection, tenant_id: str, table: Table, rows: Sequence[dict[str, Any]]
) -> None:
    """Insert rows that all name the same columns, each with the next number of its table.

    Args:
        connection: a transaction that writes.
        tenant_id: whose rows they are.
        table: its first column is the number.
        rows: they do not name it.
    """
    if COUNTER in connection.get_execution_options():
        number = next(iter(table.columns)).name
        first = take_numbers(connection, tenant_id, table, len(rows))
        rows = [{number: given, **row} for given, row in enumerate(rows, first)]
    insert_rows(connection, table, rows)


def is_numbered(table: Table) -> bool:
    """Tell whether the rows of a table are numbered."""
    return next(iter(table.columns)).name != "tenant_id"


def last_number(connection: Connection, tenant_id: str, table: Table) -> int:
    """Return the highest number that rows of a table ever had; 0 of none. The transaction must be
    one that writes."""
    return take_numbers(connection, tenant_id, table, 0) - 1


def number_after(connection: Connection, tenant_id: str, table: Table, last: int) -> None:
    """Have the next row of a table get a number that comes after `last`, for rows that were
    numbered elsewhere. The transaction must be one that writes."""
    missing = last - last_number(connection, tenant_id, table)
    if missing <= 0:
        return
    if COUNTER in connection.get_execution_options():
        take_numbers(connection, tenant_id, table, missing)
        return
    driver = driver_of(connection)  # The guard lets no statement write what is SQLite's own.
    changed = driver.execute(
        "UPDATE sqlite_sequence SET seq = ? WHERE name = ?", (last, table.name)
    )
    if changed.rowcount == 0:
        driver.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table.name, last))


@cache
def _highest() -> Prepared:
    return Prepared(select(_numbers.c.seq).where(_numbers.c.name == bindparam("table")))
