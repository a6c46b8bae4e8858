"""Requests made at random from their descriptors: of the right types, fond of boundaries."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from support.descriptors import rules_of

Field = FieldDescriptor

WORDS: tuple[str, ...] = (
    *("the", "ferry", "left", "at", "noon", "timeout", "refused", "retry", "invoice", "4711"),
    *("host-0", "web12", "Zürich", "東京", "記憶", "\U0001f600", "\U0001f469\u200d\U0001f4bb", "ﬁ"),
    *("e\u0301", "\u202e", "\ufeff", "\ufffd", "'quote", '"x"', ";", "--", "*", "^", "~", "(", ")"),
    *("AND", "OR", "NOT", "text:x", "[a", "TO", "b]", "2026-11-21", "yesterday", "last", "week"),
    *("e-7", "1e+5", "%s", "{0}", "<b>", "\\", "/", "C:\\x", ""),
)
ODD_TEXTS = (
    "", " ", "\t\n", "\u2028", "\U0010ffff" * 3, "a" * 199, "\U0001f600" * 200, "e-", "null", "0",
    "-1", "../../etc", "default", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "ﬁ" * 50, "İ" * 50, "\u0300" * 100,
)  # fmt: skip
WILD_TEXTS = ("\0", "a\0b", "\x7f", "x" * 70_000)
DOUBLES = (
    0.0, -0.0, 1.0, 0.5, 1e-7, 5e-324, 1.7976931348623157e308, 1e16, 2.0**53, 0.1, 1e-320, 1e21,
)  # fmt: skip
WILD_DOUBLES = (float("nan"), float("inf"), float("-inf"), -1e308, -1.0)
INTS = (0, 1, 2, 10, 100, 2**31 - 1, 2**53 - 1, 2**53, 2**63 - 1)
WILD_INTS = (-1, -(2**31), -(2**63))
SECONDS = (0, 1, 1_780_000_000, 9_007_199_254, 9_007_199_255, 253_402_300_799)
WILD_SECONDS = (-1, -62_135_596_800, 253_402_300_800, 2**62)
NANOS = (0, 1, 999, 1_000, 999_999_000, 999_999_999)

_KEPT = 200


class Pool:
    """Ids and tokens that answers held, for requests to ask after. Not shared between threads.

    Args:
        avoided: what must not be asked after: the key that the run itself needs.
    """

    def __init__(self, avoided: frozenset[str]) -> None:
        self._avoided = avoided
        self._values: dict[str, list[str]] = defaultdict(list)

    def add_from(self, message: Message, rng: random.Random) -> None:
        """Remember some of an answer's short texts."""
        for field, value in message.ListFields():
            if field.message_type is not None:
                if field.message_type.full_name.startswith("mneme."):
                    for item in value[:3] if field.is_repeated else [value]:
                        self.add_from(item, rng)
            elif field.type == Field.TYPE_STRING:
                for item in value[:3] if field.is_repeated else [value]:
                    self._add(_kind_of(message.DESCRIPTOR, field), item, rng)

    def _add(self, kind: str, value: str, rng: random.Random) -> None:
        values = self._values[kind]
        if value and len(value) <= 400 and value not in self._avoided:
            if len(values) < _KEPT:
                values.append(value)
            else:
                values[rng.randrange(_KEPT)] = value

    def pick(self, kind: str, rng: random.Random) -> str | None:
        """Return a value of this kind; None without any."""
        values = self._values.get(kind)
        return rng.choice(values) if values else None


def _kind_of(message: Descriptor, field: FieldDescriptor) -> str:
    """Return what a text names: "session_id" is also the id of a Session, but where something is
    learned that of a LearningSession."""
    if message.name == "AlgorithmDescription" and field.name == "name":
        return "algorithm"
    if "learning" in message.file.name and field.name.endswith("session_id"):
        return "learningsession_id"
    if field.name == "id":
        return f"{message.name.removeprefix('New').lower()}_id"
    return str(field.name).removeprefix("next_").removesuffix("s")


