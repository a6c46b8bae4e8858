"""Totals: how many rows a tenant has of a kind, kept so that nobody has to count them.

Whoever adds or removes rows says so here, in the same transaction: one that is undone takes its
counting with it. Triggers would need no saying, but cost more for each event than all its indexes.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

from sqlalchemy import ColumnElement, Connection, Table, bindparam, func, select

from mneme_server.engine.store.guard import Prepared
from mneme_server.engine.store.portable import array_of, insert, listed
from mneme_server.engine.store.schema import totals


class SqlTotals:
    """The tenant's totals, for who shows them and keeps none of the rows."""

    def __init__(self, connection: Connection, tenant_id: str) -> None:
        self._connection = connection
        self._tenant_id = tenant_id

    def of(self, name: str) -> int:
        """Return how many rows are counted under a name."""
        return total(self._connection, self._tenant_id, name)


def total(connection: Connection, tenant_id: str, *names: str) -> int:
    """Return how many rows there are of what is counted under these names, together."""
    wanted = {"tenant": tenant_id, "names": array_of(names)}
    found = _read().first(connection, wanted)
    assert found is not None
    return int(found[0])


def add_to_total(connection: Connection, tenant_id: str, name: str, rows: int) -> None:
    """Note that there are so many rows more, or fewer when the number is negative."""
    if rows:
        _add().insert(connection, [{"tenant_id": tenant_id, "name": name, "value": rows}])


def known(
    connection: Connection,
    tenant_id: str,
    key: ColumnElement[str],
    ids: Collection[str],
) -> int:
    """Return how many of these different ids there are rows of, by the table's column `key`.

    What is saved is inserted or updated, and the database does not say which: asked before, this
    tells.
    """
    if not ids:
        return 0
    if len(ids) == 1:  # A list takes twice as long.
        return int(
            _is_known(key).first(connection, {"tenant": tenant_id, "id": next(iter(ids))})
            is not None
        )
    found = _known(key).first(connection, {"tenant": tenant_id, "ids": array_of(ids)})
    assert found is not None
    return int(found[0])


@cache
def _read() -> Prepared:
    return Prepared(
        select(func.coalesce(func.sum(totals.c.value), 0)).where(
            totals.c.tenant_id == bindparam("tenant"),
            totals.c.name.in_(listed(bindparam("names"))),
        )
    )


@cache
def _add() -> Prepared:
    statement = insert(totals)
    added = statement.on_conflict_do_update(
        index_elements=["tenant_id", "name"],
        set_={"value": totals.c.value + statement.excluded.value},
    )
    return Prepared(added, ["tenant_id", "name", "value"])


@cache
def _is_known(key: ColumnElement[str]) -> Prepared:
    table = key.table
    assert isinstance(table, Table)
    mine = table.c.tenant_id == bindparam("tenant")
    return Prepared(select(key).where(mine, key == bindparam("id")))


@cache
def _known(key: ColumnElement[str]) -> Prepared:
    table = key.table
    assert isinstance(table, Table)
    return Prepared(
        select(func.count())
        .select_from(table)
        .where(table.c.tenant_id == bindparam("tenant"), key.in_(listed(bindparam("ids"))))
    )
