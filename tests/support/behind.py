"""What somebody does behind the server's back who can write its databases, and has no key."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from support.server import LocalServer

_SCHEMAS = {"tenant": "mneme", "catalog": "mneme_catalog"}


class Behind:
    """Runs statements on the database of a tenant, or the catalog, whichever kind it is.

    Values stand for question marks. All tenants of a PostgreSQL share its tables: statements name
    the tenant.
    """

    def __init__(self, server: LocalServer, tenant_id: str) -> None:
        self._server = server
        self._tenant_id = tenant_id

    def tenant(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement in the tenant's database, which is kept closed; return its rows."""
        with self._server.closed(self._tenant_id):
            file = self._server.data_dir / "tenants" / self._tenant_id / "mneme.db"
            return self._run("tenant", str(file), statement, values)

    def catalog(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement in the catalog; return its rows."""
        return self._run("catalog", str(self._server.data_dir / "catalog.db"), statement, values)

    def _run(
        self, which: str, file: str, statement: str, values: Sequence[Any]
    ) -> list[tuple[Any, ...]]:
        with self._connection(which, file) as (connection, mark):
            cursor = connection.execute(statement.replace("?", mark), values)
            rows = [tuple(row) for row in cursor.fetchall()] if cursor.description else []
            assert cursor.description or cursor.rowcount > 0, "it changed nothing"
            return rows

    @contextmanager
    def _connection(self, which: str, file: str) -> Iterator[tuple[Any, str]]:
        url = self._server.settings.database_url
        if not url:
            with closing(sqlite3.connect(file, isolation_level=None)) as connection:
                yield connection, "?"
            return
        import psycopg

        with psycopg.connect(url.get_secret_value(), autocommit=True) as connection:
            connection.execute(f"SET search_path = {_SCHEMAS[which]}")
            yield connection, "%s"
