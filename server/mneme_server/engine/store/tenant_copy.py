"""A copy of all that a tenant keeps from one store into another, and comparing the two.

A row is the same row where its values are, whatever the database.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mneme_server.common.errors import DataLoss
from mneme_server.engine.corpus.tenant_store import TenantStore
from mneme_server.engine.store.rows import chunks
from mneme_server.engine.store.unit import Unit

Told = Callable[[str, int, int], object]
"""Told how far it is: the table, the rows done, the rows that there are."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a table holds of a tenant."""

    rows: int
    sha256: str
    """Over all rows, in the order of their keys."""
    last_number: int | None
    """The highest number that its rows ever had; None where they are not numbered."""


def copy(source: TenantStore[Unit], target: TenantStore[Unit], told: Told) -> Mapping[str, Content]:
    """Copy all rows of a tenant into a store that holds none; return what was read, by table.

    Nobody may write to the source meanwhile. Cut short, the target holds a part of it.
    """

    def written(table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        with target.write() as unit:
            unit.rows.add(table, rows)

    copied = _walk(source, told, written)
    number_after(target, {name: content.last_number for name, content in copied.items()})
    return copied


def copy_rows(source: Unit, target: TenantStore[Unit], told: Told) -> None:
    """Copy all rows of a tenant, as one transaction sees them, into a store that holds none."""

    def written(table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        with target.write() as unit:
            unit.rows.add(table, rows)

    _read(source, told, written)


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """What a copy was brought to.

    `last` is the last note of what changed that it has, `rows` how many rows it took, `tables`
    theirs.
    """

    last: int
    rows: int
    tables: frozenset[str]


def catch_up(source: Unit, target: TenantStore[Unit], after: int) -> CaughtUp:
    """Bring to a copy the rows that were noted to have changed, as one transaction sees them, in
    one transaction; they are read back, and have to be what was written. Some at a time: while a
    large tenant is copied more may change than memory holds.

    Args:
        source: notes which rows change; see `SqlChangedRows`.
        target: the copy.
        after: the last note that it has.

    Raises:
        DataLoss: what was written is not what is there.
    """
    last, changed = source.changed_rows.after(after)
    with target.write() as unit:
        tables = [table for table in unit.rows.tables() if table in changed]
        for table in reversed(tables):  # None of them is referred to then.
            for keys in chunks(changed[table]):
                there = source.rows.having(table, keys)
                unit.rows.take_out(table, [key for key in keys if key not in there])
                unit.rows.free_names(table, keys)
        for table in tables:
            for keys in chunks(changed[table]):
                unit.rows.put(table, source.rows.having(table, keys))
        for table in tables:
            for keys in chunks(changed[table]):
                if unit.rows.having(table, keys) != source.rows.having(table, keys):
                    raise DataLoss(f"what arrived of {table} is not what left")
    return CaughtUp(last, sum(map(len, changed.values())), frozenset(changed))


def numbers(store: TenantStore[Unit]) -> Mapping[str, int | None]:
    """Return the highest number that the rows of each table ever had; None where they are not
    numbered."""
    with store.write() as unit:
        return {table: unit.rows.last_number(table) for table in unit.rows.tables()}


def rows_of(source: Unit, told: Told) -> Mapping[str, Content]:
    """Read all rows of a tenant as one transaction sees them; what was numbered is left out."""
    return _read(source, told, lambda _table, _rows: None)


def number_after(target: TenantStore[Unit], numbered: Mapping[str, int | None]) -> None:
    """Have the rows that come next get numbers after these, by table."""
    with target.write() as unit:
        for table, last in numbered.items():
            if last:
                unit.rows.number_after(table, last)


def contents(store: TenantStore[Unit], told: Told) -> Mapping[str, Content]:
    """Read all rows of a tenant; return what there is, by table."""
    return _walk(store, told, lambda _table, _rows: None)


def sizes(store: TenantStore[Unit]) -> Mapping[str, int]:
    """Count the rows of a tenant, by table."""
    with store.read() as unit:
        return {table: unit.rows.count(table) for table in unit.rows.tables()}


def _walk(
    store: TenantStore[Unit],
    told: Told,
    each: Callable[[str, Sequence[tuple[Any, ...]]], object],
) -> Mapping[str, Content]:
    last = numbers(store)
    with store.read() as unit:
        found = _read(unit, told, each)
    return {name: replace(content, last_number=last[name]) for name, content in found.items()}


def _read(
    unit: Unit, told: Told, each: Callable[[str, Sequence[tuple[Any, ...]]], object]
) -> dict[str, Content]:
    found: dict[str, Content] = {}
    for table in unit.rows.tables():
        count, done, digest = unit.rows.count(table), 0, hashlib.sha256()
        for rows in unit.rows.of(table):
            each(table, rows)
            for row in rows:
                digest.update(repr(row).encode())
            done += len(rows)
            told(table, done, count)
        found[table] = Content(done, digest.hexdigest(), None)
    return found
