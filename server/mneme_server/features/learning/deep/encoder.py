"""States as vectors, a batch at once.

Numbers of a box are scaled to run from -1 to 1, or squashed where it has no bounds; one of several
is a 1 in a place of its own. Objects that are not declared get a dimension for each fact, in the
order in which facts are first learned from.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.canonical import Json, canonical_json
from mneme_server.features.learning.features import Dimensions, facts
from mneme_server.features.learning.spaces import (
    Box,
    Dict,
    Discrete,
    MultiDiscrete,
    OpenLabels,
    OpenObject,
    Space,
)

Vectors = NDArray[np.float32]

_MOST_APART = 4_096
"""A number of more values than these has dimensions that the values share by their hash."""
_UNBOUNDED = 1e6
"""Bounds beyond it say nothing about how large the numbers are (some write 3.4e38 for infinity)."""


class StateEncoder(ABC):
    """Turns values of a space into vectors.

    Attributes:
        size: how many numbers a vector has.
        binary: whether all are 0 or 1.
    """

    size: int
    binary = False

    @abstractmethod
    def encode(self, values: Sequence[Json]) -> Vectors:
        """Return the vectors of values that are in the space, shape (n, size)."""

    def numeric(self) -> NDArray[np.bool_]:
        """Return which dimensions are numbers, shape (size,); the others are 0 or about 1."""
        return np.zeros(self.size, bool)

    def notice(self, values: Sequence[Json]) -> None:  # noqa: B027 - most have nothing to notice.
        """Give dimensions to facts that are new in these values."""

    def dump(self) -> Any:
        """Return what it has noticed, as JSON."""
        return None

    def load(self, noticed: Any) -> None:  # noqa: B027
        """Take over what `dump` returned."""


def encoder_of(space: Space, features: int) -> StateEncoder:
    """Return the encoder of a space; `features` is the size of what is not declared."""
    match space:
        case Box():
            return _BoxEncoder(space)
        case Discrete() if space.size <= _MOST_APART:
            return _PlaceEncoder((space.size,), space.labels)
        case MultiDiscrete() if sum(space.sizes) <= _MOST_APART:
            return _PlaceEncoder(space.sizes)
        case Dict():
            return _ObjectEncoder(
                {key: encoder_of(inner, features) for key, inner in space.spaces.items()}
            )
        case Discrete() | MultiDiscrete():
            return _FactEncoder(space, _MOST_APART)
        case OpenObject() | OpenLabels():
            return _FactEncoder(space, features)


class _BoxEncoder(StateEncoder):
    def __init__(self, space: Box) -> None:
        self.size = len(space.low)
        low, high = np.array(space.low, float), np.array(space.high, float)
        self._bounded = (np.abs(low) < _UNBOUNDED) & (np.abs(high) < _UNBOUNDED) & (low < high)
        low, high = np.where(self._bounded, (low, high), ((-1.0,), (1.0,)))
        self._middle, self._half = low / 2 + high / 2, high / 2 - low / 2

    def encode(self, values: Sequence[Json]) -> Vectors:
        numbers = np.array(values, float).reshape(len(values), self.size)
        vectors = (numbers - self._middle) / self._half
        size = np.abs(vectors)
        squashed = np.copysign(1 + np.log(np.maximum(size, 1.0)), vectors)
        found: Vectors = np.where(self._bounded | (size <= 1), vectors, squashed).astype(np.float32)
        return found

    def numeric(self) -> NDArray[np.bool_]:
        return np.ones(self.size, bool)


class _PlaceEncoder(StateEncoder):
    """A 1 at the place of each number's value."""

    binary = True

    def __init__(self, sizes: Sequence[int], labels: Sequence[str] = ()) -> None:
        self.size = sum(sizes)
        self._labels = {label: place for place, label in enumerate(labels)}
        self._starts = np.cumsum([0, *sizes[:-1]])

    def encode(self, values: Sequence[Json]) -> Vectors:
        numbers = [self._labels[one] if isinstance(one, str) else one for one in values]
        places = np.array(numbers, int).reshape(len(values), -1) + self._starts
        vectors = np.zeros((len(values), self.size), np.float32)
        np.put_along_axis(vectors, places, 1.0, axis=1)
        return vectors


class _FactEncoder(StateEncoder):
    """A dimension for each fact, the first that were noticed; the others share by their hash."""

    def __init__(self, space: Space, size: int) -> None:
        self.size = size
        self._space = space
        self._dimensions = Dimensions(size)

    def encode(self, values: Sequence[Json]) -> Vectors:
        rows = [self._dimensions.vector(facts(self._space, self._named(one))) for one in values]
        return np.array(rows, np.float32).reshape(len(values), self.size)

    def notice(self, values: Sequence[Json]) -> None:
        for value in values:
            self._dimensions.notice(name for name, _ in facts(self._space, self._named(value)))

    def _named(self, value: Json) -> Json:
        """A label that is an object stands for itself as a whole."""
        whole = isinstance(self._space, OpenLabels) and isinstance(value, Mapping)
        return canonical_json(value) if whole else value

    def dump(self) -> Any:
        return self._dimensions.names

    def load(self, noticed: Any) -> None:
        self._dimensions = Dimensions(self.size, noticed)


class _ObjectEncoder(StateEncoder):
    """The vectors of an object's parts, one after the other."""

    def __init__(self, parts: Mapping[str, StateEncoder]) -> None:
        self._parts = dict(sorted(parts.items()))
        self.size = sum(part.size for part in self._parts.values())
        self.binary = all(part.binary for part in self._parts.values())

    def encode(self, values: Sequence[Json]) -> Vectors:
        encoded = [part.encode(_of(values, key)) for key, part in self._parts.items()]
        return np.concatenate(encoded, axis=1)

    def numeric(self) -> NDArray[np.bool_]:
        return np.concatenate([part.numeric() for part in self._parts.values()])

    def notice(self, values: Sequence[Json]) -> None:
        for key, part in self._parts.items():
            part.notice(_of(values, key))

    def dump(self) -> Any:
        return {key: part.dump() for key, part in self._parts.items()}

    def load(self, noticed: Any) -> None:
        for key, part in self._parts.items():
            part.load(noticed[key])


def _of(values: Sequence[Json], key: str) -> list[Json]:
    return [value[key] for value in values if isinstance(value, Mapping)]


def bounds_of(box: Box) -> tuple[Vectors, Vectors]:
    """Return the middle and half the width of a box, each of shape (size,)."""
    low, high = np.array(box.low, np.float64), np.array(box.high, np.float64)
    return (low / 2 + high / 2).astype(np.float32), (high / 2 - low / 2).astype(np.float32)


def is_bounded(box: Box) -> bool:
    """Whether it has bounds that say how large its numbers are."""
    return all(
        math.isfinite(low) and math.isfinite(high) and low < high and max(-low, high) < _UNBOUNDED
        for low, high in zip(box.low, box.high, strict=True)
    )
