"""Searching one tenant's vectors and words, and ranking what is found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mneme_server.corpus.ports import (
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
from mneme_server.index.columns import DocumentTable
from mneme_server.index.dense import DenseIndex
from mneme_server.index.evidence import telling, word_evidence
from mneme_server.index.fields import Field
from mneme_server.index.graph import inner_products
from mneme_server.index.lexical import LexicalIndex, Match
from mneme_server.index.narrowing import Narrowings
from mneme_server.index.places import NO_ROW
from mneme_server.index.settings import IndexSettings

_DECIMALS = 6
_SPARE = 1.2
_SPARE_HITS = 16
_WIDEN = 4
_TIES = 1_000


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
        parsed = self._lexical.parse(query, {Field.TEXT: 1.0, Field.CONTEXT: context_weight})
        if parsed is None or k < 1 or not selection.count:
            return NO_HITS
        rows, scores = self._selected(self._lexical.search_waiting(parsed), selection)
        narrowing = self._narrowings.of(selection)
        share = selection.count / max(narrowing.universe, selection.count)
        limit = int(k / share * _SPARE) + _SPARE_HITS
        while True:
            match = self._lexical.search(parsed, limit, narrowing.query)
            committed, theirs = self._selected(match, selection)
            if match.exhausted or _complete(theirs, match.scores, k):
                rows, scores = np.concatenate([rows, committed]), np.concatenate([scores, theirs])
                return self._ranked(rows, scores, k)
            limit *= _WIDEN

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

    def _rescore(self, query: Matrix, rows: Rows, scores: Scores, approximate: int) -> None:
        """Replace the best of the first `approximate` scores by those of the stored vectors."""
        best = np.argsort(-scores[:approximate])[: self._settings.rescore]
        ids = self._table.doc_id[rows[best]]
        stored = self._source.vectors_of(ids.tolist())
        order = np.argsort(ids)
        at = np.searchsorted(ids[order], stored.doc_ids)
        scores[best[order[at]]] = inner_products(query, stored.vectors)

    def _selected(self, match: Match, selection: Selection) -> tuple[Rows, Scores]:
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


def _complete(selected: Scores, found: Scores, k: int) -> bool:
    """Whether `selected`, descending, hold the best `k` with all that tie with the last of them.

    `found` are the scores of all that was looked at. A tie of very many is cut.
    """
    if selected.size < k:
        return False
    return not found.size or bool(selected[k - 1] > found[-1]) or selected.size >= k + _TIES
