"""Connections to a database: those that stay open between transactions, and the driver behind each.

What runs all the time goes straight to the driver: SQLAlchemy's own work costs several times the
database's.
"""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from traceback import clear_frames
from typing import Any, ClassVar, Protocol, TypeAlias, cast

from sqlalchemy import Connection, Engine
from sqlalchemy.engine import Compiled
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.util import LRUCache

from mneme_server.common.errors import MnemeError

_Key: TypeAlias = tuple[Any, ...]

FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite's driver raises; the latter where SQLite quotes damage that is no UTF-8."""
TRANSLATE = "mneme_translate"
"""The option of an engine that tells what an error of the driver means; None where it says all."""
_DRIVER = "mneme_driver"
"""The option of a connection that is kept that holds the driver's: each statement asks for it, and
SQLAlchemy's own way there takes longer than the database takes for many of them."""
_MOST = 2_000
"""Far more than there are in the code; with the lengths of lists and sets of filters there are
more."""


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


class Database(ABC):
    """Where transactions come from; thread-safe. What kind of database it is, its users do not see:
    what their statements say, each kind understands (see `engine.store.portable`)."""

    shared: ClassVar[bool] = False
    """Whether several servers may use it."""

    @abstractmethod
    def read(self) -> AbstractContextManager[Connection]:
        """Open a read transaction: one consistent snapshot. Writing in it fails."""

    @abstractmethod
    def write(self) -> AbstractContextManager[Connection]:
        """Open a write transaction; it is durable when the block ends, undone when it raises.

        Writers of one tenant come one after the other. Not reentrant: a second `write` inside the
        block would wait for the first.
        """

    @abstractmethod
    def scrub(self) -> None:
        """Leave nothing where it is kept of what was deleted.

        Raises:
            Unavailable: others used it for too long; it can be tried again.
        """

    @abstractmethod
    def close(self) -> None:
        """Close all connections."""


class DriverConnection(Protocol):
    """What is used of a driver's connection: sqlite3's has it, another's may have to be given it.
    It begins no transaction by itself."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has begun."""
        ...

    def execute(self, sql: str, values: Any = ..., /) -> Any:
        """Run a statement and return the cursor."""
        ...

    def executemany(self, sql: str, values: Any, /) -> Any:
        """Run a statement for each of these and return the cursor."""
        ...

    def commit(self) -> None:
        """Commit the transaction, if one has begun."""
        ...

    def rollback(self) -> None:
        """Undo the transaction, if one has begun."""
        ...


def driver_of(connection: Connection) -> DriverConnection:
    """Return the driver's connection."""
    known: DriverConnection | None = connection.get_execution_options().get(_DRIVER)
    if known is not None:
        return known
    return cast(DriverConnection, connection.connection.driver_connection)


def knowing_its_driver(connection: Connection) -> Connection:
    """Return a connection that is never given another of the driver's: one that is lost is
    dropped."""
    return connection.execution_options(**{_DRIVER: driver_of(connection)})


def sqlite_of(connection: Connection) -> sqlite3.Connection:
    """Return the driver's connection, of a database that is SQLite's."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


def failures_of(driver: DriverConnection) -> tuple[type[Exception], ...]:
    """Return what a driver raises, the class of all that the database says first."""
    failures: tuple[type[Exception], ...] = getattr(driver, "failures", FAILURES)
    return failures


def begin(connection: Connection, sql: str) -> None:
    """Begin a transaction with `sql`, unless the connection is in one."""
    driver = driver_of(connection)
    if not driver.in_transaction:
        try:
            driver.execute(sql)
        except failures_of(driver) as error:
            raise translated(connection, sql, (), error) from error


def commit(connection: Connection) -> None:
    """Commit the transaction: SQLAlchemy's, where it ran a statement, or the database's."""
    if connection.in_transaction():
        connection.commit()
        return
    driver = driver_of(connection)
    try:
        driver.commit()
    except failures_of(driver) as error:
        raise translated(connection, "COMMIT", (), error) from error


def translated(connection: Connection, sql: str, values: Any, error: Exception) -> Exception:
    """Return what SQLAlchemy would raise for an error of the driver."""
    translate = connection.get_execution_options().get(TRANSLATE)
    return (translate(error) if translate else None) or DBAPIError.instance(
        sql, values, error, failures_of(driver_of(connection))[0]
    )


class Statements(LRUCache[_Key, Compiled]):
    """What SQLAlchemy wrote for engines of one kind: each would write and keep its own.

    A tenant that is opened runs some hundred statements, and each takes a millisecond to write.

    Its keys begin with the engine's dialect, an object of the engine's own. Those of one kind are
    made with the same options, and write the same.
    """

    __slots__ = ()

    def __init__(self, capacity: int = _MOST) -> None:
        super().__init__(capacity)

    def get(self, key: _Key, default: Any = None) -> Any:
        """Return what was written of a statement, else the default."""
        return super().get(key[1:], default)

    def __getitem__(self, key: _Key) -> Compiled:
        return super().__getitem__(key[1:])

    def __setitem__(self, key: _Key, value: Compiled) -> None:
        super().__setitem__(key[1:], value)
