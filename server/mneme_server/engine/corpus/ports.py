"""Ports of the corpus: to storage, to the index that recall asks, and to who embeds texts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mneme_server.engine.corpus.document import Document, DocumentFilter, MemoryKind, MemoryView
from mneme_server.engine.corpus.feed import FeedRow, Position

Rows = NDArray[np.int64]
Scores = NDArray[np.float32]
Matrix = NDArray[np.float32]


class VectorBatch(NamedTuple):
    """Stored vectors, row by row: `seqs`, `doc_ids` (n,) int64; `vectors` (n, d) float32.

    A document has none, one of length one, or, where its text is long, one of the whole and one of
    each of its `common.passages`, in order, each less the most of what these have in common: those
    stand one after the other, under the same number.
    """

    seqs: NDArray[np.int64]
    doc_ids: NDArray[np.int64]
    vectors: Matrix

    @classmethod
    def of_texts(
        cls, seqs: Sequence[int] | Rows, doc_ids: Sequence[int] | Rows, many: Rows, vectors: Matrix
    ) -> VectorBatch:
        """Return the vectors of m documents, of each so `many` (m,), one document after another."""
        return cls(
            np.repeat(np.asarray(seqs, np.int64), many),
            np.repeat(np.asarray(doc_ids, np.int64), many),
            vectors,
        )


WHOLE = 0
"""Which of a text's vectors is that of the whole."""


class CorpusSource(Protocol):
    """What an index is built from: one tenant's documents and vectors in the database."""

    @property
    def layout(self) -> str:
        """Names what documents are made of what is stored: what an index kept of them is of use
        only under the same name."""
        ...

    def head(self) -> Position:
        """Return the newest row of the feed: how far a reader who begins now has come."""
        ...

    def changes_after(self, place: Position, limit: int) -> Sequence[FeedRow]:
        """Return up to `limit` rows of the feed after `place`, in order; none when it is the
        newest.

        Raises:
            LostPlace: there is no such row any more, or it bears another mark.
        """
        ...

    def documents_after(self, doc_id: int, limit: int) -> Sequence[Document]:
        """Return up to `limit` documents with a larger id, in order of id."""
        ...

    def documents_of(self, doc_ids: Sequence[int]) -> Sequence[Document]:
        """Return these documents, in any order; ids that are gone are left out."""
        ...

    def vectors_after(self, seq: int, limit: int) -> VectorBatch:
        """Return the vectors of up to `limit` documents with a larger sequence number, in order of
        it; of fewer, where they have many.

        Sequence numbers grow with every vector written and are never used again.
        """
        ...

    def vectors_of(self, doc_ids: Sequence[int]) -> VectorBatch:
        """Return all vectors of these documents, in any order."""
        ...


class MemoryReader(Protocol):
    """Memories as recall shows them: documents, and what their kinds tell of them."""

    @property
    def lost(self) -> int:
        """How many memories were left out so far because they are damaged."""
        ...

    def get_many(self, doc_ids: Sequence[int], *, bare: bool = False) -> Mapping[int, MemoryView]:
        """Return these memories by id of their documents, without contexts; `bare` ones without
        details.

        Those that are gone are left out.
        """
        ...

    def of_sources(self, kind: MemoryKind, source_ids: Sequence[str]) -> Mapping[str, MemoryView]:
        """Return memories of a kind by the ids of their sources, likewise."""
        ...


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows that a filter lets through: `mask` (rows,) bool, `count` of them.

    `everything` is true when the mask holds every live row, so that a search need not look at it.
    `listed` are the rows in order, where they are known without a look at the whole mask.
    """

    mask: NDArray[np.bool_]
    count: int
    everything: bool
    listed: Rows | None = None

    @property
    def rows(self) -> Rows:
        """The rows in order."""
        return np.flatnonzero(self.mask) if self.listed is None else self.listed


class Hits(NamedTuple):
    """Rows found, the best first, each once, with their scores."""

    rows: Rows
    scores: Scores


NO_HITS = Hits(np.empty(0, np.int64), np.empty(0, np.float32))


class WordEvidence(NamedTuple):
    """How far the words of a query are to be found in what is selected.

    Words are weighted by how rare they are in all texts (idf).
    """

    telling: bool
    """Whether it has words besides those that only say how it is put."""
    attainable: float
    """BM25 that no text can exceed for it."""
    occurring: float
    """Share of its words' weight that some selected text holds, 0 to 1."""
    identified: float
    """Share of the identifiers whose words one selected text holds together, 0 to 1."""
    missing: float = 0.0
    """Share of its words' weight that numbers in identifiers have which no selected text holds."""


NO_EVIDENCE = WordEvidence(telling=False, attainable=0.0, occurring=0.0, identified=0.0)
"""Nothing is known of the words."""


