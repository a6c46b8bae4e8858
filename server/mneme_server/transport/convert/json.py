"""Between `google.protobuf.Struct` and JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from google.protobuf.struct_pb2 import NULL_VALUE, ListValue, Struct, Value

from mneme_server.common.canonical import Json, JsonObject
from mneme_server.common.errors import InvalidArgument, Reason

MAX_DEPTH = 32
PAYLOAD_BYTES = 1024 * 1024
METADATA_BYTES = 64 * 1024

_EXACT = 2**53  # Beyond it a double no longer holds every whole number.


def json_of(struct: Struct, field: str, max_bytes: int) -> JsonObject:
    """Return the object that a Struct holds; whole numbers become ints, as JSON writes them.

    Raises:
        InvalidArgument: it is larger than `max_bytes` encoded, deeper than `MAX_DEPTH`, holds a
            number that JSON cannot write, or a NUL character.
    """
    if not struct.fields:
        return {}
    size = struct.ByteSize()
    if size > max_bytes:
        raise InvalidArgument(
            f"{field} takes {size} bytes encoded, at most {max_bytes} are allowed",
            reason=Reason.OUT_OF_RANGE,
            field=field,
        )
    return _object(struct, field, 1)


def _object(struct: Struct, field: str, depth: int) -> dict[str, Json]:
    _require_depth(field, depth)
    result: dict[str, Json] = {}
    # A map on the wire has no order of its own; texts are derived from this one, and must be the
    # same when the same event is sent again.
    for key in sorted(struct.fields):
        if "\0" in key:
            raise _holds_nul(field)
        result[key] = _value(struct.fields[key], field, depth)
    return result


def _value(value: Value, field: str, depth: int) -> Json:
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
        return _object(value.struct_value, field, depth + 1)
    if kind == "list_value":
        _require_depth(field, depth + 1)
        return [_value(item, field, depth + 1) for item in value.list_value.values]
    return None


def _number(number: float, field: str) -> int | float:
    if not math.isfinite(number):
        raise InvalidArgument(f"{field} holds {number}, which JSON cannot write", field=field)
    whole = number.is_integer() and abs(number) < _EXACT
    return int(number) if whole else number


def _require_depth(field: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidArgument(
            f"{field} is nested more than {MAX_DEPTH} levels deep",
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
    return Struct(fields={key: _value_of(item) for key, item in value.items()})


def _value_of(item: Any) -> Value:
    if isinstance(item, str):
        return Value(string_value=item)
    if isinstance(item, bool):
        return Value(bool_value=item)
    if isinstance(item, int | float):
        return Value(number_value=item)
    if isinstance(item, Mapping):
        return Value(struct_value=struct_of_object(item))
    if isinstance(item, list | tuple):
        return Value(list_value=ListValue(values=[_value_of(inner) for inner in item]))
    return Value(null_value=NULL_VALUE)
