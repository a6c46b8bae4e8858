"""What a field of a request may not hold, by its kind and its rules.

The cases are derived from the descriptors: every value of every request is given what its rules
forbid, and what no value may hold.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp
from mneme.v1 import options_pb2

from support.api import METHODS
from support.descriptors import Leaf, leaves, narrows, not_blank, rules_of
from support.making import struct
from support.valid_requests import valid
from support.world import World

BLANK = {
    "empty": "",
    "a space": " ",
    "other spaces": "\u00a0\u3000",
    "nothing seen": "\u200b\ufeff",
    "letters that are not seen": "\u3164\u2800\ufe0f",
}
"""What a caller sends who has lost a name or a text."""

_MARKER = "HERE-IS-THE-TEXT"
_NOT_TRIED = {"name", "last_triggered_at", "created_at", "updated_at"}


@dataclass(frozen=True)
class Case:
    """A request that must be refused: with one of `reasons`, naming one of `fields`."""

    name: str
    request: Message | bytes
    reasons: tuple[str, ...]
    fields: tuple[str, ...]


def changeable(rpc: str) -> Sequence[str]:
    """Return the fields that an update's mask may name; none of what is no such update."""
    mask = METHODS[rpc].input_type.fields_by_name.get("update_mask")
    return cast(Any, mask.GetOptions()).Extensions[options_pb2.changeable].paths if mask else ()


def unread(rpc: str, leaf: Leaf) -> str:
    """Say why a field is not read, whatever it holds; return nothing where it is."""
    named = changeable(rpc)
    if named and _of_the_resource(leaf) not in {*named, "id", "etag", "update_mask"}:
        return "the mask cannot name it, so it is not read"
    if rpc.endswith("/TryAlertRule") and _of_the_resource(leaf) in _NOT_TRIED:
        return "it does not matter to what is tried, so it is not read"
    return ""


def is_required(leaf: Leaf) -> bool:
    """Whether it must hold something, when what it is part of is given."""
    rules = leaf.rules
    if rules is None or leaf.field.is_repeated:
        return False
    if leaf.kind == "string":
        return bool(rules.min_len) or (
            rules.HasField("pattern") and not re.search(rules.pattern, "")
        )
    return leaf.kind == "enum" and 0 in rules.not_in


def _of_the_resource(leaf: Leaf) -> str:
    """The field of an update's resource that a leaf is, or is part of: what the mask names."""
    return leaf.steps[1].name if len(leaf.steps) > 1 else ""


def cases(rpc: str, leaf: Leaf, world: World) -> Iterator[Case]:
    """Yield requests of an RPC that must be refused for what this field holds."""

    def make(name: str, value: Any, *reasons: str, fields: tuple[str, ...] = ()) -> Case:
        request = _request(rpc, leaf, world, value)
        return Case(name, request, reasons, fields or (leaf.path,))

    if leaf.field.is_repeated:
        yield from _too_many(rpc, leaf, world)
    yield from _BY_KIND[leaf.kind](rpc, leaf, world, make)


def _give_what_is_required(leaf: Leaf, request: Any) -> None:
    """Give texts that must be beside a field, in what was made for it: they are looked at first."""
    message = request
    for step in leaf.steps[:-1]:
        message = getattr(message, step.name)
        message = message[0] if step.is_repeated else message
        for field in message.DESCRIPTOR.fields:
            if field != leaf.field and _is_plain(field) and is_required(Leaf((field,))):
                setattr(message, field.name, getattr(message, field.name) or "key")


def _is_plain(field: FieldDescriptor) -> bool:
    """Whether it is a text that is always there: not one of a oneof, of which one is set."""
    return field.cpp_type == FieldDescriptor.CPPTYPE_STRING and not (
        field.is_repeated or field.has_presence
    )


def _request(rpc: str, leaf: Leaf, world: World, value: Any) -> Message:
    request = valid(rpc, world)
    if rpc.endswith("/Reflect") and len(leaf.steps) > 1:
        request.ClearField("analysis")  # The parameters say which it is.
    leaf.put(request, value)
    _give_what_is_required(leaf, request)
    if changeable(rpc) and leaf.field.name not in ("id", "etag"):
        request.update_mask.paths[:] = [_of_the_resource(leaf)]
    return request


