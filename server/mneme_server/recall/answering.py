"""From ranked candidates to what is shown: the best of each, with what belongs to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from mneme_server.corpus.document import DocumentFilter, Memory
from mneme_server.corpus.ports import CorpusIndex, Selection
from mneme_server.corpus.tenant import OpenTenant
from mneme_server.recall.copies import best_of_each, copies_of, keys_of
from mneme_server.recall.hybrid import Ranked
from mneme_server.recall.model import Answer, Mode, Recalled, RecallOutcome, RecallQuery, Term
from mneme_server.recall.ports import RecallUnit
from mneme_server.recall.ranking import TERMS, Ints, Weights
from mneme_server.recall.reranker.soon import Reranking
from mneme_server.recall.turns import Turns
from mneme_server.recall.versions import newest_first, versions

Rerank: TypeAlias = Callable[[Sequence[str]], tuple[Sequence[int] | None, Reranking]]
"""Orders texts by how well they answer the query: their places, or None, and why."""

NEWER = "newer"
RERANKED = 50
"""So many of the first candidates a reranker puts in its order."""
_LOOKED_BEHIND = 5
"""Results behind the last one wanted that may be a newer version of one before it."""


def answer_of(
    memory: OpenTenant[RecallUnit],
    index: CorpusIndex,
    query: RecallQuery,
    selection: Selection,
    candidates: Ranked,
    *,
    repeated: Ints,
    rerank: Rerank | None = None,
) -> Answer:
    """Read the best candidates and return them, with what is to be said of them.

    `repeated` are the keys of what there are copies of.
    """
    enough = int(np.count_nonzero(candidates.scores >= query.min_score))
    wanted = query.limit if rerank is None else max(query.limit, RERANKED)
    places, copied = _best(
        index, candidates, enough, wanted, None if query.every_copy else repeated
    )
    doc_ids: list[int] = index.columns.doc_id[candidates.rows[places]].tolist()
    turns = _turns(index, query, candidates, places)
    with memory.read() as unit:
        memories = unit.memories.get_many([*doc_ids, *turns.doc_ids])
        pending, lost = memory.pending, unit.memories.lost
    results = [
        _recalled(candidates, int(place), memories[doc_id], query)
        for doc_id, place in zip(doc_ids, places, strict=True)
        if doc_id in memories  # It may have been removed since it was found.
    ]
    groups = [] if query.every_copy else versions([result.document for result in results])
    results = _newest_first(results, groups)
    reranking = None
    if rerank is not None and results:
        results, reranking = _reranked(results, rerank, together=not query.every_copy)
    rows = dict(zip(doc_ids, candidates.rows[places].tolist(), strict=True))
    shown = []
    for result in results[: query.limit]:
        row = rows[result.document.doc_id]
        before, after = turns.around(row, memories)
        copies = copies_of(index.columns, row, selection) if row in copied else None
        shown.append(replace(result, copies=copies, before=before, after=after))
    return Answer(
        results=_linked(shown) if groups else shown,
        outcome=RecallOutcome.FOUND if shown else RecallOutcome.NOTHING_ABOVE_MIN_SCORE,
        searched_count=selection.count,
        total=enough,
        pending_count=pending,
        capped=candidates.capped,
        words_only=query.mode == Mode.HYBRID and candidates.words_only,
        partial=lost > 0 or index.partial,
        reranking=reranking,
    )


def _best(
    index: CorpusIndex, candidates: Ranked, enough: int, wanted: int, repeated: Ints | None
) -> tuple[Ints, set[int]]:
    """Return the places of the candidates to read, and the rows that stand for others, too.

    Of the first `enough` so many as are wanted; with `repeated`, one of each that has copies.
    """
    if repeated is None:
        return np.arange(min(enough, wanted)), set()
    keys = keys_of(index.columns, candidates.rows[:enough])
    places = best_of_each(keys)[: wanted + _LOOKED_BEHIND]
    copied = places[np.isin(keys[places], repeated)]
    return places, set(candidates.rows[copied].tolist())


def _turns(index: CorpusIndex, query: RecallQuery, candidates: Ranked, places: Ints) -> Turns:
    if not query.turns:
        return Turns.none()
    allowed = index.select(
        DocumentFilter(user_id=query.filter.user_id, project=query.filter.project)
    )
    return Turns.around_rows(index.columns, candidates.rows[places], query.turns, allowed)


def _recalled(candidates: Ranked, place: int, memory: Memory, query: RecallQuery) -> Recalled:
    return Recalled(
        document=memory.document,
        score=float(candidates.scores[place]),
        similarity=_known(candidates.similarity[place]),
        details=memory.details,
        terms=_terms(candidates, place, query.weights) if query.explain else (),
    )


def _newest_first(results: Sequence[Recalled], groups: Sequence[Sequence[int]]) -> list[Recalled]:
    """Return the results with the newest of each group of those that say almost the same first.

    Each takes the place and the score of the one that was there.
    """
    ordered = list(results)
    documents = [result.document for result in results]
    for group in groups:
        for place, taken in zip(group, newest_first(group, documents), strict=True):
            if place != taken:
                ordered[place] = _moved(results[taken], results[place])
    return ordered


def _moved(result: Recalled, there: Recalled) -> Recalled:
    terms = result.terms
    if terms:
        gained = sum(t.contribution for t in there.terms) - sum(t.contribution for t in terms)
        terms = _sorted([*terms, Term(NEWER, 1.0 if gained > 0 else -1.0, gained)])
    return replace(result, score=there.score, terms=terms)


def _reranked(
    results: Sequence[Recalled], rerank: Rerank, *, together: bool
) -> tuple[list[Recalled], Reranking]:
    """Return the results with the first of them in the reranker's order, each with its own score.

    With `together`, of those that say almost the same the newest still comes first.
    """
    first = results[:RERANKED]
    order, reranking = rerank([result.document.text for result in first])
    if order is None:
        return list(results), reranking
    ordered = [first[place] for place in order]
    if together:
        documents = [result.document for result in ordered]
        placed = list(ordered)
        for group in versions(documents):
            for place, taken in zip(group, newest_first(group, documents), strict=True):
                placed[place] = ordered[taken]
        ordered = placed
    return [*ordered, *results[RERANKED:]], reranking


def _linked(results: Sequence[Recalled]) -> list[Recalled]:
    """Have each of those that say almost the same name the next older and the next newer one."""
    linked = list(results)
    documents = [result.document for result in results]
    for group in versions(documents):
        in_time = newest_first(group, documents)
        for newer, older in pairwise(in_time):
            linked[newer] = replace(linked[newer], older=documents[older])
            linked[older] = replace(linked[older], newer=documents[newer])
    return linked


def _terms(candidates: Ranked, place: int, weights: Weights) -> list[Term]:
    if candidates.terms is None:
        return []
    values = candidates.terms[:, place]
    added = weights.array() * values
    return _sorted(
        [Term(name, float(values[i]), float(added[i])) for i, name in enumerate(TERMS) if added[i]]
    )


def _sorted(terms: Sequence[Term]) -> list[Term]:
    return sorted(terms, key=lambda term: -abs(term.contribution))


def _known(cosine: float) -> float | None:
    return None if np.isnan(cosine) else float(cosine)
