"""How new it is what an action leads to: a table beside that of values.

Where rewards are rare nothing tells actions apart at first, and who draws among them evenly gets
away from the beginning only slowly. So each step is also worth 1/sqrt(n) at its nth time (Strehl
and Littman, "An analysis of model-based interval estimation for Markov decision processes", 2008),
and what is new beyond it a share of that, as Q-learning reckons values. Only ties between values
are broken by it: what is known to be better is chosen all the same, however familiar it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_DISCOUNT = 0.95
_UNTRIED = 1 / (1 - _DISCOUNT)
"""The most there can be: each step for the first time, for ever."""
_LEAST_RATE, _RATE_DECAY = 0.1, 0.4
"""The nth target counts n to the power of minus `_RATE_DECAY`, at least `_LEAST_RATE`."""


class Novelty:
    """What actions were taken in states, and how new that was with what lay beyond."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[int, tuple[int, float]]] = {}

    def of(self, state: str, actions: Sequence[int]) -> list[float]:
        """Return how new each action is in a state."""
        row = self._rows.get(state, {})
        return [row[action][1] if action in row else _UNTRIED for action in actions]

    def note(self, state: str, action: int, beyond: str | None, actions: Sequence[int]) -> None:
        """Count a step in.

        Args:
            state: where it was taken.
            action: what was done.
            beyond: where it led; None if nothing follows.
            actions: what can be done there.
        """
        follows = 0.0 if beyond is None else max(self.of(beyond, actions), default=_UNTRIED)
        row = self._rows.setdefault(state, {})
        tries, novelty = row.get(action, (0, _UNTRIED))
        tries += 1
        target = 1 / math.sqrt(tries) + _DISCOUNT * follows
        rate = max(_LEAST_RATE, tries**-_RATE_DECAY)
        row[action] = (tries, novelty + rate * (target - novelty))

    def dump(self) -> Mapping[str, Any]:
        """Return it, as JSON and arrays."""
        cells = [
            (number, action, *known)
            for number, row in enumerate(self._rows.values())
            for action, known in row.items()
        ]
        return {
            "states": list(self._rows),
            "state": np.array([cell[0] for cell in cells], dtype=np.int64),
            "action": np.array([cell[1] for cell in cells], dtype=np.int64),
            "tries": np.array([cell[2] for cell in cells], dtype=np.int64),
            "novelty": np.array([cell[3] for cell in cells]),
        }

    def load(self, kept: Mapping[str, Any]) -> None:
        """Take over what `dump` returned."""
        rows: list[dict[int, tuple[int, float]]] = [{} for _ in kept["states"]]
        columns = (kept[name].tolist() for name in ("state", "action", "tries", "novelty"))
        for state, action, tries, novelty in zip(*columns, strict=True):
            rows[state][action] = (tries, novelty)
        self._rows = dict(zip(kept["states"], rows, strict=True))
