"""Requests made at random from their descriptors: of the right types, fond of boundaries."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from mneme.v1 import options_pb2
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
SECONDS = (0, 1, *[1_780_000_000] * 9, 9_007_199_254, 9_007_199_255, 253_402_300_799)
WILD_SECONDS = (-1, -62_135_596_800, 253_402_300_800, 2**62)
NANOS = (0, 1, 999, 1_000, 999_999_000, 999_999_999)

SELDOM: Mapping[str, float] = {
    "page_token": 0.1, "tenant_id": 0.1, "config": 0.1, "state_space": 0.3, "action_space": 0.3,
    "filled_fields": 0.1, "locale": 0.1,
}  # fmt: skip
"""How likely fields are set without which most requests are answered, and with which few are."""

_LEARNING = "learningsession_id"
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

    def has(self, kind: str) -> bool:
        """Return whether there is a value of this kind."""
        return bool(self._of(kind))

    def pick(self, kind: str, rng: random.Random) -> str | None:
        """Return a value of this kind; None without any."""
        values = self._of(kind)
        return rng.choice(values) if values else None

    def _of(self, kind: str) -> list[str]:
        """Return the values of a kind: "parentskill_id" is one of "skill_id"."""
        known = self._values.get(kind)
        if known is None and kind.endswith("_id"):
            ends = [one for one in self._values if one.endswith("_id") and kind.endswith(one)]
            known = self._values[max(ends, key=len)] if ends else None
        return known or []


def _kind_of(message: Descriptor, field: FieldDescriptor) -> str:
    """Return what a text names: "session_id" is also the id of a Session, but where something is
    learned that of a LearningSession."""
    if message.name == "AlgorithmDescription" and field.name == "name":
        return "algorithm"
    if "learning" in message.file.name and field.name.endswith("session_id"):
        return _LEARNING
    if field.name == "id":
        return f"{message.name.removeprefix('New').lower()}_id"
    name = str(field.name).removeprefix("next_").removesuffix("s")
    return f"{name.removesuffix('_id').replace('_', '')}_id" if name.endswith("_id") else name


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
        chosen = {self._one_of(oneof).name for oneof in descriptor.oneofs}
        for field in descriptor.fields:
            if field.containing_oneof is not None and field.name not in chosen:
                continue
            rules = rules_of(field)
            needed = _is_needed(field, rules) and not self._wild()
            if needed or self._rng.random() < self._chance(field, density, depth):
                self._fill(made, field, rules, depth)
        return made

    def altered(self, message: Message) -> Any:
        """Return a copy of a message with one of its fields, or of those within it, made anew."""
        made = type(message)()
        made.CopyFrom(message)
        holder: Any = made
        depth = 0
        while (inner := _messages_in(holder)) and self._rng.random() < 0.7:
            holder, depth = self._rng.choice(inner), depth + 1
        special = _SPECIAL.get(holder.DESCRIPTOR.full_name)
        if special is not None:
            holder.Clear()
            special(self, holder, depth)
            return made
        fields = list(holder.DESCRIPTOR.fields)
        if not fields:
            return made
        field = self._rng.choice(fields)
        holder.ClearField(field.name)
        if self._rng.random() < 0.8:
            self._fill(holder, field, rules_of(field), depth)
        return made

    def _chance(self, field: FieldDescriptor, density: float, depth: int) -> float:
        holder = field.containing_type
        kind = _kind_of(holder, field)
        if depth == 0 and field.message_type is not None and any(map(_changeable, holder.fields)):
            return 0.95  # What to change, and how.
        if depth < 2 and kind.endswith("_id") and self._pool.has(kind):
            density = max(density, 0.8 if field.name == "id" or kind == _LEARNING else 0.5)
        return SELDOM.get(field.name, density)

    def _one_of(self, oneof: OneofDescriptor) -> FieldDescriptor:
        """Return the field to set: objects where there may be some, for most sessions take any."""
        objects = [field for field in oneof.fields if field.name == "json"]
        fields = objects if objects and self._rng.random() < 0.7 else list(oneof.fields)
        return self._rng.choice(fields)

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
            changed = _changeable(field)
            if changed and self._rng.random() < 0.8:
                return FieldMask(paths=self._rng.sample(changed, min(2, len(changed))))
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
            unfit = list(limits.not_in) if limits is not None else []
            fit = list(getattr(limits, "in")) if limits is not None else []
            values = fit or [v.number for v in field.enum_type.values if v.number not in unfit]
            return self._rng.choice((-1, 999)) if self._wild() else self._rng.choice(values)
        if field.cpp_type in (Field.CPPTYPE_DOUBLE, Field.CPPTYPE_FLOAT):
            return self._number(limits, (*DOUBLES, self._rng.random()), WILD_DOUBLES)
        bits = 32 if field.cpp_type in (Field.CPPTYPE_INT32, Field.CPPTYPE_UINT32) else 64
        value = self._number(limits, INTS, WILD_INTS)
        return max(-(2 ** (bits - 1)), min(2 ** (bits - 1) - 1, int(value)))

    def _number(self, limits: Any, usual: tuple[Any, ...], wild: tuple[Any, ...]) -> Any:
        if self._wild():
            return self._rng.choice(wild + usual)
        bounds = {} if limits is None else {of.name: bound for of, bound in limits.ListFields()}
        least, most = bounds.get("gte", bounds.get("gt", 0)), bounds.get("lte", bounds.get("lt"))
        ends = [bounds[end] for end in ("gte", "lte") if end in bounds]
        fitting = [
            v for v in usual
            if v >= least and (most is None or v <= most)
            and v != bounds.get("gt") and v != bounds.get("lt")
        ]  # fmt: skip
        return self._rng.choice([*ends, *fitting] or [least])

    def _text(self, kind: str, limits: Any) -> str:
        if self._wild():
            return self._rng.choice(WILD_TEXTS)
        if limits is not None and getattr(limits, "in"):
            return str(self._rng.choice(list(getattr(limits, "in"))))
        if self._rng.random() < 0.8 and (known := self._pool.pick(kind, self._rng)) is not None:
            return known
        most = limits.max_len if limits is not None and limits.HasField("max_len") else 1_000
        made = self._words(most)
        return made[:most] if limits is None else _fitting(made, limits)[:most]

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
        if made.seconds == SECONDS[-1] and not self._wild():
            made.nanos = 0

    def _duration(self, made: Any, depth: int) -> None:
        del depth
        made.seconds = self._rng.choice((-1, 315_576_000_001) if self._wild() else (0, 1, 1, 3600))
        made.nanos = self._rng.choice(NANOS) if self._rng.random() < 0.3 else 0

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


def _messages_in(message: Message) -> list[Any]:
    return [
        item
        for field, value in message.ListFields()
        if field.message_type is not None and not field.message_type.GetOptions().map_entry
        for item in (value if field.is_repeated else [value])
    ]


def _is_needed(field: FieldDescriptor, rules: Any) -> bool:
    """Tell whether a request without the field is refused, as far as its rules say."""
    if field.containing_oneof is not None and field.containing_oneof.name != f"_{field.name}":
        return True  # One of them.
    if rules is None:
        return False
    kind = rules.WhichOneof("type")
    limits = getattr(rules, kind) if kind else None
    least = getattr(limits, "min_len", 0) or getattr(limits, "min_items", 0)
    pattern = getattr(limits, "pattern", "")
    empty = bool(re.search(pattern, ""))
    return bool(rules.required or least or not empty or getattr(limits, "not_in", None))


def _changeable(field: FieldDescriptor) -> list[str]:
    """Return what a mask may name; nothing when it is none."""
    return list(field.GetOptions().Extensions[options_pb2.changeable].paths)


def _fitting(text: str, limits: Any) -> str:
    """Return what is most like a text and keeps to its limits, as far as one is easily found."""
    printable = "".join(c for c in text if c >= " " and c != "\x7f")
    letters = re.sub("[^A-Za-z0-9_.-]", "", text)
    digits = str(len(text))
    like = (text, printable, letters, letters.lower(), f"x{letters}", f"x{letters}".lower(), digits)
    pattern = re.compile(limits.pattern)
    for one in like:
        if len(one) >= limits.min_len and pattern.search(one[: limits.max_len or None]):
            return one
    return "x"


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
