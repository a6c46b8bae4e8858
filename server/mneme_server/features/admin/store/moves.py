"""The move of what a catalog holds of a tenant into another catalog.

It is moved row by row, whatever tables capabilities have in the catalog: those that name a tenant.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Integer,
    MetaData,
    Table,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from mneme_server.common.clock import now_us
from mneme_server.common.errors import AlreadyExists, DataLoss
from mneme_server.engine.cluster.placements import CatalogRows, Standing
from mneme_server.engine.store.connections import Database
from mneme_server.engine.store.tenant_states import ACTIVE, ARRIVING, GUEST, MOVED
from mneme_server.features.admin.store.catalog import api_keys, moves, places, tenants

_OWN = frozenset({tenants.name, moves.name})
_NOT_MOVED = frozenset({moves.name, places.name})


class SqlMoves:
    """Implements `engine.cluster.placements.MovingCatalog`.

    Args:
        database: the catalog's.
        apart: the tables whose rows are moved otherwise.
    """

    def __init__(self, database: Database, apart: Collection[str] = ()) -> None:
        self._database = database
        self._apart = frozenset(apart)

    def standing(self, tenant_id: str) -> Standing | None:
        query = (
            select(tenants.c.state, moves.c.id, moves.c.place)
            .select_from(tenants.outerjoin(moves, moves.c.tenant_id == tenants.c.id))
            .where(tenants.c.id == tenant_id)
        )
        with self._database.read() as connection:
            row = connection.execute(query).first()
        return None if row is None else Standing(row.state, row.id or "", row.place or "")

    def living(self) -> Sequence[str]:
        return self._standing(ACTIVE)

    def departed(self) -> Sequence[str]:
        return self._standing(MOVED)

    def _standing(self, state: str) -> Sequence[str]:
        query = select(tenants.c.id).where(tenants.c.state == state).order_by(tenants.c.id)
        with self._database.read() as connection:
            return connection.execute(query).scalars().all()

    def rows(self, tenant_id: str) -> CatalogRows:
        with self._database.read() as connection:
            found = _rows(connection, tenant_id)
        return {table: rows for table, rows in found.items() if table not in self._apart}

    def arrive(self, tenant_id: str, move: str) -> None:
        known = self.standing(tenant_id)
        with self._database.write() as connection:
            _delete(connection, tenant_id, but=known is not None and known.state != MOVED)
            _stand(connection, tenant_id, Standing(ARRIVING, move), is_new=known is None)

    def take_in(self, tenant_id: str, move: str) -> None:
        query = select(tenants.c.state).where(tenants.c.id == tenant_id)
        with self._database.write() as connection:
            state = connection.execute(query).scalar()
            if state not in (None, MOVED):
                raise AlreadyExists(
                    f"a tenant {tenant_id} came meanwhile to where this one was to move",
                    field="tenant_id",
                )
            _delete(connection, tenant_id)
            _stand(connection, tenant_id, Standing(GUEST, move), is_new=state is None)

    def set_standing(self, tenant_id: str, standing: Standing | None) -> None:
        with self._database.write() as connection:
            if standing is None:
                connection.execute(delete(moves).where(moves.c.tenant_id == tenant_id))
                connection.execute(delete(tenants).where(tenants.c.id == tenant_id))
            else:
                _stand(connection, tenant_id, standing)

    def settle(self, tenant_id: str, rows: CatalogRows, *, trial: bool = False) -> None:
        try:
            with self._database.write() as connection:
                _settle(connection, tenant_id, rows)
                _stand(connection, tenant_id, Standing(ACTIVE))
                if trial:
                    raise _Enough
        except _Enough:
            return
        except IntegrityError as error:
            raise AlreadyExists(
                f"the catalog that {tenant_id} is to move to has a row already that its own would"
                f" be taken for, e.g. a key with the same secret: {error.orig}",
                field="tenant_id",
            ) from error

    def clear(self, tenant_id: str) -> None:
        with self._database.write() as connection:
            _delete(connection, tenant_id)


class _Enough(Exception):
    """All went well, and is undone."""


def _stand(
    connection: Connection, tenant_id: str, standing: Standing, *, is_new: bool = False
) -> None:
    if is_new:
        row = {"id": tenant_id, "display_name": "", "created_at": 0, "dirty": False}
        connection.execute(insert(tenants), row | {"state": standing.state})
    mine = update(tenants).where(tenants.c.id == tenant_id)
    connection.execute(mine.values(state=standing.state))
    connection.execute(delete(moves).where(moves.c.tenant_id == tenant_id))
    if standing.state in (ARRIVING, GUEST, MOVED):
        row = {"id": standing.move, "place": standing.place, "moved_at": now_us()}
        connection.execute(insert(moves), row | {"tenant_id": tenant_id})


def _settle(connection: Connection, tenant_id: str, rows: CatalogRows) -> None:
    tables = _tables(connection)
    (own,) = rows[tenants.name]
    values = {name: value for name, value in own.items() if name not in ("id", "state")}
    connection.execute(update(tenants).where(tenants.c.id == tenant_id).values(**values))
    for table in tables.values():
        new = [dict(row) for row in rows.get(table.name, ())]
        if table.name == api_keys.name and new:
            # The same secret may have been registered there, for a tenant that has nothing else.
            same = table.c.key_hash.in_([row["key_hash"] for row in new])
            connection.execute(delete(table).where(table.c.tenant_id == tenant_id, same))
        if new and table.name not in _OWN:
            connection.execute(insert(table), new)
    there = _rows(connection, tenant_id)
    for name, given in rows.items():
        missing = {_told(row) for row in given} - {_told(row) for row in there.get(name, ())}
        if missing and name != tenants.name:
            raise DataLoss(f"rows of {name} are not what they were after they were copied")


def _told(row: Mapping[str, Any]) -> str:
    return repr(sorted(row.items()))


def _rows(connection: Connection, tenant_id: str) -> CatalogRows:
    """Return what the catalog holds of a tenant, by table; numbers that it gave are left out."""
    found: dict[str, Sequence[Mapping[str, Any]]] = {}
    for table in _tables(connection).values():
        if table.name in _NOT_MOVED:
            continue
        mine = table.c.id if table.name == tenants.name else table.c.tenant_id
        query = select(*_moved(table)).where(mine == tenant_id).order_by(*table.primary_key)
        found[table.name] = [dict(row._mapping) for row in connection.execute(query)]
    return found


def _delete(connection: Connection, tenant_id: str, *, but: bool = False) -> None:
    """Delete what the catalog holds of a tenant; with `but`, all but its keys."""
    for table in reversed(_tables(connection).values()):
        if table.name not in _OWN and not (but and table.name == api_keys.name):
            connection.execute(delete(table).where(table.c.tenant_id == tenant_id))


def _tables(connection: Connection) -> dict[str, Table]:
    """Return the tables that name a tenant, each after those that it refers to."""
    there = MetaData()
    there.reflect(bind=connection)
    named = (one for one in there.sorted_tables if "tenant_id" in one.c or one.name == tenants.name)
    return {table.name: table for table in named}


def _moved(table: Table) -> list[Column[Any]]:
    """Return the columns that are moved: a row's number, where the catalog gives one, is not."""
    keys = list(table.primary_key)
    numbered = len(keys) == 1 and isinstance(keys[0].type, Integer | BigInteger)
    return [column for column in table.columns if not (numbered and column is keys[0])]
