"""Spaces: which states there can be, and which actions; they mean what Gymnasium's mean.

A value of a space is JSON: a number or a label (`Discrete`, `OpenLabels`), a list of numbers
(`MultiDiscrete`, `Box`), an object (`Dict`, `OpenObject`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mneme_server.common.canonical import Json
from mneme_server.common.errors import InvalidArgument, Reason

Space: TypeAlias = "Discrete | MultiDiscrete | Box | Dict | OpenLabels | OpenObject"

MOST_DEPTH = 8
"""How deep an object of an `OpenObject` may be nested."""
MOST_LEAVES = 1_000
"""How many numbers, texts and truth values one may hold."""


@dataclass(frozen=True, slots=True)
class Discrete:
    """The numbers from 0 to `size` - 1, or as many labels."""

    size: int
    labels: tuple[str, ...] = ()

    def check(self, value: Json, field: str) -> Json:
        """Return the value as it is kept: a label if there are labels, else a number.

        Raises:
            InvalidArgument: it is not in the space.
        """
        if isinstance(value, str):
            if value in self.labels:
                return value
            raise _bad(field, f"{value!r} is none of its labels: {_listed(self.labels)}")
        number = _whole(value)
        if number is None or not 0 <= number < self.size:
            raise _bad(field, f"must be a whole number from 0 to {self.size - 1}")
        return self.labels[number] if self.labels else number

    def index(self, value: Json) -> int:
        """Return the number of a value that was checked."""
        if isinstance(value, str):
            return self.labels.index(value)
        assert isinstance(value, int)
        return value


@dataclass(frozen=True, slots=True)
class MultiDiscrete:
    """As many numbers as `sizes`, each from 0 to below its size."""

    sizes: tuple[int, ...]

    def check(self, value: Json, field: str) -> Json:
        """Return the value as it is kept.

        Raises:
            InvalidArgument: it is not in the space.
        """
        numbers = [_whole(one) for one in _items(value, len(self.sizes), field)]
        for place, (number, size) in enumerate(zip(numbers, self.sizes, strict=True)):
            if number is None or not 0 <= number < size:
                raise _bad(f"{field}[{place}]", f"must be a whole number from 0 to {size - 1}")
        return numbers


@dataclass(frozen=True, slots=True)
class Box:
    """As many real numbers as `low` and `high`, each between them; either may be infinite."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    def check(self, value: Json, field: str) -> Json:
        """Return the value as it is kept.

        Raises:
            InvalidArgument: it is not in the space.
        """
        items = _items(value, len(self.low), field)
        numbers = [_real(one) for one in items]
        for place, (number, low, high) in enumerate(zip(numbers, self.low, self.high, strict=True)):
            if number is None:
                raise _bad(f"{field}[{place}]", "must be a number, neither NaN nor infinite")
            if not low <= number <= high:
                raise _bad(f"{field}[{place}]", f"must be from {low:g} to {high:g}, not {number:g}")
        return numbers


@dataclass(frozen=True, slots=True)
class Dict:
    """An object with exactly these keys, each with a value of its space."""

    spaces: Mapping[str, Space]

    def check(self, value: Json, field: str) -> Json:
        """Return the value as it is kept.

        Raises:
            InvalidArgument: it is not in the space.
        """
        if not isinstance(value, Mapping):
            raise _bad(field, "must be an object")
        if missing := self.spaces.keys() - value.keys():
            raise _bad(field, f"lacks {_listed(sorted(missing))}")
        if unknown := value.keys() - self.spaces.keys():
            raise _bad(field, f"has keys that are not in the space: {_listed(sorted(unknown))}")
        return {key: self.spaces[key].check(value[key], f"{field}.{key}") for key in sorted(value)}


@dataclass(frozen=True, slots=True)
class OpenLabels:
    """Labels that are collected as they are first seen. An object is a label, too."""

    most: int = 1_000

    def check(self, value: Json, field: str) -> Json:
        """Return the value as it is kept.

        Raises:
            InvalidArgument: it is neither a text nor an object, or empty.
        """
        if isinstance(value, str | Mapping) and value:
            return value
        raise _bad(field, "must be a label, a text that is not empty, or an object")


@dataclass(frozen=True, slots=True)
class OpenObject:
    """Any JSON object: its numbers, texts and truth values are what there is to know."""

    def check(self, value: Json, field: str) -> Json:
        """Return the value as it is kept.

        Raises:
            InvalidArgument: it is no object, or too large.
        """
        if not isinstance(value, Mapping):
            raise _bad(field, "must be an object")
        for count, (path, leaf) in enumerate(leaves_of(value), 1):
            if count > MOST_LEAVES:
                raise _bad(field, f"holds more than {MOST_LEAVES} values")
            if path.count(".") >= MOST_DEPTH:
                raise _bad(f"{field}.{path}", f"is nested deeper than {MOST_DEPTH} objects")
            if isinstance(leaf, float) and not math.isfinite(leaf):
                raise _bad(f"{field}.{path}", "must be a number, neither NaN nor infinite")
        return value


def leaves_of(value: Json, path: str = "") -> Iterator[tuple[str, bool | int | float | str]]:
    """Yield the numbers, texts and truth values in JSON, each with its path ("task.type").

    The items of a list have its path: in which order they stand is not told.
    """
    if isinstance(value, Mapping):
        for key in sorted(value):
            yield from leaves_of(value[key], f"{path}.{key}" if path else key)
    elif isinstance(value, str | bool | int | float):
        yield path, value
    elif isinstance(value, Sequence):
        for item in value:
            yield from leaves_of(item, path)


def _items(value: Json, size: int, field: str) -> Sequence[Json]:
    must = f"must be a list of {size} number{'' if size == 1 else 's'}"
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise _bad(field, must)
    if len(value) != size:
        raise _bad(field, f"{must}, but has {len(value)}")
    return value


def _whole(value: Json) -> int | None:
    number = _real(value)
    return int(number) if number is not None and number.is_integer() else None


def _real(value: Json) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _listed(names: Sequence[str], most: int = 20) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def _bad(field: str, problem: str) -> InvalidArgument:
    return InvalidArgument(f"{field}: {problem}", reason=Reason.INVALID_PARAMETER, field=field)
