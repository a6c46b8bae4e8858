"""Turns plain Python values into the wire's messages.

Every error names the field by its path (`events[3].payload.amount`), so that a wrong argument is
found without reading a traceback of protobuf's. A path is put together only when something does
not fit: each level adds its part while the error passes through.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from mneme._core.answers import Answer
from mneme._core.enums import numbers_of, short_names
from mneme._core.json_values import is_exact, why_inexact
from mneme._core.kinds import kind_name, names_kind
from mneme.errors import ArgumentError

Setter = Callable[[Any, Any], None]


class _MisfitError(Exception):
    """A value that does not fit, on its way up to the caller."""

    def __init__(self, words: str, kind: type[Exception] = TypeError) -> None:
        super().__init__(words)
        self.words = words
        self.kind = kind
        self.path = ""

    def below(self, part: str) -> _MisfitError:
        """Add the part of the path in which it happened."""
        dot = "." if self.path and not self.path.startswith("[") else ""
        self.path = f"{part}{dot}{self.path}"
        return self


def fill(message: Message, fields: Mapping[str, Any]) -> None:
    """Set the fields of a message; a value of None leaves its field unset.

    Args:
        message: the message to fill.
        fields: values by field name. Times are datetimes with a time zone, durations
            timedeltas, free JSON is a mapping, enums are members, numbers or names in any case
            with or without their prefix ("message" is EVENT_TYPE_MESSAGE), messages are messages or
            mappings of their fields.

    Raises:
        TypeError, ArgumentError: a value does not fit; the message names the field.
    """
    try:
        _fill(message, fields)
    except _MisfitError as misfit:
        raise misfit.kind(f"{misfit.path}: {misfit.words}") from misfit.__cause__


def single_message_field(request: type[Message]) -> str | None:
    """The name of a request's only field when that is a message, which a stream's item fills."""
    fields = request.DESCRIPTOR.fields
    return fields[0].name if len(fields) == 1 and fields[0].message_type else None


def parse_enum(enum: EnumDescriptor, value: Any) -> int:
    """An enum's number for its member, its number or a name in any case, prefix or not.

    Raises:
        TypeError, ArgumentError: the enum has no such value.
    """
    try:
        return _enum(enum, value)
    except _MisfitError as misfit:
        raise misfit.kind(misfit.words) from None


def _fill(message: Message, fields: Mapping[str, Any]) -> None:
    setters = _setters(message.DESCRIPTOR)
    for name, value in fields.items():
        if value is None:
            continue
        setter = setters.get(name)
        try:
            if setter is None:
                known = ", ".join(setters)
                owner = message.DESCRIPTOR.name
                raise _MisfitError(f"{owner} has no such field; it has {known}")
            setter(message, value)
        except _MisfitError as misfit:
            raise misfit.below(str(name)) from misfit.__cause__


@cache
def _setters(descriptor: Descriptor) -> dict[str, Setter]:
    return {field.name: _alone(field, _setter(field)) for field in descriptor.fields}


def _alone(field: FieldDescriptor, setter: Setter) -> Setter:
    """The setter, which refuses a second field of a oneof: protobuf would forget the first."""
    group = field.containing_oneof
    if group is None or len(group.fields) == 1:  # An optional field is a oneof of its own.
        return setter
    group_name = group.name

    def set_alone(message: Any, value: Any) -> None:
        if other := message.WhichOneof(group_name):
            raise _MisfitError(f"{other} is given, too, and only one of them may be", ArgumentError)
        setter(message, value)

    return set_alone


def _setter(field: FieldDescriptor) -> Setter:
    """What sets a field of a message to a plain value."""
    if field.message_type and field.message_type.GetOptions().map_entry:
        return partial(_set_map, field.name, field.message_type.fields_by_name["value"])
    if field.message_type:
        fill_message = partial(_fill_message, _WELL_KNOWN.get(field.message_type.full_name))
        if field.is_repeated:
            return partial(_set_messages, field.name, fill_message)
        return lambda message, value: fill_message(getattr(message, field.name), value)
    convert = _scalar(field)
    if field.is_repeated:
        return partial(_set_scalars, field.name, convert)
    return partial(_set_scalar, field.name, convert)


def _set_scalar(name: str, convert: Callable[[Any], Any], message: Message, value: Any) -> None:
    with_value = convert(value)
    try:
        setattr(message, name, with_value)
    except (TypeError, ValueError) as error:
        raise _refused(error) from error


def _set_scalars(name: str, convert: Callable[[Any], Any], message: Message, value: Any) -> None:
    container = getattr(message, name)
    for index, element in enumerate(_several(value)):
        try:
            container.append(convert(element))
        except _MisfitError as misfit:
            raise misfit.below(f"[{index}]") from misfit.__cause__
        except (TypeError, ValueError) as error:
            raise _refused(error).below(f"[{index}]") from error


def _set_messages(name: str, fill_message: Setter, message: Message, value: Any) -> None:
    container = getattr(message, name)
    for index, element in enumerate(_several(value)):
        try:
            fill_message(container.add(), element)
        except _MisfitError as misfit:
            raise misfit.below(f"[{index}]") from misfit.__cause__


def _set_map(name: str, element: FieldDescriptor, message: Message, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise _MisfitError(f"expected a mapping, got {_name(value)}")
    container = getattr(message, name)
    known = _WELL_KNOWN.get(element.message_type.full_name) if element.message_type else None
    for key, item in value.items():
        try:
            if element.message_type:
                _fill_message(known, container[key], item)
            else:
                container[key] = _scalar(element)(item)
        except _MisfitError as misfit:
            raise misfit.below(f"[{key!r}]") from misfit.__cause__


def _fill_message(convert: Setter | None, target: Message, value: Any) -> None:
    """Fill a nested message; it counts as set even when the value is empty."""
    if isinstance(value, Answer):
        value = value.raw
    if isinstance(value, type(target)):
        target.CopyFrom(value)
        target.SetInParent()
        return
    target.SetInParent()
    if convert is not None:
        convert(target, value)
    elif isinstance(value, Mapping):
        _fill(target, value)
    else:
        expected = target.DESCRIPTOR.name
        raise _MisfitError(f"expected {expected} or a mapping, got {_name(value)}")


def _several(value: Any) -> Iterable[Any]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise _MisfitError(f"expected several values in a list, got {_name(value)}")
    return value


def _scalar(field: FieldDescriptor) -> Callable[[Any], Any]:
    """What checks a plain value of a field that holds no message."""
    if field.enum_type:
        return partial(_enum, field.enum_type)
    if field.type == FieldDescriptor.TYPE_STRING and names_kind(field):
        return lambda value: kind_name(_checked(str, "text", value))
    if field.type == FieldDescriptor.TYPE_STRING:
        return partial(_checked, str, "text")
    if field.type == FieldDescriptor.TYPE_BYTES:
        return partial(_checked, bytes, "bytes")
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return partial(_checked, bool, "True or False")
    return _number


def _checked(kind: type, expected: str, value: Any) -> Any:
    if not isinstance(value, kind):
        raise _MisfitError(f"expected {expected}, got {_name(value)}")
    return value


def _number(value: Any) -> Any:
    if isinstance(value, bool | str | bytes):
        raise _MisfitError(f"expected a number, got {_name(value)}")
    return value


def _enum(enum: EnumDescriptor, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        names = numbers_of(enum)
        number = names.get(value)
        if number is None:
            number = names.get(value.strip().lower().replace("-", "_").replace(" ", "_"))
        if number is not None:
            return number
        choices = ", ".join(short_names(enum))
        raise _MisfitError(f"{value!r} is none of {choices}", ArgumentError)
    raise _MisfitError(f"expected a name or a number of {enum.name}, got {_name(value)}")


def _set_timestamp(target: Any, value: Any) -> None:
    if not isinstance(value, datetime):
        raise _MisfitError(f"expected a datetime, got {_name(value)}")
    if value.tzinfo is None:
        raise _MisfitError(
            f"{value.isoformat()} has no time zone; say which is meant, "
            "e.g. datetime.now(timezone.utc) or value.astimezone()",
            ArgumentError,
        )
    try:
        target.FromDatetime(value)
    except OverflowError as error:  # It is of the year 0 or 10000 elsewhere.
        raise _MisfitError(
            f"{value.isoformat()} is outside the years 1 to 9999 in UTC", ArgumentError
        ) from error


def _set_duration(target: Any, value: Any) -> None:
    if not isinstance(value, timedelta):
        raise _MisfitError(f"expected a timedelta, got {_name(value)}")
    target.FromTimedelta(value)


def _set_field_mask(target: Any, value: Any) -> None:
    _set_scalars("paths", partial(_checked, str, "text"), target, value)


def _set_struct(target: Any, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise _MisfitError(f"expected a mapping, got {_name(value)}")
    fields = target.fields
    for key, item in value.items():
        if not isinstance(key, str):
            raise _MisfitError(f"JSON has only text as keys, got {_name(key)}")
        try:
            _set_value(fields[key], item)
        except _MisfitError as misfit:
            raise misfit.below(key) from misfit.__cause__
        except UnicodeEncodeError as error:
            raise _refused(error) from error


def _set_list(target: Any, value: Any) -> None:
    for index, item in enumerate(value):
        try:
            _set_value(target.values.add(), item)
        except _MisfitError as misfit:
            raise misfit.below(f"[{index}]") from misfit.__cause__


def _set_value(target: Any, value: Any) -> None:
    """Set a `google.protobuf.Value`, which is what JSON can hold."""
    if isinstance(value, str):
        _set_scalar("string_value", _same, target, value)
    elif value is None:
        target.null_value = 0
    elif isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, int | float):
        target.number_value = _exact(value)
    elif isinstance(value, Mapping):
        target.struct_value.SetInParent()
        _set_struct(target.struct_value, value)
    elif isinstance(value, list | tuple):
        target.list_value.SetInParent()
        _set_list(target.list_value, value)
    else:
        raise _MisfitError(f"{_name(value)} is not JSON; convert it first")


def _exact(value: float) -> float:
    if not is_exact(value):
        raise _MisfitError(why_inexact(value), ArgumentError)
    if not math.isfinite(value):
        raise _MisfitError(f"{value} is not a JSON number", ArgumentError)
    return value


def _refused(error: Exception) -> _MisfitError:
    """What protobuf refused, in words."""
    if isinstance(error, UnicodeEncodeError):
        return _MisfitError("text with half a surrogate pair is not Unicode", ArgumentError)
    return _MisfitError(str(error), ArgumentError if isinstance(error, ValueError) else TypeError)


def _same(value: Any) -> Any:
    return value


def _name(value: Any) -> str:
    return type(value).__name__


_WELL_KNOWN: dict[str, Setter] = {
    "google.protobuf.Timestamp": _set_timestamp,
    "google.protobuf.Duration": _set_duration,
    "google.protobuf.FieldMask": _set_field_mask,
    "google.protobuf.Struct": _set_struct,
    "google.protobuf.Value": _set_value,
    "google.protobuf.ListValue": _set_list,
}
