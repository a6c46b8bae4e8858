"""Requests whose fields grow to what their rules let them hold.

The fields come from the descriptors, what else a request holds from the table of valid requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct
from mneme.v1 import options_pb2

from support.descriptors import Leaf, leaves, rules_of

MOST_BYTES = 2**20
"""The largest that a request is made."""
_MOST_VALUES, _VALUE_BYTES = 900, 24
LEAST = 64
"""Fields that may hold less than this, in items or as a number, cannot cost much."""
_LEAST_TEXT = 256
"""Nor texts of fewer characters, as names are."""


@dataclass(frozen=True, slots=True)
class Growing:
    """A field that can hold much.

    Args:
        steps: the fields from the request down to it; in repeated fields the first item is meant.
        most: what it may hold: items, bytes, or the number itself.
    """

    steps: tuple[FieldDescriptor, ...]
    most: int

    @property
    def path(self) -> str:
        """What it is called."""
        return ".".join(step.name for step in self.steps)

    def grow(self, request: Message, size: int) -> None:
        """Have a request hold so much in it."""
        leaf = Leaf(self.steps)
        holder, field = leaf.holder(request), self.steps[-1]
        if field.is_repeated:
            self._repeat(getattr(holder, field.name), size)
        elif field.message_type is not None:
            getattr(holder, field.name).CopyFrom(_object(size))
        else:
            setattr(holder, field.name, _text(size) if leaf.kind == "string" else size)

    def _repeat(self, items: Any, size: int) -> None:
        field = self.steps[-1]
        if field.message_type is None:
            del items[:]
            items.extend(_scalar(field, number) for number in range(size))
            return
        first = items[0] if items else items.add()
        if not first.ByteSize():
            _tell_apart(first, 0)
        for number in range(len(items), size):
            items.add().CopyFrom(first)  # What other fields refer to stays the first.
            _tell_apart(items[number], number)


def growing_fields(request: Descriptor) -> Iterator[Growing]:
    """Yield the fields of a request that can hold much, the largest of each kind."""
    found = [
        *((steps, _most_items(steps[-1])) for steps in _repeated(request)),
        *((leaf.steps, _most(leaf)) for leaf in leaves(request) if not leaf.field.is_repeated),
    ]
    yield from (Growing(steps, most) for steps, most in found if most >= LEAST)


def _repeated(
    message: Descriptor, above: tuple[FieldDescriptor, ...] = ()
) -> Iterator[tuple[FieldDescriptor, ...]]:
    for field in message.fields:
        steps = (*above, field)
        if field.is_repeated and field.enum_type is None:
            yield steps
        inner = field.message_type
        if inner is None or inner in [step.message_type for step in above]:
            continue
        if inner.full_name.startswith("mneme."):
            yield from _repeated(inner, steps)


def _most_items(field: FieldDescriptor) -> int:
    rules = rules_of(field)
    return int(rules.repeated.max_items) if rules is not None else 0


def _most(leaf: Leaf) -> int:
    if leaf.kind == "google.protobuf.Struct":
        options = leaf.field.GetOptions()
        if not options.HasExtension(options_pb2.json_limits):
            return 0
        return min(MOST_BYTES, options.Extensions[options_pb2.json_limits].max_bytes)
    rules = leaf.rules
    if rules is None:
        return 0
    if leaf.kind == "string":
        most = min(MOST_BYTES, rules.max_len or rules.max_bytes)
        return most if most >= _LEAST_TEXT else 0
    return int(rules.lte) if leaf.kind == "int" and rules.HasField("lte") else 0


def _object(size: int) -> Struct:
    """An object of about so many bytes on the wire, with as many values as there can be."""
    values = min(_MOST_VALUES, size // _VALUE_BYTES)
    made = Struct()
    made.update({f"k{number}": number % 10 for number in range(values)})
    made.update({"text": _text(max(0, size - (values + 2) * _VALUE_BYTES))})
    return made


_KEPT = ("session_id", "prediction_id", "key", "kind")
"""Texts that name something that must be there, where they are given."""


def _text(size: int) -> str:
    """Words without spaces between them, as ids may hold them, of so many characters."""
    return "".join(f"w{number}-" for number in range(size // 3 + 1))[:size]


def _scalar(field: FieldDescriptor, number: int) -> Any:
    return _name(number) if field.cpp_type == FieldDescriptor.CPPTYPE_STRING else number + 1


def _name(number: int) -> str:
    """What `support.filling` calls things."""
    return f"filled-{number}"


def _tell_apart(item: Message, number: int) -> None:
    """Give an item's first text, or that of what it holds first, something of its own."""
    for field in item.DESCRIPTOR.fields:
        is_text = field.cpp_type == FieldDescriptor.CPPTYPE_STRING and not field.is_repeated
        if is_text and not (field.name in _KEPT and getattr(item, field.name)):
            setattr(item, field.name, f"new-{number}" if field.name == "id" else _name(number))
            return


def sizes(most: int, step: int) -> Sequence[int]:
    """Return three sizes, each so much larger than the one before, up to the largest."""
    return [max(1, most // step**power) for power in (2, 1, 0)]
