"""BM25 as tantivy computes it, for texts that it does not hold (Robertson and Zaragoza, "The
Probabilistic Relevance Framework: BM25 and Beyond", 2009).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from tantivy import Query, Schema, Searcher

from mneme_server.engine.corpus.document import Document
from mneme_server.engine.index.words.analysis import WordField, Words

K1, B = 1.2, 0.75
Lengths = TypeVar("Lengths", float, NDArray[np.float64])
_TERMS_TRIED = 16


def score(
    waiting: Iterable[WaitingDocument],
    terms: Sequence[str],
    weights: Mapping[WordField, float],
    statistics: Statistics,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the ids and scores of the documents that have any of `terms`, in no order.

    BM25: idf · tf · (k1 + 1) / (tf + k1 · (1 - b + b · length / average length)), summed over the
    terms and, weighted, over the fields; idf is ln(1 + (N - n + ½) / (n + ½)). N, n and the average
    are those of the committed documents, so that equal texts tie; of these while there are none.
    """
    documents = list(waiting)
    totals = np.zeros(len(documents))
    for field, weight in weights.items() if documents else ():
        counted = [document.counts(field) for document in documents]
        average = statistics.average_length(field, [counts.total() for counts in counted])
        idf = {term: statistics.idf(field, term, counted) for term in terms}
        for place, counts in enumerate(counted):
            norm = length_norm(counts.total(), average)
            for term in terms:
                if frequency := counts.get(term):
                    tf = frequency * (K1 + 1) / (frequency + norm)
                    totals[place] += weight * idf[term] * tf
    ids = np.array([document.document.doc_id for document in documents], np.int64)
    found = totals > 0
    return ids[found], totals[found].astype(np.float32)


class WaitingDocument:
    """A document that tantivy does not hold yet, with its words, which are counted when they are
    first asked for.

    A commit costs milliseconds. A search scores the few documents that wait for the next commit
    itself, with the formula that tantivy uses for the others, so that it has to wait for none. They
    are so few that counting them would hardly change how rare a word is; see
    `IndexSettings.commit_share`.
    """

    def __init__(self, document: Document, words: Words) -> None:
        self.document = document
        self._words = words
        self._language: str | None = None
        self._counts: dict[WordField, Counter[str]] = {}

    @property
    def language(self) -> str:
        """The language of its text; "" for English."""
        if self._language is None:
            self._language = self._words.language_of(self.document)
        return self._language

    def counts(self, field: WordField) -> Counter[str]:
        """Return how often each word occurs in `field`."""
        counts = self._counts.get(field)
        if counts is None:
            words = self._words.of(self.document, field, self.language)
            counts = self._counts[field] = Counter(words)
        return counts


class Statistics:
    """What BM25 needs to know of the committed documents."""

    def __init__(self, searcher: Searcher, schema: Schema) -> None:
        self._searcher = searcher
        self._schema = schema
        self._average: dict[WordField, float | None] = {}

    def idf(
        self,
        field: WordField,
        term: str,
        waiting: Sequence[Mapping[str, int]],
        having: int | None = None,
    ) -> float:
        """Return the weight of a term: the rarer, the higher. `waiting` counts their words;
        `having` is how many of the committed documents have the term, where that is known."""
        if having is None:
            having = self._searcher.doc_freq(field.value, term)
        count = self._searcher.num_docs
        if not count:
            having, count = sum(term in counts for counts in waiting), len(waiting)
        return inverse_frequency(count, having)

    def average_length(self, field: WordField, waiting: Sequence[int]) -> float:
        """Return the average number of words of `field`; `waiting` are their numbers."""
        if field not in self._average:
            self._average[field] = self._explained(field)
        return self._average[field] or max(1.0, sum(waiting) / max(1, len(waiting)))

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


def length_norm(length: Lengths, average: float) -> Lengths:
    """Return what a term's frequency is compared with, in documents of so many words."""
    return K1 * (1 - B + B * length / average)
