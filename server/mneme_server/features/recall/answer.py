"""The answer made of ranked candidates: the best of each, with what belongs to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mneme_server.engine.corpus.cold_search import ColdSearch
from mneme_server.engine.corpus.document import Document, DocumentFilter, MemoryKind, MemoryView
from mneme_server.engine.corpus.ports import (
    CorpusColumns,
    CorpusIndex,
    MemoryReader,
    Rows,
    Selection,
)
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.features.recall.copies import CopyKeys, copies_of
from mneme_server.features.recall.hybrid import Ranked
from mneme_server.features.recall.model import (
    RecallAnswer,
    Recalled,
    RecallMode,
    RecallOutcome,
    RecallQuery,
    ScoreScale,
    Term,
)
from mneme_server.features.recall.ranking import TERMS, Ints
from mneme_server.features.recall.reranker import Reranking
from mneme_server.features.recall.succession import (
    ReadSources,
    by_contribution,
    gained,
    newest_first,
    picked_by,
    successors_first,
    versions,
)

Rerank: TypeAlias = Callable[[Sequence[str]], tuple[Sequence[int] | None, Reranking]]
"""Orders texts by how well they answer the query: their places, or None, and why."""

Groups: TypeAlias = Sequence[Sequence[int]]
"""Places of results that say almost the same, as `versions` tells them."""

RERANKED = 50
"""So many of the first candidates a reranker puts in its order."""
_LOOKED_BEHIND = 5
"""Results behind the last one wanted that may be a newer version of one before it."""
_NOBODY = -1
_SKIPPED = 100
"""Documents of other kinds, users or projects that are passed over on the way to a turn."""


def answer_of(
    tenant: OpenTenant,
    index: CorpusIndex,
    query: RecallQuery,
    selection: Selection,
    candidates: Ranked,
    *,
    pending: int,
    copies: CopyKeys | None,
    rerank: Rerank | None,
    confidence: float | None,
    cold: ColdSearch | None = None,
) -> RecallAnswer:
    """Read the best candidates and return them, with what is to be said of them.

    `pending` is how many waited to be embedded before the search: those that were embedded during
    it may have been missed. `copies` are the candidates' keys, of which the repeated ones have
    copies; None: all are shown. `cold` is what the index is of, where it is of candidates alone.
    """
    enough = int(np.count_nonzero(candidates.scores >= query.min_score))
    wanted = query.limit if rerank is None else max(query.limit, RERANKED)
    places, copied = _best(candidates, enough, wanted, copies)
    row_of = _rows_by_id(index, candidates.rows[places])
    doc_ids = list(row_of)
    with tenant.reading_shown(newest=cold is not None) as reader:
        memories = reader.get_many(doc_ids, bare=query.bare)
        lost = reader.lost
    results = [
        Recalled(
            document=memories[doc_id].document,
            score=score,
            similarity=None if math.isnan(cosine) else cosine,
            details=memories[doc_id].details,
            terms=_terms(candidates, place) if query.explain else (),
        )
        for doc_id, place, score, cosine in zip(
            doc_ids,
            places.tolist(),
            candidates.scores[places].tolist(),
            candidates.similarity[places].tolist(),
            strict=True,
        )
        if doc_id in memories  # It may have been removed since it was found.
    ]
    results, groups, reranking = _in_order(results, query, rerank)
    shown = results[: query.limit]
    _link(shown, groups)

    def passes(document: Document) -> bool:
        mask, row = selection.mask, _row_of(index, document)
        if row < 0 and cold is not None:  # It may be stored, and is only no candidate.
            cold.take_in(document)
            mask, row = index.select(query.filter).mask, _row_of(index, document)
        row_of[document.doc_id] = row
        return 0 <= row < len(mask) and bool(mask[row])

    with _reading(tenant, newest=cold is not None) as read:
        shown = successors_first(
            shown,
            results,
            read,
            passes,
            limit=query.limit,
            own_scores=reranking is Reranking.DONE,
        )
    rows = [row_of[result.document.doc_id] for result in shown]
    for result, row in zip(shown, rows, strict=True):
        if row in copied:
            result.copies = copies_of(index, row, selection)
    if query.turns and shown:
        _add_turns(tenant, index, query, shown, rows, cold=cold)
    return RecallAnswer(
        results=shown,
        outcome=RecallOutcome.FOUND if shown else RecallOutcome.NOTHING_ABOVE_MIN_SCORE,
        searched_count=selection.count if cold is None else cold.count,
        total=max(enough, len(shown)),
        pending_count=pending,
        capped=candidates.capped,
        words_only=query.mode == RecallMode.HYBRID and candidates.words_only,
        partial=lost > 0 or index.partial or cold is not None,
        reranking=reranking,
        confidence=confidence,
        scale=_scale(candidates) if query.explain else None,
    )


def _row_of(index: CorpusIndex, document: Document) -> int:
    return int(index.columns.rows_of(np.array([document.doc_id]))[0])


@contextmanager
def _reading(tenant: OpenTenant, *, newest: bool) -> Iterator[ReadSources]:
    """Lend what reads memories by their sources; a transaction is begun when it reads the first."""
    with ExitStack() as lent:
        readers: list[MemoryReader] = []

        def read(kind: MemoryKind, source_ids: Sequence[str]) -> Mapping[str, MemoryView]:
            if not readers:
                readers.append(lent.enter_context(tenant.reading_shown(newest=newest)))
            return readers[0].of_sources(kind, source_ids)

        yield read


def _best(
    candidates: Ranked, enough: int, wanted: int, copies: CopyKeys | None
) -> tuple[Ints, set[int]]:
    """Return the places of the candidates to read, and the rows that stand for others, too.

    Of the first `enough` so many as are wanted; with `copies`, one of each that has some.
    """
    if copies is None:
        return np.arange(min(enough, wanted)), set()
    places = copies.best[copies.best < enough][: wanted + _LOOKED_BEHIND]
    if not copies.repeated.size:
        return places, set()
    copied = places[np.isin(copies.numbers[places], copies.repeated)]
    return places, set(candidates.rows[copied].tolist())


def _rows_by_id(index: CorpusIndex, rows: Rows) -> dict[int, int]:
    return dict(zip(index.columns.doc_id[rows].tolist(), rows.tolist(), strict=True))


def _in_order(
    results: list[Recalled], query: RecallQuery, rerank: Rerank | None
) -> tuple[list[Recalled], Groups, Reranking | None]:
    """Return the results in the order in which they are shown, those of them that say almost the
    same, and whether a reranker ordered them: then each keeps the score it had before.
    """
    groups = _versions(results, query)
    picked = picked_by(query.text)
    results = _newest_first(results, groups, picked)
    if rerank is None or not results:
        return results, groups, None
    order, reranking = rerank([result.document.text for result in results[:RERANKED]])
    if order is not None:
        results = [*(results[place] for place in order), *results[RERANKED:]]
        groups = _versions(results, query)
        results = _newest_first(results, groups, picked, own_scores=True)
    return results, groups, reranking


def _versions(results: Sequence[Recalled], query: RecallQuery) -> Groups:
    return [] if query.every_copy else versions([result.document for result in results])


def _newest_first(
    results: Sequence[Recalled],
    groups: Groups,
    picked: frozenset[str],
    *,
    own_scores: bool = False,
) -> list[Recalled]:
    """Return the results with the newest of each group of those that say almost the same first,
    but after those that the query has picked by number.

    Each takes the place of the one that was there, and its score, unless with `own_scores`.
    """
    ordered = list(results)
    documents = [result.document for result in results]
    for group in groups:
        before = [(results[place].score, results[place].terms) for place in group]
        for place, taken, (score, terms) in zip(
            group, newest_first(group, documents, picked), before, strict=True
        ):
            if place != taken:
                ordered[place] = moved = results[taken]
                if not own_scores:
                    moved.score, moved.terms = score, gained(moved.terms, terms)
    return ordered


def _link(results: Sequence[Recalled], groups: Groups) -> None:
    """Have each of those that say almost the same name the next older and the next newer one.

    What is not among the results is not named.
    """
    documents = [result.document for result in results]
    for group in groups:
        shown = [place for place in group if place < len(results)]
        for newer, older in pairwise(newest_first(shown, documents)):
            results[newer].older = results[older].document
            results[older].newer = results[newer].document


def _add_turns(
    tenant: OpenTenant,
    index: CorpusIndex,
    query: RecallQuery,
    results: Sequence[Recalled],
    rows: Sequence[int],
    *,
    cold: ColdSearch | None,
) -> None:
    """Add what was said around each of the results, which have these rows."""
    if cold is not None:
        cold.take_in_around([result.document.doc_id for result in results], query.turns)
    allowed = index.select(
        DocumentFilter(user_id=query.filter.user_id, project=query.filter.project)
    )
    turns = SessionTurns.around_rows(index.columns, rows, query.turns, allowed, whole=cold is None)
    with tenant.reading_shown(newest=cold is not None) as reader:
        memories = reader.get_many(turns.doc_ids)
    for result, row in zip(results, rows, strict=True):
        result.before, result.after = turns.around(row, memories)


def _terms(candidates: Ranked, place: int) -> list[Term]:
    if candidates.terms is None or candidates.order is None or candidates.weights is None:
        return []
    values = candidates.terms[:, candidates.order[place]]
    added = candidates.weights.array() * values
    return by_contribution(
        [Term(name, float(values[i]), float(added[i])) for i, name in enumerate(TERMS) if added[i]]
    )


def _scale(candidates: Ranked) -> ScoreScale | None:
    if candidates.terms is None:
        return None
    return ScoreScale(highest=candidates.highest, evidence=candidates.evidence)


@dataclass(slots=True)
class SessionTurns:
    """The turns around rows, what a session holds just before and after them. By row: ids of
    documents before it and after it, each in order."""

    before: dict[int, list[int]] = field(default_factory=dict)
    after: dict[int, list[int]] = field(default_factory=dict)

    @classmethod
    def around_rows(
        cls,
        columns: CorpusColumns,
        rows: Sequence[int],
        count: int,
        allowed: Selection,
        *,
        whole: bool = True,
    ) -> SessionTurns:
        """Return up to `count` on each side of these rows.

        They are of the row's own kind, and `allowed`. What has no session has none. Where the
        columns are not of the `whole` tenant, only what was recorded without a gap is known to
        follow.
        """
        turns = cls()
        for row in rows:
            before, after = (
                _walk(columns, step, row, count, allowed, whole=whole)
                for step in (columns.previous, columns.next)
            )
            turns.before[row], turns.after[row] = before[::-1], after
        return turns

    @property
    def doc_ids(self) -> list[int]:
        """The documents, each once."""
        sides = (*self.before.values(), *self.after.values())
        return list(dict.fromkeys(doc_id for side in sides for doc_id in side))

    def around(
        self, row: int, memories: Mapping[int, MemoryView]
    ) -> tuple[Sequence[Document], Sequence[Document]]:
        """Return what is before and after a row; what was removed meanwhile is left out."""
        before, after = (
            [memories[doc_id].document for doc_id in side.get(row, ()) if doc_id in memories]
            for side in (self.before, self.after)
        )
        return before, after


def _walk(
    columns: CorpusColumns,
    step: NDArray[np.int32],
    row: int,
    count: int,
    allowed: Selection,
    *,
    whole: bool,
) -> list[int]:
    """Return the ids of the documents that follow one another from a row on."""
    found: list[int] = []
    kind, session, at = columns.kind[row], columns.session[row], row
    for _ in range(count + _SKIPPED):
        last, at = at, int(step[at])
        # What came after the search is left out, with what is behind it.
        if at == _NOBODY or at >= len(allowed.mask) or columns.session[at] != session:
            break
        if not whole and abs(int(columns.position[at]) - int(columns.position[last])) > 1:
            break
        if columns.kind[at] == kind and allowed.mask[at]:
            found.append(int(columns.doc_id[at]))
            if len(found) == count:
                break
    return found
