"""What a policy's actions are worth, as a regression sees it: fitted Q evaluation (Le, Voloshin and
Yue, "Batch policy learning under constraints", 2019).

Q is fitted to rewards plus what the policy would earn from there on according to the last Q, until
it no longer changes. Where episodes were broken off, it is only fitted for as many steps as the
longest has: there is no more to be earned in one. In tasks of one step that is a regression of the
rewards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mneme_server.statistics.regression import ActionValues

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

_MOST_ROUNDS = 300
_SETTLED = 1e-3
"""Of the range of what can be earned: smaller changes end the fit."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Decisions to fit to.

    Args:
        states: encoded, shape (n, d).
        places: which action was taken, shape (n,).
        rewards: shape (n,).
        following: where they led, encoded, shape (n, d); anything where nothing follows.
        policy: the policy's probability of each action there, shape (n, actions).
        goes_on: whether anything follows, shape (n,).
        discount: what a reward one step later is worth.
        horizon: the number of steps of the longest episode.
        broken_off: whether any episode was, so that none is to be played on beyond the horizon.
    """

    states: Matrix
    places: NDArray[np.int64]
    rewards: Vector
    following: Matrix
    policy: Matrix
    goes_on: NDArray[np.bool_]
    discount: float
    horizon: int
    broken_off: bool

    @property
    def rounds(self) -> int:
        """How often to look one step further, at most."""
        return min(_MOST_ROUNDS, self.horizon - 1) if self.broken_off else _MOST_ROUNDS

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the most that an episode could earn."""
        longest = float((self.discount ** np.arange(self.horizon)).sum())
        low, high = float(self.rewards.min()), float(self.rewards.max())
        return min(low, low * longest), max(high, high * longest)


def fitted(steps: Steps) -> Callable[[Matrix], Matrix]:
    """Return what each action is worth in encoded states, as a function of these."""
    values = ActionValues(steps.states, steps.places, steps.policy.shape[1])
    low, high = steps.bounds

    def worth(states: Matrix) -> Matrix:
        return np.clip(values(states), low, high)

    values.fit(steps.rewards)
    if not steps.goes_on.any():
        return worth
    before = np.full(len(steps.rewards), np.inf)
    for _ in range(steps.rounds):
        follows = (steps.policy * worth(steps.following)).sum(axis=1) * steps.goes_on
        targets = np.clip(steps.rewards + steps.discount * follows, low, high)
        values.fit(targets)
        if float(np.abs(targets - before).max()) <= _SETTLED * (high - low):
            break
        before = targets
    return worth
