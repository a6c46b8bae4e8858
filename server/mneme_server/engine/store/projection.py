"""The copy of a tenant's memories as they are shown, in a file on this server's disk: see
`engine.corpus.projection`.

The tables of kinds that tell more than their documents are read from the store; documents that tell
all are taken as they are committed. What fails is removed, and filled anew from the store.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

import structlog

from mneme_server.common.errors import DataLoss
from mneme_server.common.pages import parts
from mneme_server.engine.corpus.cache import AT_ONCE, CorpusChange, Steps
from mneme_server.engine.corpus.document import Document, MemoryKind, MemoryView
from mneme_server.engine.corpus.feed import START, FeedRow, Position, TouchedDocuments
from mneme_server.engine.corpus.tenant_store import TenantStore
from mneme_server.engine.store.engine import address_of
from mneme_server.engine.store.memories import MemoryKinds
from mneme_server.engine.store.projection_reader import ShownRow, ShownRows, source_of
from mneme_server.engine.store.unit import Unit

T = TypeVar("T")

_NAME = "memories-{}.sqlite"
_PAGE = 500
_BETWEEN_S = 0.002
"""Between two pages that are read: calls go first."""
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

_log = structlog.get_logger(__name__)


def projecting(
    kinds: MemoryKinds,
) -> Callable[[Path, str, TenantStore[Unit]], SqliteProjection]:
    """Return what makes a projection, of a folder for it, its tenant's id and its store."""
    rows = ShownRows(kinds)
    return lambda folder, tenant_id, store: SqliteProjection(folder, tenant_id, store, rows)


def _nobody() -> None:
    """Tell nobody."""


