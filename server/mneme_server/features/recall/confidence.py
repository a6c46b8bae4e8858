"""Confidence: how sure it is that something here answers the query, from 0 to 1.

It is fitted on questions that can be answered by what is stored, and on questions that belong to
other stores; docs/recall.md shows how well it holds, and where it does not. What is said in a
session is told by the words that it shares with a question, too; a fact, which has no session, by
its cosine: nine in ten questions share no word with the fact that answers them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mneme_server.engine.corpus.ports import (
    NO_HITS,
    CorpusIndex,
    Hits,
    Rows,
    Selection,
    WordEvidence,
)
from mneme_server.features.recall.query import identifiers_in
from mneme_server.features.recall.ranking import Bools, Floats

E5 = "multilingual-e5-small-q4"
AGAINST = 2.0
"""What numbers that nothing has count against, of what identifiers that are there count for."""
RECALLED_BY_DEFAULT = 0.05
"""Below this, the sessions that GetContext recalls are left out."""
FACTS_BY_DEFAULT = 0.25
"""And below this, the lessons and reflections that GetContext and WakeUp recall."""


@dataclass(frozen=True, slots=True)
class CosineScale:
    """Where a model's cosines lie: the default model's are slope · (cosine - zero).

    The terms of the ranking were made for the default model, under which unrelated texts lie around
    0.2 and answers around 0.6. Another model's cosines are brought to that scale; what is shown as
    similarity stays the plain cosine.
    """

    zero: float = 0.0
    slope: float = 1.0

    def usual(self, cosines: Floats) -> Floats:
        """Return the default model's cosines that say as much; NaN stays."""
        if self == USUAL:
            return cosines
        scaled: Floats = np.clip((cosines - self.zero) * self.slope, -1.0, 1.0)
        return scaled

    def of_usual(self, cosine: float) -> float:
        """Return this model's cosine that says as much as one of the default model."""
        return self.zero + cosine / self.slope


USUAL = CosineScale()
_SCALES = {E5: CosineScale(zero=0.722, slope=4.25)}
"""So that the cosines of all questions with all texts have the default model's mean and spread;
measured on chats."""


def scale_of(model_id: str) -> CosineScale:
    """Return a model's scale; of one that was not measured, the default model's."""
    return _SCALES.get(model_id, USUAL)


@dataclass(frozen=True, slots=True)
class Fit:
    """Weights of a logistic regression over what is known of a query.

    Attributes:
        cosine: of the best cosine of query and text.
        best: of the best BM25 over what is attainable; where it is 0, none is searched for.
        occurring: of the share of the query's words that occur, by weight.
        identified: of the share of its identifiers that occur. The share that numbers have which
            nothing has counts `AGAINST` times as much against.
        bias: what is added.
        recalled: what is less sure is not recalled where nobody asked for it.
    """

    cosine: float
    best: float
    occurring: float
    identified: float
    bias: float
    recalled: float = RECALLED_BY_DEFAULT

    def confidence(self, cosine: float, best: float, words: WordEvidence) -> float:
        """Return the confidence, 0 to 1.

        To an embedding model order 88421 is much the same as order 88412. But who is to handle a
        new order can use what is known of others, so that is still recalled.
        """
        total = (
            self.cosine * cosine
            + self.best * best
            + self.occurring * words.occurring
            + self.identified * words.identified
            + self.bias
        )
        against = AGAINST * self.identified * words.missing
        return max(_sure(total - against), min(_sure(total), self.recalled))


def _sure(total: float) -> float:
    return 1.0 / (1.0 + math.exp(-total))


_MINILM = Fit(cosine=24.87, best=0.0, occurring=4.49, identified=7.5, bias=-13.26)
_E5 = Fit(cosine=68.88, best=4.51, occurring=5.57, identified=7.5, bias=-61.45)
FITTED = {"all-MiniLM-L6-v2": _MINILM, "all-MiniLM-L6-v2-int8": _MINILM, E5: _E5}
"""By the id of the embedding model: one's cosines mean nothing for another."""
FACTS = Fit(
    cosine=11.0, best=0.0, occurring=0.0, identified=7.5, bias=-3.4, recalled=FACTS_BY_DEFAULT
)
"""For what has no session, on the default model's scale."""
BY_WORDS = Fit(cosine=0.0, best=6.6, occurring=6.9, identified=3.0, bias=-5.25)
"""For a query without a vector, and for memories that have none yet."""


def words_of(index: CorpusIndex, query: str, selection: Selection) -> WordEvidence:
    """Return how far the query's words are to be found."""
    return index.word_evidence(query, selection, identifiers_in(query))


def best_of(index: CorpusIndex, query: str, selection: Selection) -> Hits:
    """Return the memory that matches the query's words best, if any does."""
    return index.search_lexical(query, 1, selection)


def attained(best: Hits, words: WordEvidence) -> float:
    """Return the score of the best match over what is attainable, 0 to 1."""
    known = best.rows.size > 0 and words.attainable > 0
    return float(best.scores[0]) / words.attainable if known else 0.0


def confidence_of(
    words: Callable[[], WordEvidence],
    best: Callable[[], Hits],
    model_id: str,
    *,
    rows: Rows,
    similarity: Floats,
    facts: Bools,
    by_words: bool,
) -> float | None:
    """Return how sure it is that something selected bears on the query.

    None when it would take the cosines of a model that is not fitted.

    Args:
        words: returns `words_of` the query.
        best: returns `best_of` it; called only where it matters.
        model_id: the embedding model's.
        rows: the candidates, (n,).
        similarity: their cosines, (n,), NaN where there is none.
        facts: which of them have no session, (n,).
        by_words: whether the query has no vector.
    """
    fit = FITTED.get(model_id)
    if fit is None and not by_words:
        return None
    found = words()
    if not found.telling:
        return 0.0
    known = ~np.isnan(similarity)
    if fit is None or by_words or not known.any():
        return BY_WORDS.confidence(0.0, attained(best(), found), found)
    waiting = rows[~known]
    match = best() if fit.best or waiting.size else NO_HITS
    share = attained(match, found)
    sure = 0.0
    if (said := similarity[known & ~facts]).size:
        sure = fit.confidence(float(said.max()), share, found)
    if (of_facts := similarity[known & facts]).size:
        cosine = scale_of(model_id).usual(of_facts.max(keepdims=True))
        sure = max(sure, FACTS.confidence(float(cosine[0]), share, found))
    if np.isin(match.rows, waiting).any():
        sure = max(sure, BY_WORDS.confidence(0.0, share, found))
    return sure
