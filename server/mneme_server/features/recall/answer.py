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

from mneme_server.engine.corpus.document import Document, DocumentFilter, MemoryKind, MemoryView
from mneme_server.engine.corpus.ports import (
    CorpusColumns,
    CorpusIndex,
    CorpusSearch,
    MemoryReader,
    Rows,
    Selection,
)
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
    asks_for_before,
    by_contribution,
    gained,
    is_superseded,
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
_MORE = 4
"""Times as many are read, where too many of them were replaced."""
_LOOKED_BEHIND = 5
"""Results behind the last one wanted that may be a newer version of one before it."""
_NOBODY = -1
_SKIPPED = 100
"""Documents of other kinds, users or projects that are passed over on the way to a turn."""


@dataclass(slots=True)
class Results:
    """The best of the candidates, read, in the order in which they are shown.

    Attributes:
        found: the results, and behind them what may take the place of one.
        rows: the row of each, by id of its document.
        copied: the rows that stand for others, too.
        groups: places of results that say almost the same, each in order.
        enough: how many of the candidates reach `min_score`.
        lost: how many could not be read.
        reranking: whether a reranker put them in order: then each keeps the score it had before.
    """

    found: Sequence[Recalled]
    rows: dict[int, int]
    copied: set[int]
    groups: Groups
    enough: int
    lost: int
    reranking: Reranking | None


def rerank(
    corpus: CorpusSearch,
    query: RecallQuery,
    candidates: Ranked,
    copies: CopyKeys | None,
    order: Rerank | None,
) -> Results:
    """Read the best candidates and put them in the order in which they are shown.

    Args:
        corpus: what was searched.
        query: what is asked.
        candidates: what was found, the best first.
        copies: their keys, of which the repeated ones have copies; None: all are shown.
        order: a reranker, which orders the first of them; None without.
    """
    enough = int(np.count_nonzero(candidates.scores >= query.min_score))
    wanted = query.limit if order is None else max(query.limit, RERANKED)
    found, rows, copied, lost = _read_best(
        corpus, query, candidates, copies, enough=enough, wanted=wanted
    )
    found, groups, reranking = _in_order(found, query, order)
    return Results(found, rows, copied, groups, enough, lost, reranking)


def _read_best(
    corpus: CorpusSearch,
    query: RecallQuery,
    candidates: Ranked,
    copies: CopyKeys | None,
    *,
    enough: int,
    wanted: int,
) -> tuple[list[Recalled], dict[int, int], set[int], int]:
    """Read the best candidates: more, where those that others replaced are left out.

    Return them, their rows by id, the rows that stand for others, and how many could not be read.
    """
    while True:
        found, rows, copied, lost = _read(
            corpus, query, candidates, copies, enough=enough, wanted=wanted
        )
        replaced = 0 if query.include_superseded else sum(map(is_superseded, found))
        if not replaced or wanted >= enough or len(found) - replaced >= query.limit:
            return found, rows, copied, lost
        wanted *= _MORE


