"""What an RPC takes, in words: its documentation, its fields and their types.

The documentation of a field tells its rules, which are put into it where it is generated.
"""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

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
_PARAGRAPH = re.compile(r"\n\n|\n(?=[A-Z][a-z]+: )")


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
        facts = [_type(field)]
        if changeable(field):
            facts.append("default those that are given")
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
