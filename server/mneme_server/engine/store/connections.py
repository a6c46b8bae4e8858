"""Connections that stay open between transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from traceback import clear_frames

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from mneme_server.common.errors import MnemeError
from mneme_server.engine.store.driver import begin, driver_of, failures_of, knowing_its_driver


class Connections:
    """Lends connections, each in a transaction of its own. Thread-safe.

    A few rest while nobody uses them, ready for the next transaction: to take one from SQLAlchemy's
    pool and to have its transaction begun and ended there costs more than most reads do.

    Args:
        engine: opens the connections; its pool must keep none.
        begin: what begins a transaction.
        kept: how many rest; more are opened under load and closed again.
    """

    def __init__(self, engine: Engine, begin: str, kept: int) -> None:
        self._engine = engine
        self._begin = begin
        self._kept = kept
        self._closed = False
        self._open: set[Connection] = set()
        self._resting: list[Connection] = []  # To append and to pop is atomic.

    def __len__(self) -> int:
        """How many connections are open."""
        return len(self._open)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Open a transaction, which is undone at the block's end unless it was committed."""
        connection = self._taken()
        try:
            begin(connection, self._begin)
            yield connection
        except BaseException as error:
            # An error's frames may hold a statement whose rows were not read to their end, as
            # behind a damaged one. It would keep its snapshot, and the next transaction see no
            # later one, for as long as anybody holds the error.
            clear_frames(error.__traceback__)
            raise
        finally:
            self._give_back(connection)

    def open(self) -> None:
        """Open the first one, to rest."""
        self._give_back(self._taken())

    def close(self) -> None:
        """Close the connections, those in use as soon as they are given back."""
        self._closed = True
        while self._resting:
            try:
                resting = self._resting.pop()
            except IndexError:  # Another thread was faster.
                return
            self._drop(resting)

    def _taken(self) -> Connection:
        try:
            return self._resting.pop()
        except IndexError:
            connection = knowing_its_driver(self._engine.connect())
            self._open.add(connection)
            return connection

    def _give_back(self, connection: Connection) -> None:
        """Undo what was not committed: SQLAlchemy's, where it ran a statement, and the
        database's."""
        driver = driver_of(connection)
        try:
            connection.rollback()
            driver.rollback()
        except (MnemeError, SQLAlchemyError):
            self._drop(connection)
            return
        except failures_of(driver):
            self._drop(connection)
            return
        if len(self._resting) < self._kept:
            self._resting.append(connection)
            if self._closed:
                self.close()
        else:
            self._drop(connection)

    def _drop(self, connection: Connection) -> None:
        self._open.discard(connection)
        connection.close()
