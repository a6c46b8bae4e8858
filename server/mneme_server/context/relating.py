"""Which past sessions resemble one, and in which order they are worth a look."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mneme_server.context.model import Related, SessionScope
from mneme_server.context.ports import ContextUnit
from mneme_server.context.sessions import DAY_US, DECAY_DAYS, document_filter, load, source_ids
from mneme_server.corpus.ports import CorpusIndex, Matrix, Rows, Selection

SIMILARITY_WEIGHT = 0.6
RECENCY_WEIGHT = 0.3
IMPORTANCE_WEIGHT = 0.1
FULL_IMPORTANCE = 10
"""Progress and decisions from which a session is as important as can be."""
MEASURED = 20_000
"""Up to so many sessions each one is measured; of more only the most similar `NEAREST`."""
NEAREST = 1_000
_LOOKED_UP = 200


def importance(weight: int) -> float:
    """Return min(progress and decisions, counted, over 10; 1)."""
    return min(weight / FULL_IMPORTANCE, 1.0)


def related_to(
    unit: ContextUnit,
    index: CorpusIndex,
    vector: Matrix,
    scope: SessionScope,
    *,
    without: str,
    min_similarity: float,
    limit: int,
    now_us: int,
) -> tuple[list[Related], int]:
    """Return the sessions that resemble a vector (d,), the best first, and how many there are.

    The rank is 0.6 similarity + 0.3 recency + 0.1 importance. Every session is measured; their
    importance is looked up in the order of the other two terms, until none of the rest can reach
    the last one wanted.
    """
    selection = index.select(document_filter(scope))
    rows, similarity = _measured(index, vector, selection)
    enough = similarity >= min_similarity
    rows, similarity = rows[enough], similarity[enough]
    age_us = np.maximum(now_us - index.columns.timestamp_us[rows], 0)
    recency = 1.0 / (1.0 + age_us / DAY_US / DECAY_DAYS)
    partial = SIMILARITY_WEIGHT * similarity + RECENCY_WEIGHT * recency
    order = np.lexsort((-index.columns.doc_id[rows], -partial))
    best: list[tuple[float, int, str, float]] = []
    for start in range(0, len(order), _LOOKED_UP):
        some = order[start : start + _LOOKED_UP]
        if len(best) >= limit and partial[some[0]] + IMPORTANCE_WEIGHT <= best[-1][0]:
            break
        ids = source_ids(unit, index, rows[some])
        weights = unit.handovers.weights([key for key in ids if key])
        for place, key in zip(some.tolist(), ids, strict=True):
            if key and key != without:
                share = importance(weights.get(key, 0))
                score = float(partial[place]) + IMPORTANCE_WEIGHT * share
                best.append((score, place, key, share))
        best.sort(key=lambda item: (-item[0], item[1]))
        del best[limit:]
    known = load(unit, [key for _, _, key, _ in best])
    found = [
        Related(known[key], float(similarity[place]), float(recency[place]), share, score)
        for score, place, key, share in best
        if key in known
    ]
    return found, selection.count


def _measured(
    index: CorpusIndex, vector: Matrix, selection: Selection
) -> tuple[Rows, NDArray[np.float64]]:
    """Return rows and their cosines, those without a vector left out."""
    if selection.count > MEASURED:
        hits = index.search_dense(vector, NEAREST, selection, exact=False)
        return hits.rows, hits.scores.astype(np.float64)
    rows = np.flatnonzero(selection.mask)
    cosines = index.similarities(vector, rows).astype(np.float64)
    known = ~np.isnan(cosines)
    return rows[known], cosines[known]
