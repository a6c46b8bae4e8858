"""Free JSON on the wire (Struct, Value, ListValue) as plain Python values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.struct_pb2 import ListValue, Struct

MAX_EXACT_INTEGER = 2**53
"""Beyond it a double, which is what numbers of free JSON are, does not hold every whole number."""
_FREE = frozenset(f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue"))
_DOUBLES = (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT)


def is_exact(number: float) -> bool:
    """Whether free JSON holds a number as it was written; an integer of more digits it rounds."""
    return not isinstance(number, int) or abs(number) <= MAX_EXACT_INTEGER


def why_inexact(number: float) -> str:
    """What to tell whoever sends one that it does not hold."""
    return f"{number} does not fit a JSON number exactly; send it as text"


def inexact_in(value: Any, descriptor: Any) -> tuple[str, int] | None:
    """The first whole number in a message's JSON that the message would round, with its path.

    Args:
        value: the message as JSON.
        descriptor: of the message.
    """
    if descriptor.full_name in _FREE:
        return _inexact(value)
    if not isinstance(value, Mapping):
        return None
    fields = {**descriptor.fields_by_camelcase_name, **descriptor.fields_by_name}
    return _first(
        (name, _inexact_of(item, fields[name])) for name, item in value.items() if name in fields
    )


def _inexact_of(value: Any, field: FieldDescriptor) -> tuple[str, int] | None:
    message: Any = field.message_type
    if message is None:
        return _inexact(value) if field.cpp_type in _DOUBLES else None
    if message.GetOptions().map_entry:
        entry = message.fields_by_name["value"]
        inner = value.items() if isinstance(value, Mapping) else ()
        return _first((str(key), _inexact_of(item, entry)) for key, item in inner)
    if not field.is_repeated:
        return inexact_in(value, message)
    items = enumerate(value) if isinstance(value, list) else ()
    return _first((f"[{index}]", inexact_in(item, message)) for index, item in items)


def _inexact(value: Any) -> tuple[str, int] | None:
    if isinstance(value, int):
        return None if is_exact(value) else ("", value)
    if isinstance(value, Mapping):
        return _first((str(key), _inexact(item)) for key, item in value.items())
    if isinstance(value, list):
        return _first((f"[{index}]", _inexact(item)) for index, item in enumerate(value))
    return None


def _first(
    found: Iterable[tuple[str, tuple[str, int] | None]],
) -> tuple[str, int] | None:
    """The first that was found, below the name of what it is in."""
    for name, one in found:
        if one is not None:
            path, number = one
            return (name + path if path.startswith("[") or not path else f"{name}.{path}"), number
    return None


def free_json(value: Any) -> Any:
    """Free JSON as it is: keys sorted, whole numbers as such (3, not 3.0)."""
    if isinstance(value, Struct):
        return {key: free_json(value.fields[key]) for key in sorted(value.fields)}
    if isinstance(value, ListValue):
        return [free_json(item) for item in value.values]
    kind = value.WhichOneof("kind")
    if kind is None or kind == "null_value":
        return None
    content = getattr(value, kind)
    if kind == "number_value":
        return int(content) if _is_whole(content) else content
    return free_json(content) if kind in ("struct_value", "list_value") else content


def _is_whole(number: float) -> bool:
    """Whether an integer says the same; minus zero is a double only."""
    return (
        number.is_integer()
        and abs(number) <= MAX_EXACT_INTEGER
        and not (number == 0 and math.copysign(1, number) < 0)
    )
