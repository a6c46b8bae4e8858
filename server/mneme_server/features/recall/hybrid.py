"""The hybrid search: candidates from both indexes and from beside them, measured and summed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.clock import DAY_US
from mneme_server.engine.corpus.document import NORMAL_IMPORTANCE
from mneme_server.engine.corpus.ports import (
    CorpusIndex,
    Hits,
    Matrix,
    Rows,
    Selection,
    WordEvidence,
)
from mneme_server.features.recall.confidence import USUAL, CosineScale
from mneme_server.features.recall.dates import date_match
from mneme_server.features.recall.query import QueryReading, by_named_day, read_query_for
from mneme_server.features.recall.ranking import (
    CONTEXT_WEIGHT,
    NO_SESSION,
    Candidates,
    Floats,
    Ints,
    RankingWeights,
    evidence,
    firsts,
    measure,
    pages_among,
    put_back,
    ranked,
    repeats,
    scores,
    total,
)
from mneme_server.features.recall.relative import NOW, AsOf

CANDIDATES_PER_SIDE = 100
"""Memories that each index proposes; their neighbours come on top. More changes LoCoMo's recall by
less than 0.004, and costs a third of the time."""
_FEW_AUTHORS = 8
_NOBODY = -1
_LAST = -1
NO_ROWS: Rows = np.empty(0, np.int64)

_Links = NDArray[np.int32]
_Rows = Rows | _Links


@dataclass(frozen=True, slots=True)
class Ranked:
    """Candidates, the best first: rows, scores and cosines (n,), NaN where there is none.

    `terms` (terms, n) are what the scores are made of, before weighting, `order` the place of each
    candidate in them, and `weights` those that they got; None for other modes. `words_only` tells
    that the query had no vector.
    """

    rows: Rows
    scores: Floats
    similarity: Floats
    capped: bool
    terms: Floats | None = None
    order: Ints | None = None
    weights: RankingWeights | None = None
    words_only: bool = False
    totals: Floats | None = None
    """The sums (n,), where there are terms."""
    evidence: float = 0.0
    """How well the best of them matches at all, 0 to 1, where there are terms."""
    highest: float = 0.0
    """The sum that a perfect memory would get, where there are terms."""
    of_named_day: bool = False
    """Whether the query asks for days alone, and one of them is of those."""


@dataclass(frozen=True, slots=True)
class OneSided:
    """What one of the indexes found: its hits, what these are ranked by, their scores and their
    cosines, (n,), NaN where there is none."""

    hits: Hits
    basis: Floats
    scores: Floats
    similarity: Floats


@dataclass(frozen=True, slots=True)
class EventSums:
    """What the events of the candidates' sessions come to: `sums` (n,), and their evidence."""

    sums: Floats
    evidence: float


@dataclass(frozen=True, slots=True)
class CandidateSet:
    """Candidates before they are ranked: rows (n,) in order, and what is known of them."""

    reading: QueryReading
    rows: Rows
    times_us: Ints
    candidates: Candidates
    cosine: Floats
    """As the model has it, (n,)."""
    capped: bool
    words_only: bool
    events: EventSums | None = None
    """Of summaries of sessions: what these hold."""


def search_hybrid(
    index: CorpusIndex,
    query: str,
    embedding: Callable[[], Matrix | None],
    selection: Selection,
    *,
    words: Callable[[], WordEvidence],
    scale: CosineScale = USUAL,
    as_of: AsOf = NOW,
) -> CandidateSet:
    """Return what bears on `query`, asked `as_of` some day.

    `embedding` waits for its vector (1, d), `words` tells how far its words are to be found.

    Without a vector, memories rank and score as those do that are not embedded yet.

    Words are searched while the query is being embedded.
    """
    reading = read_query_for(index, query, selection, as_of)
    lexical = by_words(index, query, reading, selection)
    vectors = embedding()
    vector = None if vectors is None else vectors[0]
    return gather(index, reading, vector, lexical, selection, words=words, scale=scale)


def by_words(
    index: CorpusIndex,
    query: str,
    reading: QueryReading,
    selection: Selection,
    *,
    count: int = CANDIDATES_PER_SIDE,
) -> Sequence[Hits]:
    """Search the words of the query, up to `count`: everywhere, and around each day it names."""
    everywhere = _by_words(index, query, selection, count)
    days = by_named_day(
        index, reading, selection, partial(_by_words, index, query), CANDIDATES_PER_SIDE
    )
    return [everywhere, *days]


