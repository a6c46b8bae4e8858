"""Actions by number: learners know them so, callers by their label or value."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mneme_server.common.canonical import Json, canonical_json
from mneme_server.features.learning.spaces import (
    Box,
    Dict,
    Discrete,
    MultiDiscrete,
    OpenLabels,
    OpenObject,
    Space,
)

MOST_ACTIONS = 1_000
"""How many actions a space may have; of a `MultiDiscrete` the product of its sizes."""


def count_of(space: Space) -> int | None:
    """Return how many actions a space has; None if they are not numbered, or new ones may appear.

    Raises:
        TypeError: no algorithm has actions of this space.
    """
    match space:
        case Discrete():
            return space.size
        case MultiDiscrete():
            return math.prod(space.sizes)
        case OpenLabels() | Box():
            return None
        case Dict() | OpenObject():
            raise TypeError("actions are one of a number, or a box")


class Actions:
    """The numbers of the actions of a space that is not a `Box`. Not thread-safe.

    Args:
        space: the space.
        seen: the labels of an open space that were collected already, in the order of their
            numbers.
    """

    def __init__(self, space: Discrete | MultiDiscrete | OpenLabels, seen: Sequence[Json] = ()):
        self._space = space
        self._values: list[Json] = list(seen)
        if isinstance(space, Discrete):
            self._values = list(space.labels or range(space.size))
        elif isinstance(space, MultiDiscrete):
            self._values = [list(map(int, one)) for one in np.ndindex(*space.sizes)]
        self._numbers = {_key(value): number for number, value in enumerate(self._values)}

    def __len__(self) -> int:
        """Return how many are known."""
        return len(self._values)

    def __getitem__(self, number: int) -> Json:
        """Return the action with a number."""
        return self._values[number]

    @property
    def values(self) -> Sequence[Json]:
        """The known actions in the order of their numbers."""
        return self._values

    def number(self, value: Json) -> int | None:
        """Return the number of an action that was checked; None for a label that is new."""
        return self._numbers.get(_key(value))

    def add(self, value: Json) -> int:
        """Return the number of an action, which a new label of an open space gets."""
        key = _key(value)
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = len(self._values)
            self._values.append(value)
        return known


def _key(value: Json) -> str | int:
    return value if isinstance(value, str | int) else canonical_json(value)
