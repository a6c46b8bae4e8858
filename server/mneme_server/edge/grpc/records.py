"""Conversions of records to messages and back, made of the fields that both have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property, partial
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from mneme_server.common.canonical import canonical_json
from mneme_server.common.records import (
    Conversion,
    RecordField,
    call_of,
    compiled,
    is_record,
    record_fields,
)
from mneme_server.edge.grpc.conversions import (
    json_of,
    stored_duration,
    stored_time,
    struct_of,
    struct_of_object,
    time_range,
    to_duration,
    to_timestamp,
)

R = TypeVar("R")
M = TypeVar("M", bound=Message)
FieldDescriptor: TypeAlias = Any  # Of C or of Python, which share no type.

_TIMESTAMP = "google.protobuf.Timestamp"
_DURATION = "google.protobuf.Duration"
_STRUCT = "google.protobuf.Struct"
_RANGE = {"start_us": ("start_time", 0), "end_us": ("end_time", 1)}
"""The bounds of a filter's time, which are read together."""
_CONVERSIONS = {
    "time_range": time_range,
    "to_timestamp": to_timestamp,
    "to_duration": to_duration,
    "struct_of": struct_of,
    "struct_of_object": struct_of_object,
    "stored_time": stored_time,
    "stored_duration": stored_duration,
    "json_of": json_of,
    "canonical_json": canonical_json,
}


def message_writer(
    record: type[R],
    message: type[M],
    *,
    spelled: Mapping[str, str] | None = None,
    made: Mapping[str, Callable[[R], Any]] | None = None,
    parts: Mapping[str, Callable[[Any], Any]] | None = None,
    unshown: Collection[str] = (),
) -> Callable[[R], M]:
    """Return what makes a message of a record.

    Each field of the message is that of the record, or its property, which is spelled so; a record
    within it becomes a message likewise.

    Args:
        record: the record's class.
        message: the message's.
        spelled: what the message calls fields of the record, where `RecordField.spellings` do not
            tell.
        made: fields of the message that are made of the whole record.
        parts: what makes a field of the message of the record's; of each item, where it has
            several.
        unshown: fields of the record that the message does not have.

    Raises:
        TypeError: a field of the message is not filled, or one of the record neither shown nor
            `unshown`; when it is first used.
    """
    make = partial(
        _make_writer, record, message, spelled=spelled or {}, made=made or {}, parts=parts or {},
        unshown=frozenset(unshown),
    )  # fmt: skip
    return Conversion(make)


def _make_writer(
    record: type[R],
    message: type[M],
    *,
    spelled: Mapping[str, str],
    made: Mapping[str, Callable[[R], Any]],
    parts: Mapping[str, Callable[[Any], Any]],
    unshown: frozenset[str],
) -> Callable[[R], M]:
    by_spelling = {
        spelling: field
        for name, field in record_fields(record).items()
        for spelling in ([spelled[name]] if name in spelled else field.spellings())
    }
    known: dict[str, Any] = {**_CONVERSIONS, "Message": message}
    known |= {f"make_{name}": make for name, make in made.items()}
    known |= {f"write_{name}": write for name, write in parts.items()}
    values: dict[str, str] = {}
    shown = set(unshown)
    for field in message.DESCRIPTOR.fields:
        if field.name in made:
            values[field.name] = f"make_{field.name}(record)"
        elif source := by_spelling.get(field.name):
            values[field.name] = _written(source, field, known)
            shown.add(source.name)
        elif isinstance(getattr(record, field.name, None), property):
            values[field.name] = f"record.{field.name}"
        else:
            raise TypeError(f"nothing of {record.__name__} is {field.full_name}")
    if left := record_fields(record).keys() - shown:
        named = ", ".join(sorted(left))
        raise TypeError(f"{message.DESCRIPTOR.full_name} shows no {named} of {record.__name__}")
    return compiled(f"message_of_{record.__name__}", "record", call_of("Message", values), known)


