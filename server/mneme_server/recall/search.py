"""Recall: gather candidates from both indexes, measure them, rank them, show the best."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum

import numpy as np

from mneme_server.common.canonical import JsonObject
from mneme_server.common.clock import MICROSECONDS
from mneme_server.corpus.document import NORMAL_IMPORTANCE, Document, DocumentFilter, Scope
from mneme_server.corpus.ports import CorpusIndex, Hits, Matrix, Rows, Selection
from mneme_server.corpus.tenant import TenantMemory, Tenants
from mneme_server.recall.dates import date_match, named_dates
from mneme_server.recall.ports import QueryEmbedder, RecallUnit
from mneme_server.recall.ranking import (
    CONTEXT_WEIGHT,
    TERMS,
    Candidates,
    Floats,
    Weights,
    contributions,
    measure,
)

CANDIDATES_PER_SIDE = 200
"""Memories that each index proposes; their neighbours come on top. More changes LoCoMo's recall by
less than 0.002."""
LEXICAL_HALF = 10.0
"""BM25 at which the score of a LEXICAL result is 0.5."""
_DAY_US = 86_400 * MICROSECONDS
_DAYS_AROUND_A_DATE = 3
_WORD = re.compile(r"[^\W_]+")
_SHORTEST_NAME = 3


class Mode(IntEnum):
    """How memories are searched. The numbers are those of `mneme.v1.RecallMode`."""

    HYBRID = 1
    DENSE = 2
    LEXICAL = 3


class Outcome(Enum):
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
    """What was recalled. `total` counts the candidates that reach `min_score`."""

    results: Sequence[Recalled]
    outcome: Outcome
    searched_count: int
    total: int = 0
    pending_count: int = 0
    capped: bool = False


@dataclass(frozen=True, slots=True)
class _Ranked:
    """Candidates with their scores, in no order. `terms` (terms, n) and `added` are for HYBRID."""

    rows: Rows
    scores: Floats
    similarity: Floats
    capped: bool
    terms: Floats | None = None
    added: Floats | None = None


@dataclass(frozen=True, slots=True)
class Recall:
    """Recalls memories."""

    tenants: Tenants[RecallUnit]
    embedder: QueryEmbedder

    def __call__(self, tenant_id: str, query: RecallQuery) -> Answer:
        """Return what bears on the query, the best first; equal scores by time, then by id.

        Raises:
            EmbeddingError: the embedding backend failed.
        """
        with self.tenants.open(tenant_id) as memory:
            selection = memory.index.select(query.filter)
            if not selection.count:
                return Answer((), self._why_nothing(memory.index, query.filter), 0)
            ranked = self._rank(memory.index, query, selection)
            return _answer(memory, query, selection, ranked)

    def _rank(self, index: CorpusIndex, query: RecallQuery, selection: Selection) -> _Ranked:
        if query.mode == Mode.LEXICAL:
            hits = index.search_lexical(query.text, CANDIDATES_PER_SIDE, selection)
            scores = hits.scores.astype(np.float64)
            unknown = np.full(len(hits.rows), np.nan)
            return _Ranked(hits.rows, scores / (scores + LEXICAL_HALF), unknown, _full(hits))
        vector = self.embedder.embed([query.text])[0]
        dense = index.search_dense(vector, CANDIDATES_PER_SIDE, selection)
        if query.mode == Mode.DENSE:
            cosine = dense.scores.astype(np.float64)
            return _Ranked(dense.rows, np.clip(cosine, 0.0, 1.0), cosine, _full(dense))
        return _hybrid(index, query, selection, vector, dense)

    @staticmethod
    def _why_nothing(index: CorpusIndex, filter_: DocumentFilter) -> Outcome:
        stored = index.select(DocumentFilter(scopes=filter_.scopes))
        return Outcome.NOTHING_MATCHES_FILTERS if stored.count else Outcome.NOTHING_STORED


def _hybrid(
    index: CorpusIndex, query: RecallQuery, selection: Selection, vector: Matrix, dense: Hits
) -> _Ranked:
    words = index.search_lexical(
        query.text, CANDIDATES_PER_SIDE, selection, context_weight=CONTEXT_WEIGHT
    )
    lexical = [words, *_on_named_days(index, query, selection)]
    candidates = _with_neighbours(
        index, np.concatenate([dense.rows, *(hits.rows for hits in lexical)]), selection
    )
    measured = _measure(index, query.text, vector, candidates, lexical)
    terms = measure(measured)
    added = contributions(terms, query.weights)
    highest = query.weights.highest()
    scores = (
        np.clip(added.sum(axis=0) / highest, 0.0, 1.0) if highest else np.zeros(len(candidates))
    )
    capped = _full(dense) or _full(words)
    return _Ranked(candidates, scores, measured.cosine, capped, terms, added)


def _on_named_days(index: CorpusIndex, query: RecallQuery, selection: Selection) -> list[Hits]:
    """Search the days that the query names once more, so that what happened then is looked at."""
    found = []
    times = index.columns.timestamp_us
    for named in named_dates(query.text):
        ordinal = named.ordinal()
        if ordinal is None:
            continue
        noon_us = (ordinal - _EPOCH_ORDINAL) * _DAY_US + _DAY_US // 2
        span = _DAYS_AROUND_A_DATE * _DAY_US + _DAY_US // 2
        near = np.abs(times[: len(selection.mask)] - noon_us) <= span
        mask = selection.mask & near
        count = int(np.count_nonzero(mask))
        if count:
            days = Selection(mask, count, everything=False)
            found.append(
                index.search_lexical(
                    query.text, CANDIDATES_PER_SIDE, days, context_weight=CONTEXT_WEIGHT
                )
            )
    return found


def _with_neighbours(index: CorpusIndex, rows: Rows, selection: Selection) -> Rows:
    """Return the rows and, where the filter lets them through, those just before and after them."""
    found = np.unique(rows)
    columns = index.columns
    near = np.concatenate([columns.previous[found], columns.next[found]]).astype(np.int64)
    near = near[(near >= 0) & (near < len(selection.mask))]
    return np.union1d(found, near[selection.mask[near]])


def _measure(
    index: CorpusIndex, text: str, vector: Matrix, rows: Rows, lexical: Sequence[Hits]
) -> Candidates:
    columns = index.columns
    previous, following = columns.previous[rows], columns.next[rows]
    # One gather for the candidates and their neighbours, each vector once.
    needed, place = np.unique(np.concatenate([rows, previous, following]), return_inverse=True)
    cosine = np.where(needed >= 0, index.similarities(vector, np.maximum(needed, 0)), np.nan)
    own, before, after = cosine[place].astype(np.float64).reshape(3, len(rows))
    bm25 = np.zeros(len(rows))
    for hits in lexical:
        at = np.searchsorted(rows, hits.rows)
        bm25[at] = np.maximum(bm25[at], hits.scores)
    age_us = index.newest_us - columns.timestamp_us[rows]
    return Candidates(
        lexical=bm25,
        cosine=own,
        cosine_previous=before,
        cosine_next=after,
        previous_asks=(previous >= 0) & columns.asks[np.maximum(previous, 0)],
        session=columns.session[rows].astype(np.int64),
        words=columns.words[rows].astype(np.float64),
        author_named=_author_named(index, text, rows),
        date_match=date_match(named_dates(text), columns.timestamp_us[rows]),
        importance=(columns.importance[rows].astype(np.float64) - NORMAL_IMPORTANCE) / 4,
        age_days=np.maximum(age_us, 0) / _DAY_US,
    )


def _author_named(
    index: CorpusIndex, text: str, rows: Rows
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    asked = {word for word in _WORD.findall(text.lower()) if len(word) >= _SHORTEST_NAME}
    author = index.columns.author[rows]
    names = index.columns.authors
    named = [
        number
        for number in np.unique(author).tolist()
        if number >= 0 and asked.intersection(_WORD.findall(names[number].lower()))
    ]
    return np.isin(author, named)


def _answer(
    memory: TenantMemory[RecallUnit], query: RecallQuery, selection: Selection, ranked: _Ranked
) -> Answer:
    index = memory.index
    enough = np.flatnonzero(ranked.scores >= query.min_score)
    times, doc_ids = index.columns.timestamp_us, index.columns.doc_id
    rows = ranked.rows[enough]
    # Ties: the newest first, then the latest written, so that the order is always the same.
    order = np.lexsort((-doc_ids[rows], -times[rows], -np.round(ranked.scores[enough], 9)))
    best = enough[order[: query.limit]]
    wanted = [int(doc_id) for doc_id in doc_ids[ranked.rows[best]]]
    with memory.read() as unit:
        documents = unit.memories.documents_of(wanted)
        details = _details(unit, documents)
        pending = memory.pending
    results = [
        Recalled(
            document=documents[doc_id],
            score=float(ranked.scores[place]),
            similarity=_known(ranked.similarity[place]),
            details=details.get((documents[doc_id].scope, documents[doc_id].source_id), {}),
            terms=_terms(ranked, int(place)) if query.explain else (),
        )
        for doc_id, place in zip(wanted, best, strict=True)
        if doc_id in documents  # It may have been removed since it was found.
    ]
    return Answer(
        results=results,
        outcome=Outcome.FOUND if results else Outcome.NOTHING_ABOVE_MIN_SCORE,
        searched_count=selection.count,
        total=len(enough),
        pending_count=pending,
        capped=ranked.capped,
    )


def _details(
    unit: RecallUnit, documents: Mapping[int, Document]
) -> dict[tuple[Scope, str], JsonObject]:
    found: dict[tuple[Scope, str], JsonObject] = {}
    for scope in {document.scope for document in documents.values()}:
        ids = [document.source_id for document in documents.values() if document.scope == scope]
        for source_id, details in unit.memories.details_of(scope, ids).items():
            found[scope, source_id] = details
    return found


def _terms(ranked: _Ranked, place: int) -> list[Term]:
    if ranked.terms is None or ranked.added is None:
        return []
    terms = [
        Term(name, float(ranked.terms[i, place]), float(ranked.added[i, place]))
        for i, name in enumerate(TERMS)
        if ranked.added[i, place]
    ]
    return sorted(terms, key=lambda term: -abs(term.contribution))


def _known(cosine: float) -> float | None:
    return None if np.isnan(cosine) else float(cosine)


def _full(hits: Hits) -> bool:
    return len(hits.rows) >= CANDIDATES_PER_SIDE


_EPOCH_ORDINAL = 719_163  # date(1970, 1, 1).toordinal()
