"""SQLite databases: how they are opened, read, written, and how their errors look to the domain.

A `SqliteDatabase` is one file with one writing connection and a few reading ones. Writers begin
with `BEGIN IMMEDIATE` and wait for each other in the pool of one; readers see the snapshot of their
first statement and wait for nobody (WAL).
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Engine, ExceptionContext, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from mneme_server.common import deadline, interpreter
from mneme_server.common.errors import (
    DataLoss,
    FailedPrecondition,
    MnemeError,
    Reason,
    ResourceExhausted,
    Unavailable,
)
from mneme_server.engine.store import connections
from mneme_server.engine.store.connections import TRANSLATE, Connections, Database, Statements
from mneme_server.engine.store.reading import not_utf8

BUSY_TIMEOUT_S = 10.0
"""How long a writer waits for the one before it, in seconds."""

READERS = 4
"""Reading connections that stay open; more are opened under load and closed again."""

_READ, _WRITE = "BEGIN", "BEGIN IMMEDIATE"
_DISK_FULL_RETRY_S = 30.0
_BUSY_RETRY_S = 0.5
_IO_RETRY_S = 5.0
_NOT_IN_SCHEMA = re.compile("^no such (table|column)|has no column named")
"""Of migrated databases all tables and columns are there, unless a name is damaged."""
_CUT_OFF = (sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS)
"""Errors of reading that trying again does not help against: the file is shorter than it was."""
_NO_SPACE_BYTES = 256 * 1024
_PAGE_CACHE_BYTES = 2_000 * 1024
"""SQLite's own limit for a connection."""
_WAL_SIZE_LIMIT_BYTES = 64 * 1024 * 1024
SHRINK_IN_PLACE = "PRAGMA auto_vacuum = INCREMENTAL"
"""Holds for a file as it is made, or as it is rewritten next."""
_INCREMENTAL = 2
_PAGES_AT_ONCE = 2_000
"""Writes wait for so many pages to be given back, some hundredths of a second."""
_BETWEEN_S = 0.005
"""Long enough for who waits to write to be woken."""
_STATEMENTS = Statements()


