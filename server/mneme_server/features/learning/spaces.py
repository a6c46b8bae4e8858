"""Spaces of states and actions, which mean what Gymnasium's mean; as JSON; actions by number.

A value of a space is JSON: a number or a label (`Discrete`, `OpenLabels`), a list of numbers
(`MultiDiscrete`, `Box`), an object (`Dict`, `OpenObject`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from mneme_server.common.canonical import Json, canonical_json
from mneme_server.common.errors import InvalidArgument, Reason

Space: TypeAlias = "Discrete | MultiDiscrete | Box | Dict | OpenLabels | OpenObject"

MOST_DEPTH = 8
"""How deep an object of an `OpenObject` may be nested."""
MOST_LEAVES = 1_000
"""How many numbers, texts and truth values one may hold."""
_MOST_DIGITS = 10
MOST_ACTIONS = 1_000
"""How many actions a space may have; of a `MultiDiscrete` the product of its sizes."""


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
        if isinstance(value, str) and self.labels:
            if value in self.labels:
                return value
            raise _bad(field, f"{value!r} is none of its labels: {_listed(self.labels)}")
        if isinstance(value, str) and value.isdecimal() and len(value) <= _MOST_DIGITS:
            value = int(value)  # Who can only send texts writes the number as one.
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
    """The numbers of the actions of a space that is not a `Box`: learners know actions by number,
    callers by their label or value. Not thread-safe.

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


def _key(value: Json) -> str | int:
    return value if isinstance(value, str | int) else canonical_json(value)


def _bound(number: float) -> float | None:
    return number if math.isfinite(number) else None
