"""Spaces as JSON, as they are stored."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mneme_server.common.canonical import Json
from mneme_server.features.learning.spaces import (
    Box,
    Dict,
    Discrete,
    MultiDiscrete,
    OpenLabels,
    OpenObject,
    Space,
)


def space_to_json(space: Space) -> dict[str, Json]:
    """Return a space as JSON; bounds that are infinite are null."""
    match space:
        case Discrete():
            return {"kind": "discrete", "size": space.size, "labels": list(space.labels)}
        case MultiDiscrete():
            return {"kind": "multi_discrete", "sizes": list(space.sizes)}
        case Box():
            low, high = ([_bound(one) for one in side] for side in (space.low, space.high))
            return {"kind": "box", "low": low, "high": high}
        case Dict():
            inner: dict[str, Json] = {key: space_to_json(one) for key, one in space.spaces.items()}
            return {"kind": "dict", "spaces": inner}
        case OpenLabels():
            return {"kind": "open_labels"}
        case OpenObject():
            return {"kind": "open_object"}


def space_of_json(stored: Mapping[str, Any]) -> Space:
    """Return the space of `space_to_json`.

    Raises:
        KeyError, ValueError, TypeError: it is not that.
    """
    match stored["kind"]:
        case "discrete":
            return Discrete(int(stored["size"]), tuple(stored["labels"]))
        case "multi_discrete":
            return MultiDiscrete(tuple(map(int, stored["sizes"])))
        case "box":
            low = tuple(-math.inf if one is None else float(one) for one in stored["low"])
            high = tuple(math.inf if one is None else float(one) for one in stored["high"])
            return Box(low, high)
        case "dict":
            return Dict({key: space_of_json(one) for key, one in stored["spaces"].items()})
        case "open_labels":
            return OpenLabels()
        case "open_object":
            return OpenObject()
        case other:
            raise ValueError(f"no space is of the kind {other!r}")


def _bound(number: float) -> float | None:
    return number if math.isfinite(number) else None
