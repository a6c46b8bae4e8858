"""What goes straight to the driver: for what runs all the time, SQLAlchemy's own work costs
several times the database's."""

from __future__ import annotations

import sqlite3
from typing import Any, Protocol, cast

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite's driver raises; the latter where SQLite quotes damage that is no UTF-8."""
TRANSLATE = "mneme_translate"
"""The option of an engine that tells what an error of the driver means; None where it says all."""


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


_DRIVER = "mneme_driver"
"""The option of a connection that is kept that holds the driver's: each statement asks for it, and
SQLAlchemy's own way there takes longer than the database takes for many of them."""


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
