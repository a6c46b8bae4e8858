"""Free JSON on the wire (Struct, Value, ListValue) as plain Python values, and the numbers of JSON
that a message would not hold as they were written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.struct_pb2 import ListValue, Struct

from mneme._core.named import short

MAX_EXACT_INTEGER = 2**53
"""Beyond it a double, which is what numbers of free JSON are, does not hold every whole number."""
_FREE = frozenset(f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue"))
_DOUBLES = (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT)
_ENUM_LIMIT = 2**31
"""An enum's numbers have 32 bits; of more, protobuf takes the lowest 32."""
_SHOWN = 60
"""Characters of a number that are shown."""


class Misfit(NamedTuple):
    """A value that a message would take for another one: where, and what to tell whoever sends it.

    `of_type` if it is of the wrong type; else it is out of range.
    """

    path: str
    problem: str
    of_type: bool = False


def is_exact(number: float) -> bool:
    """Whether free JSON holds a number as it was written; an integer of more digits it rounds."""
    return not isinstance(number, int) or abs(number) <= MAX_EXACT_INTEGER


def why_inexact(number: float) -> str:
    """What to tell whoever sends one that it does not hold."""
    return f"{number} does not fit a JSON number exactly; send it as text"


def misfit_in(value: Any, descriptor: Any) -> Misfit | None:
    """The first number in a message's JSON that the message would round, or cut to an enum's.

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
        (name, _misfit_of(item, fields[name])) for name, item in value.items() if name in fields
    )


def _misfit_of(value: Any, field: FieldDescriptor) -> Misfit | None:
    message: Any = field.message_type
    if field.enum_type is not None:
        return _no_enum(value)
    if message is None:
        return _inexact(value) if field.cpp_type in _DOUBLES else None
    if message.GetOptions().map_entry:
        entry = message.fields_by_name["value"]
        inner = value.items() if isinstance(value, Mapping) else ()
        return _first((str(key), _misfit_of(item, entry)) for key, item in inner)
    if not field.is_repeated:
        return misfit_in(value, message)
    items = enumerate(value) if isinstance(value, list) else ()
    return _first((f"[{index}]", misfit_in(item, message)) for index, item in items)


def _no_enum(value: Any) -> Misfit | None:
    """What is wrong with an enum's value. Which names and numbers there are is not asked here."""
    if isinstance(value, list):
        return _first((f"[{index}]", _no_enum(item)) for index, item in enumerate(value))
    if not isinstance(value, int | float | str):
        return None
    shown = short(str(value), _SHOWN)
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        return Misfit("", f"{shown} is neither a name nor a whole number", of_type=True)
    try:
        number = int(value)
    except ValueError:  # A name.
        return None
    return (
        None if -_ENUM_LIMIT <= number < _ENUM_LIMIT else Misfit("", f"{shown} is no value of it")
    )


def _inexact(value: Any) -> Misfit | None:
    if isinstance(value, int):
        return None if is_exact(value) else Misfit("", why_inexact(value))
    if isinstance(value, Mapping):
        return _first((str(key), _inexact(item)) for key, item in value.items())
    if isinstance(value, list):
        return _first((f"[{index}]", _inexact(item)) for index, item in enumerate(value))
    return None


def _first(found: Iterable[tuple[str, Misfit | None]]) -> Misfit | None:
    """The first that was found, below the name of what it is in."""
    for name, one in found:
        if one is not None:
            path = one.path
            below = name + path if path.startswith("[") or not path else f"{name}.{path}"
            return one._replace(path=below)
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
