"""One PostgreSQL database for all tenants: its connections, and a transaction for one of them.

Readers see one snapshot (REPEATABLE READ, READ ONLY). Writers read what is committed
(READ COMMITTED) and take a lock of their tenant's first, for the order of the feed to be that of
the commits; one tenant's writers never wait for another's. The transaction says whose it is, and
row-level security lets it see that tenant's rows alone: a second lock behind `engine.store.guard`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from psycopg import sql
from sqlalchemy import Connection

from mneme_server.common import deadline, interpreter
from mneme_server.common.errors import Reason, Unavailable
from mneme_server.common.fencing import Fence, fence_of
from mneme_server.engine.store import connections
from mneme_server.engine.store.connections import Database
from mneme_server.engine.store.guard import require_tenant
from mneme_server.engine.store.postgres.connections import (
    ROLE,
    SCHEMA,
    Begin,
    Pool,
    engine_of,
    vacuum,
)
from mneme_server.engine.store.postgres.schema import TENANT_SETTING
from mneme_server.engine.store.rows import COUNTER
from mneme_server.engine.store.schema import metadata

READERS, WRITERS = 14, 8
"""Connections at most, of all tenants together."""

LOCK_WAIT_S = 10.0
"""How long a writer waits for the one before it, in seconds."""

SILENT_S = 30.0
"""How long a writer may be silent, in seconds: one that stands still keeps those of its tenant
waiting."""

_BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_BEGIN_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_RETRY_S = 0.5


class PostgresDatabase:
    """The connections to one database, for all its tenants. Thread-safe.

    Args:
        url: where it is, as libpq reads it.
        knows: the revisions of the schema that those who use it know.
        readers: connections that read, at most.
        writers: connections that write, at most.

    Attributes:
        place: returns the place of the server that writes, see `node_schema`; empty where it has
            none.

    Raises:
        Unavailable: it cannot be reached now.
        FailedPrecondition: DATABASE_ERROR, its role may do too much or too little.
    """

    def __init__(
        self,
        url: str,
        knows: Collection[str],
        *,
        readers: int = READERS,
        writers: int = WRITERS,
    ) -> None:
        self.url = url
        self.knows = knows
        self.place: Callable[[], str] = str
        self.engine = engine_of(url, SCHEMA, ROLE, knows=knows)
        self.engine.update_execution_options(**{COUNTER: take_numbers})
        require_tenant(self.engine, metadata.tables.keys(), _tenant_of)
        self.readers = Pool(self.engine, readers)
        self.writers = Pool(self.engine, writers)

    def close(self) -> None:
        """Close all connections, those in use as soon as they are given back."""
        self.readers.close()
        self.writers.close()


class TenantDatabase(Database):
    """One tenant's transactions.

    Args:
        database: where they run.
        tenant_id: whose they are.

    Attributes:
        generation: what names the rows that are known, as it is stored; where it is set, nothing is
            written to others.
    """

    def __init__(self, database: PostgresDatabase, tenant_id: str) -> None:
        self._database = database
        self._tenant_id = tenant_id
        # Writers of this process wait in line here, and not each with a connection.
        self._turn = threading.Semaphore()
        self._closed = False
        self.generation: str | None = None

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """See `Database`."""
        self._check_open()
        begin = self._begin(_BEGIN_READ, [])
        with self._database.readers.transaction(begin) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """See `Database`."""
        self._check_open()
        if not self._turn.acquire(blocking=False):
            interpreter.leave_turn()
            if not deadline.taken(self._turn, LOCK_WAIT_S):
                raise Unavailable(
                    "another write took too long; nothing was written",
                    reason=Reason.TRANSACTION_FAILED,
                    retry_after_s=_RETRY_S,
                )
        try:
            lock = sql.SQL("SELECT pg_advisory_xact_lock(hashtextextended({}, 0))").format(
                f"{SCHEMA}:{self._tenant_id}"
            )
            patience = {
                "lock_timeout": f"{round(LOCK_WAIT_S * 1000)}",
                "idle_in_transaction_session_timeout": f"{round(SILENT_S * 1000)}",
            }
            begin = self._begin(_BEGIN_WRITE, [lock, *self._required()], patience)
            with self._database.writers.transaction(begin) as connection:
                yield connection
                interpreter.leave_turn()  # It waits for the disk.
                connections.commit(connection)
        finally:
            self._turn.release()

    def scrub(self) -> None:
        """Take deleted rows out of all tables: it frees what other transactions do not see any
        more. What is freed is overwritten as it is used again."""
        vacuum(self._database.url, SCHEMA)

    def close(self) -> None:
        """Have nobody begin a transaction any more."""
        self._closed = True

    def _begin(
        self, begin: str, then: list[sql.Composable], settings: dict[str, str] | None = None
    ) -> Begin:
        left = deadline.time_left()
        if left is not None:
            if left <= 0:
                raise deadline.Abandoned
            settings = (settings or {}) | {"statement_timeout": f"{max(1, round(left * 1000))}"}
        said = {TENANT_SETTING: self._tenant_id} | (settings or {})
        each = (sql.SQL("set_config({}, {}, true)").format(*one) for one in said.items())
        parts = [sql.SQL(begin), sql.SQL("SELECT ") + sql.SQL(", ").join(each), *then]
        return Begin(self._tenant_id, sql.SQL("; ").join(parts))

    def _required(self) -> Iterator[sql.Composable]:
        """Yield what has to hold once the tenant's writers wait for this one."""
        if self.generation is not None:
            yield sql.SQL("SELECT require_generation({})").format(self.generation)
            if place := self._database.place():
                yield sql.SQL("SELECT require_settled({})").format(place)
        fence = fence_of(self._tenant_id)
        if fence is not None:
            yield lease_required(fence)

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable(
                "the database is closed; the server is shutting down or the tenant is gone",
                reason=Reason.INITIALIZATION_FAILED,
                retry_after_s=_RETRY_S,
            )


def lease_required(fence: Fence, *, hold: bool = False) -> sql.Composable:
    """Return the statement that fails unless the lease is still this one, and with `hold` has it
    stay so until the transaction ends."""
    return sql.SQL("SELECT {}.require_lease({}, {}, {}, {})").format(
        sql.Identifier(SCHEMA), fence.name, fence.node, fence.number, hold
    )


def take_numbers(connection: Connection, tenant_id: str, table: str, count: int) -> int:
    """Take numbers from the tenant's counter; see `engine.store.rows`."""
    row = (
        connections.driver_of(connection)
        .execute(
            "INSERT INTO numbers AS n (tenant_id, name, value) VALUES (%s, %s, %s)"
            " ON CONFLICT (tenant_id, name) DO UPDATE SET value = n.value + excluded.value"
            " RETURNING value",
            (tenant_id, table, count),
        )
        .fetchone()
    )
    return int(row[0]) - count + 1


def _tenant_of(connection: Connection) -> str:
    return str(connections.driver_of(connection).tenant_id)  # type: ignore[attr-defined]
