"""States as vectors, for the regressions that off-policy evaluation needs.

A text has a dimension for each of its values, a number its own and one for each quarter of its
range that it may be in, and pairs of facts have one as long as there is room: the most frequent
facts first. Columns have mean 0 and deviation 1, but for the first, which is 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.canonical import Json
from mneme_server.features.learning.features import facts
from mneme_server.features.learning.spaces import Space

Matrix = NDArray[np.float64]

_MOST_CROSSED = 16
"""Facts of one state that are paired: their pairs grow with the square."""
_LEAST_SEEN = 5
"""Rarer facts have no dimension."""


class Encoder:
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

    def __call__(self, states: Sequence[Json]) -> Matrix:
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
