"""Which spaces a session may have."""

from __future__ import annotations

import math

from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.features.learning.actions import MOST_ACTIONS, count_of
from mneme_server.features.learning.algorithm import Algorithm
from mneme_server.features.learning.spaces import (
    Box,
    Dict,
    Discrete,
    MultiDiscrete,
    OpenLabels,
    OpenObject,
    Space,
)


def check_space(space: Space, field: str) -> None:
    """Check that a space has values.

    Raises:
        InvalidArgument: it has none, or its parts contradict each other.
    """
    match space:
        case Discrete():
            if space.size < 1:
                raise _bad(f"{field}.discrete", "needs n or labels")
            if space.labels and len(space.labels) != space.size:
                what = f"n is {space.size}, but there are {len(space.labels)} labels"
                raise _bad(f"{field}.discrete.n", what)
            if len(set(space.labels)) != len(space.labels):
                raise _bad(f"{field}.discrete.labels", "one of them is there twice")
        case MultiDiscrete():
            if not space.sizes:
                raise _bad(f"{field}.multi_discrete.sizes", "needs at least one size")
        case Box():
            _check_box(space, f"{field}.box")
        case Dict():
            if not space.spaces:
                raise _bad(f"{field}.dict.spaces", "needs at least one key")
            for place, inner in enumerate(space.spaces.values()):
                check_space(inner, f"{field}.dict.spaces[{place}]")
        case OpenLabels() | OpenObject():
            pass


def _check_box(box: Box, field: str) -> None:
    for place, low in enumerate(box.low):
        if math.isnan(low) or low == math.inf:
            raise _bad(f"{field}.low[{place}]", f"must be a number or -Infinity, not {low}")
    for place, high in enumerate(box.high):
        if math.isnan(high) or high == -math.inf:
            raise _bad(f"{field}.high[{place}]", f"must be a number or Infinity, not {high}")
    if not box.low or len(box.low) != len(box.high):
        counts = f"low has {len(box.low)} numbers and high {len(box.high)}"
        raise _bad(f"{field}.high", f"{counts}; they need equally many, at least one")
    for place, (low, high) in enumerate(zip(box.low, box.high, strict=True)):
        if low > high:
            raise _bad(f"{field}.high[{place}]", f"{high:g} is less than low, {low:g}")


def check_actions(space: Space, algorithm: Algorithm, field: str) -> None:
    """Check that an algorithm can choose actions of a space.

    Raises:
        InvalidArgument: it cannot, or there are too many.
    """
    if isinstance(space, Dict | OpenObject):
        raise _bad(field, "actions are discrete, multi_discrete, open_labels or a box")
    if isinstance(space, Box):
        if not algorithm.continuous:
            raise _unsupported(algorithm, field, "a box")
        for place, (low, high) in enumerate(zip(space.low, space.high, strict=True)):
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise _bad(
                    f"{field}.box.high[{place}]", "the bounds of actions are finite, low below high"
                )
        return
    if not algorithm.discrete:
        raise _unsupported(algorithm, field, "one of a number")
    if isinstance(space, OpenLabels) and not algorithm.open_actions:
        raise _unsupported(algorithm, field, "labels that are collected as they are first seen")
    count = count_of(space)
    if count is not None and count > MOST_ACTIONS:
        raise _bad(field, f"has {count} actions; at most {MOST_ACTIONS} are supported")


def _unsupported(algorithm: Algorithm, field: str, what: str) -> InvalidArgument:
    if algorithm.continuous and not algorithm.discrete:
        needs = "a box"
    elif algorithm.open_actions:
        needs = "discrete, multi_discrete or open_labels"
    else:
        needs = "discrete or multi_discrete"
    return InvalidArgument(
        f"{algorithm.name} has no actions that are {what}: its {field} must be {needs}",
        reason=Reason.ALGORITHM_NOT_SUPPORTED,
        field=field,
    )


def _bad(field: str, problem: str) -> InvalidArgument:
    return InvalidArgument(f"{field}: {problem}", reason=Reason.OUT_OF_RANGE, field=field)
