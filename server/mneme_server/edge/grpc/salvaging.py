"""What can be read of a request whose parts stand for themselves, when one of them is broken.

An export of telemetry holds what many parts of a program said, and exporters do not send again what
was refused: one text that is cut within a character would lose them all.
"""

from __future__ import annotations

from collections.abc import Collection

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from mneme_server.edge.grpc.wire import MAX_DEPTH, Broken, Deserialize, fields_of, parse, varint

_BYTES = 2


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
        value = _value(field, found.value, parts, depth)
        mended += [varint(found.number << 3 | _BYTES), varint(len(value)), value]
    return b"".join(mended)


def _value(
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
