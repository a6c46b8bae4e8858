"""BM25 as tantivy computes it, for texts that it does not hold (Robertson and Zaragoza, "The
Probabilistic Relevance Framework: BM25 and Beyond", 2009): idf · tf · (k1 + 1) / (tf + k1 · (1 - b
+ b · length / average length)), where idf is ln(1 + (N - n + ½) / (n + ½)).
"""

from __future__ import annotations

import json
import math
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from tantivy import Query, Schema, Searcher

from mneme_server.engine.index.words.analysis import WordField

K1, B = 1.2, 0.75
Lengths = TypeVar("Lengths", float, NDArray[np.float64])
_TERMS_TRIED = 16
_EACH_LENGTH = 24
_LENGTHS_OF_A_STEP = 8
_STEPS = 28


class WordStatistics(Protocol):
    """What BM25 needs to know of the documents that it ranks."""

    def idf(self, field: WordField, word: str) -> float:
        """Return the weight of a word: the rarer, the higher."""
        ...

    def frequency(self, field: WordField, word: str) -> int:
        """Return how many documents hold a word."""
        ...

    def average_length(self, field: WordField) -> float:
        """Return the average number of words of a field."""
        ...


class Statistics:
    """Implements `WordStatistics` for the committed documents."""

    def __init__(self, searcher: Searcher, schema: Schema) -> None:
        self._searcher = searcher
        self._schema = schema
        self._average: dict[WordField, float] = {}

    def idf(self, field: WordField, word: str) -> float:
        """See `WordStatistics`."""
        return inverse_frequency(self._searcher.num_docs, self.frequency(field, word))

    def frequency(self, field: WordField, word: str) -> int:
        """See `WordStatistics`."""
        return int(self._searcher.doc_freq(field.value, word))

    def average_length(self, field: WordField) -> float:
        """See `WordStatistics`."""
        if field not in self._average:
            self._average[field] = self._explained(field) or 1.0
        return self._average[field]

    def _explained(self, field: WordField) -> float | None:
        """Return the average that tantivy uses; only its explanation of a hit tells it."""
        for term, _ in self._searcher.terms_with_prefix(field.value, "", limit=_TERMS_TRIED):
            query = Query.term_query(self._schema, field.value, term, "freq")
            hits = self._searcher.search(query, 1, count=False).hits
            if hits:
                return _average_in(json.loads(query.explain(self._searcher, hits[0][1]).to_json()))
        return None


def _average_in(explanation: dict[str, Any]) -> float | None:
    if str(explanation.get("description", "")).startswith("avgdl"):
        return float(explanation["value"])
    found = (_average_in(detail) for detail in explanation.get("details", ()))
    return next((average for average in found if average), None)


def inverse_frequency(count: int, having: int) -> float:
    """Return the weight of a term that so many of `count` documents have: the rarer, the higher."""
    return math.log(1 + (max(count - having, 0) + 0.5) / (having + 0.5))


def kept_lengths(lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return numbers of words as tantivy keeps them, in a byte each: up to 40 as they are, then
    with three bits behind the first, rounded down."""
    places = np.searchsorted(_KEPT_LENGTHS, lengths, side="right") - 1
    return _KEPT_LENGTHS[places].astype(np.float64)


def _kept_lengths() -> NDArray[np.int64]:
    above = [
        (_LENGTHS_OF_A_STEP + place) << step
        for step in range(_STEPS)
        for place in range(_LENGTHS_OF_A_STEP)
    ]
    each = [*range(_LENGTHS_OF_A_STEP), *above]
    return np.array([*range(_EACH_LENGTH), *(_EACH_LENGTH + length for length in each)], np.int64)


_KEPT_LENGTHS = _kept_lengths()


def length_norm(length: Lengths, average: float) -> Lengths:
    """Return what a term's frequency is compared with, in documents of so many words."""
    return K1 * (1 - B + B * length / average)