class SqliteDatabase(Database):
    """One SQLite file.

    Args:
        path: the file; it is created when missing. Its folder must exist.
        readers: reading connections that stay open.
        busy_timeout_s: how long to wait for a lock, in seconds.

    Every failure of SQLite inside `read` and `write`, and of any other use of the two engines, is
    raised as a domain error:

    Raises:
        ResourceExhausted: QUOTA_EXCEEDED, the disk is full.
        Unavailable: TRANSACTION_FAILED, a lock could not be had in time; DATABASE_ERROR, reading
            or writing the file failed.
        FailedPrecondition: DATABASE_ERROR, the file is read-only.
        DataLoss: DATA_DAMAGED, the file is damaged or no database, or a text in it is not UTF-8.
    """

    def __init__(
        self, path: Path, *, readers: int = READERS, busy_timeout_s: float = BUSY_TIMEOUT_S
    ) -> None:
        self.path = path
        self._closed = False
        # Writers of this process wait in line: SQLite's own busy handler polls with growing pauses
        # and is not fair.
        self._turn = threading.Semaphore()
        self._patience_s = busy_timeout_s
        self.writer = _engine(path, _WRITE, busy_timeout_s)
        self.reader = _engine(path, _READ, busy_timeout_s, read_only=True)
        self._writers = Connections(self.writer, _WRITE, 1)
        self._readers = Connections(self.reader, _READ, readers)
        # The writer's first connection creates the file and turns WAL on, before anyone reads.
        try:
            self._writers.open()
        except BaseException:
            self.close()
            raise

    @property
    def cache_bytes(self) -> int:
        """Bytes that the connections' page caches hold at most."""
        try:
            each = min(_PAGE_CACHE_BYTES, self.path.stat().st_size)
        except OSError:  # It is just being removed.
            return 0
        return each * (len(self._writers) + len(self._readers))

    def read(self) -> AbstractContextManager[Connection]:
        """See `Database`."""
        self._check_open()
        return self._readers.transaction()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """See `Database`."""
        self._check_open()
        if not self._turn.acquire(blocking=False):
            interpreter.leave_turn()
            self._wait_to_write()
        try:
            with self._writers.transaction() as connection:
                yield connection
                interpreter.leave_turn()  # It waits for the disk.
                connections.commit(connection)
        finally:
            self._turn.release()

    def _wait_to_write(self) -> None:
        if not deadline.taken(self._turn, self._patience_s):
            raise Unavailable(
                f"another write to {self.path.name} took too long; nothing was written",
                reason=Reason.TRANSACTION_FAILED,
                retry_after_s=_BUSY_RETRY_S,
            )

    def scrub(self) -> None:
        """Leave nothing in the files of what was deleted, neither in free pages nor in the log.

        Writes wait meanwhile, reads go on; it takes about as long as copying the file.

        Raises:
            Unavailable: TRANSACTION_FAILED, a read went on for too long; it can be tried again.
            As `write`.
        """
        with self._outside_transactions() as writer:
            writer.execute(SHRINK_IN_PLACE)
            writer.execute("VACUUM")
            self._empty_log(writer)

    def compact(self, worth_rewriting: float) -> bool:
        """Give the free pages back to the disk; return whether any were.

        It takes as long as there are free pages, and writes go on in between. A file made by a
        version that could not do this is rewritten once, as by `scrub`, if at least this share of
        it, 0 to 1, is free.

        Raises:
            Abandoned: nobody waits any more; what was given back until then stays given back.
            As `scrub`.
        """
        with self.read() as connection:
            mode, free, pages = (
                connections.sqlite_of(connection).execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("auto_vacuum", "freelist_count", "page_count")
            )
        if mode != _INCREMENTAL:
            if worth_it := bool(free >= worth_rewriting * pages):
                self.scrub()
            return worth_it
        for _ in range(0, free, _PAGES_AT_ONCE):
            deadline.check()
            with self._outside_transactions() as writer:
                # `execute` would end it after the first page.
                writer.executescript(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})")
            time.sleep(_BETWEEN_S)
        if free:
            with self._outside_transactions() as writer:
                self._empty_log(writer)
        return bool(free)

    @contextmanager
    def _outside_transactions(self) -> Iterator[sqlite3.Connection]:
        """Write what no transaction can hold."""
        interpreter.leave_turn()
        with self._turn, self._writers.transaction() as connection:
            writer = connections.sqlite_of(connection)
            writer.rollback()
            try:
                yield writer
            except sqlite3.Error as error:
                raise domain_error(error, self.path, read_only=False) or error from error

    def _empty_log(self, writer: sqlite3.Connection) -> None:
        (busy, *_) = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise Unavailable(
                f"reads of {self.path.name} took too long to empty its log",
                reason=Reason.TRANSACTION_FAILED,
                retry_after_s=_BUSY_RETRY_S,
            )

    def close(self) -> None:
        """Close all connections. The last one to close empties the write-ahead log."""
        self._closed = True
        self._readers.close()
        self._writers.close()

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable(
                f"{self.path.name} is closed; the server is shutting down or the tenant is gone",
                reason=Reason.INITIALIZATION_FAILED,
                retry_after_s=_BUSY_RETRY_S,
            )


def _engine(path: Path, begin: str, busy_timeout_s: float, *, read_only: bool = False) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=address_of(path), query={"uri": "true"}),
        poolclass=NullPool,
        # sqlite3 must not begin transactions by itself: it would begin deferred ones.
        connect_args={"isolation_level": None, "check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
        try:
            prepare(connection)
        except UnicodeDecodeError as error:
            raise unspeakable(path) from error

    def prepare(connection: sqlite3.Connection) -> None:
        connection.execute(f"PRAGMA busy_timeout = {round(busy_timeout_s * 1000)}")
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        if not pages:  # On a file that has some, it would wait for who writes.
            connection.execute(SHRINK_IN_PLACE)
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise FailedPrecondition(
                f"{path} cannot be used: its file system does not support SQLite's write-ahead"
                f" log (journal mode {mode}); choose another MNEME_DATA_DIR",
                reason=Reason.DATABASE_ERROR,
            )
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_SIZE_LIMIT_BYTES}")
        if read_only:
            connection.execute("PRAGMA query_only = ON")

    @event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:
        connections.begin(connection, begin)

    @event.listens_for(engine, "handle_error")
    def translate(context: ExceptionContext) -> MnemeError | None:
        return meaning(context.original_exception)

    def meaning(error: BaseException) -> MnemeError | None:
        if isinstance(error, UnicodeDecodeError):
            return unspeakable(path)
        if not isinstance(error, sqlite3.Error):
            return None
        return not_utf8(error) or domain_error(error, path, read_only=read_only)

    engine.update_execution_options(**{TRANSLATE: meaning}, compiled_cache=_STATEMENTS)
    return engine


