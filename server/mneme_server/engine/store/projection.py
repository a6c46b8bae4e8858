"""A tenant's memories as they are shown, in a file on this server's disk: see
`engine.corpus.projection`.

The tables of kinds that tell more than their documents are read from the store; documents that tell
all are taken as they are committed. What fails is removed, and filled anew from the store.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import structlog

from mneme_server.common.errors import DataLoss
from mneme_server.common.pages import parts
from mneme_server.engine.corpus.cache import AT_ONCE, Steps
from mneme_server.engine.corpus.change import CorpusChange
from mneme_server.engine.corpus.document import Document, Memory
from mneme_server.engine.corpus.feed import START, FeedRow, Position, Touched
from mneme_server.engine.corpus.kinds import MemoryKind
from mneme_server.engine.corpus.tenant_store import TenantStore
from mneme_server.engine.store.kinds import MemoryKinds
from mneme_server.engine.store.projection_file import ProjectionFile, remove_file
from mneme_server.engine.store.shown import ShownRows, source_of
from mneme_server.engine.store.unit import Unit

_NAME = "memories-{}.sqlite"
_PAGE = 500
_BETWEEN_S = 0.002
"""Between two pages that are read: calls go first."""

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
    ) -> Mapping[int, Memory] | None:
        """See `Projection`."""
        wanted = set(doc_ids)
        found = self._read(lambda file: file.by_id(doc_ids), bare=bare)
        if found is None or len(found) != len(wanted):
            return None
        return {memory.document.doc_id: memory for memory in found}

    def of_sources(
        self, kind: MemoryKind, source_ids: Sequence[str]
    ) -> Mapping[str, Memory] | None:
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
        touched = Touched()
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
    ) -> list[Memory] | None:
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
