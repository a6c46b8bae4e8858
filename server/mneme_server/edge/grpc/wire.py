"""Parsing requests, and finding what is wrong with bytes that do not parse.

Protobuf's parser says that a message is broken but not where. The search here walks the wire
format (https://protobuf.dev/programming-guides/encoding/) along the descriptor; it runs only for
messages that were refused.

Of a request whose parts stand for themselves the rest is read when one of them is broken: an export
of telemetry holds what many parts of a program said, and exporters do not send again what was
refused; one text that is cut within a character would lose them all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple, TypeAlias

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from mneme_server.common.errors import InvalidArgument, Reason

MAX_DEPTH = 100
"""Messages within messages that the parser accepts."""

_OUT_OF_MEMORY = "Arena alloc failed"
"""How the parser says that it found no memory: with the error of a broken message."""

_MAX_FIELDS = 100_000
"""Fields that the search looks at, so that a broken message cannot keep a thread busy."""

_VARINT, _FIXED64, _BYTES, _GROUP, _GROUP_END, _FIXED32 = range(6)
_MAX_VARINT = 10
_JSON_FILE = "google/protobuf/struct.proto"
_MAX_FIELD_NUMBER = (1 << 29) - 1


Deserialize: TypeAlias = Callable[[bytes], Message]
"""A message class's `FromString`."""


class Fault(NamedTuple):
    """What is wrong with a message's bytes, and the path of the field that holds it."""

    path: str
    problem: str
    reason: Reason


def parse(deserialize: Deserialize, message_type: Descriptor, raw: bytes) -> Message:
    """Parse a request, a message of `message_type`, with `deserialize`.

    Raises:
        MemoryError: there was none to parse it with.
        InvalidArgument: INVALID_TYPE, the bytes are no such message, or a string in it is not
            UTF-8; OUT_OF_RANGE, it is nested too deep.
    """
    try:
        return deserialize(raw)
    except DecodeError as error:
        if _OUT_OF_MEMORY in str(error):
            raise MemoryError from error
        fault = find_fault(message_type, raw)
        where = f"the field {fault.path}" if fault.path else "the request"
        raise InvalidArgument(
            f"{where} cannot be read: {fault.problem}",
            reason=fault.reason,
            field=fault.path or None,
        ) from error


def find_fault(descriptor: Descriptor, raw: bytes) -> Fault:
    """Return the first thing that is wrong with bytes that did not parse."""
    try:
        _Search().message(descriptor, memoryview(raw), "", 1)
    except Broken as found:
        return found.fault
    return Fault("", "its encoding is broken", Reason.INVALID_TYPE)


class Broken(Exception):
    """Bytes are no message; `fault` says where and why."""

    def __init__(self, path: str, problem: str, reason: Reason = Reason.INVALID_TYPE) -> None:
        super().__init__(problem)
        self.fault = Fault(path, problem, reason)


