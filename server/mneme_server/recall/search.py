"""Recall: search as asked, and show the best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from functools import partial
from typing import TypeAlias

import numpy as np

from mneme_server.common.canonical import JsonObject
from mneme_server.corpus.document import Document, DocumentFilter
from mneme_server.corpus.ports import CorpusIndex, Hits, Matrix, Selection
from mneme_server.corpus.tenant import OpenTenant, OpenTenants
from mneme_server.recall.hybrid import CANDIDATES_PER_SIDE, Ranked, full, search_hybrid
from mneme_server.recall.ports import QueryEmbedder, RecallUnit, SoonEmbedder
from mneme_server.recall.ranking import TERMS, Floats, Weights, ranked
from mneme_server.runtime.foreground import Foreground, Size

_Embedding: TypeAlias = Callable[[], Matrix | None]

LEXICAL_HALF = 10.0
"""BM25 at which the score of a LEXICAL result is 0.5."""

LONG_QUERY = 500
"""Characters of a query beyond which it counts as large: it has a hundred words and more to search
by, and takes the embedding model many times as long as a question does."""


class Mode(IntEnum):
    """How memories are searched. The numbers are those of `mneme.v1.RecallMode`."""

    HYBRID = 1
    DENSE = 2
    LEXICAL = 3


class RecallOutcome(Enum):
    """Why the results are what they are; the names are those of `mneme.v1.RecallOutcome`."""

    FOUND = "found"
    NOTHING_STORED = "nothing stored"
    NOTHING_MATCHES_FILTERS = "nothing matches the filters"
    NOTHING_ABOVE_MIN_SCORE = "nothing above min_score"


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """What is asked."""

    text: str
    filter: DocumentFilter = field(default_factory=DocumentFilter)
    limit: int = 10
    min_score: float = 0.0
    mode: Mode = Mode.HYBRID
    weights: Weights = field(default_factory=Weights)
    explain: bool = False


@dataclass(frozen=True, slots=True)
class Term:
    """One term of a score: what was measured, and what it adds to the sum that ranks."""

    name: str
    value: float
    contribution: float


@dataclass(frozen=True, slots=True)
class Recalled:
    """One result. `score` is 0 to 1; `similarity` is the cosine, None when it is not known."""

    document: Document
    score: float
    similarity: float | None
    details: JsonObject
    terms: Sequence[Term] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What was recalled. `total` counts the candidates that reach `min_score`.

    It is `partial` when an index failed or a memory is damaged: something may be missing.
    """

    results: Sequence[Recalled]
    outcome: RecallOutcome
    searched_count: int
    total: int = 0
    pending_count: int = 0
    capped: bool = False
    words_only: bool = False
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Recall:
    """Recalls memories.

    With `soon`, a HYBRID query that cannot be embedded soon is answered by its words alone.
    """

    tenants: OpenTenants[RecallUnit]
    embedder: QueryEmbedder
    foreground: Foreground = field(default_factory=Foreground)
    soon: SoonEmbedder | None = None

    def __call__(self, tenant_id: str, query: RecallQuery) -> Answer:
        """Return what bears on the query, the best first; equal scores by time, then by id.

        Raises:
            EmbeddingError: the embedding backend failed, and the query needs its vector.
        """
        size = Size.SMALL if len(query.text) <= LONG_QUERY else Size.LARGE
        with self.tenants.open(tenant_id) as memory:
            embedding = self._begin_embedding(query, size)  # Before it stands in line.
            with self.foreground.computing(size):
                # The same throughout: another may take its place meanwhile, with other rows.
                index = memory.index
                selection = index.select(query.filter)
                if not selection.count:
                    return Answer((), self._why_nothing(index, query.filter), 0)
                found = _rank(index, query, embedding, selection)
                return _answer(memory, index, query, selection, found)

    def _begin_embedding(self, query: RecallQuery, size: Size) -> _Embedding:
        if query.mode == Mode.LEXICAL:
            return lambda: None
        can_do_without = query.mode == Mode.HYBRID and self.soon is not None
        embedder = self.soon if self.soon is not None and can_do_without else self.embedder
        return partial(self.foreground.wait_outside, embedder.begin([query.text]), size)

    @staticmethod
    def _why_nothing(index: CorpusIndex, filter_: DocumentFilter) -> RecallOutcome:
        stored = index.select(DocumentFilter(kinds=filter_.kinds))
        return (
            RecallOutcome.NOTHING_MATCHES_FILTERS if stored.count else RecallOutcome.NOTHING_STORED
        )


def _rank(
    index: CorpusIndex,
    query: RecallQuery,
    embedding: _Embedding,
    selection: Selection,
) -> Ranked:
    if query.mode == Mode.LEXICAL:
        hits = index.search_lexical(query.text, CANDIDATES_PER_SIDE, selection)
        bm25 = hits.scores.astype(np.float64)
        unknown = np.full_like(bm25, np.nan)
        return _alone(index, hits, bm25, bm25 / (bm25 + LEXICAL_HALF), unknown)
    if query.mode == Mode.DENSE:
        vectors = embedding()
        assert vectors is not None
        hits = index.search_dense(vectors[0], CANDIDATES_PER_SIDE, selection)
        cosine = hits.scores.astype(np.float64)
        return _alone(index, hits, cosine, np.clip(cosine, 0.0, 1.0), cosine)
    return search_hybrid(index, query.text, embedding, selection, query.weights)


def _alone(
    index: CorpusIndex, hits: Hits, basis: Floats, scores: Floats, similarity: Floats
) -> Ranked:
    """Return the hits of one index, ranked by `basis`."""
    columns = index.columns
    order = ranked(basis, columns.timestamp_us[hits.rows], columns.doc_id[hits.rows])
    return Ranked(hits.rows[order], scores[order], similarity[order], full(hits))


def _answer(
    memory: OpenTenant[RecallUnit],
    index: CorpusIndex,
    query: RecallQuery,
    selection: Selection,
    candidates: Ranked,
) -> Answer:
    enough = int(np.count_nonzero(candidates.scores >= query.min_score))
    best = range(min(enough, query.limit))
    wanted = index.columns.doc_id[candidates.rows[: len(best)]].tolist()
    with memory.read() as unit:
        memories = unit.memories.get_many(wanted)
        pending, lost = memory.pending, unit.memories.lost
    results = [
        Recalled(
            document=memories[doc_id].document,
            score=float(candidates.scores[place]),
            similarity=_known(candidates.similarity[place]),
            details=memories[doc_id].details,
            terms=_terms(candidates, place, query.weights) if query.explain else (),
        )
        for doc_id, place in zip(wanted, best, strict=True)
        if doc_id in memories  # It may have been removed since it was found.
    ]
    return Answer(
        results=results,
        outcome=RecallOutcome.FOUND if results else RecallOutcome.NOTHING_ABOVE_MIN_SCORE,
        searched_count=selection.count,
        total=enough,
        pending_count=pending,
        capped=candidates.capped,
        words_only=query.mode == Mode.HYBRID and candidates.words_only,
        partial=lost > 0 or index.partial,
    )


def _terms(candidates: Ranked, place: int, weights: Weights) -> list[Term]:
    if candidates.terms is None:
        return []
    values = candidates.terms[:, place]
    added = weights.array() * values
    terms = [
        Term(name, float(values[i]), float(added[i])) for i, name in enumerate(TERMS) if added[i]
    ]
    return sorted(terms, key=lambda term: -abs(term.contribution))


def _known(cosine: float) -> float | None:
    return None if np.isnan(cosine) else float(cosine)