def gather(
    index: CorpusIndex,
    reading: QueryReading,
    vector: Matrix | None,
    lexical: Sequence[Hits],
    selection: Selection,
    *,
    words: Callable[[], WordEvidence],
    scale: CosineScale = USUAL,
    count: int = CANDIDATES_PER_SIDE,
    more: Rows = NO_ROWS,
) -> CandidateSet:
    """Return the candidates: what the words found, up to `count` that are near by meaning, the
    neighbours of all these, and the rows `more`. `scale` is that of the model's cosines."""
    dense = _by_meaning(index, vector, selection, count)
    near = np.concatenate([dense.rows, *(hits.rows for hits in lexical)])
    rows = _with_neighbours(index, near, selection)
    if more.size:
        rows = _distinct(rows, more)
    times_us = index.columns.timestamp_us[rows]
    candidates, cosine = _candidates(
        index,
        reading,
        vector,
        rows,
        times_us=times_us,
        lexical=lexical,
        words=words,
        scale=scale,
        size=len(selection.mask),
    )
    return CandidateSet(
        reading=reading,
        rows=rows,
        times_us=times_us,
        candidates=candidates,
        cosine=cosine,
        capped=full(dense) or full(lexical[0]),
        words_only=vector is None,
    )


def fuse(index: CorpusIndex, found: CandidateSet | OneSided, weights: RankingWeights) -> Ranked:
    """Return what was found, the best first: by the sum of its terms or, where one index alone was
    searched, by what that has it ranked by."""
    if isinstance(found, OneSided):
        return _one_sided(index, found)
    return _summed(index, found, weights)


def _one_sided(index: CorpusIndex, found: OneSided) -> Ranked:
    columns, rows = index.columns, found.hits.rows
    order = ranked(found.basis, columns.timestamp_us[rows], columns.doc_id[rows])
    return Ranked(rows[order], found.scores[order], found.similarity[order], full(found.hits))


def _summed(index: CorpusIndex, found: CandidateSet, weights: RankingWeights) -> Ranked:
    rows, candidates, reading, events = found.rows, found.candidates, found.reading, found.events
    weights = fitted(found, weights)
    terms = measure(candidates, None if events is None else events.sums)
    matches = evidence(candidates, reading.words)
    day = float(candidates.date_match.max(initial=0.0)) if reading.days_alone else 0.0
    matches = max(matches, day)
    if events is not None:
        matches = max(matches, events.evidence)
    totals, order = _order(index, found, terms, weights)
    highest = weights.highest(
        asks=reading.asks,
        dated=bool(reading.dates),
        named=bool(candidates.author_named.any()),
        failure=reading.failure,
        summed=events is not None,
    )
    return Ranked(
        rows=rows[order],
        scores=scores(totals, highest, matches)[order],
        similarity=found.cosine[order],
        capped=found.capped,
        terms=terms,
        order=order,
        weights=weights,
        words_only=found.words_only,
        totals=totals[order],
        evidence=matches,
        highest=highest,
        of_named_day=day == 1.0,
    )


def fitted(found: CandidateSet, weights: RankingWeights) -> RankingWeights:
    """Return the weights for these candidates of this query."""
    weights = weights.fitting(pages_among(found.candidates), found.reading.identified)
    return weights.by_day() if found.reading.days_alone else weights


def full(hits: Hits) -> bool:
    """Whether there may be more than these."""
    return len(hits.rows) >= CANDIDATES_PER_SIDE


def _order(
    index: CorpusIndex, found: CandidateSet, terms: Floats, weights: RankingWeights
) -> tuple[Floats, Ints]:
    """Return the sums of the candidates and their places by rank, repeated texts put back."""
    columns, rows, times = index.columns, found.rows, found.times_us
    doc_ids = columns.doc_id[rows]
    totals = total(terms, weights)
    order = ranked(totals, times, doc_ids)
    # Eight bits less of a hash of the text, and its kind of memory.
    texts = (columns.fingerprint[rows] << 8) | columns.kind[rows]
    repeated = repeats(order, texts)
    if repeated.size:
        put_back(repeated, terms, totals, weights)
        order = ranked(totals, times, doc_ids)
    return totals, order


def _by_meaning(
    index: CorpusIndex, vector: Matrix | None, selection: Selection, count: int
) -> Hits:
    if vector is None:
        return Hits(np.empty(0, np.int64), np.empty(0, np.float32))
    return index.search_dense(vector, count, selection, exact=False)


def _by_words(index: CorpusIndex, query: str, selection: Selection, count: int) -> Hits:
    return index.search_lexical(query, count, selection, context_weight=CONTEXT_WEIGHT)


