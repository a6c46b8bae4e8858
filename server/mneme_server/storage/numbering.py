"""Rows that are numbered: by their tenant's order, and no number is ever used twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

from sqlalchemy import Connection, Table, bindparam, column, select
from sqlalchemy import table as alone

from mneme_server.storage.guard import Prepared
from mneme_server.storage.rows import insert_rows

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


@cache
def _highest() -> Prepared:
    return Prepared(select(_numbers.c.seq).where(_numbers.c.name == bindparam("table")))
