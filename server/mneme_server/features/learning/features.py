"""States as vectors, for algorithms that generalise.

Each dimension stands for a fact with a name ("complexity", "task_type=auth"): a number has its
dimension, a text one for each of its values. Numbers are as they are up to 1 and grow with their
logarithm beyond; those of a box with finite bounds run from -1 to 1.

Facts of objects that are not declared get a dimension each, in the order in which they are first
seen, as long as there are any left; later ones share dimensions by their hash.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mneme_server.common.canonical import Json
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