def _with_neighbours(index: CorpusIndex, rows: Rows, selection: Selection) -> Rows:
    """Return the rows and, where the filter lets them through, those just before and after them.

    In order, each once.
    """
    columns, size = index.columns, len(selection.mask)
    near = np.concatenate([columns.previous[rows], columns.next[rows]])
    near = near[(near >= 0) & (near < size)]
    return _distinct(rows, near[selection.mask[near]])


def _candidates(
    index: CorpusIndex,
    reading: QueryReading,
    vector: Matrix | None,
    rows: Rows,
    *,
    times_us: Ints,
    lexical: Sequence[Hits],
    words: Callable[[], WordEvidence],
    scale: CosineScale,
    size: int,
) -> tuple[Candidates, Floats]:
    """Measure the candidates `rows`, and return their own cosines as they are beside.

    Rows from `size` on came after the search and are left out.
    """
    columns = index.columns
    said = columns.spoken[rows]
    previous = _said(index, columns.previous[rows], said, size)
    following = _said(index, columns.next[rows], said, size)
    asked = np.where(columns.asks[previous] & reading.asks, previous, _NOBODY)
    own, before, after = _cosines(index, vector, rows, asked, following)
    session = columns.session[rows]
    attainable = words().attainable if (session == NO_SESSION).any() else 0.0
    age_us = index.newest_us - times_us
    candidates = Candidates(
        lexical=_bm25(rows, lexical),
        attainable=attainable * (1.0 + CONTEXT_WEIGHT),
        cosine=scale.usual(own),
        cosine_question=scale.usual(before),
        cosine_next=scale.usual(after),
        alone=(previous < 0) & (following < 0),
        spoken=said,
        session=session.astype(np.int64),
        position=columns.position[rows],
        session_words=columns.session_words(session).astype(np.float64),
        words=columns.words[rows].astype(np.float64),
        author_named=_author_named(index, reading, rows),
        date_match=date_match(reading.dates, times_us + reading.ahead_us),
        failed=columns.failed[rows] & reading.failure,
        importance=(columns.importance[rows].astype(np.float64) - NORMAL_IMPORTANCE) / 4,
        age_days=np.maximum(age_us, 0) / DAY_US,
    )
    return candidates, own


def _said(index: CorpusIndex, near: _Links, said: NDArray[np.bool_], size: int) -> _Links:
    """Return the neighbours `near` of rows, -1 unless both are `said`."""
    both: NDArray[np.bool_] = said & index.columns.spoken[near] & (near < size)
    return np.where(both, near, _NOBODY)


def _cosines(
    index: CorpusIndex, vector: Matrix | None, rows: Rows, *others: _Links
) -> Sequence[Floats]:
    """Return the cosines of the rows and of their neighbours, NaN for -1.

    One gather for all, each vector once. Without a vector all are NaN.
    """
    if vector is None:
        return [np.full(len(rows), np.nan)] * (1 + len(others))
    needed = _distinct(rows, *(near[near >= 0] for near in others))
    # Nobody's place, before the first, is the last: NaN.
    cosine = np.append(index.similarities(vector, needed), np.float32(np.nan)).astype(np.float64)
    near_rows: list[_Rows] = [rows, *others]
    return [cosine[np.where(near >= 0, np.searchsorted(needed, near), _LAST)] for near in near_rows]


def _distinct(*rows: _Rows) -> Rows:
    """Return the rows in order, each once.

    Not marked in an array of all documents: a fresh one costs a page fault for every few rows.
    """
    ordered: Rows = np.sort(np.concatenate(rows))
    return ordered[firsts(ordered)]


def _bm25(rows: Rows, lexical: Sequence[Hits]) -> Floats:
    """Return the best BM25 of each row, which are in order; 0 for what was not found."""
    bm25 = np.zeros(len(rows))
    for hits in lexical:
        at = np.searchsorted(rows, hits.rows)
        bm25[at] = np.maximum(bm25[at], hits.scores)
    return bm25


def _author_named(index: CorpusIndex, reading: QueryReading, rows: Rows) -> NDArray[np.bool_]:
    columns = index.columns
    authors = columns.authors_named_by(reading.names | reading.speakers)
    author = columns.author[rows]
    if len(authors) > _FEW_AUTHORS:
        named = np.isin(author, authors)
    else:  # Which `isin` takes longer for.
        named = np.zeros(len(rows), np.bool_)
        for number in authors:
            named |= author == number
    for role in reading.speakers:
        named |= columns.role[rows] == columns.role_number(role)
    return named
