"""What makes of tables those that tenants share: locked for all but their own, and keyed by them.

Revisions are written once, for SQLite too, where a tenant has a file. What they make here is mended
from what PostgreSQL says of it, not from what a revision says: keys led by the tenant, numbers from
the tenant's counter, the order of bytes, row-level security.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from sqlalchemy import Connection

from mneme_server.common.errors import FailedPrecondition, Reason
from mneme_server.engine.store.driver import driver_of
from mneme_server.engine.store.postgres.connecting import ROLE, SCHEMA

TENANT_SETTING = "mneme.tenant"
"""What a transaction says whose it is by; all tables' policies compare `tenant_id` with it."""

_OWN = f"tenant_id = current_setting('{TENANT_SETTING}', true)"


class _Table(NamedTuple):
    """A table: what stays its own when it is renamed, its name, whether it is locked."""

    oid: int
    name: str
    locked: bool


def locks(table: str) -> Iterator[str]:
    """Yield what locks a table for all but the transaction's tenant."""
    yield f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY"
    yield f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY"
    yield f"CREATE POLICY of_tenant ON {table} USING ({_OWN}) WITH CHECK ({_OWN})"
    yield f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {ROLE}"


def tables_of_tenants(connection: Connection) -> list[str]:
    """Return the names of the tables that hold tenants' rows, also of those that a newer version
    made; one that refers to another comes before it."""
    return [one.name for one in reversed(_tables(connection)) if one.locked]


@contextmanager
def as_tenants_tables(connection: Connection) -> Iterator[None]:
    """Lend the tables of all tenants to the block, which may alter them, and those it makes; then
    make them tables that tenants share.

    Raises:
        FailedPrecondition: SCHEMA_ERROR, the block made a table whose rows are nobody's.
        Unavailable: somebody uses one of them for too long.
    """
    before = _tables(connection)
    locked = [one.name for one in before if one.locked]
    if locked:
        connection.exec_driver_sql(f"LOCK TABLE {', '.join(locked)} IN ACCESS EXCLUSIVE MODE")
    for name in locked:  # What belongs to their owner; others have no rights to see more.
        connection.exec_driver_sql(f"ALTER TABLE {name} NO FORCE ROW LEVEL SECURITY")
    yield
    known = {one.oid for one in before if not one.locked}
    shared = [table for table in _tables(connection) if table.oid not in known]
    for table in shared:
        _lead_keys(connection, table)
        _order_by_bytes(connection, table)
    for table in shared:  # From here on their owner sees nothing.
        again = [f"ALTER TABLE {table.name} FORCE ROW LEVEL SECURITY"]
        for statement in again if table.locked else locks(table.name):
            connection.exec_driver_sql(statement)


def _tables(connection: Connection) -> list[_Table]:
    rows = driver_of(connection).execute(  # It is no tenant's statement.
        "SELECT c.oid, quote_ident(relname), relrowsecurity FROM pg_class AS c"
        " JOIN pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE nspname = %s AND relkind IN ('r', 'p') ORDER BY c.oid",
        (SCHEMA,),
    )
    return [_Table(*row) for row in rows]


def _lead_keys(connection: Connection, table: _Table) -> None:
    """Have the primary key begin with the tenant; what numbered the rows alone is the tenant's
    counter from now on."""
    columns = connection.exec_driver_sql(
        "SELECT a.attname FROM pg_index AS i JOIN pg_attribute AS a"
        " ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)"
        " WHERE i.indrelid = %s AND i.indisprimary"
        " ORDER BY array_position(i.indkey, a.attnum)",
        (table.oid,),
    ).scalars()
    key = list(columns)
    if key[:1] == ["tenant_id"]:
        return
    if len(key) != 1 or not _has_tenant(connection, table):
        raise FailedPrecondition(
            f"the revision's table {table.name} needs a column tenant_id, which leads its primary"
            " key, or a number as its key",
            reason=Reason.SCHEMA_ERROR,
        )
    name, number = table.name, key[0]
    sequence = connection.exec_driver_sql(
        "SELECT pg_get_serial_sequence(%s, %s)", (f"{SCHEMA}.{name}", number)
    ).scalar()
    connection.exec_driver_sql(f"ALTER TABLE {name} ALTER COLUMN {number} DROP DEFAULT")
    if sequence:
        connection.exec_driver_sql(f"DROP SEQUENCE {sequence}")
    constraint = connection.exec_driver_sql(
        "SELECT quote_ident(conname) FROM pg_constraint WHERE conrelid = %s AND contype = 'p'",
        (table.oid,),
    ).scalar()
    connection.exec_driver_sql(
        f"ALTER TABLE {name} DROP CONSTRAINT {constraint},"
        f" ADD CONSTRAINT {constraint} PRIMARY KEY (tenant_id, {number})"
    )
    connection.exec_driver_sql(
        f"INSERT INTO numbers SELECT tenant_id, %s, max({number}) FROM {name} GROUP BY tenant_id"
        " ON CONFLICT DO NOTHING",
        (name,),
    )


def _has_tenant(connection: Connection, table: _Table) -> bool:
    found = connection.exec_driver_sql(
        "SELECT 1 FROM pg_attribute WHERE attrelid = %s AND attname = 'tenant_id'", (table.oid,)
    )
    return found.first() is not None


def _order_by_bytes(connection: Connection, table: _Table) -> None:
    columns = connection.exec_driver_sql(
        "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = %s AND attnum > 0"
        " AND NOT attisdropped AND atttypid = 'text'::regtype"
        " AND attcollation <> '\"C\"'::regcollation",
        (table.oid,),
    ).scalars()
    changes = [f'ALTER COLUMN {column} TYPE text COLLATE "C"' for column in columns]
    if changes:
        connection.exec_driver_sql(f"ALTER TABLE {table.name} {', '.join(changes)}")
