"""What the API's descriptors say: its services, the fields of requests, the limits of each."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import mneme.v1
from buf.validate import validate_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from mneme.v1 import options_pb2

_LEAVES = frozenset(
    {"google.protobuf.Timestamp", "google.protobuf.Duration", "google.protobuf.Struct"}
)


@cache
def services() -> Sequence[ServiceDescriptor]:
    """Return every service that the package has, so that no test has to be told of a new one."""
    return [
        service
        for module in pkgutil.iter_modules(mneme.v1.__path__)
        if module.name.endswith("_service_pb2")
        for service in import_module(f"mneme.v1.{module.name}").DESCRIPTOR.services_by_name.values()
    ]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A field somewhere in a request that holds a value: a number, a text, a time, a JSON object.

    `steps` are the fields from the request down to it. In repeated fields the first element is
    meant.
    """

    steps: tuple[FieldDescriptor, ...]

    @property
    def field(self) -> FieldDescriptor:
        """The field itself."""
        return self.steps[-1]

    @property
    def kind(self) -> str:
        """What it holds: a message's full name, or "string", "enum", "bool", "double", "int"."""
        if self.field.message_type is not None:
            return str(self.field.message_type.full_name)
        return {
            FieldDescriptor.CPPTYPE_STRING: "string",
            FieldDescriptor.CPPTYPE_ENUM: "enum",
            FieldDescriptor.CPPTYPE_BOOL: "bool",
            FieldDescriptor.CPPTYPE_DOUBLE: "double",
        }.get(self.field.cpp_type, "int")

    @property
    def parent_path(self) -> str:
        """The path of the message that holds it; empty for the request itself."""
        return ".".join(step.name + ("[0]" if step.is_repeated else "") for step in self.steps[:-1])

    @property
    def list_path(self) -> str:
        """The field's path without an index."""
        return f"{self.parent_path}.{self.field.name}".lstrip(".")

    @property
    def path(self) -> str:
        """The path of its (first) value, as violations name it."""
        return self.list_path + ("[0]" if self.field.is_repeated else "")

    @property
    def rules(self) -> Any:
        """The limits of its value, e.g. `string` rules; None without any."""
        rules = rules_of(self.field)
        if rules is not None and self.field.is_repeated:
            rules = rules.repeated.items if rules.repeated.HasField("items") else None
        kind = rules.WhichOneof("type") if rules is not None else None
        return getattr(rules, kind) if kind else None

    def holder(self, request: Message) -> Any:
        """Return the message that holds the field, made where it is missing."""
        message: Any = request
        for step in self.steps[:-1]:
            value = getattr(message, step.name)
            if step.is_repeated:
                message = value[0] if value else value.add()
            else:
                value.SetInParent()
                message = value
        return message

    def put(self, request: Message, value: Any) -> None:
        """Set the value, or the first of a repeated field."""
        holder, name = self.holder(request), self.field.name
        if self.field.is_repeated:
            del getattr(holder, name)[:]
            getattr(holder, name).append(value)
        elif self.field.message_type is not None:
            getattr(holder, name).CopyFrom(value)
        else:
            setattr(holder, name, value)


def rules_of(field: FieldDescriptor) -> Any:
    """Return the `buf.validate` rules of a field; None without any."""
    options = field.GetOptions()
    if not options.HasExtension(validate_pb2.field):
        return None
    return options.Extensions[validate_pb2.field]


def narrows(field: FieldDescriptor) -> bool:
    """Tell whether a field is a filter by whose or of what something is."""
    option: Any = options_pb2.narrows
    return bool(field.GetOptions().Extensions[option])


def not_blank(field: FieldDescriptor) -> bool:
    """Tell whether a field is a text that has to say something."""
    option: Any = options_pb2.not_blank
    return bool(field.GetOptions().Extensions[option])


def leaves(message: Descriptor, above: tuple[FieldDescriptor, ...] = ()) -> Iterator[Leaf]:
    """Yield every value that a request can hold."""
    for field in message.fields:
        steps = (*above, field)
        inner = field.message_type
        if inner is None or inner.full_name in _LEAVES:
            yield Leaf(steps)
        elif inner.full_name != "google.protobuf.FieldMask":
            yield from leaves(inner, steps)
