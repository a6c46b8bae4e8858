"""Answers as JSON: the names and values that arguments have.

Like protobuf's JSON form, with the field names of the schema, and settled where that form is
awkward: enums are the names that a caller types ("tool_error"), 64-bit integers are numbers, the
whole numbers of free JSON are written as such (3, not 3.0), and keys come in one order.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from typing import Any, TypeVar

from google.protobuf import json_format, symbol_database
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import ListValue, Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp

from mneme._core.answers import Answer
from mneme._core.convert import parse_enum
from mneme._core.enums import name_of
from mneme._core.json_values import free_json, misfit_in
from mneme._core.misfits import in_words
from mneme._core.status import error_in
from mneme.errors import ArgumentError

MessageT = TypeVar("MessageT", bound=Message)


def to_dict(answer: Answer[Any] | Message, *, defaults: bool = True) -> dict[str, Any]:
    """An answer, or a message of the API, as what JSON can hold.

    Args:
        answer: what a call answered, or any message.
        defaults: include fields that hold their default, so that the keys are always the same.

    Returns:
        Field names in the schema's order; times as RFC 3339 text, durations as "1.5s", enums as
        the names that arguments have (None: unspecified), integers as numbers, free JSON as it
        is, its keys sorted.
    """
    message = answer.raw if isinstance(answer, Answer) else answer
    if isinstance(message, Struct):
        return {key: free_json(message.fields[key]) for key in sorted(message.fields)}
    given = {field.name for field, _ in message.ListFields()}
    result: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if field.name in given or (defaults and not field.has_presence):
            value = getattr(message, field.name)
            convert = _repeated if field.is_repeated else _plain
            result[field.name] = convert(field, value, defaults)
    return result


def to_json(answer: Answer[Any] | Message, *, defaults: bool = True) -> str:
    """The same as JSON text on one line."""
    return json.dumps(to_dict(answer, defaults=defaults), ensure_ascii=False)


def from_dict(values: Mapping[str, Any], message: MessageT) -> MessageT:
    """Fill a message with what `to_dict` made of one; protobuf's own JSON form is read, too.

    Raises:
        ArgumentError: a value does not fit; the message names the field.
    """
    misfit = misfit_in(values, message.DESCRIPTOR)
    if misfit is not None:
        raise ArgumentError(f"{misfit.path}: {misfit.problem}")
    try:
        json_format.ParseDict(_with_numbers(values, message.DESCRIPTOR), message)
    except ArgumentError:
        raise
    except (json_format.ParseError, TypeError, ValueError) as error:
        raise ArgumentError(in_words(error, message.DESCRIPTOR)) from error
    return message


def _with_numbers(values: Any, descriptor: Any) -> Any:
    """The same with the names of enums replaced by their numbers, which protobuf takes."""
    if not isinstance(values, Mapping) or descriptor.full_name.startswith("google.protobuf."):
        return values
    fields = {**descriptor.fields_by_camelcase_name, **descriptor.fields_by_name}
    return {
        name: _number_of(value, fields[name]) if name in fields else value
        for name, value in values.items()
    }


def _number_of(value: Any, field: FieldDescriptor) -> Any:
    if isinstance(value, list):
        return [_number_of(item, field) for item in value]
    if field.enum_type and isinstance(value, str):
        try:
            return parse_enum(field.enum_type, value)
        except ArgumentError as error:
            raise ArgumentError(f"{field.name}: {error}") from None
    return _with_numbers(value, field.message_type) if field.message_type else value


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
        return name_of(field.enum_type, value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _message(value: Message, defaults: bool) -> Any:
    if isinstance(value, Timestamp | Duration | FieldMask):
        return value.ToJsonString()
    if isinstance(value, Struct | ListValue | Value):
        return free_json(value)
    if value.DESCRIPTOR.full_name in ("google.protobuf.Any", "google.rpc.Status"):
        return _described(value, defaults)
    return to_dict(value, defaults=defaults)


def _described(value: Any, defaults: bool) -> dict[str, Any]:
    """What is packed, with its type; an error as the command line writes one."""
    if value.DESCRIPTOR.full_name == "google.rpc.Status":
        error = error_in(value)
        return {
            "code": error.code.name,
            "message": error.message,
            "reason": error.reason,
            "metadata": error.metadata,
        }
    try:
        message = symbol_database.Default().GetSymbol(value.TypeName())()
    except KeyError:  # This client is too old to know it.
        return {"@type": value.type_url}
    value.Unpack(message)
    return {"@type": value.type_url, **to_dict(message, defaults=defaults)}
