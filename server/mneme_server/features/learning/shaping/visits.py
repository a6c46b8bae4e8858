"""Novelty: a bonus that falls with how often a state was visited: 1 / sqrt(visits).

Strehl and Littman, "An analysis of model-based interval estimation for Markov decision processes",
2008; states are told apart by a key, as in Tang et al., "#Exploration", 2017.

Visits are counted in a sketch of a fixed size (Cormode and Muthukrishnan, "An improved data stream
summary: the count-min sketch", 2005): of more than some ten thousand states a rare one may look as
if it had been visited more often, never less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import numpy as np

_ROWS, _COLUMNS = 4, 1 << 14


class Visits:
    """How often states were visited."""

    def __init__(self) -> None:
        self._counts = np.zeros((_ROWS, _COLUMNS), dtype=np.uint32)

    def visit(self, key: str) -> int:
        """Count a visit; return how many there were, this one included."""
        cells = self._cells(key)
        count = int(self._counts[cells].min()) + 1
        # Only what is too small is raised: other states in the same cells gain nothing.
        self._counts[cells] = np.maximum(self._counts[cells], count)
        return count

    def count(self, key: str) -> int:
        """Return how often a state was visited."""
        return int(self._counts[self._cells(key)].min())

    def dump(self) -> Mapping[str, Any]:
        """Return all that it knows, as arrays."""
        return {"counts": self._counts.copy()}

    @classmethod
    def load(cls, known: Mapping[str, Any]) -> Visits:
        """Return the counts that `dump` was called on."""
        found = cls()
        found._counts = known["counts"].copy()
        return found

    def _cells(self, key: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        digest = blake2b(key.encode(), digest_size=4 * _ROWS).digest()
        return np.arange(_ROWS), np.frombuffer(digest, dtype="<u4") % _COLUMNS


def novelty(visits: int) -> float:
    """Return the bonus of a state with so many visits: 1 for the first one."""
    return 1 / math.sqrt(max(1, visits))
