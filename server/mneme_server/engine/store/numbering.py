"""Rows that are numbered: by their tenant's order, and no number is ever used twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

from sqlalchemy import Connection, Table, bindparam, column, select
from sqlalchemy import table as alone

from mneme_server.engine.store.driver import driver_of
from mneme_server.engine.store.guard import Prepared
from mneme_server.engine.store.rows import insert_rows

TakeNumbers: TypeAlias = Callable[[Connection, str, str, int], int]
"""Takes numbers from a tenant's counter: for the transaction, the tenant, the name of a table, so
many. Returns the first of them."""

COUNTER = "mneme_counter"
"""The option of an engine that holds a `TakeNumbers`. Without it the database numbers rows by
itself, as SQLite does where a column is AUTOINCREMENT."""

# Where AUTOINCREMENT keeps the highest number ever used.
_numbers = alone("sqlite_sequence", column("name"), column("seq"))


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
