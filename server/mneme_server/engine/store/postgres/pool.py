"""Connections that all tenants share, so many at most."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from psycopg import sql
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from mneme_server.common import deadline
from mneme_server.common.errors import MnemeError, Reason, Unavailable
from mneme_server.common.lending import Lending
from mneme_server.engine.store.driver import translated
from mneme_server.engine.store.postgres.driver import DriverConnection, postgres_of

_PATIENCE_S = 10.0
_RETRY_S = 0.5


@dataclass(frozen=True, slots=True)
class Begin:
    """What begins a transaction: of this tenant, by these statements, sent together."""

    tenant_id: str
    statements: sql.Composable


class Pool:
    """Lends connections, each in a transaction of its own. Thread-safe.

    Args:
        engine: opens the connections; its pool must keep none.
        most: so many at most; who finds none free waits for a while.

    Attributes:
        lending: how it lends them.
    """

    def __init__(self, engine: Engine, most: int) -> None:
        self.lending = Lending()
        self._engine = engine
        self._free = threading.Semaphore(most)
        self._resting: list[Connection] = []  # To append and to pop is atomic.
        self._closed = False

    @contextmanager
    def transaction(self, begin: Begin) -> Iterator[Connection]:
        """Open a transaction, which is undone at the block's end unless it was committed.

        Raises:
            Unavailable: no connection became free in time, or the database cannot be reached.
        """
        if not self._free.acquire(blocking=False):
            self._wait()
        try:
            with self.lending.lent(), self._lent(begin) as connection:
                yield connection
        finally:
            self._free.release()

    def _wait(self) -> None:
        with self.lending.waiting():
            if deadline.taken(self._free, _PATIENCE_S):
                return
        raise Unavailable(
            "all connections to the database are in use",
            reason=Reason.TRANSACTION_FAILED,
            retry_after_s=_RETRY_S,
        )

    @contextmanager
    def _lent(self, begin: Begin) -> Iterator[Connection]:
        connection, driver = self._begun(begin)
        try:
            yield connection
        except driver.failures as error:  # Of a statement that went straight to the driver.
            raise translated(connection, "", (), error) from error
        finally:
            self._give_back(connection, driver)

    def open_ahead(self, count: int) -> None:
        """Have at least so many connections at rest: to open one takes longer than most of what is
        asked of it.

        Raises:
            Unavailable: the database cannot be reached.
        """
        while len(self._resting) < count:
            self._resting.append(self._engine.connect())

    def close(self) -> None:
        """Close the connections, those in use as soon as they are given back."""
        self._closed = True
        self._drop_resting()

    def _drop_resting(self) -> None:
        while self._resting:
            try:
                self._resting.pop().close()
            except IndexError:  # Another thread was faster.
                return

    def _begun(self, begin: Begin) -> tuple[Connection, DriverConnection]:
        """Return a connection in a transaction. One that rested may have been lost meanwhile, or
        hang, with all the others: then a new one is opened."""
        while True:
            try:
                connection, rested = self._resting.pop(), True
            except IndexError:
                connection, rested = self._engine.connect(), False
            driver = postgres_of(connection)
            driver.tenant_id = begin.tenant_id
            try:
                driver.execute(begin.statements)
            except driver.failures as error:
                lost = driver.broken
                meant = translated(connection, "BEGIN", (), error)
                self._give_back(connection, driver)
                if not (lost and rested):
                    raise meant from error
                self._drop_resting()
            else:
                return connection, driver

    def _give_back(self, connection: Connection, driver: DriverConnection) -> None:
        """Undo what was not committed: SQLAlchemy's, where it ran a statement, and the
        database's."""
        try:
            if not connection.invalidated:
                connection.rollback()
            driver.rollback()
        except (MnemeError, SQLAlchemyError, *driver.failures):
            pass  # It is lost, and dropped.
        if self._closed or connection.invalidated or driver.closed:
            connection.close()
        else:
            self._resting.append(connection)
