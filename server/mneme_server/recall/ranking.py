"""How candidates are ranked: a sum of few terms, each of which can be read and switched off.

Every term is neutral where it does not apply: a lesson has no session and no neighbours, a fact has
no author. The weights were chosen by hand on conversations, left one out at a time, and checked on
agents' traces; `benchmarks/locomo.py` measures them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

NO_SESSION = -1
CONTEXT_WEIGHT = 2.0
"""Weight of BM25 over a text with its context, beside BM25 over the text alone."""
MAX_WORDS = 64
"""The length term stops growing here: a long tool output is no better than a sentence."""
UNRELATED_COSINE = 0.1
"""Cosine of unrelated texts under MiniLM; a neighbour lifts only above it."""
HALF_LIFE_DAYS = 30.0
"""Age at which the recency term has fallen to half."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of the terms. 0 switches a term off."""

    lexical: float = 1.0
    """BM25 of text and context, divided by the best candidate's."""
    dense: float = 1.0
    """Cosine of query and text."""
    answer: float = 1.0
    """Cosine of the text before, above `UNRELATED_COSINE`, when that one asks a question."""
    next: float = 0.6
    """Cosine of the text after, above `UNRELATED_COSINE`: what follows tells what it was about."""
    session_dense: float = 1.0
    """Best cosine among the session's candidates."""
    session_lexical: float = 0.5
    """Best lexical term among the session's candidates."""
    author: float = 0.2
    """1 when the query names whoever speaks."""
    length: float = 0.2
    """Natural logarithm of the number of words: "Thanks!" answers nothing."""
    date: float = 1.0
    """How well the day fits a date that the query names, 0 to 1; see `dates.date_match`."""
    importance: float = 0.1
    """Importance from -0.5 (low) to 0.5 (critical)."""
    recency: float = 0.05
    """2 ** (-age / `HALF_LIFE_DAYS`), age against the newest memory."""

    def highest(self) -> float:
        """Return the sum that a perfect memory would get; what `score` is measured against."""
        return float(
            self.lexical + self.dense + self.answer + self.next
            + self.session_dense + self.session_lexical + self.author
            + self.length * np.log(MAX_WORDS) + self.importance / 2 + self.recency
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Candidates:
    """What is known of n candidates: arrays (n,). Cosines that do not exist are NaN."""

    lexical: Floats
    cosine: Floats
    cosine_previous: Floats
    cosine_next: Floats
    previous_asks: Bools
    session: Ints
    words: Floats
    author_named: Bools
    date_match: Floats
    importance: Floats
    age_days: Floats


TERMS = tuple(field.name for field in fields(Weights))


def measure(candidates: Candidates) -> Floats:
    """Return the terms before weighting, (terms, n), in the order of `TERMS`."""
    cosine = np.nan_to_num(candidates.cosine, nan=0.0)
    best = candidates.lexical.max(initial=0.0)
    lexical = candidates.lexical / best if best > 0 else np.zeros_like(candidates.lexical)
    return np.stack(
        [
            lexical,
            cosine,
            _lift(candidates.cosine_previous) * candidates.previous_asks,
            _lift(candidates.cosine_next),
            _best_of_session(cosine, candidates.session),
            _best_of_session(lexical, candidates.session),
            candidates.author_named,
            np.log(np.clip(candidates.words, 1, MAX_WORDS)),
            candidates.date_match,
            candidates.importance,
            np.exp2(-candidates.age_days / HALF_LIFE_DAYS),
        ]
    )


def contributions(terms: Floats, weights: Weights) -> Floats:
    """Return what each term adds to the sum that ranks, (terms, n)."""
    by_term: Floats = np.array([getattr(weights, name) for name in TERMS], dtype=np.float64)
    return terms * by_term[:, np.newaxis]


def _lift(cosine: Floats) -> Floats:
    return np.maximum(np.nan_to_num(cosine, nan=0.0) - UNRELATED_COSINE, 0.0)


def _best_of_session(values: Floats, session: Ints) -> Floats:
    """Return for each row the largest value of its session; its own where it has none."""
    best = values.copy()
    inside = session != NO_SESSION
    if inside.any():
        _, group = np.unique(session[inside], return_inverse=True)
        highest = np.full(int(group.max()) + 1, -np.inf)
        np.maximum.at(highest, group, values[inside])
        best[inside] = highest[group]
    return best
