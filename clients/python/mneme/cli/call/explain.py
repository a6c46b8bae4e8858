"""What an RPC takes, in words: its documentation, its fields, their types and their rules."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

from buf.validate import validate_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from mneme._core.convert import single_message_field
from mneme._core.enums import short_names
from mneme._core.rpc import Rpc
from mneme.cli.call.fields import changeable, is_map
from mneme.cli.call.rpcs import comment, title

_WIDTH = 100
_WELL_KNOWN = {
    "google.protobuf.Timestamp": "time (2026-01-31T12:00:00Z, 2026-01-31, 7d, yesterday)",
    "google.protobuf.Duration": "duration (90s, 5m, 12h)",
    "google.protobuf.FieldMask": "names of fields (title,content)",
    "google.protobuf.Struct": "JSON object",
    "google.protobuf.Value": "JSON",
    "google.protobuf.ListValue": "JSON list",
}
_SCALARS = {
    FieldDescriptor.CPPTYPE_BOOL: "true or false",
    FieldDescriptor.CPPTYPE_DOUBLE: "number",
    FieldDescriptor.CPPTYPE_FLOAT: "number",
    FieldDescriptor.CPPTYPE_STRING: "text",
}
# How protovalidate's rules read; those that are missing here read as they are called.
_RULES = {
    "min_len": "at least {} characters",
    "max_len": "at most {} characters",
    "min_bytes": "at least {} bytes",
    "max_bytes": "at most {} bytes",
    "min_items": "at least {} items",
    "max_items": "at most {} items",
    "min_pairs": "at least {} keys",
    "max_pairs": "at most {} keys",
    "gte": "at least {}",
    "gt": "more than {}",
    "lte": "at most {}",
    "lt": "less than {}",
    "in": "one of {}",
    "not_in": "none of {}",
    "pattern": "matching {}",
}
_PARAGRAPH = re.compile(r"\n\n|\n(?=[A-Z][a-z]+: )")
_UNTOLD = frozenset({"defined_only", "ignore", "finite"})
# Patterns that keep control characters out, as those of nearly all texts do.
_NO_CONTROLS = "^[^\\x00"


def explain(rpc: Rpc[Any, Any]) -> Iterator[str]:
    """The lines of a page about an RPC."""
    method = rpc.descriptor
    words = "@FILE" if method.client_streaming else "KEY=VALUE …"
    yield f"mneme call {title(rpc)} {words}"
    yield ""
    yield from _wrapped(comment(method.full_name), "")
    if method.client_streaming:
        item = single_message_field(rpc.request)
        each = f"{method.input_type.name}, or the {item} in it" if item else method.input_type.name
        yield ""
        yield f"It takes a stream: lines of JSON from standard input or @FILE, each a {each}."
    waiting, told = [method.input_type], set()
    while waiting:
        message = waiting.pop(0)
        if message.full_name in told:
            continue
        told.add(message.full_name)
        yield ""
        yield from _message(message)
        waiting += [
            inner
            for field in message.fields
            if (inner := _inner(field)) and not inner.full_name.startswith("google.")
        ]
    yield ""
    answers = "a stream of " if method.server_streaming else ""
    yield f"It answers with {answers}{method.output_type.name} in JSON."


def _inner(field: FieldDescriptor) -> Descriptor | None:
    message = field.message_type
    return message.fields_by_name["value"].message_type if message and is_map(field) else message


def _message(message: Descriptor) -> Iterator[str]:
    yield f"{message.name}{'' if message.fields else ': no fields'}"
    for field in message.fields:
        facts = [_type(field), *dict.fromkeys(_rules(field))]
        if changeable(field):
            facts = [_type(field), "default those that are given"]
        group = field.containing_oneof
        if group is not None and len(group.fields) > 1:
            facts.append(f"only one of {', '.join(one.name for one in group.fields)}")
        yield from _wrapped(f"{field.name}: {', '.join(facts)}", "  ", hanging="      ")
        yield from _wrapped(comment(field.full_name), "      ")


def _type(field: FieldDescriptor) -> str:
    if is_map(field):
        assert field.message_type is not None
        value = _single(field.message_type.fields_by_name["value"])
        return f"keys with {value} each"
    return f"list of {_single(field)}" if field.is_repeated else _single(field)


def _single(field: FieldDescriptor) -> str:
    if field.message_type:
        message = field.message_type
        return _WELL_KNOWN.get(message.full_name, str(message.name))
    if field.enum_type:
        return " | ".join(short_names(field.enum_type))
    if field.type == FieldDescriptor.TYPE_BYTES:
        return "bytes in base64"
    return _SCALARS.get(field.cpp_type, "whole number")


def _rules(field: FieldDescriptor) -> Iterator[str]:
    # The generated types call an extension a field's descriptor, and not what it extends.
    rules: Message = field.GetOptions().Extensions[validate_pb2.field]  # type: ignore[index]
    yield from _read(rules)


def _read(rules: Message) -> Iterator[str]:
    given = {rule.name: value for rule, value in rules.ListFields()}
    for rule, value in rules.ListFields():
        if rule.name in _UNTOLD or (rule.name == "pattern" and value.startswith(_NO_CONTROLS)):
            continue
        if rule.name in ("gte", "lte") and given.keys() >= {"gte", "lte"}:
            if rule.name == "gte":
                yield f"{_plain(rule, value)} to {_plain(rule, given['lte'])}"
        elif rule.name == "cel":
            yield from (one.message for one in value if one.message)
        elif rule.name == "items":
            yield from (f"each {words}" for words in _read(value) if words != "required")
        elif rule.message_type and rule.message_type.full_name.startswith("buf.validate."):
            yield from _read(value)
        elif value is True or _is_required(rule.name, value):
            yield "required" if rule.name != "unique" else "without repeats"
        else:
            yield _RULES.get(rule.name, f"{rule.name} {{}}").format(_plain(rule, value))


def _is_required(name: str, value: Any) -> bool:
    return (name in ("min_len", "min_items") and value == 1) or (
        name == "not_in" and list(value) in ([0], [""])
    )


def _plain(rule: FieldDescriptor, value: Any) -> str:
    if rule.is_repeated:
        return ", ".join(map(str, value))
    if rule.message_type:
        return str(value.ToJsonString())
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _wrapped(text: str, indent: str, hanging: str | None = None) -> Iterator[str]:
    columns = shutil.get_terminal_size((_WIDTH, 24)).columns if sys.stdout.isatty() else _WIDTH
    rest = indent if hanging is None else hanging
    for paragraph in _PARAGRAPH.split(text):
        yield from textwrap.wrap(
            " ".join(paragraph.split()),
            max(columns, 40),
            initial_indent=indent,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        )
