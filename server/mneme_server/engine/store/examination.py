"""Looking for damage in a tenant's database, once something failed that should not have.

Most of what is damaged is noticed where it is read. What slips through (a number that became a
text, an index of SQLite's that does not agree with its table) makes something fail later, and that
is no bug.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Boolean, Column, Float, Integer, LargeBinary, Table, Text

from mneme_server.common.errors import DataLoss
from mneme_server.common.stored import UNREADABLE, damaged, require_enum, require_times
from mneme_server.engine.store.engine import address_of, unspeakable
from mneme_server.engine.store.reading import lenient_text
from mneme_server.engine.store.schema import metadata

_LONGEST_S = 5.0
"""How long to look: longer than most tenants take, and a caller waits for it."""

Check = Callable[[Any], object]
"""Raises one of `UNREADABLE` when a value cannot be one of its column."""


def first_damage(path: Path) -> DataLoss | None:
    """Return the first damage found in a tenant's database; None when there seems to be none."""
    until = time.monotonic() + _LONGEST_S
    try:
        with closing(sqlite3.connect(address_of(path), uri=True)) as connection:
            connection.execute("PRAGMA query_only = ON")
            connection.text_factory = lenient_text
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                return DataLoss(f"the tenant's database is damaged ({found}); restore a backup")
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
            missing = {table.name for table in metadata.sorted_tables} - tables
            if missing:
                return DataLoss(f"the tenant's database lacks {', '.join(sorted(missing))}")
            for table in metadata.sorted_tables:
                loss = _damage_of(connection, table, until)
                if loss is not None:
                    return loss
    except sqlite3.DatabaseError as error:
        return DataLoss(f"the tenant's database is damaged ({error}); restore a backup")
    except UnicodeDecodeError:
        return unspeakable(path)
    return None


def _damage_of(connection: sqlite3.Connection, table: Table, until: float) -> DataLoss | None:
    kind = table.info.get("kind", f"row of {table.name}")
    key = table.info.get("key", next(iter(table.columns)).name)
    checks = [_check(column) for column in table.columns]
    place = [column.name for column in table.columns].index(key)
    names = ", ".join(f'"{column.name}"' for column in table.columns)
    for row in connection.execute(f"SELECT {names} FROM {table.name}"):  # our names
        for check, value in zip(checks, row, strict=True):
            try:
                check(value)
            except UNREADABLE as error:
                return damaged(kind, row[place], error)
        if time.monotonic() > until:
            return None
    return None


def _check(column: Column[Any]) -> Check:
    """Return what checks a value of the column."""
    wanted = _type_of(column)
    enum = column.info.get("enum")

    def check(value: Any) -> None:
        if value is None and column.nullable:
            return
        if not isinstance(value, wanted) or isinstance(value, bytes) != (wanted is bytes):
            raise TypeError(f"{column.name} holds something that was never written there")
        if enum is not None:
            require_enum(frozenset(map(int, enum)), value, column.name)
        elif column.info.get("time"):
            require_times(value)
        elif column.info.get("json"):
            json.loads(value)

    return check


def _type_of(column: Column[Any]) -> Any:
    kind = column.type
    if isinstance(kind, LargeBinary):
        return bytes
    if isinstance(kind, Float):
        return (int, float)
    if isinstance(kind, Integer | Boolean):
        return int
    assert isinstance(kind, Text)
    return str
