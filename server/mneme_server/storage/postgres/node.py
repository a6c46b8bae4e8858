"""Which server serves from a database: one at a time, so far.

Several would each search an index that does not follow what the others write. Whoever starts while
another serves is refused; and should one lose its hold, e.g. as the database is failed over, and
another begin to serve, then no transaction of the former begins any more.
"""

from __future__ import annotations

import time
from contextlib import suppress

import psycopg

from mneme_server.common.errors import FailedPrecondition, Reason
from mneme_server.common.ids import new_id
from mneme_server.storage.postgres.connecting import ROLE, SCHEMA, connect

TAKEN_OVER = "MN001"
"""The SQLSTATE of a transaction that a server begins which does not serve any more."""

NODE = (
    "CREATE TABLE node (id TEXT NOT NULL)",
    f"GRANT SELECT ON node TO {ROLE}",
    "CREATE FUNCTION require_serving(which TEXT) RETURNS VOID STABLE LANGUAGE plpgsql AS $$"
    " BEGIN IF NOT EXISTS (SELECT 1 FROM node WHERE id = which) THEN"
    f" RAISE EXCEPTION 'another server serves from this database' USING ERRCODE = '{TAKEN_OVER}';"
    " END IF; END $$",
)
"""What makes the table that names the server, and what compares with it."""

_LOCK = "mneme: node"
_PATIENCE_S = 15.0
"""How long the database may take to notice that the server before this one is gone."""
_LOOK_S = 0.2


class Node:
    """This server, as the one that serves from a database whose schema is there.

    Args:
        url: where the database is.

    Raises:
        FailedPrecondition: another serves.
        Unavailable: the database cannot be reached now.
    """

    def __init__(self, url: str) -> None:
        self.id = new_id()
        self._connection = connect(url)
        try:
            self._take()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let another serve."""
        with suppress(psycopg.Error):
            self._connection.close()

    def _take(self) -> None:
        until = time.monotonic() + _PATIENCE_S
        while not self._locked():
            if time.monotonic() > until:
                raise FailedPrecondition(
                    "another server serves from the database of MNEME_DATABASE_URL; more than one"
                    " at a time is not supported yet",
                    reason=Reason.INITIALIZATION_FAILED,
                )
            time.sleep(_LOOK_S)
        with self._connection.transaction():
            self._connection.execute(f"DELETE FROM {SCHEMA}.node")
            self._connection.execute(f"INSERT INTO {SCHEMA}.node VALUES (%s)", (self.id,))

    def _locked(self) -> bool:
        row = self._connection.execute(
            "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", (_LOCK,)
        ).fetchone()
        return bool(row and row[0])
