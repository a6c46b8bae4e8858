"""BM25, as tantivy computes it: its parameters and the parts that need no index (Robertson and
Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009)."""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

K1, B = 1.2, 0.75

Lengths = TypeVar("Lengths", float, NDArray[np.float64])


def idf(count: int, having: int) -> float:
    """Return the weight of a term that so many of `count` documents have: the rarer, the higher."""
    return math.log(1 + (max(count - having, 0) + 0.5) / (having + 0.5))


def norm(length: Lengths, average: float) -> Lengths:
    """Return what a term's frequency is compared with, in documents of so many words."""
    return K1 * (1 - B + B * length / average)