def address_of(path: Path) -> str:
    """Return the URI of a database that belongs to this process alone while it is open.

    Other processes would share SQLite's index of the write-ahead log as a mapped file beside the
    database. Whoever truncates a mapped file ends the process that has it mapped, with all its
    tenants; with this VFS that index lies in memory. Connections of this process share it.
    """
    own = "" if os.name == "nt" else "?vfs=unix-excl"
    return f"file:{quote(str(path))}{own}"


class NotInSchema(DataLoss):
    """A table or column is not there. It was when the database was opened, unless it is new."""


def domain_error(error: sqlite3.Error, path: Path, *, read_only: bool) -> MnemeError | None:
    """Return what an error of SQLite means to the caller; None when it is a bug or a constraint.

    Constraint violations stay SQLAlchemy's `IntegrityError`: only the repository knows what
    such a violation means.
    """
    code: int = getattr(error, "sqlite_errorcode", 0)
    primary = code & 0xFF
    if primary == sqlite3.SQLITE_FULL or (
        primary in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and _disk_is_full(path)
    ):
        return ResourceExhausted(
            "the server's disk is full; nothing was written",
            reason=Reason.QUOTA_EXCEEDED,
            retry_after_s=_DISK_FULL_RETRY_S,
        )
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Unavailable(
            "the database is locked by another process or a long write; nothing was written",
            reason=Reason.TRANSACTION_FAILED,
            retry_after_s=_BUSY_RETRY_S,
        )
    if (damage := _damage(error, path)) is not None:
        return damage
    # A write through a reading connection is a bug, not a file that is read-only.
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM) and not read_only:
        return FailedPrecondition(
            f"the database file {_short(path)} cannot be written ({error});"
            " check its owner and permissions",
            reason=Reason.DATABASE_ERROR,
        )
    if primary in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
        return Unavailable(
            f"the database file {_short(path)} could not be read or written ({error})",
            reason=Reason.DATABASE_ERROR,
            retry_after_s=_IO_RETRY_S,
        )
    return None


def _damage(error: sqlite3.Error, path: Path) -> DataLoss | None:
    code: int = getattr(error, "sqlite_errorcode", 0)
    primary = code & 0xFF
    what = f"database file {_short(path)} is damaged or not a database ({error});"
    if primary == sqlite3.SQLITE_ERROR and _NOT_IN_SCHEMA.search(str(error)):
        return NotInSchema(f"the schema of the {what} restore it from a backup")
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or code in _CUT_OFF:
        return DataLoss(f"the {what} restore it from a backup")
    return None


def unspeakable(path: Path) -> DataLoss:
    """Return the error for a database of which SQLite quotes what is no UTF-8, e.g. of its schema:
    Python cannot even make an exception of that."""
    return DataLoss(
        f"the database file {_short(path)} is damaged (SQLite's message is not UTF-8);"
        " restore it from a backup"
    )


def _short(path: Path) -> str:
    """Return the file with its folder only: callers need not know where the server keeps data."""
    return f"{path.parent.name}/{path.name}"


def _disk_is_full(path: Path) -> bool:
    """Tell whether the disk is why the write-ahead log's shared index could not grow.

    SQLite reports that as an I/O error, not as SQLITE_FULL.
    """
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _NO_SPACE_BYTES
