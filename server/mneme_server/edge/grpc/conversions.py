"""Conversions between the wire and the domain: `Timestamp` and microseconds, `Struct` and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import NULL_VALUE, Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp
from mneme.v1.options_pb2 import JsonLimits, json_limits

from mneme_server.common.canonical import Json, JsonObject
from mneme_server.common.clock import MICROSECONDS
from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.edge.grpc.schema_options import extension

_LIMIT_US = 2**62
"""Bounds of a filter's times: beyond every time that can be stored, and within 64 bits."""

_LAST_SECOND = 253_402_300_799  # 9999-12-31T23:59:59Z, the last one that a Timestamp may hold.
_NANOS = 1_000_000_000


_EXACT = 2**53  # Beyond it a double no longer holds every whole number.


def to_timestamp(microseconds: int) -> Timestamp:
    """Return the Timestamp of microseconds since 1970."""
    seconds, rest = divmod(microseconds, MICROSECONDS)
    return Timestamp(seconds=seconds, nanos=rest * 1_000)


def to_duration(microseconds: int) -> Duration:
    """Return the Duration of microseconds."""
    duration = Duration()
    duration.FromMicroseconds(microseconds)
    return duration


def stored_time(message: Message, field: str, prefix: str = "") -> int | None:
    """Return the time in a field that is to be kept, in microseconds since 1970; None if unset.

    What is finer than a microsecond is cut off. `prefix` is the path of the message in its request.

    Raises:
        InvalidArgument: OUT_OF_RANGE, it is not between 1970 and 9999, or no time at all.
    """
    if not message.HasField(field):
        return None
    timestamp: Timestamp = getattr(message, field)
    if not (0 <= timestamp.seconds <= _LAST_SECOND and 0 <= timestamp.nanos < _NANOS):
        path = f"{prefix}.{field}" if prefix else field
        raise InvalidArgument(
            f"{path}: must be a time from 1970 to 9999, with nanos from 0 to 999,999,999",
            reason=Reason.OUT_OF_RANGE,
            field=path,
        )
    return timestamp.seconds * MICROSECONDS + timestamp.nanos // 1_000


def stored_duration(message: Message, field: str, prefix: str = "") -> int | None:
    """Return the duration in a field, in microseconds; None when it is unset.

    Raises:
        InvalidArgument: OUT_OF_RANGE, its seconds and nanoseconds do not make a duration.
    """
    if not message.HasField(field):
        return None
    duration: Duration = getattr(message, field)
    if not (duration.seconds >= 0 and 0 <= duration.nanos < _NANOS):
        path = f"{prefix}.{field}" if prefix else field
        raise InvalidArgument(
            f"{path}: must be at least 0, with nanos from 0 to 999,999,999",
            reason=Reason.OUT_OF_RANGE,
            field=path,
        )
    return duration.seconds * MICROSECONDS + duration.nanos // 1_000


def time_range(message: Message) -> tuple[int | None, int | None]:
    """Return `start_time` (inclusive) and `end_time` (exclusive) of a request.

    Raises:
        InvalidArgument: the range ends before it starts.
    """
    start, end = _bound(message, "start_time"), _bound(message, "end_time")
    if start is not None and end is not None and end < start:
        raise InvalidArgument(
            "end_time is before start_time", reason=Reason.INVALID_FILTER, field="end_time"
        )
    return start, end


def _bound(message: Message, field: str) -> int | None:
    """Return the time of a filter; those that nothing can have are as good as the nearest one."""
    if not message.HasField(field):
        return None
    timestamp: Timestamp = getattr(message, field)
    microseconds = timestamp.seconds * MICROSECONDS + timestamp.nanos // 1_000
    return max(-_LIMIT_US, min(_LIMIT_US, microseconds))


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
