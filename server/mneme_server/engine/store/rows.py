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
    Table,
    bindparam,
    select,
)

from mneme_server.common.pages import parts
from mneme_server.engine.store.guard import Prepared
from mneme_server.engine.store.portable import Insert, array_of, insert, listed
from mneme_server.engine.store.reading import read_rows

T = TypeVar("T")

MAX_BOUND = 500
"""Values in one IN list: short lists keep the number of distinct statements small."""


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
    """Insert rows that all name the same columns; recording events spends most of its time here."""
    _insert(table, tuple(rows[0])).insert(connection, rows)


@cache
def _insert(table: Table, names: tuple[str, ...]) -> Prepared:
    return Prepared(insert(table), names)
