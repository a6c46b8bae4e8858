"""Regressions that off-policy evaluation needs: states as vectors, and fitted Q evaluation.

A text has a dimension for each of its values, a number its own and one for each quarter of its
range that it may be in, and pairs of facts have one as long as there is room: the most frequent
facts first. Columns have mean 0 and deviation 1, but for the first, which is 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.canonical import Json
from mneme_server.features.learning.features import facts
from mneme_server.features.learning.spaces import Space
from mneme_server.statistics.regression import ActionValues

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

_MOST_CROSSED = 16
"""Facts of one state that are paired: their pairs grow with the square."""
_LEAST_SEEN = 5
"""Rarer facts have no dimension."""
_MOST_ROUNDS = 300
_SETTLED = 1e-3
"""Of the range of what can be earned: smaller changes end the fit."""


class RegressionEncoder:
    """Encodes states.

    Args:
        space: of the states.
        states: to learn from which facts there are.
        size: the largest number of dimensions.
    """

    def __init__(self, space: Space, states: Sequence[Json], size: int = 96) -> None:
        self._space = space
        self._quartiles = _quartiles([dict(facts(space, state)) for state in states])
        found = [self._facts(state) for state in states]
        counts = Counter(name for one in found for name in one)
        single = [name for name, n in counts.most_common(size - 1) if n >= _LEAST_SEEN]
        room = size - 1 - len(single)
        paired = (
            Counter(name for one in found for name, _ in _pairs(one)) if room > 0 else Counter()
        )
        names = single + [name for name, n in paired.most_common(room) if n >= _LEAST_SEEN]
        self._places = {name: place for place, name in enumerate(names, 1)}
        raw = self._raw(found)
        self._mean, self._scale = raw.mean(axis=0), raw.std(axis=0)
        self._mean[0], self._scale[0] = 0.0, 1.0
        self._scale[self._scale < 1e-9] = np.inf  # Always the same: it says nothing.

    @property
    def size(self) -> int:
        """How many dimensions there are."""
        return len(self._places) + 1

    def encode(self, states: Sequence[Json]) -> Matrix:
        """Return the vectors of states, shape (states, size)."""
        encoded: Matrix = (
            self._raw([self._facts(one) for one in states]) - self._mean
        ) / self._scale
        return encoded

    def _facts(self, state: Json) -> dict[str, float]:
        found = dict(facts(self._space, state))
        for name, number in list(found.items()):
            if (quartiles := self._quartiles.get(name)) is not None:
                found[f"{name} in {np.searchsorted(quartiles, number)}"] = 1.0
        return found

    def _raw(self, found: Sequence[Mapping[str, float]]) -> Matrix:
        raw = np.zeros((len(found), self.size))
        raw[:, 0] = 1.0
        for row, one in zip(raw, found, strict=True):
            for name, number in (*one.items(), *_pairs(one)):
                place = self._places.get(name)
                if place is not None:
                    row[place] = number
        return raw


def _quartiles(found: Sequence[Mapping[str, float]]) -> dict[str, Matrix]:
    numbers: dict[str, list[float]] = {}
    for one in found:
        for name, number in one.items():
            if "=" not in name:
                numbers.setdefault(name, []).append(number)
    return {
        name: np.unique(np.quantile(seen, (0.25, 0.5, 0.75)))
        for name, seen in numbers.items()
        if len(set(seen)) > 2
    }


def _pairs(found: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    for first, second in combinations(sorted(found)[:_MOST_CROSSED], 2):
        if _path(first) != _path(second):
            yield f"{first} and {second}", found[first] * found[second]


def _path(name: str) -> str:
    return name.split("=", 1)[0].split(" in ", 1)[0]


@dataclass(frozen=True, slots=True)
class RegressionSteps:
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


def fitted(steps: RegressionSteps) -> Callable[[Matrix], Matrix]:
    """Return what each action is worth in encoded states, as a function of these.

    Fitted Q evaluation (Le, Voloshin and Yue, "Batch policy learning under constraints", 2019):
    Q is fitted to rewards plus what the policy would earn from there on according to the last Q,
    until it no longer changes. Where episodes were broken off, it is only fitted for as many
    steps as the longest has: there is no more to be earned in one. In tasks of one step that is
    a regression of the rewards.
    """
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
