"""The file of a tenant's projection: memories by their numbers, and how far it has come.

It is a cache, so nothing waits for the disk: after a power cut its end may be missing, never its
middle. What is removed is overwritten. Each row has a checksum: what is shown from here is what was
written here, or is not shown.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

from mneme_server.common.errors import DataLoss
from mneme_server.engine.corpus.feed import START, Position
from mneme_server.engine.store.engine import address_of
from mneme_server.engine.store.shown import ShownRow

T = TypeVar("T")

_RESTING = 2
"""Connections that read and stay open; under load there are more."""
_CACHE_BYTES = 1024 * 1024
_TABLES = (
    "CREATE TABLE memories (doc_id INTEGER PRIMARY KEY, source TEXT, shown TEXT NOT NULL,"
    " checksum INTEGER NOT NULL)",
    "CREATE INDEX memories_by_source ON memories (source) WHERE source IS NOT NULL",
    "CREATE TABLE place (one INTEGER PRIMARY KEY, layout TEXT NOT NULL, whole INTEGER NOT NULL,"
    " number INTEGER NOT NULL, mark INTEGER NOT NULL)",
)
_PUT = "INSERT OR REPLACE INTO memories VALUES (?, ?, ?, ?)"
_REMOVE = "DELETE FROM memories WHERE doc_id = ?"
_BY_ID = (
    "SELECT doc_id, shown, checksum FROM memories WHERE doc_id IN (SELECT value FROM json_each(?))"
)
_BY_SOURCE = (
    "SELECT doc_id, shown, checksum FROM memories WHERE source IN (SELECT value FROM json_each(?))"
)


class ProjectionFile:
    """One such file. Thread-safe; writers wait for each other, readers for nobody.

    Args:
        path: where it is; made when missing. Its folder must exist.
        layout: names what its rows hold.

    Raises:
        DataLoss: it is damaged, of another layout, or not whole.
        OSError: it cannot be written.
    """

    def __init__(self, path: Path, layout: str) -> None:
        self.path = path
        self.position = START
        self.whole = False
        self._closed = False
        self._lock = threading.Lock()
        self._resting: list[sqlite3.Connection] = []  # To append and to pop is atomic.
        self._writer: sqlite3.Connection | None = None
        known = path.exists()
        try:
            with _meant(path):
                self._writer = self._connected()
                if known:
                    self._read_place(layout)
                else:
                    self._make(layout)
        except BaseException:
            self.close()
            raise

    @property
    def memory_bytes(self) -> int:
        """Bytes that the connections' page caches hold at most."""
        try:
            each = min(_CACHE_BYTES, self.path.stat().st_size)
        except OSError:  # It is being removed.
            return 0
        return each * (1 + len(self._resting))

    def write(
        self,
        put: Sequence[ShownRow] = (),
        remove: Sequence[int] = (),
        *,
        position: Position | None = None,
        whole: bool = False,
    ) -> None:
        """Put rows in the place of those with their numbers, remove others, and note the row of the
        feed up to which it holds what there is; all of it, or nothing.

        Raises:
            DataLoss: it is damaged.
            OSError: it cannot be written, or is closed.
        """
        rows = [(one.doc_id, one.source, one.text, crc32(one.text.encode())) for one in put]
        with self._lock, _meant(self.path):
            writer = self._writer
            if writer is None:
                raise OSError(f"{self.path.name} is closed")
            writer.execute("BEGIN IMMEDIATE")
            try:
                if rows:
                    writer.executemany(_PUT, rows)
                if remove:
                    writer.executemany(_REMOVE, [(doc_id,) for doc_id in remove])
                if position is not None:
                    writer.execute("UPDATE place SET number = ?, mark = ?", position)
                if whole:
                    writer.execute("UPDATE place SET whole = 1")
                writer.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    writer.execute("ROLLBACK")
                raise
            # After the commit: who reads it finds at least that.
            self.position = position or self.position
            self.whole = self.whole or whole

    def by_id(self, doc_ids: Sequence[int]) -> list[tuple[int, str]]:
        """Return the numbers and texts of the rows with these numbers that there are.

        Raises:
            DataLoss: one is damaged.
            OSError: they cannot be read.
        """
        return self._read(_BY_ID, doc_ids)

    def by_source(self, sources: Sequence[str]) -> list[tuple[int, str]]:
        """Return those of these sources, likewise."""
        return self._read(_BY_SOURCE, sources)

    def empty_log(self) -> None:
        """Have everything in the file itself, and nothing in the log beside it."""
        with self._lock, _meant(self.path):
            if self._writer is not None:
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def close(self) -> None:
        """Close it; connections that read just now, once they have."""
        self._closed = True
        with self._lock:
            writer, self._writer = self._writer, None
            self._close_resting()
            if writer is not None:
                with suppress(sqlite3.Error):
                    writer.close()

    def remove(self) -> None:
        """Close it and remove it from the disk."""
        self.close()
        remove_file(self.path)

    def _read(self, query: str, wanted: Sequence[int] | Sequence[str]) -> list[tuple[int, str]]:
        def read(connection: sqlite3.Connection) -> list[tuple[int, str, int]]:
            return connection.execute(query, (json.dumps(list(wanted)),)).fetchall()

        found = []
        for doc_id, text, checksum in self._reading(read):
            if not isinstance(text, str) or crc32(text.encode()) != checksum:
                raise DataLoss(f"a row of {self.path.name} does not have its checksum")
            found.append((doc_id, text))
        return found

    def _reading(self, read: Callable[[sqlite3.Connection], T]) -> T:
        with _meant(self.path):
            try:
                connection = self._resting.pop()
            except IndexError:
                connection = self._connected(read_only=True)
            try:
                return read(connection)
            finally:
                if len(self._resting) < _RESTING:
                    self._resting.append(connection)
                else:
                    connection.close()
                if self._closed:
                    self._close_resting()

    def _close_resting(self) -> None:
        while self._resting:
            try:
                self._resting.pop().close()
            except (IndexError, sqlite3.Error):  # Another thread was faster.
                return

    def _connected(self, *, read_only: bool = False) -> sqlite3.Connection:
        if self._closed:
            raise OSError(f"{self.path.name} is closed")
        connection = sqlite3.connect(
            address_of(self.path), uri=True, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute(f"PRAGMA cache_size = -{_CACHE_BYTES // 1024}")
            if read_only:
                connection.execute("PRAGMA query_only = ON")
            else:
                connection.execute("PRAGMA journal_mode = WAL").fetchone()
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute("PRAGMA secure_delete = ON").fetchone()
        except BaseException:
            connection.close()
            raise
        return connection

    def _make(self, layout: str) -> None:
        assert self._writer is not None
        self._writer.execute("BEGIN IMMEDIATE")
        for table in _TABLES:
            self._writer.execute(table)
        self._writer.execute("INSERT INTO place VALUES (1, ?, 0, ?, ?)", (layout, *START))
        self._writer.execute("COMMIT")

    def _read_place(self, layout: str) -> None:
        assert self._writer is not None
        row = self._writer.execute("SELECT layout, whole, number, mark FROM place").fetchone()
        if row is None or row[0] != layout or not row[1]:
            raise DataLoss(f"{self.path.name} is not whole, or of another version")
        self.position, self.whole = Position(int(row[2]), int(row[3])), True


def remove_file(path: Path) -> None:
    """Remove such a file from the disk, with what lies beside it; itself last, so that what is left
    by a crash is found."""
    for suffix in ("-wal", "-shm", "-journal", ""):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


@contextmanager
def _meant(path: Path) -> Iterator[None]:
    """Raise what SQLite's errors mean."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code: Any = getattr(error, "sqlite_errorcode", 0)
        if code & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
            raise OSError(f"{path.name}: {error}") from error
        raise DataLoss(f"{path.name} is damaged: {error}") from error
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise DataLoss(f"{path.name} cannot be read: {error}") from error
