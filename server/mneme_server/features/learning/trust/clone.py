"""The behaviour that produced the data, fitted: with which probability it chose each action."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.canonical import Json
from mneme_server.features.learning.spaces import Space
from mneme_server.features.learning.trust.encoding import Encoder
from mneme_server.statistics.regression import Softmax

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Numbers = NDArray[np.int64]

_FOLDS = 5
LEAST = 0.01
"""No estimated probability is taken to be smaller: a fit cannot tell rare from never."""


class Clone:
    """A policy that chooses as often as somebody did.

    Args:
        space: of the states.
        states: in which decisions were taken.
        actions: the numbers of the actions, as many.
    """

    def __init__(self, space: Space, states: Sequence[Json], actions: Sequence[int]) -> None:
        self._encode = Encoder(space, states)
        self.actions = sorted(set(actions))
        places = np.searchsorted(self.actions, actions)
        self._fit = Softmax(self._encode(states), places, len(self.actions))

    def probabilities(self, state: Json, allowed: Sequence[int]) -> Vector:
        """Return the probability of each allowed action, in their order. Actions that were never
        chosen have none, unless only such are allowed."""
        known = dict(zip(self.actions, self._fit(self._encode([state]))[0].tolist(), strict=True))
        shares = np.array([known.get(action, 0.0) for action in allowed])
        total = float(shares.sum())
        return shares / total if total > 0 else np.full(len(allowed), 1 / len(allowed))


def estimated(states: Matrix, places: Numbers, episodes: Numbers, actions: int) -> Vector:
    """Return the probability of each action that was taken, each fitted on other episodes.

    Args:
        states: encoded, shape (n, d).
        places: which action was taken, shape (n,).
        episodes: the number of the episode that it belongs to, shape (n,).
        actions: how many there are.
    """
    found = np.zeros(len(places))
    for fold in range(_FOLDS):
        mine = episodes % _FOLDS == fold
        if mine.any():
            fit = Softmax(states[~mine], places[~mine], actions)
            found[mine] = fit(states[mine])[np.arange(int(mine.sum())), places[mine]]
    return np.maximum(found, LEAST)
