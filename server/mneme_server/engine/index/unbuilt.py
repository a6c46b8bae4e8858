"""The index of a tenant that this server has never seen: its store answers until it is built."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mneme_server.common import deadline, interpreter
from mneme_server.engine.corpus.document import Document
from mneme_server.engine.corpus.feed import FeedRow, Position
from mneme_server.engine.corpus.ports import CorpusSource, VectorBatch
from mneme_server.engine.corpus.scanning import Question, Scan
from mneme_server.engine.index import scratch
from mneme_server.engine.index.glance import NO_VECTORS, Few, StoreGlance, glancing
from mneme_server.engine.index.settings import IndexLog, IndexSettings
from mneme_server.engine.index.tenant_index import TenantIndex

FEW = 2_000
"""Memories up to which an index is built before the first answer: that takes about as long."""
FIRST_S = 0.5
"""How long building waits for the first question, in seconds: both at once would take the answer
twice as long."""
_PATIENCE_S = 2.0
"""How long building waits at most, all in all, for questions that are just being answered: however
many are asked, they end sooner where there is an index."""
_PAGE = 2_000
"""Documents in a step."""


class UnbuiltIndex(TenantIndex):
    """Stands for an index until it is built: an empty one, which `LiveIndex` takes for one that
    failed, and has another built beside it. Implements `engine.corpus.scanning.Unbuilt`.

    Args:
        folder: the tenant's, where the index will lie.
        source: what it is built from.
        scan: what answers meanwhile.
        model_id: the embedding model.
        dimensions: of its vectors.
        settings: see `IndexSettings`.
        log: told of damage.
    """

    def __init__(
        self,
        folder: Path,
        source: CorpusSource,
        scan: Scan,
        model_id: str,
        dimensions: int,
        *,
        settings: IndexSettings,
        log: IndexLog,
    ) -> None:
        self._place = scratch.new_folder(0)
        try:
            nothing = Few((), NO_VECTORS, source.layout, source.head())
            super().__init__(self._place, nothing, model_id, dimensions, settings=settings, log=log)
        except BaseException:
            scratch.remove(self._place)
            raise
        self.abandon()
        self._to_be = folder
        self._rows = source
        self._scan = scan
        self._model_id = model_id
        self._settings = settings
        self._log = log
        self._turn = threading.Lock()
        self._built = False
        self._asked = threading.Event()
        self._quiet = threading.Event()
        self._quiet.set()
        self._stopping = threading.Event()
        self.done = threading.Event()

    @property
    def unbuilt(self) -> UnbuiltIndex | None:
        """See `ManagedIndex`."""
        return self

    @property
    def partial(self) -> bool:
        """It holds nothing of what there is."""
        return True

    @contextmanager
    def glance(self, question: Question) -> Iterator[StoreGlance | None]:
        """See `Unbuilt`."""
        interpreter.leave_turn()  # It mostly waits for the database.
        with deadline.holding(self._turn):
            if self._built:
                yield None
                return
            self._quiet.clear()
            try:
                with glancing(
                    question,
                    self._scan,
                    self._rows,
                    model_id=self._model_id,
                    dimensions=self._dimensions,
                    settings=self._settings,
                    log=self._log,
                ) as found:
                    yield found
            finally:
                self._quiet.set()
                self._asked.set()

    def rebuilt(self, *, clean: bool = False) -> TenantIndex:
        """See `Cache`. The first question goes first."""
        self._built = False  # What was built before may have failed to catch up.
        self._asked.wait(FIRST_S)
        built = TenantIndex(
            self._to_be,
            _GivingWay(self._rows, self._quiet, self._stopping),
            self._model_id,
            self._dimensions,
            settings=self._settings,
            clean=clean,
            log=self._log,
        )
        self._built = True
        self.done.set()
        return built

    def interrupt(self) -> None:
        """See `Unbuilt`."""
        self._stopping.set()
        self._asked.set()
        self.done.set()

    def discard(self) -> None:
        """See `Cache`."""
        super().discard()
        scratch.remove(self._place)


class _GivingWay:
    """Implements `CorpusSource`: another, which waits before each page until it is quiet, as long
    as its patience lasts, and tells nothing more once it is stopped."""

    def __init__(
        self, source: CorpusSource, quiet: threading.Event, stopping: threading.Event
    ) -> None:
        self._source = source
        self._quiet = quiet
        self._stopping = stopping
        self._patience_s = _PATIENCE_S

    @property
    def layout(self) -> str:
        return self._source.layout

    def head(self) -> Position:
        return self._going().head()

    def changes_after(self, place: Position, limit: int) -> Sequence[FeedRow]:
        return self._going().changes_after(place, limit)

    def documents_after(self, doc_id: int, limit: int) -> Sequence[Document]:
        return self._going().documents_after(doc_id, min(limit, _PAGE))

    def documents_of(self, doc_ids: Sequence[int]) -> Sequence[Document]:
        return self._going().documents_of(doc_ids)

    def vectors_after(self, seq: int, limit: int) -> VectorBatch:
        return self._going().vectors_after(seq, limit)

    def vectors_of(self, doc_ids: Sequence[int]) -> VectorBatch:
        return self._going().vectors_of(doc_ids)

    def _going(self) -> CorpusSource:
        if self._patience_s > 0 and not self._quiet.is_set():
            start = time.monotonic()
            self._quiet.wait(self._patience_s)
            self._patience_s -= time.monotonic() - start
        if self._stopping.is_set():
            raise deadline.Abandoned
        return self._source