class CorpusColumns(Protocol):
    """The documents' attributes as arrays by row.

    A row is a document's place in these arrays; it never changes while the index is open. The
    arrays are views that may be longer than `size` allows to read; rows below `size` are valid.
    `previous` and `next` hold the row of the document before and after in the same session, or -1.
    `kind` and `session` number kinds of memory and sessions; -1 for no session. `words` is the
    number of words of the text, `asks` whether it holds a question mark; `spoken` and `failed` are
    the documents' own. `author` numbers whoever speaks: the document's agent, else a leading label
    ("Ann: ...") of what is spoken; -1 for none. `role` numbers who speaks, as `role_number` does;
    -1 when nobody said. Equal texts have equal `fingerprint`s; `shape` is the documents' own.
    """

    size: int
    doc_id: NDArray[np.int64]
    kind: NDArray[np.uint8]
    session: NDArray[np.int32]
    position: NDArray[np.int64]
    previous: NDArray[np.int32]
    next: NDArray[np.int32]
    timestamp_us: NDArray[np.int64]
    importance: NDArray[np.uint8]
    words: NDArray[np.int32]
    asks: NDArray[np.bool_]
    spoken: NDArray[np.bool_]
    failed: NDArray[np.bool_]
    fingerprint: NDArray[np.int64]
    author: NDArray[np.int32]
    role: NDArray[np.int32]
    shape: NDArray[np.int64]

    def rows_of(self, doc_ids: NDArray[np.int64]) -> Rows:
        """Return the row of each document; -1 for ids that are unknown or removed."""
        ...

    def role_number(self, role: str) -> int:
        """Return the number of a role in `role`; one that no row has when nobody has it."""
        ...

    def session_words(self, sessions: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return how many words each of the numbered sessions holds; 0 for -1, no session."""
        ...

    def authors_named_by(self, words: Collection[str]) -> Sequence[int]:
        """Return the numbers of the authors whose names have one of these words, in lower case."""
        ...


class CorpusIndex(Protocol):
    """One tenant's dense and lexical index. Thread-safe."""

    @property
    def columns(self) -> CorpusColumns:
        """The documents' attributes."""
        ...

    @property
    def newest_us(self) -> int:
        """The time of the newest document; 0 without documents."""
        ...

    @property
    def partial(self) -> bool:
        """Whether a part failed: searches may find less than there is, until another is built."""
        ...

    def select(self, filter_: DocumentFilter) -> Selection:
        """Return the rows that `filter_` lets through."""
        ...

    def alike(self, row: int) -> Rows:
        """Return the rows, in order, that have the row's shape or, where it has none, its text."""
        ...

    def search_dense(
        self, query: Matrix, k: int, selection: Selection, *, exact: bool = True
    ) -> Hits:
        """Return the `k` selected rows whose vectors are nearest to `query` (d,).

        Scores are cosines. Those of a large index may come from quantised vectors (error below
        0.01); with `exact` the best are computed from the vectors as stored, which takes a query
        of the database.
        """
        ...

    def search_lexical(
        self, query: str, k: int, selection: Selection, *, context_weight: float = 0.0
    ) -> Hits:
        """Return the `k` selected rows that match the words of `query` best.

        The score is BM25 over the text plus `context_weight` times BM25 over the text together
        with the document's context, each field with its own statistics.

        Every document that was added before the call is searched.
        """
        ...

    def word_evidence(
        self, query: str, selection: Selection, identifiers: Sequence[str]
    ) -> WordEvidence:
        """Return how far the words of `query` are to be found in the selected texts.

        `identifiers` are the names, paths and codes in it.
        """
        ...

    def similarities(self, query: Matrix, rows: Rows) -> Scores:
        """Return the cosine of `query` (d,) with each row's vector, the best of several.

        NaN for rows without one. May be computed from quantised vectors (error below 0.01).
        """
        ...

    def each_similarity(self, query: Matrix, row: int) -> Scores:
        """Return the cosines of `query` (d,) with all vectors (n,) of a row, likewise: that of the
        whole text, and, where it is long, those of its passages."""
        ...

    def add_documents(self, documents: Sequence[Document]) -> None:
        """Add documents; they are found by their words from now on. Known ones are replaced."""
        ...

    def add_vectors(self, batch: VectorBatch) -> None:
        """Add vectors of documents that were added before; known ones are replaced."""
        ...

    def remove(self, doc_ids: Sequence[int]) -> None:
        """Remove documents and their vectors. Unknown ids are ignored."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: `vectors` waits for that of the text (1, d); None where there is none."""

    text: str
    filter: DocumentFilter
    vectors: Callable[[], Matrix | None]


class CorpusSearch(Protocol):
    """What one question is searched in: a tenant's index or, while there is none yet, one of what
    its store has that bears on the question."""

    @property
    def whole(self) -> bool:
        """Whether the index holds all there is, not candidates alone."""
        ...

    @property
    def index(self) -> CorpusIndex:
        """The index, the same throughout. Raises Unavailable as `OpenTenant.index` does."""
        ...

    @property
    def pending(self) -> int:
        """Documents that wait for their embedding: those may be missed."""
        ...

    def count_of(self, selection: Selection) -> int:
        """Return how many documents there are of those that a selection of the index is of."""
        ...

    def has(self, kinds: Collection[MemoryKind]) -> bool:
        """Tell whether there are documents of these kinds; of any, where none are named."""
        ...

    def row_of(self, document: Document, filter_: DocumentFilter, selection: Selection) -> int:
        """Return the row of a document that is stored; -1 where the filter, which made the
        selection, does not let it through."""
        ...

    def hold_around(self, doc_ids: Sequence[int], reach: int) -> None:
        """Have the index hold what is up to `reach` places from these in their sessions, too."""
        ...

    def reading_shown(self) -> AbstractContextManager[MemoryReader]:
        """Lend what reads memories as they are shown: as fresh as the index, or more."""
        ...


def selected_row(index: CorpusIndex, document: Document, selection: Selection) -> int:
    """Return the row of a document that is selected; -1 of any other."""
    row = int(index.columns.rows_of(np.array([document.doc_id]))[0])
    return row if 0 <= row < len(selection.mask) and selection.mask[row] else -1


class TextEmbedder(Protocol):
    """Embeds texts while a caller waits, if that can be done soon."""

    def embed(self, texts: Sequence[str]) -> Matrix | None:
        """Return unit vectors (n, d); None when they are not to be had soon: what is stored without
        is queued."""
        ...