def _read(
    corpus: CorpusSearch,
    query: RecallQuery,
    candidates: Ranked,
    copies: CopyKeys | None,
    *,
    enough: int,
    wanted: int,
) -> tuple[list[Recalled], dict[int, int], set[int], int]:
    places, copied = _best(candidates, enough, wanted, copies)
    rows = _rows_by_id(corpus.index, candidates.rows[places])
    doc_ids = list(rows)
    with corpus.reading_shown() as reader:
        memories = reader.get_many(doc_ids, bare=query.bare)
        lost = reader.lost
    found = [
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
    return found, rows, copied, lost


def answer_of(
    corpus: CorpusSearch,
    query: RecallQuery,
    selection: Selection,
    candidates: Ranked,
    results: Results,
    *,
    pending: int,
    confidence: float | None,
) -> RecallAnswer:
    """Return the first results, with what belongs to them and what is to be said of them.

    `pending` is how many waited to be embedded before the search: those that were embedded during
    it may have been missed.
    """
    wanted = query.limit if query.include_superseded else len(results.found)
    shown = list(results.found[:wanted])
    _link(shown, results.groups)

    def passes(document: Document) -> bool:
        row = corpus.row_of(document, query.filter, selection)
        if row >= 0:
            results.rows[document.doc_id] = row
        return row >= 0

    with _reading(corpus) as read:
        shown = successors_first(
            shown,
            results.found,
            read,
            passes,
            limit=max(wanted, query.limit),
            own_scores=results.reranking is Reranking.DONE,
            before=query.include_superseded and asks_for_before(query.text),
        )
    left_out = 0
    if not query.include_superseded:
        holding = [result for result in shown if not is_superseded(result)]
        left_out = len(shown) - len(holding)
        _unlink(holding[query.limit :], holding[: query.limit])
        shown = holding[: query.limit]
    rows = [results.rows[result.document.doc_id] for result in shown]
    for result, row in zip(shown, rows, strict=True):
        if row in results.copied:
            result.copies = copies_of(corpus.index, row, selection)
    if query.turns and shown:
        _add_turns(corpus, query, shown, rows)
    return RecallAnswer(
        results=shown,
        outcome=RecallOutcome.FOUND if shown else RecallOutcome.NOTHING_ABOVE_MIN_SCORE,
        searched_count=corpus.count_of(selection),
        total=max(results.enough - left_out, len(shown)),
        pending_count=pending,
        capped=candidates.capped,
        words_only=query.mode == RecallMode.HYBRID and candidates.words_only,
        partial=results.lost > 0 or corpus.index.partial or not corpus.whole,
        reranking=results.reranking,
        confidence=confidence,
        scale=_scale(candidates) if query.explain else None,
    )


@contextmanager
def _reading(corpus: CorpusSearch) -> Iterator[ReadSources]:
    """Lend what reads memories by their sources; a transaction is begun when it reads the first."""
    with ExitStack() as lent:
        readers: list[MemoryReader] = []

        def read(kind: MemoryKind, source_ids: Sequence[str]) -> Mapping[str, MemoryView]:
            if not readers:
                readers.append(lent.enter_context(corpus.reading_shown()))
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
    results: list[Recalled], query: RecallQuery, order: Rerank | None
) -> tuple[list[Recalled], Groups, Reranking | None]:
    """Return the results in the order in which they are shown, those of them that say almost the
    same, and whether a reranker ordered them: then each keeps the score it had before.
    """
    groups = _versions(results, query)
    picked = picked_by(query.text)
    if not asks_for_before(query.text):
        results = _newest_first(results, groups, picked)
    if order is None or not results:
        return results, groups, None
    places, reranking = order([result.document.text for result in results[:RERANKED]])
    if places is not None:
        results = [*(results[place] for place in places), *results[RERANKED:]]
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


def _unlink(left: Sequence[Recalled], shown: Sequence[Recalled]) -> None:
    """Have what is shown name nothing that is left behind it."""
    behind = {result.document.doc_id for result in left}
    for result in shown:
        if result.older is not None and result.older.doc_id in behind:
            result.older = None
        if result.newer is not None and result.newer.doc_id in behind:
            result.newer = None


def _add_turns(
    corpus: CorpusSearch, query: RecallQuery, results: Sequence[Recalled], rows: Sequence[int]
) -> None:
    """Add what was said around each of the results, which have these rows."""
    corpus.hold_around([result.document.doc_id for result in results], query.turns)
    index = corpus.index
    allowed = index.select(
        DocumentFilter(
            user_id=query.filter.user_id,
            project=query.filter.project,
            shared=query.filter.shared,
        )
    )
    turns = SessionTurns.around_rows(index.columns, rows, query.turns, allowed, whole=corpus.whole)
    with corpus.reading_shown() as reader:
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
