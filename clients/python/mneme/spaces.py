"""What learning is about as plain JSON: states, actions, and the spaces that they come from.

A value is an object, a list of numbers, a whole number, or a text, as its space has it. A space is
an object with its kind as `type`, by the names that Gymnasium has:

    {"type": "discrete", "n": 4}
    {"type": "discrete", "labels": ["short", "long"]}
    {"type": "multi_discrete", "sizes": [3, 2]}
    {"type": "box", "low": [0, 0], "high": [1, null]}
    {"type": "dict", "spaces": {"load": {"type": "box", "low": 0, "high": 1}}}
    {"type": "open_labels"}
    {"type": "open_object"}

A bound of a box that is null is infinite. One number stands for all bounds; `shape` says how many
there are, by default 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from mneme.errors import ArgumentError

if TYPE_CHECKING:
    from mneme.types import Action, NamedSpace, Space, SpaceFields, StateFields

_KEYS: Mapping[str, Sequence[str]] = {
    "discrete": ("n", "labels"),
    "multi_discrete": ("sizes",),
    "box": ("low", "high", "shape"),
    "dict": ("spaces",),
    "open_labels": (),
    "open_object": (),
}
# As Gymnasium writes them.
_OTHER_NAMES = {"multidiscrete": "multi_discrete", "nvec": "sizes"}


def value_fields(value: Any) -> StateFields:
    """A state or an action as a request takes it.

    Raises:
        ArgumentError: it is neither an object, a list of numbers, a whole number, nor a text.
    """
    fields: dict[str, Any] = {}
    if isinstance(value, str):
        fields["label"] = value
    elif isinstance(value, Mapping):
        fields["json"] = value
    elif isinstance(value, list | tuple) and all(map(_is_number, value)):
        fields["numbers"] = {"values": list(value)}
    elif _is_number(value) and float(value).is_integer():
        fields["number"] = int(value)
    else:
        raise ArgumentError("should be an object, a list of numbers, a whole number or a text")
    return cast("StateFields", fields)


def plain_value(value: Action) -> Any:
    """An action of an answer as plain JSON; None where there is none."""
    match value.raw.WhichOneof("value"):
        case "json":
            return value.json
        case "numbers":
            return value.numbers.values
        case "number":
            return value.number
        case "label":
            return value.label
    return None


def space_fields(plain: Any) -> SpaceFields:
    """A space as a request takes it.

    Raises:
        ArgumentError: it is no space; the message says what one looks like.
    """
    if not isinstance(plain, Mapping) or not isinstance(plain.get("type"), str):
        raise ArgumentError(
            f'should be an object such as {{"type": "discrete", "n": 4}}; types: {", ".join(_KEYS)}'
        )
    kind = _named(plain["type"].strip().lower().replace("-", "_"))
    if kind not in _KEYS:
        raise ArgumentError(f"there is no space {plain['type']!r}; types: {', '.join(_KEYS)}")
    given = {_named(key): value for key, value in plain.items() if key != "type"}
    if unknown := [key for key in given if key not in _KEYS[kind]]:
        has = ", ".join(_KEYS[kind]) or "nothing more to say"
        raise ArgumentError(f"a {kind} space has no {', '.join(unknown)}; it has {has}")
    if kind == "box":
        given = _box(given)
    elif kind == "dict":
        given = {"spaces": _inner(given.get("spaces"))}
    return cast("SpaceFields", {kind: given})


def plain_space(space: Space | NamedSpace) -> dict[str, Any]:
    """A space of an answer as plain JSON, as `space_fields` takes it."""
    kind = space.raw.WhichOneof("space")
    if kind is None:
        return {}
    plain: dict[str, Any] = {"type": kind}
    match kind:
        case "discrete":
            labels = space.discrete.labels
            plain |= {"labels": labels} if labels else {"n": space.discrete.n}
        case "multi_discrete":
            plain["sizes"] = space.multi_discrete.sizes
        case "box":
            for name in ("low", "high"):
                bounds = getattr(space.box, name)
                plain[name] = [bound if math.isfinite(bound) else None for bound in bounds]
        case "dict":
            # Only of whole spaces: a dict holds no other one.
            inner = cast("Space", space).dict.spaces
            plain["spaces"] = {one.key: plain_space(one) for one in inner}
    return plain


def _named(name: str) -> str:
    return _OTHER_NAMES.get(name, name)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _box(given: Mapping[str, Any]) -> dict[str, Any]:
    low, high = given.get("low"), given.get("high")
    shape = given.get("shape")
    lengths = {len(side) for side in (low, high) if isinstance(side, list | tuple)}
    if shape is not None:
        sizes = shape if isinstance(shape, list | tuple) else [shape]
        if not all(isinstance(size, int) and size > 0 for size in sizes):
            raise ArgumentError("shape: should be whole numbers above 0")
        lengths.add(math.prod(sizes))
    if len(lengths) > 1:
        raise ArgumentError("low, high and shape differ in how many numbers there are")
    length = lengths.pop() if lengths else 1
    return {
        "low": _bounds("low", low, length, -math.inf),
        "high": _bounds("high", high, length, math.inf),
    }


def _bounds(name: str, side: Any, length: int, none: float) -> list[float]:
    bounds = side if isinstance(side, list | tuple) else [side] * length
    if not all(bound is None or _is_number(bound) for bound in bounds):
        raise ArgumentError(f"{name}: should be numbers, or null where there is no bound")
    return [none if bound is None else float(bound) for bound in bounds]


def _inner(spaces: Any) -> list[dict[str, Any]]:
    if not isinstance(spaces, Mapping):
        raise ArgumentError('spaces: should be an object such as {"load": {"type": "box", …}}')
    found = []
    for key, plain in spaces.items():
        try:
            found.append({"key": key, **space_fields(plain)})
        except ArgumentError as error:
            raise ArgumentError(f"spaces.{key}: {error}") from None
    return found
