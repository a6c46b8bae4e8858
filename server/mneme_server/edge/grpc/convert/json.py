"""Between `google.protobuf.Struct` and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import NULL_VALUE, Struct, Value
from mneme.v1.options_pb2 import JsonLimits, json_limits

from mneme_server.common.canonical import Json, JsonObject
from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.edge.grpc.extensions import extension

_EXACT = 2**53  # Beyond it a double no longer holds every whole number.


def json_of(message: Message, field: str, parent: str = "") -> JsonObject:
    """Return the object in a message's Struct; whole numbers become ints, as JSON writes them.

    Args:
        message: the message.
        field: its field, whose option `json_limits` says how large the object may be.
        parent: the message's path in the request, for errors; "" for the request itself.

    Raises:
        InvalidArgument: it is larger or deeper than that, holds a number that JSON cannot write, or
            a NUL character.
    """
    if not message.HasField(field):
        return {}
    struct: Struct = getattr(message, field)
    limits = _limits(message.DESCRIPTOR, field)
    path = f"{parent}.{field}" if parent else field
    size = struct.ByteSize()
    if size > limits.max_bytes:
        raise InvalidArgument(
            f"{path} takes {size} bytes encoded, at most {limits.max_bytes} are allowed",
            reason=Reason.OUT_OF_RANGE,
            field=path,
        )
    return _object(struct, path, limits.max_depth, limits.max_depth)


@cache
def _limits(message: Descriptor, field: str) -> JsonLimits:
    limits: JsonLimits = extension(message.fields_by_name[field], json_limits)
    return limits


def _object(struct: Struct, field: str, left: int, allowed: int) -> dict[str, Json]:
    if not left:
        raise _too_deep(field, allowed)
    result: dict[str, Json] = {}
    # A map on the wire has no order of its own; texts are derived from this one, and must be the
    # same when the same event is sent again.
    for key in sorted(struct.fields):
        if "\0" in key:
            raise _holds_nul(field)
        result[key] = _value(struct.fields[key], field, left - 1, allowed)
    return result


def _value(value: Value, field: str, left: int, allowed: int) -> Json:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        text = value.string_value
        if "\0" in text:
            raise _holds_nul(field)
        return text
    if kind == "number_value":
        return _number(value.number_value, field)
    if kind == "bool_value":
        return value.bool_value
    if kind == "struct_value":
        return _object(value.struct_value, field, left, allowed)
    if kind == "list_value":
        if not left:
            raise _too_deep(field, allowed)
        return [_value(item, field, left - 1, allowed) for item in value.list_value.values]
    return None


def _number(number: float, field: str) -> int | float:
    if not math.isfinite(number):
        raise InvalidArgument(f"{field} holds {number}, which JSON cannot write", field=field)
    whole = number.is_integer() and abs(number) < _EXACT
    return int(number) if whole else number


def _too_deep(field: str, allowed: int) -> InvalidArgument:
    return InvalidArgument(
        f"{field} is nested more than {allowed} levels deep",
        reason=Reason.OUT_OF_RANGE,
        field=field,
    )


def _holds_nul(field: str) -> InvalidArgument:
    return InvalidArgument(f"{field} holds a NUL character", field=field)


def struct_of(text: str) -> Struct | None:
    """Return the Struct of a JSON object; None for an empty one."""
    return None if text == "{}" else struct_of_object(json.loads(text))


def struct_of_object(value: JsonObject) -> Struct:
    """Return the Struct of an object."""
    struct = Struct()
    _fill(struct, value)
    return struct


def _fill(struct: Struct, value: JsonObject) -> None:
    fields = struct.fields
    for key, item in value.items():
        _set(fields[key], item)


def _set(value: Value, item: Any) -> None:
    """Write an item in its place: to make messages and copy them into each other takes longer."""
    if isinstance(item, str):
        value.string_value = item
    elif isinstance(item, bool):
        value.bool_value = item
    elif isinstance(item, int | float):
        value.number_value = item
    elif isinstance(item, Mapping):
        value.struct_value.SetInParent()  # Or an empty one would be none.
        _fill(value.struct_value, item)
    elif isinstance(item, list | tuple):
        value.list_value.SetInParent()
        for inner in item:
            _set(value.list_value.values.add(), inner)
    else:
        value.null_value = NULL_VALUE
