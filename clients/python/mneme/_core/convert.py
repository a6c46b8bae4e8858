"""Turns plain Python values into the wire's messages.

Every error names the field by its path (`events[3].payload.amount`), so that a wrong argument is
found without reading a traceback of protobuf's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from mneme.errors import ArgumentError

# Larger integers have no exact value in a Struct, whose numbers are doubles.
MAX_EXACT_INTEGER = 2**53

_NUMBERS = {
    FieldDescriptor.CPPTYPE_DOUBLE,
    FieldDescriptor.CPPTYPE_FLOAT,
    FieldDescriptor.CPPTYPE_INT32,
    FieldDescriptor.CPPTYPE_INT64,
    FieldDescriptor.CPPTYPE_UINT32,
    FieldDescriptor.CPPTYPE_UINT64,
}


def fill(message: Message, fields: Mapping[str, Any], where: str = "") -> None:
    """Set the fields of a message; a value of None leaves its field unset.

    Args:
        message: the message to fill.
        fields: values by field name. Times are datetimes with a time zone, durations
            timedeltas, free JSON is a mapping, enums are members, numbers or names in any case
            with or without their prefix ("event" is SCOPE_EVENT), messages are messages or
            mappings of their fields.
        where: the message's own path, for error messages.

    Raises:
        TypeError, ArgumentError: a value does not fit; the message names the field.
    """
    known = _fields_by_name(message.DESCRIPTOR)
    for name, value in fields.items():
        if value is None:
            continue
        path = f"{where}.{name}" if where else str(name)
        field = known.get(name)
        if field is None:
            raise TypeError(
                f"{path}: {message.DESCRIPTOR.name} has no such field; it has {', '.join(known)}"
            )
        try:
            _set(message, field, value, path)
        except UnicodeEncodeError as error:
            raise ArgumentError(
                f"{path}: text with half a surrogate pair is not Unicode"
            ) from error
        except OverflowError as error:
            raise ArgumentError(f"{path}: {error}") from error


def single_message_field(request: type[Message]) -> str | None:
    """The name of a request's only field when that is a message, which a stream's item fills."""
    fields = request.DESCRIPTOR.fields
    return fields[0].name if len(fields) == 1 and fields[0].message_type else None


@cache
def _fields_by_name(descriptor: Descriptor) -> dict[str, FieldDescriptor]:
    return {field.name: field for field in descriptor.fields}


def _set(message: Message, field: FieldDescriptor, value: Any, path: str) -> None:
    if field.is_repeated:
        _set_repeated(message, field, value, path)
    elif field.message_type:
        _set_message(getattr(message, field.name), value, path)
    else:
        scalar = _scalar(field, value, path)
        try:
            setattr(message, field.name, scalar)
        except UnicodeEncodeError:
            raise
        except TypeError as error:
            raise TypeError(f"{path}: {error}") from error
        except ValueError as error:
            raise ArgumentError(f"{path}: {error}") from error


def _set_repeated(message: Message, field: FieldDescriptor, value: Any, path: str) -> None:
    if field.message_type and field.message_type.GetOptions().map_entry:
        _set_map(message, field, value, path)
        return
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"{path}: expected several values in a list, got {_name(value)}")
    container = getattr(message, field.name)
    for index, element in enumerate(value):
        place = f"{path}[{index}]"
        if field.message_type:
            _set_message(container.add(), element, place)
        else:
            container.append(_scalar(field, element, place))


def _set_map(message: Message, field: FieldDescriptor, value: Any, path: str) -> None:
    if not isinstance(value, Mapping):
        raise TypeError(f"{path}: expected a mapping, got {_name(value)}")
    assert field.message_type is not None
    element = field.message_type.fields_by_name["value"]
    container = getattr(message, field.name)
    for key, item in value.items():
        if element.message_type:
            _set_message(container[key], item, f"{path}[{key!r}]")
        else:
            container[key] = _scalar(element, item, f"{path}[{key!r}]")


def _set_message(target: Message, value: Any, path: str) -> None:
    """Fill a nested message; it counts as set even when the value is empty."""
    target.SetInParent()
    if isinstance(value, type(target)):
        target.CopyFrom(value)
        return
    convert = _WELL_KNOWN.get(target.DESCRIPTOR.full_name)
    if convert is not None:
        convert(target, value, path)
    elif isinstance(value, Mapping):
        fill(target, value, path)
    else:
        expected = target.DESCRIPTOR.name
        raise TypeError(f"{path}: expected {expected} or a mapping, got {_name(value)}")


def _scalar(field: FieldDescriptor, value: Any, path: str) -> Any:
    if field.enum_type:
        return parse_enum(field.enum_type, value, path)
    if field.type == FieldDescriptor.TYPE_STRING:
        fits, expected = isinstance(value, str), "text"
    elif field.type == FieldDescriptor.TYPE_BYTES:
        fits, expected = isinstance(value, bytes), "bytes"
    elif field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        fits, expected = isinstance(value, bool), "True or False"
    elif field.cpp_type in _NUMBERS:
        fits, expected = not isinstance(value, bool | str | bytes), "a number"
    else:
        fits, expected = True, ""
    if not fits:
        raise TypeError(f"{path}: expected {expected}, got {_name(value)}")
    return value


def parse_enum(enum: EnumDescriptor, value: Any, path: str) -> int:
    """An enum's number for its member, its number or a name in any case, prefix or not.

    Raises:
        TypeError, ArgumentError: the enum has no such value; the message begins with `path`.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    names = _enum_names(enum)
    if isinstance(value, str):
        number = names.get(value.strip().upper().replace("-", "_").replace(" ", "_"))
        if number is not None:
            return number
        choices = ", ".join(short_enum_names(enum))
        raise ArgumentError(f"{path}: {value!r} is none of {choices}")
    raise TypeError(f"{path}: expected a name or a number of {enum.name}, got {_name(value)}")


