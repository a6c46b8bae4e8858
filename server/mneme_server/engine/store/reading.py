"""Reading rows that may be damaged: which one it is, and how to go on without it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, Executable, Row

from mneme_server.common.errors import DataLoss
from mneme_server.common.stored import damaged
from mneme_server.engine.store.connections import sqlite_of

T = TypeVar("T")

Lost = Callable[[DataLoss], object]
"""Is told of a row that cannot be read; the others are read."""


class Statement(Protocol):
    """A statement that is prepared: see `engine.store.guard.Prepared`."""

    def first(self, connection: Connection, given: Mapping[str, Any]) -> Row[Any] | None:
        """Run it and return the first row, if there is one."""
        ...

    def all(self, connection: Connection, given: Mapping[str, Any]) -> list[Row[Any]]:
        """Run it and return its rows."""
        ...


class NotUtf8(DataLoss):
    """A stored text is not UTF-8; SQLite's driver does not say whose."""


def not_utf8(error: sqlite3.Error) -> NotUtf8 | None:
    """Return what the driver's error says if it is that a stored text is not UTF-8."""
    return _damaged_text() if str(error).startswith("Could not decode to UTF-8") else None


def decoded(text: bytes) -> str:
    """Return a stored text that was read as bytes.

    Raises:
        NotUtf8: it is damaged.
    """
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise _damaged_text() from error


def _damaged_text() -> NotUtf8:
    return NotUtf8(
        "a text is damaged where it is stored (it is not UTF-8); what can be read of the tenant is"
        " served, the rest has to come from a backup"
    )


def read_rows(
    connection: Connection,
    query: Executable | Statement,
    decode: Callable[[Row[Any]], T],
    parameters: Mapping[str, Any] | None = None,
    *,
    kind: str,
    key: str = "id",
    lost: Lost | None = None,
) -> list[T]:
    """Return what `decode` makes of each row.

    Args:
        connection: a transaction.
        query: selects the rows; run twice when a text in one of them is not UTF-8.
        decode: decodes a row; raises `DataLoss` when it cannot (see `common.stored.reads`).
        parameters: the query's.
        kind: what a row holds, in a word.
        key: the column that holds its id.
        lost: told of each row that cannot be read. Without it, the first ends the reading.

    Raises:
        DataLoss: a row cannot be read; the error names it.
    """
    rows = all_rows(connection, query, parameters)
    if lost is None and not rows.lenient:
        return [decode(row) for row in rows.rows]
    found = []
    for row in rows.rows:
        try:
            if rows.lenient:
                _require_utf8(row, kind, key)
            found.append(decode(row))
        except DataLoss as loss:
            if lost is None:
                raise
            lost(loss)
    return found


def read_first(
    connection: Connection,
    statement: Statement,
    decode: Callable[[Row[Any]], T],
    parameters: Mapping[str, Any],
    *,
    kind: str,
    key: str = "id",
) -> T | None:
    """Return what `decode` makes of the first row of a prepared statement; None when it has none.

    Raises:
        DataLoss: the row cannot be read; the error names it.
    """
    try:
        row = statement.first(connection, parameters)
    except NotUtf8:
        with _leniently(connection):
            row = statement.first(connection, parameters)
        if row is not None:
            _require_utf8(row, kind, key)
    return None if row is None else decode(row)


class StoredRows:
    """Rows as they were read; `lenient` when texts that are not UTF-8 stand as `Undecodable`."""

    def __init__(self, rows: Sequence[Row[Any]], *, lenient: bool) -> None:
        self.rows = rows
        self.lenient = lenient


class Undecodable(bytes):
    """A stored text that is not UTF-8."""


def all_rows(
    connection: Connection,
    query: Executable | Statement,
    parameters: Mapping[str, Any] | None = None,
) -> StoredRows:
    """Run a query and return its rows, those with damaged texts too."""
    try:
        return StoredRows(_run(connection, query, parameters), lenient=False)
    except NotUtf8:
        with _leniently(connection):
            return StoredRows(_run(connection, query, parameters), lenient=True)


def _run(
    connection: Connection, query: Executable | Statement, parameters: Mapping[str, Any] | None
) -> Sequence[Row[Any]]:
    if isinstance(query, Executable):
        return connection.execute(query, parameters).all()
    return query.all(connection, parameters or {})


def _require_utf8(row: Row[Any], kind: str, key: str) -> None:
    if any(isinstance(value, Undecodable) for value in row):
        found = getattr(row, key, "")
        item_id = found.decode(errors="backslashreplace") if isinstance(found, bytes) else found
        raise damaged(kind, item_id, "a text is not UTF-8")


@contextmanager
def _leniently(connection: Connection) -> Iterator[None]:
    driver = sqlite_of(connection)
    before = driver.text_factory
    driver.text_factory = lenient_text
    try:
        yield
    finally:
        driver.text_factory = before


def lenient_text(raw: bytes) -> str | bytes:
    """Return a stored text, as `Undecodable` when it is not UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return Undecodable(raw)
