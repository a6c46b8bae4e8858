"""The passage of a long text that bears most on a query."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np

from mneme_server.common.passages import Passage, is_long, passages
from mneme_server.engine.corpus.ports import CorpusIndex, Matrix, Scores
from mneme_server.engine.corpus.words import STOP_WORDS, words_of
from mneme_server.features.recall.model import Recalled

_OF_WORDS = 0.3
"""What it adds to a passage's cosine that it has all words of the query: a name that stands in one
passage alone tells more than its cosine, which hardly knows it."""


def add_passages(
    index: CorpusIndex,
    query: str,
    vectors: Matrix | None,
    results: Sequence[Recalled],
    rows: Sequence[int],
) -> None:
    """Note of each result of a long text which passage bears most on the query.

    Args:
        index: what was searched.
        query: what was asked.
        vectors: that of the query (1, d); None where it has none.
        results: what was found.
        rows: the row of each.
    """
    for result, row in zip(results, rows, strict=True):
        if is_long(result.document.text):
            near = None if vectors is None else index.each_similarity(vectors[0], row)
            result.passage = bearing_most(result.document.text, query, near)


def bearing_most(text: str, query: str, near: Scores | None) -> Passage | None:
    """Return the passage of a long text that bears most on a query; None of one that is short, and
    where none does.

    Args:
        text: the text.
        query: what was asked.
        near: the cosines of the query with all vectors of the text; None where it has none.
    """
    cut = passages(text)
    if not cut:
        return None
    wanted = words_of(query).difference(STOP_WORDS)
    bearing = _shares(text, cut, wanted) * _OF_WORDS
    if near is not None and near.size == len(cut) + 1:  # Else they are not embedded yet.
        bearing += near[1:]
    best = int(bearing.argmax())
    return cut[best] if bearing[best] > 0 else None


def _shares(text: str, cut: Sequence[Passage], wanted: set[str]) -> Scores:
    """Return which share of the words each of the passages has."""
    shares = np.zeros(len(cut), np.float32)
    lowered = text.lower()
    said = lowered if len(lowered) == len(text) else text  # Places must be those of the text.
    starts = [one.start for one in cut]
    for word in wanted:
        places = {bisect_right(starts, at) - 1 for at in _places(said, word)}
        shares[[*places]] += 1 / len(wanted)
    return shares


def _places(text: str, word: str) -> Iterator[int]:
    """Yield where a word stands that is not part of another."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not text[at - 1 : at].isalnum() and not text[end : end + 1].isalnum():
            yield at
        at = text.find(word, end)