@cache
def _enum_names(enum: EnumDescriptor) -> dict[str, int]:
    """Every accepted name: `SCOPE_EVENT` and `EVENT`."""
    prefix = _enum_prefix(enum)
    full = {value.name: value.number for value in enum.values}
    return full | {name.removeprefix(prefix): number for name, number in full.items()}


def short_enum_names(enum: EnumDescriptor) -> list[str]:
    """What a caller may say, in lower case, without the unspecified value."""
    prefix = _enum_prefix(enum)
    return [v.name.removeprefix(prefix).lower() for v in enum.values if v.number != 0]


def _enum_prefix(enum: EnumDescriptor) -> str:
    return str(enum.values_by_number[0].name).removesuffix("UNSPECIFIED")


def _set_timestamp(target: Any, value: Any, path: str) -> None:
    if not isinstance(value, datetime):
        raise TypeError(f"{path}: expected a datetime, got {_name(value)}")
    if value.tzinfo is None:
        raise ArgumentError(
            f"{path}: {value.isoformat()} has no time zone; say which is meant, "
            "e.g. datetime.now(timezone.utc) or value.astimezone()"
        )
    target.FromDatetime(value)


def _set_duration(target: Any, value: Any, path: str) -> None:
    if not isinstance(value, timedelta):
        raise TypeError(f"{path}: expected a timedelta, got {_name(value)}")
    target.FromTimedelta(value)


def _set_field_mask(target: Any, value: Any, path: str) -> None:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"{path}: expected several field names in a list, got {_name(value)}")
    target.paths.extend(value)


def _set_struct(target: Any, value: Any, path: str) -> None:
    if not isinstance(value, Mapping):
        raise TypeError(f"{path}: expected a mapping, got {_name(value)}")
    for key, item in value.items():
        if not isinstance(key, str):
            raise TypeError(f"{path}: JSON has only text as keys, got {_name(key)}")
        _set_value(target.fields[key], item, f"{path}.{key}")


def _set_list(target: Any, value: Any, path: str) -> None:
    for index, item in enumerate(value):
        _set_value(target.values.add(), item, f"{path}[{index}]")


def _set_value(target: Any, value: Any, path: str) -> None:
    """Set a `google.protobuf.Value`, which is what JSON can hold."""
    if value is None:
        target.null_value = 0
    elif isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, str):
        target.string_value = value
    elif isinstance(value, int | float):
        target.number_value = _exact(value, path)
    elif isinstance(value, Mapping):
        target.struct_value.SetInParent()
        _set_struct(target.struct_value, value, path)
    elif isinstance(value, list | tuple):
        target.list_value.SetInParent()
        _set_list(target.list_value, value, path)
    else:
        raise TypeError(f"{path}: {_name(value)} is not JSON; convert it first")


def _exact(value: float, path: str) -> float:
    if isinstance(value, int) and abs(value) > MAX_EXACT_INTEGER:
        raise ArgumentError(f"{path}: {value} does not fit a JSON number exactly; send it as text")
    if not math.isfinite(value):
        raise ArgumentError(f"{path}: {value} is not a JSON number")
    return value


def _name(value: Any) -> str:
    return type(value).__name__


_WELL_KNOWN: dict[str, Callable[[Any, Any, str], None]] = {
    "google.protobuf.Timestamp": _set_timestamp,
    "google.protobuf.Duration": _set_duration,
    "google.protobuf.FieldMask": _set_field_mask,
    "google.protobuf.Struct": _set_struct,
    "google.protobuf.Value": _set_value,
    "google.protobuf.ListValue": _set_list,
}