def _too_many(rpc: str, leaf: Leaf, world: World) -> Iterator[Case]:
    limit = rules_of(leaf.field).repeated.max_items
    request = valid(rpc, world)
    value: Any = "x" if leaf.kind == "string" else 1
    getattr(leaf.holder(request), leaf.field.name).extend([value] * (limit + 1))
    _give_what_is_required(leaf, request)
    if changeable(rpc):
        request.update_mask.paths[:] = [_of_the_resource(leaf)]
    yield Case("too many", request, ("OUT_OF_RANGE",), (leaf.list_path,))


def _texts(rpc: str, leaf: Leaf, world: World, make: Callable[..., Case]) -> Iterator[Case]:
    rules = leaf.rules
    wrong = ("INVALID_PARAMETER", "INVALID_FILTER")
    yield make("NUL", "a\0b", *wrong)
    marked = _request(rpc, leaf, world, _MARKER).SerializeToString()
    broken = marked.replace(_MARKER.encode(), b"\xff\xfe" + _MARKER.encode()[2:])
    assert broken != marked
    yield Case("not UTF-8", broken, ("INVALID_TYPE",), (leaf.path,))
    limits = ("OUT_OF_RANGE", "INVALID_PARAMETER") if not rules.max_len else ("OUT_OF_RANGE",)
    longest = rules.max_len or 63
    yield make("too long", "1" * (longest + 1), *limits)
    if not rules.max_len or _is_first_with_its_rules(rpc, leaf):
        yield make("5 MB", "1" * 5_000_000, *limits)
    if is_required(leaf):
        yield make("missing", "", "MISSING_REQUIRED_FIELD")
    if narrows(leaf.field):
        for name, text in BLANK.items():
            yield make(name, text, "INVALID_FILTER")
    if not_blank(leaf.field):
        for name, text in BLANK.items():
            if text:
                yield make(f"blank: {name}", text, "INVALID_PARAMETER")
    if rules.HasField("pattern") and "x1f" in rules.pattern:
        yield make("control character", "a\x1bb", "INVALID_PARAMETER")


def _is_first_with_its_rules(rpc: str, leaf: Leaf) -> bool:
    """Whether no text before it, of the same RPC, is held to the same rules: it is they that refuse
    what is very long, and sending it takes longer than all else."""
    texts = (one for one in leaves(METHODS[rpc].input_type) if one.kind == "string")
    return next(one.path for one in texts if one.rules == leaf.rules) == leaf.path


def _enums(rpc: str, leaf: Leaf, world: World, make: Callable[..., Case]) -> Iterator[Case]:
    yield make("no such value", 9_999, "INVALID_PARAMETER")
    yield make("negative", -1, "INVALID_PARAMETER")
    if 0 in leaf.rules.not_in:
        yield make("unspecified", 0, "MISSING_REQUIRED_FIELD", "INVALID_PARAMETER")


def _numbers(rpc: str, leaf: Leaf, world: World, make: Callable[..., Case]) -> Iterator[Case]:
    rules = leaf.rules
    if leaf.kind != "double" or _is_bounded(rules):
        yield make("too small", min(rules.gte, 0) - 1, "OUT_OF_RANGE")
    if rules is not None and rules.HasField("lte"):
        yield make("too large", rules.lte + 1, "OUT_OF_RANGE")
    if leaf.kind == "double":
        bound = leaf.field.containing_type.full_name == "mneme.v1.BoxSpace"
        for number in (math.nan,) if bound else (math.nan, math.inf, -math.inf):
            yield make(str(number), number, "OUT_OF_RANGE", "INVALID_PARAMETER")


def _is_bounded(rules: Any) -> bool:
    return rules is not None and (rules.HasField("gte") or rules.HasField("gt"))


