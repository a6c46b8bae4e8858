"""Messages as plain Python values and as JSON, with the field names of the schema.

This is protobuf's JSON form, with two things settled that protobuf's own printer leaves open:
keys come in one order, and the whole numbers of free JSON are written as such (3, not 3.0).
"""

from __future__ import annotations

import base64
import json
import math
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import ListValue, Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

# Beyond it a double no longer holds every whole number.
_MAX_EXACT_INTEGER = 2**53
_LONG = (FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64)


def to_dict(message: Message, *, defaults: bool = True) -> dict[str, Any]:
    """A message as plain values in protobuf's JSON form.

    Args:
        message: any message of the API, or a Struct.
        defaults: include fields that hold their default, so that the keys are always the same.

    Returns:
        Field names in the schema's order; times as RFC 3339 text, durations as "1.5s", enums by
        name, 64-bit integers as text (JSON's numbers do not hold them all), free JSON as it is,
        its keys sorted.
    """
    if isinstance(message, Struct):
        return {key: _free(message.fields[key]) for key in sorted(message.fields)}
    given = {field.name for field, _ in message.ListFields()}
    result: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if field.name in given or (defaults and not field.has_presence):
            value = getattr(message, field.name)
            convert = _repeated if field.is_repeated else _plain
            result[field.name] = convert(field, value, defaults)
    return result


def to_json(message: Message, *, defaults: bool = True) -> str:
    """The same as JSON text on one line."""
    return json.dumps(to_dict(message, defaults=defaults), ensure_ascii=False)


def _repeated(field: Any, values: Any, defaults: bool) -> Any:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        element = entry.fields_by_name["value"]
        return {str(key): _plain(element, values[key], defaults) for key in sorted(values)}
    return [_plain(field, value, defaults) for value in values]


def _plain(field: Any, value: Any, defaults: bool) -> Any:
    if field.message_type:
        return _message(value, defaults)
    if field.enum_type:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known else value
    if field.cpp_type in _LONG:
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _message(value: Message, defaults: bool) -> Any:
    if isinstance(value, Timestamp | Duration | FieldMask):
        return value.ToJsonString()
    if isinstance(value, Struct | ListValue | Value):
        return _free(value)
    return to_dict(value, defaults=defaults)


def _free(value: Any) -> Any:
    """Free JSON as it is."""
    if isinstance(value, Struct):
        return to_dict(value)
    if isinstance(value, ListValue):
        return [_free(item) for item in value.values]
    kind = value.WhichOneof("kind")
    if kind is None or kind == "null_value":
        return None
    content = getattr(value, kind)
    if kind == "number_value":
        return int(content) if _is_whole(content) else content
    return _free(content) if kind in ("struct_value", "list_value") else content


def _is_whole(number: float) -> bool:
    """Whether an integer says the same; minus zero is a double only."""
    return (
        number.is_integer()
        and abs(number) <= _MAX_EXACT_INTEGER
        and not (number == 0 and math.copysign(1, number) < 0)
    )
