"""The tables of all tenants in one PostgreSQL database.

They are those that a tenant has on SQLite, with `tenant_id` leading every key, so that they can be
partitioned by it, or distributed, as they are. A new database gets the newest schema at once; what
comes later are the revisions that SQLite's databases get, too (`upgrading`), and what makes of
their tables those that tenants share (`tenancy`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    delete,
)
from sqlalchemy.dialects.postgresql import psycopg as dialect
from sqlalchemy.schema import CreateIndex, CreateTable

from mneme_server.common.errors import FailedPrecondition, Reason
from mneme_server.engine.store.driver import driver_of
from mneme_server.engine.store.postgres.connecting import ROLE, SCHEMA, connect
from mneme_server.engine.store.postgres.driver import DriverConnection
from mneme_server.engine.store.postgres.node_schema import make_node_tables
from mneme_server.engine.store.postgres.tenancy import as_tenants_tables, locks, tables_of_tenants
from mneme_server.engine.store.postgres.upgrading import upgrade
from mneme_server.engine.store.schema import metadata

_OLDEST_SERVER = 150_000
_LOCK = "mneme: schema"


def prepare(url: str, migrations: Sequence[Path]) -> None:
    """Make the schema where there is none, and bring it to this version.

    Args:
        url: where the database is. Its user owns the schema; to make it, it needs to be allowed to
            create schemas in the database, and the role that transactions run as, once.
        migrations: the folders of revisions whose newest make the schema.

    Raises:
        Unavailable: the database cannot be reached now.
        FailedPrecondition: SCHEMA_ERROR, the schema cannot be brought to this version, see
            `upgrading.upgrade`; DATABASE_ERROR, the server is too old, or its user may not do what
            is needed.
    """
    with connect(url) as connection:
        _require_server(connection)
        _make_schema(connection)
        upgrade(url, SCHEMA, migrations, make=_make, around=_upgraded)
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (_LOCK,))
            make_node_tables(connection)
        _require_role(connection)


def _make_schema(connection: DriverConnection) -> None:
    there = connection.execute("SELECT to_regnamespace(%s)", (SCHEMA,)).fetchone()
    if there is not None and there[0] is not None:
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (_LOCK,))
        if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (ROLE,)).fetchone():
            connection.execute(f"CREATE ROLE {ROLE} NOLOGIN NOSUPERUSER NOBYPASSRLS")
            connection.execute(f"GRANT {ROLE} TO CURRENT_USER")
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        connection.execute(f"GRANT USAGE ON SCHEMA {SCHEMA} TO {ROLE}")


def _make(connection: Connection) -> None:
    for statement in statements():
        connection.exec_driver_sql(statement)


def _upgraded(connection: Connection, run: Callable[[], None]) -> None:
    with as_tenants_tables(connection):
        run()


def tables() -> MetaData:
    """Return the tables as PostgreSQL has them."""
    made = MetaData()
    for table in metadata.sorted_tables:
        _shared(table, made)
    # The highest number that a tenant's rows have, of each table that numbers them.
    Table(
        "numbers",
        made,
        Column("tenant_id", Text(collation="C"), primary_key=True),
        Column("name", Text(collation="C"), primary_key=True),
        Column("value", BigInteger, nullable=False),
    )
    return made


def _shared(table: Table, made: MetaData) -> None:
    shared = table.to_metadata(made)
    if next(iter(shared.columns)).name != "tenant_id":  # Its rows are numbered, by their tenant's.
        number = next(iter(shared.columns))
        number.autoincrement = False
        shared.c.tenant_id.primary_key = True
        shared.append_constraint(PrimaryKeyConstraint(shared.c.tenant_id, number))
    for column in shared.columns:
        if isinstance(column.type, Text):
            column.type = Text(collation="C")  # In the order of its bytes, as SQLite's.


def remove_rows(connection: Connection, tenant_id: str) -> None:
    """Delete all rows of the transaction's tenant, and its counters."""
    for name in unknown_tables(connection):
        driver_of(connection).execute(f"DELETE FROM {name} WHERE tenant_id = %s", (tenant_id,))
    for table in reversed(metadata.sorted_tables):
        connection.execute(delete(table).where(table.c.tenant_id == tenant_id))
    for statement in (
        "DELETE FROM numbers WHERE tenant_id = %s",
        "DELETE FROM leases WHERE name IN (%s, 'learning/' || %s)",
    ):
        driver_of(connection).execute(statement, (tenant_id,) * statement.count("%s"))


def unknown_tables(connection: Connection) -> list[str]:
    """Return the tenants' tables that a newer version made; see `tables_of_tenants`."""
    known = tables().tables
    return [name for name in tables_of_tenants(connection) if name not in known]


def statements() -> Iterator[str]:
    """Yield what makes the tables, and locks them for all but their tenant."""
    words = dialect.dialect()  # type: ignore[no-untyped-call]
    made = tables()
    for table in made.sorted_tables:
        yield str(CreateTable(table).compile(dialect=words))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            yield str(CreateIndex(index).compile(dialect=words))
        yield from locks(table.name)


def _require_server(connection: DriverConnection) -> None:
    if connection.info.server_version < _OLDEST_SERVER:
        raise FailedPrecondition(
            f"Mneme needs PostgreSQL {_OLDEST_SERVER // 10_000} or newer; this is"
            f" {connection.info.server_version // 10_000}",
            reason=Reason.DATABASE_ERROR,
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise FailedPrecondition(
            f"the database's encoding must be UTF8; it is {encoding}",
            reason=Reason.DATABASE_ERROR,
        )


def _require_role(connection: DriverConnection) -> None:
    """See that transactions can run as their role, which is not spared row-level security."""
    may = connection.execute("SELECT pg_has_role(CURRENT_USER, %s, 'MEMBER')", (ROLE,)).fetchone()
    if may is None or not may[0]:
        raise FailedPrecondition(
            f"the database's user must be let take the role {ROLE}: GRANT {ROLE} TO the user",
            reason=Reason.DATABASE_ERROR,
        )
    spared = connection.execute(
        "SELECT rolsuper OR rolbypassrls OR EXISTS (SELECT 1 FROM pg_class AS c"
        " JOIN pg_namespace AS s ON s.oid = c.relnamespace"
        " WHERE s.nspname = %s AND c.relowner = r.oid) FROM pg_roles AS r WHERE rolname = %s",
        (SCHEMA, ROLE),
    ).fetchone()
    if spared is None or spared[0]:
        raise FailedPrecondition(
            f"the role {ROLE} must exist, own none of Mneme's tables, and be no superuser and not"
            " BYPASSRLS",
            reason=Reason.DATABASE_ERROR,
        )
