"""The search of one tenant's vectors and words, ranked, and what its words could attain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from tantivy import Occur, Query

from mneme_server.engine.corpus.ports import (
    NO_EVIDENCE,
    NO_HITS,
    CorpusSource,
    Hits,
    Matrix,
    Rows,
    Scores,
    Selection,
    WordEvidence,
)
from mneme_server.engine.index.columns import DocumentTable
from mneme_server.engine.index.dense import DenseIndex
from mneme_server.engine.index.graph import inner_products
from mneme_server.engine.index.rows import NO_ROW
from mneme_server.engine.index.settings import IndexSettings
from mneme_server.engine.index.words.analysis import WordField
from mneme_server.engine.index.words.bm25 import K1
from mneme_server.engine.index.words.lexical import LexicalIndex, ParsedQuery, WordMatch

_FEW_NAMED = 2_000
"""So many rows or sessions are named one by one, not more."""
_WANTED = 128
_A_NAME = 4.0
_PASSED = 1 / 32
"""What a search costs, in documents looked at (0.4 microseconds each, measured on 50,000): so many
that are selected are wanted, and looking for them takes more the fewer of those let through are;
each session or id that is named is looked up; and all that is let through is passed by."""
_NO_SESSION = -1
_WIDE = 0.5
"""Share of all rows that are let through beyond which nothing is restricted."""
_DECIMALS = 6
_SPARE = 1.2
_SPARE_HITS = 16
_WIDEN = 4
_FARTHER = 8
_TIES = 1_000
"""So many that tie are looked at and sorted; of more the newest are looked for."""
_MOST_OF_A_WORD = K1 + 1
"""BM25 over the idf of a word in a text that holds it again and again."""
_LOOKED_AT = 64, 4_096
"""Documents with a word that are looked at for one that is selected. Of a word that so many have
without any of them being selected, one more is taken to be."""
_MOST_NAMES = 64
"""Of more identifiers these, the first, are looked for, each by a search: a log holds hundreds."""
_FEWEST_DIGITS = 3
"""Of a number that names one thing. What has fewer often counts: "20 ideas"."""
_AT_ONCE = 20
"""Words that one search looks for: the sum of their powers of two is exact as a float."""


class Searcher:
    """Searches the parts of an index, which others change meanwhile."""

    def __init__(
        self,
        source: CorpusSource,
        table: DocumentTable,
        dense: DenseIndex,
        lexical: LexicalIndex,
        settings: IndexSettings,
    ) -> None:
        self._source = source
        self._table = table
        self._dense = dense
        self._lexical = lexical
        self._settings = settings
        self._narrowings = Narrowings(table, lexical)

    def dense(self, query: Matrix, k: int, selection: Selection, *, exact: bool) -> Hits:
        """Return the nearest rows; see `CorpusIndex.search_dense`."""
        rows, scores, approximate = self._dense.search(query, k, selection)
        if exact and approximate.size and self._settings.rescore:
            self._rescore(query, rows, scores, approximate.size)
        return self._ranked(rows, scores, k)

    def lexical(self, query: str, k: int, selection: Selection, context_weight: float) -> Hits:
        """Return the rows that match the words best; see `CorpusIndex.search_lexical`."""
        parsed = self._lexical.parse(
            query, {WordField.TEXT: 1.0, WordField.CONTEXT: context_weight}
        )
        if parsed is None or k < 1 or not selection.count:
            return NO_HITS
        rows, scores = self._selected(self._lexical.search_counted(parsed), selection)
        if parsed.view.holds_all:
            return self._ranked(rows, scores, k)
        narrowing = self._narrowings.of(selection)
        share = selection.count / max(narrowing.universe, selection.count)
        limit = int(k / share * _SPARE) + _SPARE_HITS
        found = self._found(parsed, selection, narrowing.query, k, limit)
        if found.cut:
            found = self._newest_tied(parsed, selection, narrowing.query, k, found)
        rows, scores = np.concatenate([rows, found.rows]), np.concatenate([scores, found.scores])
        return self._ranked(rows, scores, k)

    def evidence(
        self, query: str, selection: Selection, identifiers: Sequence[str]
    ) -> WordEvidence:
        """Return how far the words are to be found; see `CorpusIndex.word_evidence`."""
        parsed = telling(self._lexical, query)
        if parsed is None:
            return NO_EVIDENCE
        return word_evidence(
            self._lexical,
            parsed,
            identifiers,
            within=None if selection.everything else self._narrowings.of(selection).query,
            everything=selection.everything,
            selected=lambda match: self._selected(match, selection)[1],
        )

    def _found(
        self, parsed: ParsedQuery, selection: Selection, within: Query | None, k: int, limit: int
    ) -> _WordHits:
        """Return the best `k` committed rows, and more; `limit` are looked at first."""
        while True:
            match = self._lexical.search(parsed, limit, within)
            rows, scores = self._selected(match, selection)
            scores = scores.round(_DECIMALS)
            complete = match.exhausted or _complete(scores, match.scores.round(_DECIMALS), k)
            if complete or rows.size >= k + _TIES:
                return _WordHits(rows, scores, cut=not complete)
            limit *= _WIDEN

    def _newest_tied(
        self,
        parsed: ParsedQuery,
        selection: Selection,
        within: Query | None,
        k: int,
        found: _WordHits,
    ) -> _WordHits:
        """Return the best `k` where very many tie for the last places: the newest of those, which
        tantivy cannot be asked for; which of them it names depends on its files. They are looked
        for backwards, among so many documents at once that not too many of them tie."""
        tie = found.scores[k - 1]
        better = found.scores > tie
        rows, scores = [found.rows[better]], [found.scores[better]]
        missing = k - rows[0].size
        too_far, last = 0, int(self._table.doc_id[: self._table.size].max())
        reach = k + _TIES
        while too_far < last:
            first = max((too_far + last + 1) // 2, last - reach)
            among = self._lexical.between(first, last)
            if within is not None:
                among = Query.boolean_query([(Occur.Must, among), (Occur.Must, within)])
            some = self._found(parsed, selection, among, k, k + _TIES)
            if some.cut and some.scores[k - 1] == tie:
                too_far = first
                continue
            tied = some.scores == tie
            rows.append(some.rows[tied])
            scores.append(some.scores[tied])
            missing -= rows[-1].size
            if missing <= 0:
                return _WordHits(np.concatenate(rows), np.concatenate(scores))
            last, reach = first - 1, reach * _FARTHER
        return found  # Some were removed meanwhile.

    def _rescore(self, query: Matrix, rows: Rows, scores: Scores, approximate: int) -> None:
        """Replace the best of the first `approximate` scores by those of the stored vectors."""
        best = np.argsort(-scores[:approximate])[: self._settings.rescore]
        ids = self._table.doc_id[rows[best]]
        stored = self._source.vectors_of(ids.tolist())
        order = np.argsort(ids)
        at = best[order[np.searchsorted(ids[order], stored.doc_ids)]]
        scores[at] = -1.0
        np.maximum.at(scores, at, inner_products(query, stored.vectors))

    def _selected(self, match: WordMatch, selection: Selection) -> tuple[Rows, Scores]:
        """Return the rows and scores of those found that are selected."""
        if not match.doc_ids.size or not selection.count:
            return match.doc_ids[:0], match.scores[:0]
        rows = self._table.rows_of(match.doc_ids)
        chosen = (rows != NO_ROW) & (rows < selection.mask.size)
        chosen &= selection.mask.take(rows, mode="clip")
        return (rows, match.scores) if chosen.all() else (rows[chosen], match.scores[chosen])

    def _ranked(self, rows: Rows, scores: Scores, k: int) -> Hits:
        """Return the best `k`; of equal scores the newest document comes first.

        Scores are rounded, so that equal texts tie whatever the order of summation was.
        """
        scores = scores.round(_DECIMALS)
        if (scores[1:] < scores[:-1]).all():  # As they often come, and then none ties.
            return Hits(rows[: max(k, 0)], scores[: max(k, 0)])
        order = np.lexsort((-self._table.doc_id[rows], -scores))[: max(k, 0)]
        return Hits(rows[order], scores[order])


class _WordHits(NamedTuple):
    """Committed rows that match and are selected, the best first; `cut`, where more may tie with
    the last of those that were asked for."""

    rows: Rows
    scores: Scores
    cut: bool = False


def _complete(selected: Scores, found: Scores, k: int) -> bool:
    """Whether `selected`, descending, hold the best `k` with all that tie with the last of them.

    `found` are the scores of all that was looked at.
    """
    return selected.size >= k and (not found.size or bool(selected[k - 1] > found[-1]))


def telling(lexical: LexicalIndex, query: str) -> ParsedQuery | None:
    """Return the query with the words that tell what it is about; None when it has none."""
    parsed = lexical.parse(query, {WordField.TEXT: 1.0})
    return parsed if parsed is not None and lexical.tells(query) else None


def word_evidence(
    lexical: LexicalIndex,
    parsed: ParsedQuery,
    identifiers: Sequence[str],
    *,
    within: Query | None,
    everything: bool,
    selected: Callable[[WordMatch], Scores],
) -> WordEvidence:
    """Return what the words of a query could attain, and which of them occur among the selected
    documents.

    Args:
        lexical: the words of all documents.
        parsed: the query.
        identifiers: the names, paths and codes in it.
        within: what restricts a search to the selected documents, and some others.
        everything: whether all documents are selected.
        selected: returns the scores of those that match and are selected.
    """
    view = parsed.view

    def counted(terms: Sequence[str]) -> bool:
        held = view.counted.holding(terms)
        found = WordMatch(held, np.ones(held.size, np.float32), exhausted=True)
        return selected(found).size > 0

    def together(terms: Sequence[str]) -> bool:
        if counted(terms):
            return True
        for limit in _LOOKED_AT if not view.holds_all else ():
            match = lexical.with_all(parsed, terms, limit, within)
            found = selected(match).size > 0
            if found or match.exhausted:
                return found
        return not view.holds_all

    statistics = view.statistics
    weights = {term: statistics.idf(WordField.TEXT, term) for term in parsed.terms}
    total = sum(weights.values())
    held = {term for term in weights if statistics.frequency(WordField.TEXT, term)}
    if view.holds_all:
        held = held if everything else {term for term in held if counted([term])}
    else:
        if not everything:
            held = _selected_of(lexical, parsed, sorted(held), within, selected)
        held |= {term for term in weights if term not in held and counted([term])}
    here = sum(weight for term, weight in weights.items() if term in held)
    words_of = map(lexical.words_of, identifiers[:_MOST_NAMES])
    names = [ways for ways in words_of if any(ways)]
    found = [any(map(together, ways)) for ways in names]
    lacking = (ways for ways, there in zip(names, found, strict=True) if not there)
    named = {word for ways in lacking for words in ways for word in words if _is_number(word)}
    missing = sum(weight for term, weight in weights.items() if term in named - held)
    return WordEvidence(
        telling=True,
        attainable=_MOST_OF_A_WORD * total,
        occurring=here / total if total else 0.0,
        identified=sum(found) / len(found) if found else 0.0,
        missing=missing / total if total else 0.0,
    )


def _selected_of(
    lexical: LexicalIndex,
    parsed: ParsedQuery,
    terms: Sequence[str],
    within: Query | None,
    selected: Callable[[WordMatch], Scores],
) -> set[str]:
    """Return the terms that some selected, committed document holds.

    A document's score tells which of them it holds, each by a power of two; so a search finds many
    at once.
    """
    held: set[str] = set()
    left = list(terms)
    while left:
        some = left[:_AT_ONCE]
        found, exhausted = 0, False
        for limit in _LOOKED_AT:
            match = lexical.with_any(parsed, some, limit, within)
            exhausted = match.exhausted
            found = int(np.bitwise_or.reduce(selected(match).astype(np.int64), initial=0))
            if found or exhausted:
                break
        if not found and not exhausted:
            return held | set(left)
        new = {term for place, term in enumerate(some) if found >> place & 1}
        held |= new
        left = [term for term in left if term not in (some if exhausted else new)]
    return held


def _is_number(word: str) -> bool:
    """Whether so many of a word are digits that it stands for one thing, as in F-2204."""
    return sum(map(str.isdigit, word)) >= _FEWEST_DIGITS


class Narrowings:
    """How selections are told to tantivy, which knows nothing of masks; that of the last one is
    kept."""

    def __init__(self, table: DocumentTable, lexical: LexicalIndex) -> None:
        self._table = table
        self._lexical = lexical
        self._last: tuple[Selection, Narrowing] | None = None

    def of(self, selection: Selection) -> Narrowing:
        """Return the narrowing of a selection."""
        last = self._last
        if last is None or last[0] is not selection:
            self._last = last = (selection, narrow(selection, self._table, self._lexical))
        return last[1]


@dataclass(frozen=True, slots=True)
class Narrowing:
    """A restriction that lets all selected rows through and `universe` live rows in total.

    Without a `query` it is no restriction.
    """

    query: Query | None
    universe: int


def narrow(selection: Selection, table: DocumentTable, lexical: LexicalIndex) -> Narrowing:
    """Return the restriction that lets through as little else as can be had cheaply.

    tantivy can find ids, sessions, kinds and ranges of ids. What a filter on tags or projects lets
    through usually lies in few sessions, what it lets through of a time in a short range of ids.
    """
    live = table.live_count
    if selection.everything or selection.count > live * _WIDE:
        return Narrowing(None, live)
    rows: Rows = selection.rows
    if not rows.size:
        return Narrowing(lexical.these([]), 0)
    best = min(_options(rows, table, lexical), key=lambda option: option.cost(rows.size))
    if best.universe > live * _WIDE:
        return Narrowing(None, live)
    return Narrowing(best.make(), best.universe)


class _Option(NamedTuple):
    """A restriction that names so many ids, kinds or sessions, and lets `universe` rows through."""

    names: int
    universe: int
    make: Callable[[], Query]

    def cost(self, selected: int) -> float:
        return _WANTED * self.universe / selected + _A_NAME * self.names + _PASSED * self.universe


def _options(rows: Rows, table: DocumentTable, lexical: LexicalIndex) -> Iterator[_Option]:
    ids = table.doc_id[rows]
    first, last = int(ids.min()), int(ids.max())
    yield _Option(2, table.documents_between(first, last), lambda: lexical.between(first, last))
    kinds = np.flatnonzero(np.bincount(table.kind[rows]))
    yield _Option(
        kinds.size,
        table.documents_of(kinds),
        lambda: lexical.of_kinds(table.names_of("kind", kinds.tolist())),
    )
    if rows.size <= _FEW_NAMED:
        yield _Option(rows.size, rows.size, lambda: lexical.these(ids.tolist()))
    sessions = np.unique(table.session[rows].astype(np.int64))
    if sessions[0] != _NO_SESSION and sessions.size <= _FEW_NAMED:
        yield _Option(
            sessions.size,
            table.documents_in(sessions),
            lambda: lexical.in_sessions(table.names_of("session", sessions.tolist())),
        )
