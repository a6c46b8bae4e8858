"""A tenant's store on PostgreSQL: its rows in tables that all tenants share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mneme_server.common.errors import FailedPrecondition, Reason, Unavailable
from mneme_server.common.identity import check_tenant_id
from mneme_server.engine.corpus.feed import START
from mneme_server.engine.store.feed import SqlFeed, stored_generation
from mneme_server.engine.store.migrate import revisions_of
from mneme_server.engine.store.postgres.database import PostgresDatabase, TenantDatabase
from mneme_server.engine.store.postgres.scanning import PostgresCorpusSource, PostgresScan
from mneme_server.engine.store.postgres.schema import bytes_of, prepare, remove_rows, unknown_tables
from mneme_server.engine.store.unit import TenantSchema, Unit

_RETRY_S = 1.0


class PostgresStores:
    """Implements `engine.corpus.tenant_store.TenantStores[Unit]`: all tenants in one database.

    Args:
        url: where it is, as libpq reads it; its user owns the schema, which is made when missing.
        schema: what a tenant's tables are.

    Raises:
        Unavailable: the database cannot be reached now.
        FailedPrecondition: the schema cannot be brought to this version, or the
            database does not fit.
    """

    def __init__(self, url: str, schema: TenantSchema) -> None:
        prepare(url, schema.migrations)
        self._schema = schema
        self.database = PostgresDatabase(url, revisions_of(schema.migrations).keys())

    def open(self, tenant_id: str) -> PostgresTenantStore:
        """Open the tenant's store; it holds no connection while it is idle."""
        return PostgresTenantStore(self.database, check_tenant_id(tenant_id), self._schema)

    def holds(self, tenant_id: str) -> bool:
        """See `TenantStores`."""
        with self.open(tenant_id).read() as unit:
            return unit.embedding_model() is not None or unit.feed.head() != START

    def shared_bytes(self, tenant_id: str) -> int:
        """See `TenantStores`."""
        with TenantDatabase(self.database, check_tenant_id(tenant_id)).read() as connection:
            return bytes_of(connection, tenant_id)

    def remove(self, tenant_id: str, require: Callable[[], object] = lambda: None) -> None:
        """See `TenantStores`."""
        database = TenantDatabase(self.database, check_tenant_id(tenant_id))
        with database.read() as connection:
            generation = SqlFeed(connection, tenant_id).generation()
        require()
        with database.write() as connection:
            if SqlFeed(connection, tenant_id).generation() not in (generation, None):
                require()
                raise Unavailable(
                    f"the tenant {tenant_id} was put back by way of another server; try again",
                    reason=Reason.TRANSACTION_FAILED,
                    retry_after_s=_RETRY_S,
                )
            remove_rows(connection, tenant_id)

    def close(self) -> None:
        """Close all connections."""
        self.database.close()


class PostgresTenantStore:
    """Implements `engine.corpus.tenant_store.TenantStore[Unit]`.

    It writes to the rows that it was opened on: not where another server has deleted the tenant
    meanwhile, or put others in their place.
    """

    def __init__(self, database: PostgresDatabase, tenant_id: str, schema: TenantSchema) -> None:
        self._database = TenantDatabase(database, tenant_id)
        self._tenant_id = tenant_id
        self._schema = schema
        self.source = PostgresCorpusSource(self._database, tenant_id, schema.kinds.by_name)
        self.scan = PostgresScan(self._database, tenant_id, schema.kinds.by_name)
        with self.read() as unit:
            generation = unit.feed.generation()
        if generation is not None:
            self._database.generation = stored_generation(generation)

    @property
    def memory_bytes(self) -> int:
        """None: its connections are everybody's, and the pages are the database server's."""
        return 0

    @contextmanager
    def read(self) -> Iterator[Unit]:
        """Open a read transaction: one consistent snapshot."""
        with self._database.read() as connection:
            yield PostgresUnit(connection, self._tenant_id, self._schema)

    @contextmanager
    def write(self) -> Iterator[Unit]:
        """Open a write transaction; durable when the block ends, undone when it raises."""
        with self._database.write() as connection:
            unit = PostgresUnit(connection, self._tenant_id, self._schema)
            yield unit
            unit.seal()
        if unit.feed.renewed:
            self._database.generation = unit.feed.renewed

    def compact(self, worth_rewriting: float) -> bool:
        """See `TenantStore`. The database server takes back by itself what deleted rows took."""
        return False

    def scrub(self) -> None:
        """See `TenantStore`."""
        self._database.scrub()

    def close(self) -> None:
        """Have nobody begin a transaction any more."""
        self._database.close()


class PostgresUnit(Unit):
    """One transaction of a tenant's on PostgreSQL."""

    def require_overwriting(self) -> None:
        """See that nothing is kept in tables that only a newer version knows.

        Raises:
            FailedPrecondition: SCHEMA_ERROR, it may be.
        """
        if newer := unknown_tables(self._connection):
            raise FailedPrecondition(
                f"a newer version of Mneme made {', '.join(newer)}, and this one cannot forget what"
                " they hold: have a server of that version forget it",
                reason=Reason.SCHEMA_ERROR,
            )

    def overwrite(self) -> None:
        """Do nothing: deleted rows are taken out of their pages by `scrub`, which frees them. What
        the log and backups hold stays; see `forgetting`."""
