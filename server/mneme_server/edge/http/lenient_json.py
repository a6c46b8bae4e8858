"""Telemetry as senders write it in JSON, where it is not quite what OpenTelemetry's protocol says.

SDKs cut texts within characters, write ids in other forms and numbers as they come. What cannot be
read costs its value, or the span that it is in; never what else an export holds.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Collection, Mapping
from functools import cache, partial
from typing import Any, TypeAlias, cast

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

Json: TypeAlias = Any

IDS = ("trace_id", "span_id", "parent_span_id")
"""Fields whose bytes are hexadecimal, not Base64."""
_NO_ID = b"?"
"""In place of what is no id. It is none either, so that its span is refused with the reason."""
_ANY_VALUE = "opentelemetry.proto.common.v1.AnyValue"
_DEEPEST = 100
_DEEPEST_TEXT = 400
_LONGEST_INT = 4_000
"""Digits; Python reads no more."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]')
_UNREADABLE = (ValueError, TypeError, OverflowError, KeyError)


def load(body: bytes) -> Json:
    """Return what a body says, also where a text holds half of a character, a control character or
    bytes that are no UTF-8, where a number is none, and without what is nested too deep.

    Raises:
        ValueError: it is no JSON all the same.
    """
    text = body.decode("utf-8", "replace").removeprefix("\ufeff")
    try:
        return _loads(text)
    except RecursionError:
        return _loads(_flattened(text))


def fill(message: Message, value: Mapping[str, Json], parts: Collection[str]) -> None:
    """Set the fields of an export that can be read, of JSON as `load` returns it.

    Args:
        message: an empty one.
        value: what is said.
        parts: full names of messages that may be lost by themselves: one that is none is left
            empty, as is what cannot be read in one.

    Raises:
        ValueError: something is no message that holds such parts.
    """
    for field, item in _said(message, value):
        if field.message_type is None:
            _set(message, field, item)
        elif not field.is_repeated:
            if isinstance(item, Mapping):
                getattr(message, field.name).SetInParent()
                _fill_part(getattr(message, field.name), item, _DEEPEST)
        elif not isinstance(item, list):
            raise ValueError(f"{field.json_name} is no list")
        else:
            for one in item:
                _fill_one(message, field, one, parts)


def _fill_one(
    message: Message, field: FieldDescriptor, value: Json, parts: Collection[str]
) -> None:
    target = getattr(message, field.name).add()
    if isinstance(value, Mapping):
        if target.DESCRIPTOR.full_name in parts:
            _fill_part(target, value, _DEEPEST)
        else:
            fill(target, value, parts)
    elif target.DESCRIPTOR.full_name not in parts:
        raise ValueError(f"{field.json_name} holds what is no object")


def _fill_part(message: Message, value: Json, left: int) -> None:
    """Set the fields of a part, or of what is in one, as far as they can be read."""
    if left <= 0:
        return
    if message.DESCRIPTOR.full_name == _ANY_VALUE:
        _fill_any(message, value, left)
        return
    if not isinstance(value, Mapping):
        return
    for field, item in _said(message, value):
        if field.message_type is None:
            _set(message, field, item)
        elif field.is_repeated:
            for one in item if isinstance(item, list) else [item]:
                _fill_part(getattr(message, field.name).add(), one, left - 1)
        else:
            getattr(message, field.name).SetInParent()
            _fill_part(getattr(message, field.name), item, left - 1)


def _fill_any(message: Any, value: Json, left: int) -> None:
    """Set a value of any kind: what does not fit the kind that it names is kept as its text."""
    if not isinstance(value, Mapping):
        message.string_value = _text(value)
        return
    for field, item in _said(message, value):
        if field.message_type is not None and isinstance(item, Mapping):
            getattr(message, field.name).SetInParent()
            _fill_part(getattr(message, field.name), item, left - 1)
        elif field.message_type is not None or not _set(message, field, item):
            message.string_value = _text(item)


def _said(message: Message, value: Mapping[str, Json]) -> list[tuple[FieldDescriptor, Json]]:
    fields = _fields(cast(Descriptor, message.DESCRIPTOR))
    return [
        (field, item)
        for name, item in value.items()
        if item is not None and (field := fields.get(name)) is not None
    ]


@cache
def _fields(descriptor: Descriptor) -> Mapping[str, FieldDescriptor]:
    named = {field.name: field for field in descriptor.fields}
    return named | {field.json_name: field for field in descriptor.fields}


def _set(message: Message, field: FieldDescriptor, value: Json) -> bool:
    """Set a field that is no message; tell whether it could be read."""
    read = _reader(field)
    try:
        if field.is_repeated:
            getattr(message, field.name).extend([read(one) for one in value])
        else:
            setattr(message, field.name, read(value))
    except _UNREADABLE:
        return False
    return True


def _reader(field: FieldDescriptor) -> Callable[[Json], Any]:
    if field.name in IDS:
        return _id
    if field.type == FieldDescriptor.TYPE_BYTES:
        return partial(base64.b64decode, validate=True)
    if field.enum_type is not None:
        return partial(_enum, field.enum_type)
    return _READERS.get(field.cpp_type, _int)


def _id(value: Json) -> bytes:
    try:
        return bytes.fromhex(value)
    except _UNREADABLE:
        return _NO_ID


def _int(value: Json) -> int:
    number = int(value)
    if isinstance(value, float) and number != value:
        raise ValueError(f"{value} is no whole number")
    return number


def _bool(value: Json) -> bool:
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}[str(value).lower()]


def _enum(enum: EnumDescriptor, value: Json) -> int:
    if isinstance(value, str):
        for one in enum.values:
            if one.name == value.upper() or one.name.endswith("_" + value.upper()):
                return int(one.number)
    return _int(value)


def _text(value: Json) -> str:
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False)
    return str(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_READERS: Mapping[int, Callable[[Json], Any]] = {
    FieldDescriptor.CPPTYPE_STRING: _text,
    FieldDescriptor.CPPTYPE_BOOL: _bool,
    FieldDescriptor.CPPTYPE_DOUBLE: float,
    FieldDescriptor.CPPTYPE_FLOAT: float,
}


def _loads(text: str) -> Json:
    return json.loads(text, strict=False, parse_constant=str, parse_int=_number)


def _number(digits: str) -> int | str:
    return int(digits) if len(digits) <= _LONGEST_INT else digits


def _flattened(text: str) -> str:
    """Return JSON with a text in place of each value that is nested too deep."""
    kept: list[str] = []
    depth, at = 0, 0
    for token in _TOKEN.finditer(text):
        mark = token.group()
        if mark in "[{":
            if depth == _DEEPEST_TEXT:
                kept.append(text[at : token.start()] + '"..."')
            depth += 1
        elif mark in "]}":
            depth -= 1
            if depth == _DEEPEST_TEXT:
                at = token.end()
    return "".join(kept) + text[at:]
