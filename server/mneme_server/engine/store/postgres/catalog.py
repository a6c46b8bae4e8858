"""The server's catalog in PostgreSQL: the tables that it has on SQLite, by the same revisions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from psycopg import sql
from sqlalchemy import Connection

from mneme_server.common import fencing
from mneme_server.engine.store import connections
from mneme_server.engine.store.connections import Database
from mneme_server.engine.store.migrate import revisions_of
from mneme_server.engine.store.postgres.connections import (
    CATALOG,
    Begin,
    Pool,
    connect,
    engine_of,
    vacuum,
)
from mneme_server.engine.store.postgres.database import lease_required
from mneme_server.engine.store.postgres.schema import upgrade

_CONNECTIONS = 4
_MAKING = "mneme: catalog schema"
_READ = Begin("", sql.SQL("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"))
# Writers come one after the other, as they do on SQLite: there are few, and some look before they
# write.
_WRITE = Begin(
    "",
    sql.SQL(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = '10s';"
        " SELECT pg_advisory_xact_lock(hashtextextended('mneme: catalog', 0))"
    ),
)


class PostgresCatalog(Database):
    """The catalog's database.

    Args:
        url: where it is, as libpq reads it; its user owns the tables, which are made when missing.
        folders: the folders of revisions, the trunk first.

    Raises:
        Unavailable: it cannot be reached now.
        FailedPrecondition: SCHEMA_ERROR, it cannot be brought to this version; see `upgrade`.
    """

    shared = True

    def __init__(self, url: str, folders: Sequence[Path]) -> None:
        with connect(url) as connection, connection.transaction():
            # Two servers that make it at once would both find that there is none.
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (_MAKING,))
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {CATALOG}")
        self._url = url
        upgrade(url, CATALOG, folders)
        knows = revisions_of(folders)
        self.pool = Pool(engine_of(url, CATALOG, knows=knows.keys()), _CONNECTIONS)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """See `Database`."""
        with self.pool.transaction(_READ) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """See `Database`."""
        fence, begin = fencing.current(), _WRITE
        if fence is not None:
            statements = sql.SQL("; ").join([begin.statements, lease_required(fence, hold=True)])
            begin = Begin("", statements)
        with self.pool.transaction(begin) as connection:
            yield connection
            connections.commit(connection)

    def scrub(self) -> None:
        """See `Database`."""
        vacuum(self._url, CATALOG)

    def close(self) -> None:
        """See `Database`."""
        self.pool.close()
