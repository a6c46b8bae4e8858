"""A question looked up in the store itself, while there is no index: candidates by words and by
meaning, and a small index of these alone, which is searched as any other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from contextvars import copy_context
from dataclasses import dataclass

import numpy as np

from mneme_server.engine.corpus.document import Document, DocumentFilter
from mneme_server.engine.corpus.feed import START, FeedRow, Position
from mneme_server.engine.corpus.ports import CorpusSource, Rows, Scores, VectorBatch
from mneme_server.engine.corpus.scanning import Question, Scan
from mneme_server.engine.index import scratch
from mneme_server.engine.index.graph import inner_products
from mneme_server.engine.index.settings import IndexLog, IndexSettings
from mneme_server.engine.index.tenant_index import TenantIndex
from mneme_server.engine.index.word_starts import best, matching

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


@dataclass(frozen=True, slots=True)
class StoreGlance:
    """Implements `engine.corpus.scanning.Glance`."""

    index: TenantIndex
    count: int
    anything: bool
    scan: Scan

    def take_in(self, document: Document) -> None:
        """See `Glance`."""
        self.index.add_documents([document])

    def take_in_around(self, doc_ids: Sequence[int], reach: int) -> None:
        """See `Glance`."""
        near = self.scan.with_neighbours(doc_ids, reach)
        rows = self.index.columns.rows_of(np.array([one.doc_id for one in near], np.int64))
        self.index.add_documents([one for one, row in zip(near, rows, strict=True) if row < 0])


class Few:
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


@contextmanager
def glancing(
    question: Question,
    scan: Scan,
    source: CorpusSource,
    *,
    model_id: str,
    dimensions: int,
    settings: IndexSettings,
    log: IndexLog,
) -> Iterator[StoreGlance]:
    """Look a question up in the store and lend what was found."""
    with ThreadPoolExecutor(1, thread_name_prefix="glance") as pool:
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
            Few(documents, vectors, source.layout),
            model_id,
            dimensions,
            settings=settings,
            log=log,
        )
        try:
            index.abandon()
            count = passed.size
            anything = count > 0 or scan.has(question.filter.kinds)
            yield StoreGlance(index, count, anything, scan)
        finally:
            index.discard()
    finally:
        scratch.remove(folder)


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
    return np.concatenate(ids), np.concatenate(cosines)