class SqliteProjection:
    """Implements `engine.corpus.projection.Projection`.

    Args:
        folder: where its file lies, which is used if it is whole; made when missing.
        tenant_id: the tenant, for the log.
        store: what keeps it.
        rows: makes rows of memories, and the other way round.
        stopping: set when the tenant is being closed.
        file: is used instead.
    """

    def __init__(
        self,
        folder: Path,
        tenant_id: str,
        store: TenantStore[Unit],
        rows: ShownRows,
        *,
        stopping: threading.Event | None = None,
        file: ProjectionFile | None = None,
    ) -> None:
        self._folder = folder
        self._tenant_id = tenant_id
        self._store = store
        self._rows = rows
        self._failed = self._abandoned = False
        self._told: Callable[[], object] = _nobody
        self._stopping = stopping or threading.Event()
        self._file = file or self._found()

    @property
    def position(self) -> Position:
        """See `Cache`."""
        return START if self._file is None else self._file.position

    @property
    def partial(self) -> bool:
        """See `Cache`. It holds nothing that may be shown until it was filled."""
        return self._failed or self._file is None or not self._file.whole

    @property
    def memory_bytes(self) -> int:
        """See `Projection`."""
        return 0 if self._file is None else self._file.memory_bytes

    def get_many(
        self, doc_ids: Sequence[int], *, bare: bool = False
    ) -> Mapping[int, MemoryView] | None:
        """See `Projection`."""
        wanted = set(doc_ids)
        found = self._read(lambda file: file.by_id(doc_ids), bare=bare)
        if found is None or len(found) != len(wanted):
            return None
        return {memory.document.doc_id: memory for memory in found}

    def of_sources(
        self, kind: MemoryKind, source_ids: Sequence[str]
    ) -> Mapping[str, MemoryView] | None:
        """See `Projection`."""
        if not kind.successor:
            return None
        sources = {source_of(kind.name, source_id) for source_id in source_ids}
        found = self._read(lambda file: file.by_source(sorted(sources)))
        by_id = {memory.document.source_id: memory for memory in found or ()}
        return by_id if len(by_id) == len(sources) else None

    def takes(self, change: CorpusChange) -> bool:
        """See `Projection`."""
        return not change.everything and all(map(self._rows.tells_all, change.saved))

    def applying(self, change: CorpusChange) -> Steps:
        """See `Cache`. For what it `takes`."""
        file = self._file
        if self.partial or file is None or change.position is None:
            return ()
        return [
            *(partial(self._add, file, part) for part in parts(change.saved, AT_ONCE)),
            partial(file.write, (), change.removed, position=change.position),
        ]

    def catching_up(self, rows: Sequence[FeedRow]) -> Steps:
        """See `Cache`. What came to have a vector is shown as before."""
        file = self._file
        if self.partial or file is None:
            return ()
        touched = TouchedDocuments()
        touched.take(rows)
        saved = sorted(touched.saved - touched.removed)
        return [
            *(partial(self._read_again, file, part) for part in parts(saved, AT_ONCE)),
            partial(file.write, (), sorted(touched.removed), position=rows[-1].position),
        ]

    def on_failure(self, told: Callable[[], object]) -> None:
        """See `Cache`."""
        self._told = told

    def missed(self, error: BaseException) -> None:
        """See `Cache`."""
        _log.warning("a projection failed", tenant=self._tenant_id, error=repr(error))
        self._failed = True
        self._told()

    def interrupt(self) -> None:
        """See `Projection`."""
        self._stopping.set()

    def abandon(self) -> None:
        """See `Cache`."""
        self._abandoned = True

    def discard(self) -> None:
        """See `Cache`. Its file goes from the disk."""
        if self._file is not None:
            self._file.remove()

    def close(self) -> None:
        """See `Cache`. Nothing is kept that is not whole."""
        if self._file is None:
            return
        if self.partial:
            self._file.remove()
            return
        try:
            self._file.empty_log()
        except (OSError, DataLoss) as error:
            _log.warning("a projection was not closed well", tenant=self._tenant_id,
                         error=repr(error))  # fmt: skip
        self._file.close()

    def rebuilt(self, *, clean: bool = False) -> SqliteProjection:
        """See `Cache`. Another file is filled: nothing is kept of this one."""
        self._folder.mkdir(parents=True, exist_ok=True)
        file = ProjectionFile(self._next_path(), self._rows.layout)
        try:
            self._fill(file)
        except BaseException:
            file.remove()
            raise
        return SqliteProjection(
            self._folder, self._tenant_id, self._store, self._rows,
            stopping=self._stopping, file=file,
        )  # fmt: skip

    def write(self) -> None:
        """See `Cache`."""
        if self._file is not None:
            self._file.empty_log()

    def _fill(self, file: ProjectionFile) -> None:
        """Copy what the store holds; what changes meanwhile is caught up with."""
        place, last = self._store.source.head(), 0
        while not self._stopping.is_set():
            with self._store.read() as unit:
                rows, reached = unit.shown.after(last, _PAGE)
            if reached is None:
                file.write(position=place, whole=True)
                return
            file.write(rows)
            last = reached
            time.sleep(_BETWEEN_S)
        # Not whole, so not used: the tenant is being closed.
        file.write(position=place)

    def _add(self, file: ProjectionFile, documents: Sequence[Document]) -> None:
        file.write([self._rows.of_document(document) for document in documents])

    def _read_again(self, file: ProjectionFile, doc_ids: Sequence[int]) -> None:
        with self._store.read() as unit:
            rows = unit.shown.of(doc_ids)
        gone = set(doc_ids).difference(row.doc_id for row in rows)
        file.write(rows, sorted(gone))

    def _read(
        self, read: Callable[[ProjectionFile], list[tuple[int, str]]], *, bare: bool = False
    ) -> list[MemoryView] | None:
        """Return what the file holds; None where it failed, and note that it did."""
        file = self._file
        if file is None or self._failed:
            return None
        try:
            return [self._rows.memory(text, bare=bare) for _, text in read(file)]
        except (DataLoss, OSError) as error:
            if not self._abandoned:  # Its file was closed under who still reads from it.
                self.missed(error)
            return None

    def _found(self) -> ProjectionFile | None:
        """Return the newest file that is whole; others are removed."""
        found: ProjectionFile | None = None
        for number in sorted(self._numbers(), reverse=True):
            path = self._folder / _NAME.format(number)
            if found is None:
                try:
                    found = ProjectionFile(path, self._rows.layout)
                    continue
                except (DataLoss, OSError) as error:
                    _log.info("a projection is made anew", tenant=self._tenant_id, why=str(error))
            remove_file(path)
        return found

    def _numbers(self) -> list[int]:
        prefix, suffix = _NAME.split("{}")
        named = (file.name for file in self._folder.glob(_NAME.format("*")))
        middles = (name.removeprefix(prefix).removesuffix(suffix) for name in named)
        return [int(middle) for middle in middles if middle.isdigit()]

    def _next_path(self) -> Path:
        return self._folder / _NAME.format(max(self._numbers(), default=0) + 1)


class ProjectionFile:
    """The file of a tenant's projection: memories by their numbers, and how far it has come.

    Thread-safe; writers wait for each other, readers for nobody. It is a cache, so nothing waits
    for the disk: after a power cut its end may be missing, never its middle. What is removed is
    overwritten. Each row has a checksum: what is shown from here is what was written here, or is
    not shown.

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
