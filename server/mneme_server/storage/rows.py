"""Between rows and the domain: small conversions that several repositories share."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Table

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


def equal_where_given(
    columns: Any, filter_: object, names: Sequence[str]
) -> list[ColumnElement[bool]]:
    """Return a condition for each of the filter's texts that is not empty: its column equals it."""
    given = ((name, getattr(filter_, name)) for name in names)
    return [columns[name] == value for name, value in given if value]


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