def _written(source: RecordField, field: FieldDescriptor, known: dict[str, Any]) -> str:
    """Return the expression that makes a field of a message."""
    value, convert = f"record.{source.name}", f"write_{field.name}"
    if convert not in known:
        if field.message_type is None:
            return value
        convert = _conversion(source, field, known)
    if source.many is not None:
        return f"map({convert}, {value})"
    made = f"{convert}({value})"
    return f"None if {value} is None else {made}" if source.optional else made


def _conversion(source: RecordField, field: FieldDescriptor, known: dict[str, Any]) -> str:
    """Return the name of what makes a message of the record's field."""
    kind = field.message_type.full_name
    if is_record(source.type):
        known[f"write_{field.name}"] = message_writer(
            source.type, GetMessageClass(field.message_type)
        )
        return f"write_{field.name}"
    if kind == _STRUCT:
        return "struct_of" if source.is_json else "struct_of_object"
    if kind in (_TIMESTAMP, _DURATION) and source.is_time:
        return "to_timestamp" if kind == _TIMESTAMP else "to_duration"
    raise TypeError(f"no conversion makes {field.full_name} of {source.name}")


class _FieldSource(NamedTuple):
    """Where a field of a record comes from: what the message calls it, which may be several fields
    that exclude each other, and an expression."""

    spellings: tuple[str, ...]
    value: str


