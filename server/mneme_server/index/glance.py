"""A question looked up in the store itself, while there is no index: candidates by words and by
meaning, and a small index of these alone, which is searched as any other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from contextvars import copy_context
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mneme_server.corpus.document import Document, DocumentFilter
from mneme_server.corpus.feed import START, FeedRow, Position
from mneme_server.corpus.ports import CorpusSource, Matrix, Rows, Scores, VectorBatch
from mneme_server.corpus.scanning import Question, Scan, Texts
from mneme_server.corpus.stopwords import STOP_WORDS
from mneme_server.index import bm25, scratch
from mneme_server.index.graph import inner_products
from mneme_server.index.log import Log
from mneme_server.index.settings import IndexSettings
from mneme_server.index.tenant_index import TenantIndex

MOST_VECTORS = 200_000
"""Memories up to which all vectors are compared: each is sent by the database, 1.5 kB as a rule.
Beyond, memories are found by their words."""
MOST_TEXTS = 500_000
"""Memories whose texts are looked through, the newest."""
CANDIDATES = 100
"""Memories that words and vectors propose each."""
_CANDIDATES_FILTERED = 2_000
"""Where the filter asks for what the store does not look at."""
_WORDS = 24
"""Words of a question that are looked for, the longest."""
_SURE = 4
"""Characters at a word's start that are always compared."""
_ENDING = 3
"""Characters at a longer word's end that may differ: what its other forms end with."""
_WORD = re.compile(r"\w+")

_Numbers = NDArray[np.int64]

NO_VECTORS = VectorBatch(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 0), np.float32))


@dataclass(frozen=True, slots=True)
class StoreGlance:
    """Implements `corpus.scanning.Glance`."""

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
    log: Log,
) -> Iterator[StoreGlance]:
    """Look a question up in the store and lend what was found."""
    with ThreadPoolExecutor(1, thread_name_prefix="glance") as pool:
        reading = pool.submit(copy_context().run, _by_words, question, scan)
        near, cosines = _by_meaning(question.vectors(), scan)
        texts, worded = reading.result()
    passing = np.isin(near, texts.doc_ids)
    meant = _best(near[passing], cosines[passing], _wanted(question.filter))
    documents = scan.with_neighbours(np.union1d(worded, meant).tolist())
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
            count = texts.doc_ids.size
            anything = count > 0 or scan.has(question.filter.kinds)
            yield StoreGlance(index, count, anything, scan)
        finally:
            index.discard()
    finally:
        scratch.remove(folder)


def _wanted(filter_: DocumentFilter) -> int:
    return _CANDIDATES_FILTERED if filter_.author else CANDIDATES


def _by_words(question: Question, scan: Scan) -> tuple[Texts, Rows]:
    """Return the texts that pass, and the documents whose words match best."""
    texts = scan.texts(question.filter, MOST_TEXTS)
    return texts, matching(question.text, texts, _wanted(question.filter))


def _by_meaning(vectors: Matrix | None, scan: Scan) -> tuple[Rows, Scores]:
    """Return all documents that have a vector, and their cosines; none where they are too many."""
    ids, cosines = [np.empty(0, np.int64)], [np.empty(0, np.float32)]
    if vectors is not None and not scan.more_than(MOST_VECTORS):
        (vector,) = vectors
        with closing(scan.vectors(vector.size)) as batches:
            for batch in batches:
                ids.append(batch.doc_ids)
                cosines.append(inner_products(vector, batch.vectors))
    return np.concatenate(ids), np.concatenate(cosines)


def _best(doc_ids: Rows, scores: NDArray[np.floating], count: int) -> Rows:
    if doc_ids.size > count:
        doc_ids = doc_ids[np.argpartition(-scores, count)[:count]]
    return doc_ids


def matching(query: str, texts: Texts, count: int) -> Rows:
    """Return up to `count` documents whose texts match the words of `query` best, by BM25 over the
    starts of words."""
    said = texts.joined.lower()  # What is no ASCII stays as it is.
    ends = np.cumsum(texts.sizes + 1)
    scores = np.zeros(ends.size)
    average = max(1.0, float(texts.sizes.sum()) / max(1, ends.size))
    norm = bm25.norm(texts.sizes.astype(np.float64), average)
    for forms in starts_of(query):
        places = np.concatenate([_places(said, form) for form in forms])
        if not places.size:
            continue
        times = np.bincount(np.searchsorted(ends, places, side="right"), minlength=ends.size)
        having = np.flatnonzero(times)
        found = times[having].astype(np.float64)
        scores[having] += bm25.idf(ends.size, having.size) * found / (found + norm[having])
    matched = np.flatnonzero(scores)
    return _best(texts.doc_ids[matched], scores[matched], count)


def starts_of(query: str) -> list[set[bytes]]:
    """Return how the words of a query begin, each in the spellings that texts may have."""
    words = dict.fromkeys(_WORD.findall(query.lower()))
    telling = [word for word in words if word not in STOP_WORDS] or list(words)
    telling = sorted(telling, key=len, reverse=True)[:_WORDS]
    starts = dict.fromkeys(word[: max(_SURE, len(word) - _ENDING)] for word in telling)
    return [
        {form.encode().lower() for form in (start, start.capitalize(), start.upper())}
        for start in starts
    ]


def _places(said: bytes, start: bytes) -> _Numbers:
    """Return where words begin so."""
    places, at = [], said.find(start)
    while at >= 0:
        places.append(at)
        at = said.find(start, at + 1)
    found = np.array(places, np.int64)
    if not start[:1].isalnum():  # Of what is no ASCII it is not known what begins a word.
        return found
    before = np.frombuffer(said, np.uint8)[np.maximum(found - 1, 0)]
    inside = _INSIDE[before] & (found > 0)
    return found[~inside]


_INSIDE = np.array([chr(code).isascii() and chr(code).isalnum() for code in range(256)])
"""Which bytes are letters or digits."""
