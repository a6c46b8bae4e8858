"""One field of a message: its name, and the text that people type for its value."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import typer
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration

from mneme._core import named
from mneme._core.enums import numbers_of, short_names
from mneme._core.kinds import names_kind
from mneme.cli import times
from mneme.cli.exits import InputError
from mneme.cli.values import forms, not_json, scope
from mneme.v1 import options_pb2

STRUCT = "google.protobuf.Struct"
MASK = "google.protobuf.FieldMask"
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[smhdw])?", re.IGNORECASE)
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
# Protobuf's own JSON may spell these as text.
_NUMBERS = ("nan", "inf", "infinity")


def field_of(message: Descriptor, name: str, path: str) -> FieldDescriptor:
    """The field of a name, as the schemas or protobuf's JSON write it.

    Args:
        message: whose field it is.
        name: its name.
        path: what the user typed, for words.

    Raises:
        InputError: there is none.
    """
    fields = message.fields_by_name
    found = fields.get(name.replace("-", "_")) or message.fields_by_camelcase_name.get(name)
    if found is not None:
        return found
    near = named.near(name, fields, 3)
    guess = f"did you mean {' or '.join(near)}? It" if near else "it"
    known = f"{guess} has {', '.join(fields)}" if fields else "it has none"
    told = f"{named.short(path)}: {message.name} has no field {named.short(name)}"
    raise InputError(f"{told}; {known}")


def is_map(field: FieldDescriptor) -> bool:
    """Whether the field holds values by key."""
    return bool(field.message_type and field.message_type.GetOptions().map_entry)


def changeable(mask: FieldDescriptor) -> frozenset[str]:
    """The fields that a mask may name."""
    # The generated types call an extension a field's descriptor, and not what it extends.
    option: Any = options_pb2.changeable
    return frozenset(mask.GetOptions().Extensions[option].paths)


def json_of(text: str, path: str) -> Any:
    """A JSON value.

    Raises:
        InputError: the text is none; `path` says where it was given.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path} {not_json(error)}") from error
    except RecursionError as error:
        raise InputError(f"{path} is nested too deep") from error


def value_of(field: FieldDescriptor, text: str, path: str) -> Any:
    """One value of a field, as protobuf's JSON form has it.

    Raises:
        InputError: the text does not fit the field.
    """
    try:
        return _reader(field)(text)
    except typer.BadParameter as error:
        raise InputError(f"{path}: {error.message}") from error


def _reader(field: FieldDescriptor) -> Callable[[str], Any]:
    if field.message_type:
        return _message_reader(field, field.message_type)
    if field.enum_type:
        enum = field.enum_type
        return lambda text: _enum(enum, text)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return _boolean
    if field.cpp_type in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        return _number
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return scope if names_kind(field) else str
    return _integer


def _message_reader(field: FieldDescriptor, message: Descriptor) -> Callable[[str], Any]:
    known: dict[str, Callable[[str], Any]] = {
        # As the field says it, "at or after" or "before": a day's first moment in any case.
        "google.protobuf.Timestamp": lambda text: times.parse_start(text).isoformat(),
        "google.protobuf.Duration": _duration,
        "google.protobuf.Value": str,
        MASK: lambda text: [part.strip() for part in text.split(",")],
    }

    def refuse(_: str) -> Any:
        kind = "JSON" if message.full_name.startswith("google.protobuf.") else message.name
        raise typer.BadParameter(
            f"holds {kind}, not text; give {field.name}.FIELD=VALUE or {field.name}:=JSON"
        )

    return known.get(message.full_name, refuse)


def _enum(enum: EnumDescriptor, text: str) -> int:
    name = text.strip().lower().replace("-", "_")
    numbers = numbers_of(enum)
    if name in numbers:
        return numbers[name]
    for choice in short_names(enum):
        if name in forms(choice):
            return numbers[choice]
    raise typer.BadParameter(f"{text!r} is none of {', '.join(short_names(enum))}")


def _boolean(text: str) -> bool:
    value = _BOOLEANS.get(text.strip().lower())
    if value is None:
        raise typer.BadParameter(f"{text!r} is neither true nor false")
    return value


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a whole number") from error


def _number(text: str) -> float:
    try:
        if text.strip().lower().lstrip("+-") in _NUMBERS:
            raise ValueError
        return float(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a number") from error


def _duration(text: str) -> str:
    found = _DURATION.fullmatch(text.strip())
    if not found:
        raise typer.BadParameter(f"{text!r} is not a duration; give seconds, or 90s, 5m, 12h, 7d")
    length = Duration()
    try:
        unit = _SECONDS[(found[2] or "s").lower()]
        length.FromTimedelta(timedelta(seconds=float(found[1]) * unit))
    except (OverflowError, ValueError) as error:
        raise typer.BadParameter(f"{text!r} is too long a time") from error
    return length.ToJsonString()