def _times(rpc: str, leaf: Leaf, world: World, make: Callable[..., Case]) -> Iterator[Case]:
    reasons = ("OUT_OF_RANGE", "INVALID_PARAMETER")
    for name, time in {
        "before 1970": Timestamp(seconds=-1),
        "after 9999": Timestamp(seconds=253_402_300_800),
        "the largest number": Timestamp(seconds=2**63 - 1),
        "the smallest number": Timestamp(seconds=-(2**63)),
        "too many nanoseconds": Timestamp(seconds=1, nanos=2_000_000_000),
        "negative nanoseconds": Timestamp(seconds=1, nanos=-1),
    }.items():
        yield make(name, time, *reasons)


def _durations(rpc: str, leaf: Leaf, world: World, make: Callable[..., Case]) -> Iterator[Case]:
    reasons = ("OUT_OF_RANGE", "INVALID_PARAMETER")
    for name, duration in {
        "negative": Duration(seconds=-1),
        "too long": Duration(seconds=315_360_000),
        "the largest number": Duration(seconds=2**63 - 1),
        "mixed signs": Duration(seconds=1, nanos=-1),
        "too many nanoseconds": Duration(seconds=1, nanos=2_000_000_000),
    }.items():
        yield make(name, duration, *reasons)


def nested(levels: int) -> Struct:
    """Return an object that is so many levels deep."""
    made = inner = Struct()
    for _ in range(levels - 1):
        inner = inner.fields["deeper"].struct_value
    inner.fields["bottom"].bool_value = True
    return made


def nested_lists(levels: int) -> Struct:
    """Return an object with a list that is so many levels deep."""
    made = Struct()
    value = made.fields["list"]
    for _ in range(levels - 1):
        value = value.list_value.values.add()
    value.bool_value = True
    return made


def _objects(rpc: str, leaf: Leaf, world: World, make: Callable[..., Case]) -> Iterator[Case]:
    for number in (math.nan, math.inf, -math.inf):
        made = Struct(fields={"number": Value(number_value=number)})
        yield make(f"holds {number}", made, "INVALID_PARAMETER")
    yield make("33 levels", nested(33), "OUT_OF_RANGE")
    yield make("33 levels of lists", nested_lists(33), "OUT_OF_RANGE")
    yield make("NUL in a text", struct(text="a\0b"), "INVALID_PARAMETER")
    yield make("NUL in a key", struct(**{"a\0b": 1}), "INVALID_PARAMETER")
    yield make("5 MB", struct(text="x" * 5_000_000), "OUT_OF_RANGE")
    limit = 2**20 if leaf.field.name == "payload" else 2**16
    yield make("just too large", struct(text="x" * limit), "OUT_OF_RANGE")
    deep = _request(rpc, leaf, world, struct(marker=_MARKER)).SerializeToString()
    deeper = _deepened(rpc, leaf, world, 2_000)
    yield Case("2,000 levels", deeper, ("OUT_OF_RANGE",), (leaf.path,))
    broken = deep.replace(_MARKER.encode(), b"\xff\xfe" + _MARKER.encode()[2:])
    yield Case("not UTF-8", broken, ("INVALID_TYPE",), (leaf.path,))


def _deepened(rpc: str, leaf: Leaf, world: World, levels: int) -> bytes:
    """Return a request with an object deeper than a parser can make it."""
    raw = _block(leaf.field.number, _deep(levels))
    for step in reversed(leaf.steps[:-1]):
        raw = _block(step.number, raw)
    return raw if leaf.steps[:-1] else valid(rpc, world).SerializeToString() + raw


@cache
def _deep(levels: int) -> bytes:
    """Return what an object is sent as that is so many levels deep."""
    inner = b""
    for _ in range(levels):
        # Value{struct_value: Struct{fields: {key: "k", value: Value{...}}}}
        entry = b"\x0a\x01k" + _block(2, inner)
        inner = _block(5, _block(1, entry))
    return _block(1, b"\x0a\x01k" + _block(2, inner))


def _block(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


_BY_KIND: dict[str, Callable[..., Iterator[Case]]] = {
    "string": _texts,
    "enum": _enums,
    "int": _numbers,
    "double": _numbers,
    "google.protobuf.Timestamp": _times,
    "google.protobuf.Duration": _durations,
    "google.protobuf.Struct": _objects,
}
