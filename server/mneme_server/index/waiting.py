"""Documents that tantivy does not hold yet.

A commit costs tens of milliseconds, most of it waiting for the disk. A search scores the few
documents that wait for the next commit itself, with the formula and the statistics that tantivy
uses for the others, so that neither has to wait for the other.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tantivy import Query, Schema, Searcher, TextAnalyzer

from mneme_server.corpus.document import Document
from mneme_server.index.fields import WORDS_OF, Field

_K1, _B = 1.2, 0.75  # tantivy's.
_TERMS_TRIED = 16


class WaitingDocument:
    """A document with its words, which are counted when they are first asked for."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._counts: dict[Field, Counter[str]] = {}

    def counts(self, field: Field, words: TextAnalyzer) -> Counter[str]:
        """Return how often each word occurs in `field`."""
        counts = self._counts.get(field)
        if counts is None:
            counts = self._counts[field] = Counter(words.analyze(WORDS_OF[field](self.document)))
        return counts


def score(
    waiting: Iterable[WaitingDocument],
    terms: Sequence[str],
    weights: Mapping[Field, float],
    statistics: Statistics,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the ids and scores of the documents that have any of `terms`, in no order.

    BM25: idf · tf · (k1 + 1) / (tf + k1 · (1 - b + b · length / average length)), summed over the
    terms and, weighted, over the fields; idf is ln(1 + (N - n + ½) / (n + ½)).
    """
    ids: list[int] = []
    scores: list[float] = []
    documents = list(waiting)
    if not documents:
        return np.array(ids, np.int64), np.array(scores, np.float32)
    idf = {(f, term): statistics.idf(f, term) for f, weight in weights.items() for term in terms}
    average = {f: _average_length(f, documents, statistics) for f in weights}
    for document in documents:
        total = 0.0
        for field, weight in weights.items():
            counts = document.counts(field, statistics.words)
            norm = _K1 * (1 - _B + _B * counts.total() / average[field])
            for term in terms:
                if frequency := counts.get(term):
                    tf = frequency * (_K1 + 1) / (frequency + norm)
                    total += weight * idf[field, term] * tf
        if total:
            ids.append(document.document.doc_id)
            scores.append(total)
    return np.array(ids, np.int64), np.array(scores, np.float32)


class Statistics:
    """What BM25 needs to know of the committed documents."""

    def __init__(self, searcher: Searcher, schema: Schema, words: TextAnalyzer) -> None:
        self.words = words
        self._searcher = searcher
        self._schema = schema
        self._average: dict[Field, float | None] = {}

    def idf(self, field: Field, term: str) -> float:
        """Return the weight of a term: the rarer, the higher."""
        having = self._searcher.doc_freq(field.value, term)
        count = max(self._searcher.num_docs, having)
        return math.log(1 + (count - having + 0.5) / (having + 0.5))

    def average_length(self, field: Field) -> float | None:
        """Return the average number of words of `field`; None when nothing is committed."""
        if field not in self._average:
            self._average[field] = self._explained(field)
        return self._average[field]

    def _explained(self, field: Field) -> float | None:
        """Return the average that tantivy uses; only its explanation of a hit tells it."""
        for term, _ in self._searcher.terms_with_prefix(field.value, "", limit=_TERMS_TRIED):
            query = Query.term_query(self._schema, field.value, term, "freq")
            hits = self._searcher.search(query, 1, count=False).hits
            if hits:
                return _average_in(json.loads(query.explain(self._searcher, hits[0][1]).to_json()))
        return None


def _average_length(
    field: Field, waiting: Sequence[WaitingDocument], statistics: Statistics
) -> float:
    committed = statistics.average_length(field)
    if committed:
        return committed
    lengths = [document.counts(field, statistics.words).total() for document in waiting]
    return max(1.0, sum(lengths) / max(1, len(lengths)))


def _average_in(explanation: dict[str, Any]) -> float | None:
    if str(explanation.get("description", "")).startswith("avgdl"):
        return float(explanation["value"])
    found = (_average_in(detail) for detail in explanation.get("details", ()))
    return next((average for average in found if average), None)
