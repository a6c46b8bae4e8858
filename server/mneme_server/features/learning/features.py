"""States as vectors, for algorithms that generalise, and as keys, for those that keep a table.

Each dimension stands for a fact with a name ("complexity", "task_type=auth"): a number has its
dimension, a text one for each of its values. Numbers are as they are up to 1 and grow with their
logarithm beyond; those of a box with finite bounds run from -1 to 1.

Facts of objects that are not declared get a dimension each, in the order in which they are first
seen, as long as there are any left; later ones share dimensions by their hash.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.canonical import Json, canonical_json
from mneme_server.features.learning.spaces import (
    Box,
    Dict,
    Discrete,
    MultiDiscrete,
    OpenLabels,
    OpenObject,
    Space,
    leaves_of,
)

Fact = tuple[str, float]
_WHOLE = 1_000
"""Whole numbers up to it are kept apart; larger ones are binned, too."""


def facts(space: Space, value: Json, path: str = "") -> Iterator[Fact]:
    """Yield the facts of a value: names, and numbers of about 1."""
    match space:
        case Discrete() | OpenLabels():
            yield _is(path, value), 1.0
        case MultiDiscrete():
            assert isinstance(value, Sequence)
            yield from ((_is(_item(path, n), one), 1.0) for n, one in enumerate(value))
        case Box():
            assert isinstance(value, Sequence)
            bounds = zip(value, space.low, space.high, strict=True)
            for n, (one, low, high) in enumerate(bounds):
                assert isinstance(one, int | float)
                yield _item(path, n), _scaled(float(one), low, high)
        case Dict():
            assert isinstance(value, dict)
            for key, inner in space.spaces.items():
                yield from facts(inner, value[key], f"{path}.{key}" if path else key)
        case OpenObject():
            for leaf_path, leaf in leaves_of(value, path):
                if isinstance(leaf, str | bool):
                    yield _is(leaf_path, leaf), 1.0
                else:
                    yield leaf_path, squashed(float(leaf))


def squashed(number: float) -> float:
    """Return a number of any size as one of about 1: itself up to 1, growing with its logarithm."""
    size = abs(number)
    return number if size <= 1 else math.copysign(1 + math.log(size), number)


def _scaled(number: float, low: float, high: float) -> float:
    # In halves: the difference of two numbers may be beyond the largest one.
    if math.isfinite(low) and math.isfinite(high) and low / 2 < high / 2:
        return (number / 2 - low / 2) / (high / 2 - low / 2) * 2 - 1
    return squashed(number)


def _is(path: str, value: Json) -> str:
    return f"{path}={value}"


def _item(path: str, number: int) -> str:
    return f"{path}[{number}]"


def key_of(space: Space, value: Json, bins: int) -> str:
    """Return the key of a value of `space`; `bins` is how many parts a bounded number has.

    States with the same key are the same state to them. Numbers that are not whole are binned:
    those of a box with finite bounds into equal parts of it, others to their first digit (0.83
    is 0.8, 0.034 is 0.03), so that a bin is as wide as the number is large.
    """
    return canonical_json(_binned(space, value, bins))


def first_digit(number: float) -> float:
    """Return a number rounded to its first digit."""
    if number == 0 or not math.isfinite(number):
        return number
    rounded = float(f"{number:.0e}")
    return rounded if math.isfinite(rounded) else number  # Beyond the largest number there is.


def _binned(space: Space | None, value: Json, bins: int) -> Json:
    if isinstance(space, Box) and isinstance(value, Sequence):
        parts = zip(value, space.low, space.high, strict=True)
        return [_part(one, low, high, bins) for one, low, high in parts]
    if isinstance(value, Mapping):
        inner = space.spaces if isinstance(space, Dict) else {}
        return {key: _binned(inner.get(key), one, bins) for key, one in value.items()}
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, Sequence):
        return [_binned(None, one, bins) for one in value]
    whole = float(value).is_integer() and abs(value) <= _WHOLE
    return int(value) if whole else first_digit(float(value))


def _part(value: Json, low: float, high: float, bins: int) -> Json:
    assert isinstance(value, int | float)
    if not (math.isfinite(low) and math.isfinite(high) and low / 2 < high / 2):
        return first_digit(float(value))
    # In halves: the difference of two numbers may be beyond the largest one.
    return min(int((value / 2 - low / 2) / (high / 2 - low / 2) * bins), bins - 1)


class Dimensions:
    """The dimensions of a vector and the facts that they stand for.

    A fact gets one when it is first noticed, as long as there are any left; later facts share
    dimensions by their hash.

    Args:
        size: how many there are.
        names: the facts that have one already, in order.
    """

    def __init__(self, size: int, names: Sequence[str] = ()) -> None:
        self.size = size
        self._places = {name: place for place, name in enumerate(names)}

    def __len__(self) -> int:
        """Return how many are taken."""
        return len(self._places)

    @property
    def names(self) -> list[str]:
        """The facts that have a dimension of their own, in the order of these."""
        return list(self._places)

    def notice(self, names: Iterable[str]) -> None:
        """Give dimensions to facts that are new."""
        for name in names:
            if len(self._places) >= self.size:
                return
            self._places.setdefault(name, len(self._places))

    def has(self, name: str) -> bool:
        """Tell whether a fact has a dimension of its own."""
        return name in self._places

    def place(self, name: str) -> int | None:
        """Return the dimension of a fact; None for a new one that could get its own."""
        known = self._places.get(name)
        if known is not None or len(self._places) < self.size:
            return known
        digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
        return int.from_bytes(digest) % self.size

    def vector(self, facts: Iterable[tuple[str, float]]) -> NDArray[np.float64]:
        """Return facts as a vector of `size` numbers; new ones are left out."""
        vector = np.zeros(self.size)
        for name, number in facts:
            place = self.place(name)
            if place is not None:
                vector[place] += number
        return vector
