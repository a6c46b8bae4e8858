"""The search of a tenant without an index: its store is looked through until one is built."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mneme_server.common import deadline, interpreter
from mneme_server.engine.corpus.cold_search import Scan
from mneme_server.engine.corpus.document import Document, DocumentFilter, MemoryKind
from mneme_server.engine.corpus.feed import START, FeedRow, Position
from mneme_server.engine.corpus.ports import (
    CorpusSource,
    MemoryReader,
    Question,
    Rows,
    Scores,
    Selection,
    VectorBatch,
    selected_row,
)
from mneme_server.engine.index import scratch
from mneme_server.engine.index.dense import best_of_each
from mneme_server.engine.index.graph import inner_products
from mneme_server.engine.index.prefix_match import best, matching
from mneme_server.engine.index.settings import IndexLog, IndexSettings
from mneme_server.engine.index.tenant_index import TenantIndex

MOST_VECTORS = 200_000
"""Memories up to which all vectors are compared: each is sent by the database, 1.5 kB as a rule.
Beyond, memories are found by their words."""
MOST_TEXTS = 500_000
"""Memories whose texts are looked through, the newest."""
CANDIDATES = 100
"""Memories that words and vectors propose each."""
_CANDIDATES_FILTERED = 2_000
"""Where the filter asks for what the store does not look at."""
NO_VECTORS = VectorBatch(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 0), np.float32))
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


class ColdTenantIndex(TenantIndex):
    """The index of a tenant that this server has never seen: its store answers until it is built.

    It is an empty one, which `LiveIndex` takes for one that failed, and has another built beside
    it. Implements `engine.corpus.cold_search.ColdIndex`.

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
            nothing = FewDocuments((), NO_VECTORS, source.layout, source.head())
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
    def cold_index(self) -> ColdTenantIndex | None:
        """See `ManagedIndex`."""
        return self

    @property
    def partial(self) -> bool:
        """It holds nothing of what there is."""
        return True

    @contextmanager
    def search_store(
        self,
        question: Question,
        pending: int,
        reading: Callable[[], AbstractContextManager[MemoryReader]],
    ) -> Iterator[ColdSearch | None]:
        """See `ColdIndex`."""
        interpreter.leave_turn()  # It mostly waits for the database.
        with deadline.holding(self._turn):
            if self._built:
                yield None
                return
            self._quiet.clear()
            try:
                with candidates_of(
                    question,
                    self._scan,
                    self._rows,
                    model_id=self._model_id,
                    dimensions=self._dimensions,
                    settings=self._settings,
                    log=self._log,
                ) as (index, count):
                    yield ColdSearch(question, index, count, pending, reading, self._scan)
            finally:
                self._quiet.set()
                self._asked.set()

    def rebuilt(self, *, clean: bool = False) -> TenantIndex:
        """See `Cache`. The first question goes first."""
        self._built = False  # What was built before may have failed to catch up.
        self._asked.wait(FIRST_S)
        built = TenantIndex(
            self._to_be,
            _PatientSource(self._rows, self._quiet, self._stopping),
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
        """See `ColdIndex`."""
        self._stopping.set()
        self._asked.set()
        self.done.set()

    def discard(self) -> None:
        """See `Cache`."""
        super().discard()
        scratch.remove(self._place)


class _PatientSource:
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


@contextmanager
def candidates_of(
    question: Question,
    scan: Scan,
    source: CorpusSource,
    *,
    model_id: str,
    dimensions: int,
    settings: IndexSettings,
    log: IndexLog,
) -> Iterator[tuple[TenantIndex, int]]:
    """Look a question up in the store and lend a small index of what was found by words and by
    meaning, which is searched as any other; and how many documents were looked through."""
    with ThreadPoolExecutor(1, thread_name_prefix="cold-search") as pool:
        reading = pool.submit(copy_context().run, _by_words, question, scan)
        near, cosines = _by_meaning(question, scan)
        passed, worded = reading.result()
    passing = np.isin(near, passed)
    meant = best(near[passing], cosines[passing], _wanted(question.filter))
    documents = scan.with_neighbours(sorted({*worded.tolist(), *meant.tolist()}))
    vectors = source.vectors_of([document.doc_id for document in documents])
    folder = scratch.new_folder(0)
    try:
        index = TenantIndex(
            folder,
            FewDocuments(documents, vectors, source.layout),
            model_id,
            dimensions,
            settings=settings,
            log=log,
        )
        try:
            index.abandon()
            yield index, passed.size
        finally:
            index.discard()
    finally:
        scratch.remove(folder)


@dataclass(frozen=True, slots=True)
class ColdSearch:
    """A search of candidates: what bears on the question, out of `count` documents in the store
    that its filter lets through. Implements `CorpusSearch`."""

    question: Question
    index: TenantIndex
    count: int
    pending: int
    reading_shown: Callable[[], AbstractContextManager[MemoryReader]]
    scan: Scan

    @property
    def whole(self) -> bool:
        """See `CorpusSearch`."""
        return False

    def count_of(self, selection: Selection) -> int:
        """See `CorpusSearch`: the selection is of the question's filter."""
        return self.count

    def has(self, kinds: Collection[MemoryKind]) -> bool:
        """See `CorpusSearch`."""
        return self.scan.has(kinds)

    def row_of(self, document: Document, filter_: DocumentFilter, selection: Selection) -> int:
        """See `CorpusSearch`. It may be stored, and is only no candidate yet."""
        if self.index.columns.rows_of(np.array([document.doc_id], np.int64))[0] < 0:
            self.index.add_documents([document])
            selection = self.index.select(filter_)
        return selected_row(self.index, document, selection)

    def hold_around(self, doc_ids: Sequence[int], reach: int) -> None:
        """See `CorpusSearch`."""
        near = self.scan.with_neighbours(doc_ids, reach)
        rows = self.index.columns.rows_of(np.array([one.doc_id for one in near], np.int64))
        self.index.add_documents([one for one, row in zip(near, rows, strict=True) if row < 0])


class FewDocuments:
    """Implements `CorpusSource`: some documents and their vectors, as there were at `head`."""

    def __init__(
        self,
        documents: Sequence[Document],
        vectors: VectorBatch,
        layout: str,
        head: Position = START,
    ) -> None:
        self.layout = layout
        self._documents = {document.doc_id: document for document in documents}
        self._vectors = vectors
        self._head = head

    def head(self) -> Position:
        """See `CorpusSource`."""
        return self._head

    def changes_after(self, place: Position, limit: int) -> Sequence[FeedRow]:
        """See `CorpusSource`."""
        return []

    def documents_after(self, doc_id: int, limit: int) -> Sequence[Document]:
        """See `CorpusSource`."""
        return [one for number, one in sorted(self._documents.items()) if number > doc_id][:limit]

    def documents_of(self, doc_ids: Sequence[int]) -> Sequence[Document]:
        """See `CorpusSource`."""
        return [self._documents[number] for number in doc_ids if number in self._documents]

    def vectors_after(self, seq: int, limit: int) -> VectorBatch:
        """See `CorpusSource`."""
        at = np.flatnonzero(self._vectors.seqs > seq)
        at = at[np.argsort(self._vectors.seqs[at])][:limit]
        return self._batch(at)

    def vectors_of(self, doc_ids: Sequence[int]) -> VectorBatch:
        """See `CorpusSource`."""
        at = np.flatnonzero(np.isin(self._vectors.doc_ids, list(doc_ids)))
        return self._batch(at)

    def _batch(self, at: Rows) -> VectorBatch:
        seqs, doc_ids, vectors = self._vectors
        return VectorBatch(seqs[at], doc_ids[at], vectors[at])


def _wanted(filter_: DocumentFilter) -> int:
    return _CANDIDATES_FILTERED if filter_.author else CANDIDATES


def _by_words(question: Question, scan: Scan) -> tuple[Rows, Rows]:
    """Return the documents that pass, and those whose words match best."""
    with closing(scan.texts(question.filter, MOST_TEXTS)) as pages:
        return matching(question.text, pages, _wanted(question.filter))


def _by_meaning(question: Question, scan: Scan) -> tuple[Rows, Scores]:
    """Return all documents that have a vector, and their cosines; none where they are too many."""
    ids, cosines = [np.empty(0, np.int64)], [np.empty(0, np.float32)]
    few = not scan.more_than(MOST_VECTORS)  # While the question's vector is being computed.
    vectors = question.vectors()
    if vectors is not None and few:
        (vector,) = vectors
        with closing(scan.vectors(vector.size)) as batches:
            for batch in batches:
                ids.append(batch.doc_ids)
                cosines.append(inner_products(vector, batch.vectors))
    return best_of_each(np.concatenate(ids), np.concatenate(cosines))
