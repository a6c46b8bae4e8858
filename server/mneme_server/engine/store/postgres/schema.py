"""The tables of all tenants in one PostgreSQL database.

They are those that a tenant has on SQLite, with `tenant_id` leading every key, so that they can be
partitioned by it, or distributed, as they are. A new database gets the newest schema at once; what
comes later are the revisions that SQLite's databases get, too (`upgrade`), and what makes of their
tables those that tenants share (`as_tenants_tables`).

Servers of the version before serve while a schema is upgraded. A revision adds what those can do
without: tables, columns that have a default. One that takes away what they need says so
(`phase = "contract"`, see `engine.store.migrate`), and comes a version later. It is run once no
connection of a server that does not know it is left: each holds a lock, shared; and each asks, as
it is opened, whether the schema was contracted beyond what it knows. All of an upgrade is one
transaction. It asks for all tables at once, and again when somebody is in the way: who waits for a
lock holds up all who come after.

Revisions are written once, for SQLite too, where a tenant has a file. What they make here is mended
from what PostgreSQL says of it, not from what a revision says: keys led by the tenant, numbers from
the tenant's counter, the order of bytes, row-level security.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

from psycopg import sql
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

from mneme_server.common.errors import FailedPrecondition, Reason, Unavailable
from mneme_server.engine.store import connections
from mneme_server.engine.store.connections import driver_of
from mneme_server.engine.store.migrate import (
    newest_versions,
    require_known,
    revisions_of,
    run_revisions,
)
from mneme_server.engine.store.postgres.connections import (
    CATALOG,
    ROLE,
    SCHEMA,
    Begin,
    Pool,
    connect,
    engine_of,
    in_use,
)
from mneme_server.engine.store.postgres.driver import PsycopgConnection
from mneme_server.engine.store.postgres.node_schema import SERVING, make_node_tables
from mneme_server.engine.store.schema import metadata

Steps = Callable[[Connection, Callable[[], None]], None]
"""Runs what it is given, the revisions, and does what belongs to it before and after."""

_OLDEST_SERVER = 150_000
_LOCK = "mneme: schema"
_TRIES_FOR_S = 60.0
_PATIENCE_S = 15.0
"""How long a server that was stopped may still be connected."""
_LOOK_S = 0.2
_LOCKED_FOR = "3s"
_BEGIN = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = '60s';"
    " SELECT pg_advisory_xact_lock(hashtextextended({}, 0)); SET LOCAL lock_timeout = {}"
)
_DATABASE = "the database"
_REVISIONS = "CREATE TABLE revisions (id TEXT PRIMARY KEY, contracts BOOLEAN NOT NULL)"
TENANT_SETTING = "mneme.tenant"
"""What a transaction says whose it is by; all tables' policies compare `tenant_id` with it."""
_OWN = f"tenant_id = current_setting('{TENANT_SETTING}', true)"
_SAMPLE = 1000
"""Rows of a table that are measured; a tenant that has fewer is measured as a whole."""


