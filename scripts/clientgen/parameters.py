"""Writes what each method takes as values that a program can read: `mneme.parameters`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from clientgen.description import Api, Field, Rpc
from clientgen.limits import NUMBERS
from clientgen.options import options_of
from clientgen.signature import SCALARS

_SENTENCE = re.compile(r"(.*?[.!?])(?:\s+[A-Z`]|\n|$)", re.DOTALL)
_KINDS = {"bool": "flag", "float": "number", "int": "integer"}
_TEXT = FieldDescriptor.CPPTYPE_STRING
_WELL_KNOWN = {"Timestamp": "time", "Struct": "json"}


def parameters_module(api: Api, header: str) -> str:
    """The module; `header` says that it is generated."""
    rpcs = [rpc for service in api.services for rpc in service.rpcs]
    methods = {rpc.method_name: [*_taken(rpc)] for rpc in rpcs}
    held = {_kind(field.descriptor) for rpc in rpcs if not rpc.update for field in rpc.fields}
    messages = {one.name: [*map(_row, one.fields)] for one in api.given if one.name in held}
    lines = [
        '"""What each method takes, and the fields of the messages in it."""',
        "",
        header,
        "# ruff: noqa: E501",
        "from collections.abc import Mapping",
        "",
        "from mneme._core.parameters import Parameter",
    ]
    for name, taken in (("METHODS", methods), ("MESSAGES", messages)):
        lines += ["", f"{name}: Mapping[str, Mapping[str, Parameter]] = {{"]
        for owner, rows in taken.items():
            lines += [f'"{owner}": {{', *rows, "},"]
        lines.append("}")
    return "\n".join(lines) + "\n"


def _taken(rpc: Rpc) -> Iterator[str]:
    """The fields that a method takes; one that updates takes those of the resource."""
    if rpc.update is None:
        yield from map(_row, rpc.fields)
        return
    resource, name = rpc.update.resource.name, rpc.update.id_parameter
    yield f'"{name}": Parameter("text", "The {resource}.", required=True),'
    for field in (*rpc.update.fields, *([rpc.update.etag] if rpc.update.etag else [])):
        yield _row(replace(field, required=False))


def _row(field: Field) -> str:
    facts = "".join(f", {name}={value!r}" for name, value in _facts(field) if value)
    return f'"{field.name}": Parameter({_kind(field.descriptor)!r}, {_about(field)!r}{facts}),'


def _facts(field: Field) -> Iterator[tuple[str, Any]]:
    descriptor = field.descriptor
    options = options_of(descriptor)
    rules = options.get("field")
    default = options.get("default_value", "")
    yield "many", descriptor.is_repeated
    yield "required", field.required
    yield "optional", descriptor.has_presence and descriptor.message_type is None
    kind = rules.WhichOneof("type") if rules else None
    own: Any = getattr(rules, kind) if rules and kind else None
    if kind == "repeated":
        yield (
            "prose",
            descriptor.cpp_type == _TEXT and bool(re.search(own.items.string.pattern, "a\nb")),
        )
        yield "most", own.max_items
    elif kind == "string":
        yield "most", own.max_len
    elif kind in NUMBERS:
        yield from _bounds(own, from_one=bool(default) and not descriptor.has_presence)
    yield "default", _default(descriptor, default)
    yield "choices", _choices(descriptor, own if kind == "enum" else None)


def _bounds(rules: Any, *, from_one: bool) -> Iterator[tuple[str, Any]]:
    """The ends of a range, as text: 0 is one, too."""
    if rules.WhichOneof("greater_than") == "gte":
        yield "least", Number(1 if from_one and not rules.gte else rules.gte)
    if rules.WhichOneof("less_than") == "lte":
        yield "most", Number(rules.lte)


class Number:
    """A number as the module has it; it is always written, unlike a fact that is 0."""

    def __init__(self, value: float) -> None:
        self._value = int(value) if value == int(value) else value

    def __repr__(self) -> str:
        return repr(self._value)


def _default(field: FieldDescriptor, text: str) -> Any:
    if not text:
        return None
    if field.enum_type is not None:
        return text.lower()
    kind = SCALARS.get(field.cpp_type)
    return text if kind is None else int(text) if kind == "int" else float(text)


def _choices(field: FieldDescriptor, rules: Any) -> tuple[str, ...]:
    enum = field.enum_type
    if enum is None:
        return ()
    allowed = set(getattr(rules, "in", ())) or set(enum.values_by_number)
    prefix = str(enum.values[0].name).removesuffix("UNSPECIFIED")
    return tuple(
        value.name.removeprefix(prefix).lower()
        for value in enum.values
        if value.number and value.number in allowed
    )


def _kind(field: FieldDescriptor) -> str:
    if field.message_type is not None:
        name = str(field.message_type.name)
        return _WELL_KNOWN.get(name, name)
    if field.enum_type is not None:
        return "choice"
    scalar = SCALARS.get(field.cpp_type)
    return _KINDS[scalar] if scalar else "text"


def _about(field: Field) -> str:
    """The first sentence of what the schema says of it."""
    found = _SENTENCE.match(field.comment)
    return " ".join((found[1] if found else field.comment).split())
