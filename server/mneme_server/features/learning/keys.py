"""States as keys, for algorithms that keep a table.

States with the same key are the same state to them. Numbers that are not whole are binned: those of
a box with finite bounds into equal parts of it, others to their first digit (0.83 is 0.8, 0.034 is
0.03), so that a bin is as wide as the number is large.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mneme_server.common.canonical import Json, canonical_json
from mneme_server.features.learning.spaces import Box, Dict, Space

_WHOLE = 1_000
"""Whole numbers up to it are kept apart; larger ones are binned, too."""


def key_of(space: Space, value: Json, bins: int) -> str:
    """Return the key of a value of `space`; `bins` is how many parts a bounded number has."""
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
