"""Reads options from descriptors, and what they say of names that are known."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor import (
    Descriptor,
    EnumValueDescriptor,
    FieldDescriptor,
    MethodDescriptor,
    ServiceDescriptor,
)


class GenerationError(Exception):
    """The schemas cannot be turned into a client; the message says what to change."""


@dataclass(frozen=True, slots=True)
class KnownName:
    """A name with a meaning, of a field that takes others too."""

    name: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of memory: its name, what its memories are, the service that brings it."""

    name: str
    meaning: str
    service: str


def kinds_of(services: Iterable[ServiceDescriptor]) -> tuple[Kind, ...]:
    """The kinds of memory that the services bring; GenerationError when two have one name."""
    found: dict[str, Kind] = {}
    for service in services:
        for brought in options_of(service).get("brings_kinds", ()):
            if other := found.get(brought.name):
                raise GenerationError(
                    f"{service.name} and {other.service} both bring a kind {brought.name}"
                )
            found[brought.name] = Kind(brought.name, brought.meaning, service.name)
    return tuple(found.values())


def names_kind(field: FieldDescriptor) -> bool:
    """Whether a text names a kind of memory."""
    return bool(options_of(field).get("names_kind"))


def options_of(
    element: ServiceDescriptor | MethodDescriptor | FieldDescriptor | EnumValueDescriptor,
) -> dict[str, Any]:
    """Options by their short names, with the image's own extensions understood."""
    plain = element.GetOptions()
    owner: Any = element
    if isinstance(element, MethodDescriptor):
        owner = element.containing_service
    elif isinstance(element, EnumValueDescriptor):
        owner = element.type
    pool: descriptor_pool.DescriptorPool = owner.file.pool
    parsed = message_factory.GetMessageClass(
        pool.FindMessageTypeByName(plain.DESCRIPTOR.full_name)
    ).FromString(plain.SerializeToString())
    return {field.name: value for field, value in parsed.ListFields() if field.is_extension}


def refuses_absence(rules: Any) -> bool:
    """Whether a field's rules refuse that it is left out."""
    text, repeated, enum = rules.string, rules.repeated, rules.enum
    return bool(
        rules.required
        or text.min_len > 0
        or (text.pattern and not re.search(text.pattern, ""))
        or repeated.min_items > 0
        or 0 in enum.not_in
    )


def known_set(field: FieldDescriptor) -> str:
    """What the known names are of that a field takes beside others; "" when it has none."""
    known = options_of(field).get("known")
    return str(known.set) if known else ""


def known_names(messages: Iterable[Descriptor]) -> dict[str, tuple[KnownName, ...]]:
    """The known names by what they are names of; of the fields of a set, one lists them."""
    found: dict[str, tuple[KnownName, ...]] = {}
    used: set[str] = set()
    for field in (field for message in messages for field in message.fields):
        known = options_of(field).get("known")
        if known is None:
            continue
        used.add(known.set)
        if known.names and known.set in found:
            raise GenerationError(f"{field.full_name}: {known.set} is listed twice")
        if known.names:
            found[known.set] = tuple(KnownName(one.name, one.meaning) for one in known.names)
    if missing := used - set(found):
        raise GenerationError(f"no field lists the known names of {', '.join(sorted(missing))}")
    return found