class _Search:
    """One walk through a message, depth first. It looks at views: what is nested is not copied."""

    def __init__(self) -> None:
        self._fields = 0

    def message(self, descriptor: Descriptor, raw: memoryview, path: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise Broken(
                path, f"it is nested more than {MAX_DEPTH} levels deep", Reason.OUT_OF_RANGE
            )
        seen: Counter[int] = Counter()

        def named(number: int) -> str:
            field = descriptor.fields_by_number.get(number)
            # People know a JSON object by its field; the messages that it is made of say nothing.
            if field is None or descriptor.file.name == _JSON_FILE:
                return path
            return _join(path, field, seen[number])

        for found in fields_of(raw, path, named):
            self._fields += 1
            if self._fields > _MAX_FIELDS:
                raise Broken("", "its encoding is broken")
            field = descriptor.fields_by_number.get(found.number)
            if field is not None and found.wire_type == _BYTES:
                self._look_into(field, found.value, named(found.number), depth)
            seen[found.number] += 1

    def _look_into(self, field: FieldDescriptor, value: memoryview, path: str, depth: int) -> None:
        if field.type == FieldDescriptor.TYPE_STRING:
            try:
                str(value, "utf-8")
            except UnicodeDecodeError as error:
                raise Broken(
                    path, f"its text is not UTF-8 (byte {error.start}: {error.reason})"
                ) from None
        elif field.type == FieldDescriptor.TYPE_MESSAGE and field.message_type is not None:
            self.message(field.message_type, value, path, depth + 1)


class WireField(NamedTuple):
    """A field as it travels: its bytes are those from `start` to `end`, its value (empty for
    numbers) the last of them."""

    number: int
    wire_type: int
    value: memoryview
    start: int
    end: int


def fields_of(
    raw: memoryview, path: str = "", named: Callable[[int], str] | None = None
) -> Iterator[WireField]:
    """Yield the fields of a message.

    Args:
        raw: its bytes.
        path: the message's own, for errors.
        named: returns the path of a field of this number.

    Raises:
        Broken: the bytes are no message; what came before was yielded.
    """
    at = 0
    while at < len(raw):
        start = at
        key, at = _varint(raw, at, path)
        number, wire_type = key >> 3, key & 7
        if not 0 < number <= _MAX_FIELD_NUMBER:
            raise Broken(path, f"there is no field number {number}")
        value, at = _value(raw, at, wire_type, named(number) if named else path)
        yield WireField(number, wire_type, value, start, at)


def varint(number: int) -> bytes:
    """Return a number as it travels."""
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def _value(raw: memoryview, at: int, wire_type: int, path: str) -> tuple[memoryview, int]:
    """Return the value that begins at `at` (empty for numbers) and where it ends."""
    if wire_type == _VARINT:
        return raw[:0], _varint(raw, at, path)[1]
    if wire_type == _BYTES:
        size, at = _varint(raw, at, path)
        if at + size > len(raw):
            raise _truncated(path)
        return raw[at : at + size], at + size
    width = {_FIXED64: 8, _FIXED32: 4}.get(wire_type)
    if width is None:
        raise Broken(path, f"wire type {wire_type} is not used by proto3")
    if at + width > len(raw):
        raise _truncated(path)
    return raw[:0], at + width


def _varint(raw: memoryview, at: int, path: str) -> tuple[int, int]:
    result = 0
    for count in range(_MAX_VARINT):
        if at + count >= len(raw):
            raise _truncated(path)
        byte = raw[at + count]
        result |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return result, at + count + 1
    raise Broken(path, "a number in it has more than 64 bits")


def _truncated(path: str) -> Broken:
    return Broken(path, "it ends before it is complete")


def _join(path: str, field: FieldDescriptor, index: int) -> str:
    name = f"{path}.{field.name}" if path else field.name
    return f"{name}[{index}]" if field.is_repeated else name


def parse_parts(
    deserialize: Deserialize, message_type: Descriptor, raw: bytes, parts: Collection[str]
) -> Message:
    """Parse a request, whose `parts` (full names of messages) may be lost by themselves.

    One that is broken is left empty. Where there are parts, U+FFFD stands for bytes that are no
    UTF-8, and a message that is nested too deep is left empty.

    Raises:
        MemoryError: there was none to parse it with.
        InvalidArgument: it is broken elsewhere than in a part; as `wire.parse` raises.
    """
    if parts:
        try:
            return deserialize(raw)
        except DecodeError:
            try:
                return deserialize(_mended(message_type, memoryview(raw), parts, 1))
            except (Broken, DecodeError):
                pass  # What is wrong with the whole is told below.
    return parse(deserialize, message_type, raw)


def _mended(descriptor: Descriptor, raw: memoryview, parts: Collection[str], depth: int) -> bytes:
    """Return a message's bytes without what its parser refuses in it.

    Raises:
        Broken: it is so itself.
    """
    mended: list[bytes | memoryview] = []
    for found in fields_of(raw):
        field = descriptor.fields_by_number.get(found.number)
        if field is None or found.wire_type != _BYTES:
            mended.append(raw[found.start : found.end])
            continue
        value = _salvaged_value(field, found.value, parts, depth)
        mended += [varint(found.number << 3 | _BYTES), varint(len(value)), value]
    return b"".join(mended)


def _salvaged_value(
    field: FieldDescriptor, value: memoryview, parts: Collection[str], depth: int
) -> bytes | memoryview:
    if field.type == FieldDescriptor.TYPE_STRING:
        return str(value, "utf-8", "replace").encode()
    message = field.message_type
    if message is None:
        return value
    if depth >= MAX_DEPTH:
        return b""
    try:
        return _mended(message, value, parts, depth + 1)
    except Broken:
        if message.full_name in parts:
            return b""
        raise