def prepare(url: str, migrations: Sequence[Path]) -> None:
    """Make the schema where there is none, and bring it to this version.

    Args:
        url: where the database is. Its user owns the schema; to make it, it needs to be allowed to
            create schemas in the database, and the role that transactions run as, once.
        migrations: the folders of revisions whose newest make the schema.

    Raises:
        Unavailable: the database cannot be reached now.
        FailedPrecondition: SCHEMA_ERROR, the schema cannot be brought to this version, see
            `upgrade`; DATABASE_ERROR, the server is too old, or its user may not do what
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


def _make_schema(connection: PsycopgConnection) -> None:
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


def _require_server(connection: PsycopgConnection) -> None:
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


def _require_role(connection: PsycopgConnection) -> None:
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


def upgrade(
    url: str,
    schema: str,
    folders: Sequence[Path],
    *,
    make: Callable[[Connection], None] | None = None,
    around: Steps = lambda _connection, run: run(),
) -> None:
    """Bring a schema to the newest revisions of these folders, all at once or not at all.

    Args:
        url: where the database is; its user owns the schema.
        schema: its name. It is there, maybe empty.
        folders: the folders of revisions, the trunk first.
        make: makes an empty one, instead of all revisions; `revisions` are noted.
        around: runs the revisions that are missing in one that is not empty.

    Raises:
        Unavailable: the database cannot be reached now, or others are in the way for too long.
        FailedPrecondition: SCHEMA_ERROR, a newer version made it and contracted it, a build from
            before the first release made it, or servers serve from it that cannot serve from what
            this one would make of it.
    """
    pool = Pool(engine_of(url, schema), 1)
    begin = Begin("", sql.SQL(_BEGIN).format(f"mneme: {schema} upgrade", _LOCKED_FOR))
    until = time.monotonic() + _TRIES_FOR_S

    def bring(connection: Connection) -> None:
        _bring(connection, schema, folders, make, around)

    try:
        while not _tried(pool, begin, until, bring):
            pass
    finally:
        pool.close()


def _tried(pool: Pool, begin: Begin, until: float, bring: Callable[[Connection], None]) -> bool:
    """Do it in one transaction; tell whether it was done. It was not if somebody held a lock that
    it needs, or a deadlock had to end, and there is time left to try again."""
    try:
        with pool.transaction(begin) as connection:
            bring(connection)
            connections.commit(connection)
    except Unavailable as error:
        if error.reason is not Reason.TRANSACTION_FAILED or time.monotonic() > until:
            raise
        return False
    return True


def _bring(
    connection: Connection,
    schema: str,
    folders: Sequence[Path],
    make: Callable[[Connection], None] | None,
    around: Steps,
) -> None:
    known = revisions_of(folders)
    has = _revisions(connection, schema, folders)
    ahead, missing = has.keys() - known.keys(), known.keys() - has.keys()
    if ahead and (missing or any(has[one] for one in ahead)):
        require_known(ahead, folders, _DATABASE)
    if not missing:
        return
    if not has and make is not None:
        make(connection)
        _note_versions(connection, newest_versions(*folders))
    else:
        if has and any(known[one] for one in missing):
            _require_nobody(connection, schema)
        around(connection, lambda: run_revisions(connection, folders))
    _note(connection, missing, known)


def _revisions(connection: Connection, schema: str, folders: Sequence[Path]) -> dict[str, bool]:
    """Return the revisions that a schema has, each with whether it contracts."""
    if not _there(connection, f"{schema}.revisions"):
        if _there(connection, f"{schema}.alembic_version"):  # Older builds noted nothing else.
            heads = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalars()
            require_known(heads.all(), folders, _DATABASE)
        connection.exec_driver_sql(_REVISIONS)
    found = connection.exec_driver_sql("SELECT id, contracts FROM revisions").all()
    return {str(revision): bool(contracts) for revision, contracts in found}


def _note(connection: Connection, revisions: Iterable[str], contracts: Mapping[str, bool]) -> None:
    for one in sorted(revisions):
        values = (one, contracts[one])
        connection.exec_driver_sql("INSERT INTO revisions VALUES (%s, %s)", values)


def _note_versions(connection: Connection, versions: Sequence[str]) -> None:
    """Note what Alembic would have, had it run the revisions."""
    connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32) PRIMARY KEY)")
    for version in versions:
        connection.exec_driver_sql("INSERT INTO alembic_version VALUES (%s)", (version,))


def _there(connection: Connection, table: str) -> bool:
    found = connection.exec_driver_sql("SELECT to_regclass(%s) IS NOT NULL", (table,))
    return bool(found.scalar())


def _require_nobody(connection: Connection, schema: str) -> None:
    """Keep servers away until the transaction ends; none may be connected.

    It does not wait for the lock in PostgreSQL's line, in which servers would wait behind it.
    """
    until = time.monotonic() + _PATIENCE_S
    lock = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))"
    while not connection.exec_driver_sql(lock, (in_use(schema),)).scalar():
        if time.monotonic() > until:
            raise FailedPrecondition(
                "servers of an older version serve from the database, and could not any more once"
                " its schema is that of this version: stop them, then start this one",
                reason=Reason.SCHEMA_ERROR,
            )
        time.sleep(_LOOK_S)


@contextmanager
def held_alone(url: str) -> Iterator[None]:
    """Let no server serve from the database for the block, whose schemas are there.

    Raises:
        FailedPrecondition: one does.
    """
    with connect(url) as connection:
        lock = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
        row = connection.execute(lock, (SERVING,)).fetchone()
        if not row or not row[0]:
            raise FailedPrecondition(
                "a server serves from the database, or tenants are being moved; stop it first",
                reason=Reason.INITIALIZATION_FAILED,
            )
        yield


def require_this_version(url: str, tenants: Sequence[Path], catalog: Sequence[Path]) -> None:
    """See that the database has no tables or columns that this version does not know, and would
    leave behind: it may serve from what a newer version expanded.

    Args:
        url: where it is; its schemas have been brought to this version.
        tenants: the folders of revisions of the tenants' tables.
        catalog: those of the catalog's.

    Raises:
        FailedPrecondition: SCHEMA_ERROR, it has.
    """
    with connect(url) as connection:
        for schema, folders in ((SCHEMA, tenants), (CATALOG, catalog)):
            query = sql.SQL("SELECT id FROM {}.revisions").format(sql.Identifier(schema))
            ahead = {str(one) for (one,) in connection.execute(query)} - revisions_of(
                folders
            ).keys()
            if ahead:
                raise FailedPrecondition(
                    f"a newer version made {', '.join(sorted(ahead))} of the database's schema:"
                    " move tenants with that version",
                    reason=Reason.SCHEMA_ERROR,
                )


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


def bytes_of(connection: Connection, tenant_id: str) -> int:
    """Return about how many bytes the rows of the transaction's tenant take, without their indexes:
    reckoned, as counting reads all rows: what some rows take, times how many there are by what
    PostgreSQL knows of the tables."""
    ask = cast(Any, driver_of(connection)).execute
    tables = tables_of_tenants(connection)
    whose = sql.Literal(tenant_id)
    samples = [
        sql.SQL(
            "SELECT {}, count(*), coalesce(sum(pg_column_size(t.*)), 0)"
            " FROM (SELECT * FROM {} WHERE tenant_id = {} LIMIT {}) AS t"
        ).format(name, sql.Identifier(name), whose, _SAMPLE)
        for name in tables
    ]
    size = 0.0
    for name, rows, taken in ask(sql.SQL(" UNION ALL ").join(samples)).fetchall():
        size += taken
        if rows == _SAMPLE:
            explained = ask(
                sql.SQL("EXPLAIN (FORMAT JSON) SELECT 1 FROM {} WHERE tenant_id = {}").format(
                    sql.Identifier(name), whose
                )
            ).fetchone()
            all_rows = explained[0][0]["Plan"]["Plan Rows"]
            size += taken * max(0.0, all_rows / rows - 1)
    return round(size)