class MessageReader(Generic[M, R]):
    """What makes a record of a message.

    A time, an object or a number that cannot be kept is refused with its path in the request; so is
    a range of time, `start_us` and `end_us`, that ends before it starts. What is not set is None in
    a field that may be None, else the field's zero.

    Args:
        message: the message's class.
        record: the record's. Fields that the message does not have keep their defaults.
        spelled: what the message calls fields of the record, where `RecordField.spellings` do not
            tell; "": nothing; several where one of them is set, in a field that is `made`.
        made: fields of the record that are made of the whole message and its path.
        sets: fields that are kept sorted and without repeats.
        unread: fields of the message that the record does not have.

    Raises:
        TypeError: a field of the record that has no default is not in the message, or one of the
            message neither in the record nor `unread`; when it is first used.
    """

    def __init__(
        self,
        message: type[M],
        record: type[R],
        *,
        spelled: Mapping[str, str | tuple[str, ...]] | None = None,
        made: Mapping[str, Callable[[M, str], Any]] | None = None,
        sets: Collection[str] = (),
        unread: Collection[str] = (),
    ) -> None:
        self._message, self._record = message, record
        self._spelled, self._made = spelled or {}, made or {}
        self._sets, self._unread = frozenset(sets), frozenset(unread)
        self._known: dict[str, Any] = {**_CONVERSIONS, "Record": record}
        self._conversion: Conversion[[M, str], R] = Conversion(self._compiled)

    def __call__(self, message: M, path: str = "") -> R:
        """Return the record of a message; `path` is the message's in its request, for errors.

        Raises:
            InvalidArgument: a value cannot be kept.
        """
        return self._conversion.function(message, path)

    def changes(self, message: M, named: Iterable[str], path: str = "") -> dict[str, Any]:
        """Return the new values of the fields that an update names, by the record's names.

        They must have passed `named_fields` and their rules.

        Raises:
            InvalidArgument: a value cannot be kept.
        """
        return {
            name: read(message, path) for one in named for name, read in self._changing[one].items()
        }

    @cached_property
    def _changing(self) -> Mapping[str, Mapping[str, Callable[[M, str], Any]]]:
        """What makes each field of the record alone, by those of the message."""
        changing: dict[str, dict[str, Callable[[M, str], Any]]] = {}
        for name, one in self._sources.items():
            read = compiled(f"{name}_of", "message, path", one.value, self._known)
            for spelling in one.spellings:
                changing.setdefault(spelling, {})[name] = read
        return changing

    def _compiled(self) -> Callable[[M, str], R]:
        values = {name: one.value for name, one in self._sources.items()}
        name = f"{self._record.__name__}_of"
        return compiled(name, "message, path", call_of("Record", values), self._known)

    @cached_property
    def _sources(self) -> Mapping[str, _FieldSource]:
        """Where each field of the record comes from, by its name."""
        descriptors = self._message.DESCRIPTOR.fields_by_name
        found: dict[str, _FieldSource] = {}
        for name, field in record_fields(self._record).items():
            spelled = self._spelled.get(name, tuple(field.spellings()))
            given = [
                one
                for one in ((spelled,) if isinstance(spelled, str) else spelled)
                if one in descriptors
            ]
            if name in _RANGE and _RANGE[name][0] in descriptors:
                spelling, place = _RANGE[name]
                found[name] = _FieldSource((spelling,), f"time_range(message)[{place}]")
            elif name in self._made:
                self._known[f"make_{name}"] = self._made[name]
                spellings = tuple(given if name in self._spelled else given[:1])
                found[name] = _FieldSource(spellings, f"make_{name}(message, path)")
            elif given:
                found[name] = _FieldSource((given[0],), self._read(field, descriptors[given[0]]))
            elif field.required:
                raise TypeError(f"{self._message.DESCRIPTOR.full_name} has no {name}")
        read = {one for source in found.values() for one in source.spellings} | self._unread
        if left := set(descriptors) - read:
            raise TypeError(
                f"nothing of {self._record.__name__} is {', '.join(sorted(left))} of"
                f" {self._message.DESCRIPTOR.full_name}"
            )
        return found

    def _read(self, field: RecordField, source: FieldDescriptor) -> str:
        """Return the expression that makes a field of the record."""
        value, name = f"message.{source.name}", source.name
        if field.many is not None:
            convert = self._item(field, source)
            value = f"map({convert}, {value})" if convert else value
            as_set = field.name in self._sets
            return f"tuple(sorted(set({value})))" if as_set else f"{field.many.__name__}({value})"
        if source.message_type is not None:
            return self._read_message(field, source)
        if field.is_enum:
            value = f"{self._item(field, source)}({value})"
            return f"{value} if message.{name} else None" if field.optional else value
        if field.optional and source.has_presence:
            return f"{value} if message.HasField({name!r}) else None"
        return value

    def _item(self, field: RecordField, source: FieldDescriptor) -> str:
        """Return the name of what makes a value of the record's of the message's; "" for those
        that are the same."""
        if field.is_enum:
            self._known[f"kind_{source.name}"] = field.type
            return f"kind_{source.name}"
        if not is_record(field.type):
            return ""
        self._known[f"read_{source.name}"] = MessageReader(
            GetMessageClass(source.message_type), field.type
        )
        return f"read_{source.name}"

    def _read_message(self, field: RecordField, source: FieldDescriptor) -> str:
        name, kind = source.name, source.message_type.full_name
        if kind == _STRUCT:
            value = f"json_of(message, {name!r}, path)"
            return f"canonical_json({value})" if field.is_json else value
        if kind in (_TIMESTAMP, _DURATION) and field.is_time:
            convert = "stored_time" if kind == _TIMESTAMP else "stored_duration"
            value = f"{convert}(message, {name!r}, path)"
            return value if field.optional else f"{value} or 0"
        convert = self._item(field, source)
        if not convert:
            raise TypeError(f"no conversion makes {field.name} of {source.full_name}")
        value = f"{convert}(message.{name}, f'{{path}}.{name}' if path else {name!r})"
        return f"{value} if message.HasField({name!r}) else None" if field.optional else value


def named_only(given: M, named: Collection[str], **valid: Any) -> M:
    """Return a message to check before an update: its named fields as given, of the others those
    that are `valid`."""
    kept = type(given)()
    kept.CopyFrom(given)
    for field, _value in kept.ListFields():
        if field.name not in named:
            kept.ClearField(field.name)
    message = type(given)(**valid)
    for name in named:
        message.ClearField(name)
    message.MergeFrom(kept)
    return message
