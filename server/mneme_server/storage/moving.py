"""Copying all that a tenant keeps from one store into another, and comparing the two.

A row is the same row where its values are, whatever the database.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mneme_server.corpus.tenant_store import TenantStore
from mneme_server.storage.unit import Unit

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
    with target.write() as unit:
        for table, content in copied.items():
            if content.last_number:
                unit.rows.number_after(table, content.last_number)
    return copied


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
    with store.write() as unit:
        numbers = {table: unit.rows.last_number(table) for table in unit.rows.tables()}
    found: dict[str, Content] = {}
    with store.read() as unit:
        for table in unit.rows.tables():
            count, done, digest = unit.rows.count(table), 0, hashlib.sha256()
            for rows in unit.rows.of(table):
                each(table, rows)
                for row in rows:
                    digest.update(repr(row).encode())
                done += len(rows)
                told(table, done, count)
            found[table] = Content(done, digest.hexdigest(), numbers[table])
    return found
