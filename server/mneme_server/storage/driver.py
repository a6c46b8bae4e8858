"""What goes straight to SQLite's driver: for what runs all the time, SQLAlchemy's own work costs
several times the database's."""

from __future__ import annotations

import sqlite3
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""What the driver raises; the latter where SQLite quotes damage that is no UTF-8."""
TRANSLATE = "mneme_translate"
"""The option of an engine that tells what an error of the driver means; None where it says all."""


def driver_of(connection: Connection) -> sqlite3.Connection:
    """Return the driver's connection."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


def begin(connection: Connection, sql: str) -> None:
    """Begin a transaction with `sql`, unless the connection is in one."""
    driver = driver_of(connection)
    if not driver.in_transaction:
        try:
            driver.execute(sql)
        except FAILURES as error:
            raise translated(connection, sql, (), error) from error


def commit(connection: Connection) -> None:
    """Commit the transaction: SQLAlchemy's, where it ran a statement, or the database's."""
    if connection.in_transaction():
        connection.commit()
        return
    try:
        driver_of(connection).commit()
    except FAILURES as error:
        raise translated(connection, "COMMIT", (), error) from error


def translated(
    connection: Connection, sql: str, values: Any, error: sqlite3.Error | UnicodeDecodeError
) -> Exception:
    """Return what SQLAlchemy would raise for an error of the driver."""
    translate = connection.get_execution_options().get(TRANSLATE)
    return (translate(error) if translate else None) or DBAPIError.instance(
        sql, values, error, sqlite3.Error
    )
