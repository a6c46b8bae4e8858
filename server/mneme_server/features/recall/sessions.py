"""The search for sessions: by their summaries and by the best of what was said and done in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mneme_server.engine.corpus.document import DocumentFilter, MemoryKind
from mneme_server.engine.corpus.ports import CorpusIndex, Matrix, Rows, Selection, WordEvidence
from mneme_server.features.recall.confidence import CosineScale
from mneme_server.features.recall.hybrid import (
    CandidateSet,
    EventSums,
    Ranked,
    by_words,
    fitted,
    fuse,
    gather,
)
from mneme_server.features.recall.query import read_query_for
from mneme_server.features.recall.ranking import (
    NO_SESSION,
    Floats,
    Ints,
    RankingWeights,
    firsts,
    measure,
    total,
)
from mneme_server.features.recall.relative import AsOf

EVENTS_PER_SIDE = 200
"""Events that each index proposes: a session is told by more of them than the best."""
SECOND = 0.5
"""What the second-best event of a session counts beside the best one."""
_NO_ROW = -1


def search_sessions(
    index: CorpusIndex,
    query: str,
    embedding: Callable[[], Matrix | None],
    selection: Selection,
    *,
    parts: frozenset[MemoryKind],
    weights: RankingWeights,
    words: Callable[[], WordEvidence],
    scale: CosineScale,
    as_of: AsOf,
) -> CandidateSet:
    """Return candidates among the selected memories, each of which sums up a session.

    Each is to be ranked by its own terms and by `events`: the sum of its session's best event and
    half that of the second-best, on average. Events are ranked as if they were searched for
    themselves.
    A summary that has no events to sum up stands for them.

    Args:
        index: the tenant's.
        query: what is searched for.
        embedding: waits for the query's vector (1, d); None when it is not to be had.
        selection: the memories.
        parts: the kinds of memory that a session's events are of.
        weights: of the terms.
        words: returns how far the query's words are to be found.
        scale: of the model's cosines.
        as_of: when it is asked.
    """
    held = _events_of(index, selection, parts)
    reading = read_query_for(index, query, held, as_of)
    summaries = by_words(index, query, reading, selection)
    held_words = by_words(index, query, reading, held, count=EVENTS_PER_SIDE)
    vectors = embedding()
    vector = None if vectors is None else vectors[0]
    found = gather(
        index, reading, vector, held_words, held, words=words, scale=scale, count=EVENTS_PER_SIDE
    )
    best = fuse(index, found, weights)
    place = _summaries(index, selection)
    sessions, sums = _sums(index, best)
    more = place[sessions]
    more = more[more != _NO_ROW]
    found = gather(
        index, reading, vector, summaries, selection, words=words, scale=scale, more=more
    )
    by_session = np.full(len(place), np.nan)
    by_session[_sessions(index, held)] = 0.0
    by_session[sessions] = sums
    of_rows = by_session[index.columns.session[found.rows]]
    own = total(measure(found.candidates), fitted(found, weights))
    events = EventSums(np.where(np.isnan(of_rows), own, of_rows), best.evidence)
    return replace(found, events=events)


def _events_of(index: CorpusIndex, selection: Selection, parts: frozenset[MemoryKind]) -> Selection:
    """Return the events of the sessions that are selected."""
    events = index.select(DocumentFilter(kinds=parts))
    size = min(len(events.mask), len(selection.mask))
    session = index.columns.session[:size]
    wanted = np.zeros(int(session.max(initial=NO_SESSION)) + 2, np.bool_)
    wanted[session[selection.mask[:size]]] = True
    wanted[NO_SESSION] = False
    mask = events.mask[:size] & wanted[session]
    return Selection(mask, int(np.count_nonzero(mask)), everything=False)


def _sessions(index: CorpusIndex, events: Selection) -> NDArray[np.int32]:
    """Return the sessions of selected events, with repeats."""
    session: NDArray[np.int32] = index.columns.session[: len(events.mask)][events.mask]
    return session


def _sums(index: CorpusIndex, best: Ranked) -> tuple[Ints, Floats]:
    """Return the sessions of ranked events, each once, and their sums."""
    totals = best.totals
    assert totals is not None
    session = index.columns.session[best.rows].astype(np.int64)
    order = np.argsort(session, kind="stable")  # Of a session the best comes first.
    session, totals = session[order], totals[order]
    first = np.flatnonzero(firsts(session))
    second = np.append(first[1:], len(session)) - first > 1
    sums = totals[first].copy()
    sums[second] += SECOND * totals[first[second] + 1]
    return session[first], np.fmax(sums / (1.0 + SECOND), 0.0)


def _summaries(index: CorpusIndex, selection: Selection) -> Rows:
    """Return by number of session the row of its summary, -1 for none."""
    session = index.columns.session[: len(selection.mask)]
    rows = np.flatnonzero(selection.mask)
    place = np.full(int(session.max(initial=NO_SESSION)) + 2, _NO_ROW, np.int64)
    place[session[rows]] = rows
    place[NO_SESSION] = _NO_ROW
    return place