class Maker:
    """Makes one request.

    Args:
        rng: where all choices come from.
        pool: what earlier answers held.
        wildness: how likely each value is to break its field's rules, 0 to 1.
    """

    def __init__(self, rng: random.Random, pool: Pool, wildness: float) -> None:
        self._rng = rng
        self._pool = pool
        self._wildness = wildness

    def message(self, descriptor: Descriptor, depth: int = 0) -> Any:
        """Return a message with some of its fields set."""
        made = GetMessageClass(descriptor)()
        special = _SPECIAL.get(descriptor.full_name)
        if special is not None:
            special(self, made, depth)
            return made
        density = self._rng.choice((0.2, 0.5, 0.9))
        for field in descriptor.fields:
            rules = rules_of(field)
            needed = _is_needed(field, rules) and not self._wild()
            if needed or self._rng.random() < density:
                self._fill(made, field, rules, depth)
        return made

    def _fill(self, made: Any, field: FieldDescriptor, rules: Any, depth: int) -> None:
        if not field.is_repeated:
            value = self._value(field, rules, depth, made.DESCRIPTOR)
            if field.message_type is not None:
                getattr(made, field.name).CopyFrom(value)
            elif value is not None:
                setattr(made, field.name, value)
            return
        inner = rules.repeated.items if rules is not None and rules.HasField("repeated") else None
        values = [
            self._value(field, inner, depth, made.DESCRIPTOR)
            for _ in range(self._length(rules.repeated if rules is not None else None, depth))
        ]
        getattr(made, field.name).extend(value for value in values if value is not None)

    def _length(self, rules: Any, depth: int) -> int:
        least = rules.min_items if rules is not None and rules.HasField("min_items") else 0
        most = rules.max_items if rules is not None and rules.HasField("max_items") else 16
        if self._wild():
            return self._rng.choice((0, min(most, 200) + 1))
        if depth == 0 and self._rng.random() < 0.002:
            return int(most)
        return int(min(most, max(least, self._rng.choice((0, 1, 1, 2, 3, 7)))))

    def _value(self, field: FieldDescriptor, rules: Any, depth: int, holder: Descriptor) -> Any:
        if field.message_type is not None:
            return self.message(field.message_type, depth + 1)
        kind = rules.WhichOneof("type") if rules is not None else None
        limits = getattr(rules, kind) if kind else None
        if field.type == Field.TYPE_STRING:
            return self._text(_kind_of(holder, field), limits)
        if field.type == Field.TYPE_BYTES:
            return self._rng.randbytes(self._rng.choice((0, 1, 20)))
        if field.type == Field.TYPE_BOOL:
            return self._rng.random() < 0.5
        if field.type == Field.TYPE_ENUM:
            values = [value.number for value in field.enum_type.values]
            return self._rng.choice((-1, 999)) if self._wild() else self._rng.choice(values)
        if field.cpp_type in (Field.CPPTYPE_DOUBLE, Field.CPPTYPE_FLOAT):
            return self._number(limits, (*DOUBLES, self._rng.random()), WILD_DOUBLES)
        bits = 32 if field.cpp_type in (Field.CPPTYPE_INT32, Field.CPPTYPE_UINT32) else 64
        value = self._number(limits, INTS, WILD_INTS)
        return max(-(2 ** (bits - 1)), min(2 ** (bits - 1) - 1, int(value)))

    def _number(self, limits: Any, usual: tuple[Any, ...], wild: tuple[Any, ...]) -> Any:
        if self._wild():
            return self._rng.choice(wild + usual)
        least = limits.gte if limits is not None and limits.HasField("gte") else 0
        most = limits.lte if limits is not None and limits.HasField("lte") else None
        ends = [least, *([most] if most is not None else [])]
        fitting = [v for v in usual if v >= least and (most is None or v <= most)]
        return self._rng.choice([*ends, *fitting])

    def _text(self, kind: str, limits: Any) -> str:
        if self._wild():
            return self._rng.choice(WILD_TEXTS)
        if limits is not None and getattr(limits, "in"):
            return str(self._rng.choice(list(getattr(limits, "in"))))
        if self._rng.random() < 0.6 and (known := self._pool.pick(kind, self._rng)) is not None:
            return known
        most = limits.max_len if limits is not None and limits.HasField("max_len") else 1_000
        made = self._words(most)
        if limits is not None and "x00-" in limits.pattern:
            made = "".join(c for c in made if c >= " " and c != "\x7f")
        elif limits is not None and "0-9" in limits.pattern:
            made = str(self._rng.randrange(10**6))
        if limits is not None and not made and limits.min_len:
            made = "x"
        return made[:most]

    def _words(self, most: int) -> str:
        chance = self._rng.random()
        if chance < 0.15:
            return self._rng.choice(ODD_TEXTS)
        if chance < 0.153:
            return (self._rng.choice(WORDS) or "x") * most
        if chance < 0.16:
            return " ".join(self._rng.choices(WORDS, k=min(most, 4_000) // 4))
        return " ".join(self._rng.choices(WORDS, k=self._rng.choice((1, 2, 3, 9))))

    def _wild(self) -> bool:
        return self._wildness > 0 and self._rng.random() < self._wildness

    # -- well-known messages

    def _timestamp(self, made: Any, depth: int) -> None:
        del depth
        made.seconds = self._rng.choice(WILD_SECONDS if self._wild() else SECONDS)
        made.nanos = -1 if self._wild() else self._rng.choice(NANOS)

    def _duration(self, made: Any, depth: int) -> None:
        del depth
        made.seconds = self._rng.choice((-1, 315_576_000_001) if self._wild() else (0, 1, 3600))
        made.nanos = self._rng.choice(NANOS)

    def _mask(self, made: Any, depth: int) -> None:
        del depth
        paths = ("title", "content", "tags", "lesson.title", "*", "", "no.such", "importance")
        made.paths.extend(self._rng.choices(paths, k=self._rng.choice((0, 1, 2, 5))))

    def _struct(self, made: Any, depth: int) -> None:
        if depth <= 2 and self._wild():  # Once: protobuf itself stops at a hundred levels.
            inner = made
            for _ in range(self._rng.choice((15, 30, 31))):
                inner = inner.fields["a"].struct_value
        for _ in range(self._rng.choice((0, 1, 1, 2, 5))):
            key = self._rng.choice((*_KEYS, self._words(40)))
            self._json(made.fields[key], depth)

    def _json(self, made: Any, depth: int) -> None:
        kind = self._rng.randrange(6 if depth < 5 else 4)
        if kind == 0:
            made.null_value = 0
        elif kind == 1:
            made.number_value = self._number(None, DOUBLES, WILD_DOUBLES)
        elif kind == 2:
            made.bool_value = True
        elif kind == 3:
            made.string_value = self._rng.choice(WILD_TEXTS) if self._wild() else self._words(900)
        elif kind == 4:
            made.struct_value.SetInParent()
            self._struct(made.struct_value, depth + 1)
        else:
            made.list_value.SetInParent()
            for _ in range(self._rng.choice((0, 1, 3, 30))):
                self._json(made.list_value.values.add(), depth + 1)


_KEYS = (
    "name", "error", "message", "text", "usage", "input_tokens", "cost_usd", "model", "call_id",
    "role", "userId", "duration_ms", "arguments", "result", "", "min_length", "bucket",
)  # fmt: skip

_SPECIAL: Mapping[str, Callable[[Maker, Any, int], None]] = {
    "google.protobuf.Timestamp": Maker._timestamp,
    "google.protobuf.Duration": Maker._duration,
    "google.protobuf.FieldMask": Maker._mask,
    "google.protobuf.Struct": Maker._struct,
}


def _is_needed(field: FieldDescriptor, rules: Any) -> bool:
    """Tell whether a request without the field is refused, as far as its rules say."""
    if rules is None:
        return False
    kind = rules.WhichOneof("type")
    limits = getattr(rules, kind) if kind else None
    least = getattr(limits, "min_len", 0) or getattr(limits, "min_items", 0)
    return bool(rules.required or least or getattr(limits, "not_in", None))


def smaller(message: Message) -> Iterator[Message]:
    """Yield copies of a message, each without one of its parts."""
    for field, value in message.ListFields():
        copy = type(message)()
        copy.CopyFrom(message)
        copy.ClearField(field.name)
        yield copy
        if field.type == Field.TYPE_STRING and not field.is_repeated and len(value) > 1:
            for half in (value[: len(value) // 2], value[len(value) // 2 :]):
                setattr(copy, field.name, half)
                yield copy
        inner = field.message_type
        if inner is None or (field.is_repeated and inner.GetOptions().map_entry):
            continue
        if field.is_repeated:
            for index in range(len(value)):
                for part in (None, *smaller(value[index])):
                    copy.CopyFrom(message)
                    if part is None:
                        del getattr(copy, field.name)[index]
                    else:
                        getattr(copy, field.name)[index].CopyFrom(part)
                    yield copy
        else:
            for part in smaller(value):
                copy.CopyFrom(message)
                getattr(copy, field.name).CopyFrom(part)
                yield copy
