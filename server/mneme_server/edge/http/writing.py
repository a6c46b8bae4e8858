"""Answers as REST writes them, from messages, along their descriptors."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, TypeAlias

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pool import Default
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.struct_pb2 import Struct

from mneme_server.edge.http.rest_mapping import ANSWERS, FLAT, GROUPS, OWNED, TENANT, word_of

Write: TypeAlias = Callable[[Any], Any]
Object: TypeAlias = dict[str, Any]

_tenant: ContextVar[str] = ContextVar("mneme_http_tenant", default="")

_EXACT = 2**53
_STRUCT = "google.protobuf.Struct"


@contextmanager
def of_tenant(tenant_id: str) -> Iterator[None]:
    """Have what is written in the block say that it belongs to a tenant; "" says nothing."""
    token = _tenant.set(tenant_id)
    try:
        yield
    finally:
        _tenant.reset(token)


@cache
def writer_of(message: Descriptor) -> Callable[[Any], Any]:
    """Return what writes a message."""
    own = _OWN.get(message.full_name)
    if own is not None:
        return own
    if message.full_name in FLAT:
        return _flat_writer(message, FLAT[message.full_name])
    return _Writer(message)


def json_name(field: FieldDescriptor) -> str:
    """Return what a field of an answer is called."""
    return ANSWERS.get(str(field.name), str(field.json_name))


class _Writer:
    """Writes the messages of one type. What its fields need is looked up once, when it is first
    used: messages may hold their own kind."""

    def __init__(self, message: Descriptor) -> None:
        self._message = message
        self._fields: list[tuple[str, str, Write | None, bool, Any]] | None = None
        self._owned = message.full_name in OWNED
        self._groups: Mapping[str, Mapping[str, str]] = GROUPS.get(message.full_name, {})

    def __call__(self, message: Message) -> Object:
        fields = self._fields
        if fields is None:
            fields = self._fields = [_plan(field) for field in self._message.fields]
        written: Object = {}
        for key, name, write, presence, unset in fields:
            if presence and not message.HasField(name):
                # An object that is not set is as good as an empty one, as JSON objects go.
                written[key] = {} if unset is _STRUCT else unset
            elif write is None:
                written[key] = getattr(message, name)
            else:
                written[key] = write(getattr(message, name))
        if self._owned and (tenant_id := _tenant.get()):
            written[TENANT] = tenant_id
        for group, members in self._groups.items():
            known = self._message.fields_by_name
            written[group] = {
                key: written.pop(json_name(known[name])) for name, key in members.items()
            }
        return written


def _plan(field: FieldDescriptor) -> tuple[str, str, Write | None, bool, Any]:
    write = _writer(field)
    if field.is_repeated:
        write = _whole(field, write)
    inner = field.message_type
    unset = _STRUCT if inner is not None and inner.full_name == _STRUCT else None
    return json_name(field), str(field.name), write, field.has_presence, unset


def _whole(field: FieldDescriptor, write: Write | None) -> Write:
    """Return what writes all of a list or a map."""
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        value = _writer(entry.fields_by_name["value"]) or _same
        return lambda pairs: {str(key): value(one) for key, one in pairs.items()}
    if write is None:
        return list
    return lambda items: [write(item) for item in items]


def _writer(field: FieldDescriptor) -> Write | None:
    """Return what writes one value of a field; None where it is written as it is."""
    if field.message_type is not None:
        return writer_of(field.message_type)
    if (enum := field.enum_type) is not None:
        return {value.number: word_of(enum, value.number) for value in enum.values}.get
    if field.type == FieldDescriptor.TYPE_BYTES:
        return lambda raw: base64.b64encode(raw).decode()
    return None


def _flat_writer(message: Descriptor, inner: str) -> Callable[[Any], Any]:
    outer = _Writer(message)
    key = json_name(message.fields_by_name[inner])

    def write(one: Message) -> Object:
        written = outer(one)
        found = written.pop(key) or {}
        return {**found, **written}

    return write


def _same(value: Any) -> Any:
    return value


def _json(text: Any) -> str:
    return str(text.ToJsonString())


def _struct(struct: Struct) -> Object:
    return {key: _value(value) for key, value in struct.fields.items()}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() and abs(number) < _EXACT else number
    if kind == "struct_value":
        return _struct(value.struct_value)
    if kind == "list_value":
        return [_value(item) for item in value.list_value.values]
    return None if kind in (None, "null_value") else getattr(value, kind)


def _any(packed: AnyMessage) -> Object:
    written: Object = {"@type": packed.type_url}
    try:
        described = Default().FindMessageTypeByName(packed.TypeName())
    except KeyError:
        return written
    message = GetMessageClass(described)()
    packed.Unpack(message)
    written.update(writer_of(described)(message))
    return written


_OWN: Mapping[str, Write] = {
    "google.protobuf.Timestamp": _json,
    "google.protobuf.Duration": _json,
    "google.protobuf.FieldMask": _json,
    "google.protobuf.Struct": _struct,
    "google.protobuf.Value": _value,
    "google.protobuf.ListValue": lambda items: [_value(item) for item in items.values],
    "google.protobuf.Any": _any,
}
