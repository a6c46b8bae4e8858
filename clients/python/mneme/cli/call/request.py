"""Requests of what people type: `key=value`, `key:=JSON`, `@file`, `-`.

All of it is put together in protobuf's JSON form first, so that a file and what stands beside it
on the line make one request.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from mneme._core.convert import single_message_field
from mneme._core.rpc import Rpc
from mneme.cli.call.fields import MASK, STRUCT, changeable, field_of, is_map, json_of, value_of
from mneme.cli.exits import InputError
from mneme.plain import from_dict

_ARGUMENT = re.compile(r"([^=:]+)(:?=)(.*)", re.DOTALL)
_STDIN = "-"


def request_of(rpc: Rpc[Any, Any], arguments: Sequence[str]) -> Message:
    """The request of a call.

    Args:
        rpc: what is called.
        arguments: what was typed; where two set the same field, the later one counts, and lists
            grow.

    Raises:
        InputError, ArgumentError: something does not fit; the message names the field.
        OSError: a file cannot be read.
    """
    values: dict[str, Any] = {}
    for argument in arguments:
        if _is_source(argument):
            _merge(values, _named(_document(_read(argument), argument), rpc.request.DESCRIPTOR))
        else:
            _merge(values, _typed(rpc, argument))
    return _message(rpc, values)


def requests_of(rpc: Rpc[Any, Any], arguments: Sequence[str]) -> Iterator[Message]:
    """The requests of a stream, one for each line of JSON in a file or on standard input.

    A line holds a request, or, where requests wrap a single message, that message. What stands on
    the command line is set in each of them.

    Raises:
        InputError, ArgumentError: something does not fit.
        OSError: a file cannot be read.
    """
    sources = [argument for argument in arguments if _is_source(argument)]
    if len(sources) > 1:
        raise InputError(f"give one source of requests, not {' and '.join(sources)}")
    common: dict[str, Any] = {}
    for argument in arguments:
        if not _is_source(argument):
            _merge(common, _typed(rpc, argument))
    return _streamed(rpc, _lines(sources[0] if sources else _STDIN), common)


def _streamed(
    rpc: Rpc[Any, Any], lines: Iterable[str], common: Mapping[str, Any]
) -> Iterator[Message]:
    wrapped = single_message_field(rpc.request)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        document = _document(line, f"line {number}")
        if wrapped and set(document) != {wrapped}:
            document = {wrapped: document}
        values = _named(document, rpc.request.DESCRIPTOR)
        _merge(values, common)
        yield _message(rpc, values)


def _is_source(argument: str) -> bool:
    return argument == _STDIN or argument.startswith("@")


def _read(source: str) -> str:
    return "\n".join(_lines(source))


def _lines(source: str) -> Iterator[str]:
    """The lines of a file or of standard input, as they come."""
    if source == _STDIN:
        return (line.decode(errors="replace").rstrip("\r\n") for line in sys.stdin.buffer)
    try:
        text = Path(source[1:]).expanduser().read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{source[1:]} is not UTF-8: byte {error.start} is none of it") from error
    return iter(text.split("\n"))  # A text in JSON may hold other characters that end lines.


def _document(text: str, source: str) -> dict[str, Any]:
    name = "standard input" if source == _STDIN else source.removeprefix("@")
    document = json_of(text, name)
    if not isinstance(document, dict):
        raise InputError(f'{name} is not a JSON object; give {{"field": "value", …}}')
    return document


def _typed(rpc: Rpc[Any, Any], argument: str) -> dict[str, Any]:
    """The part of a request that one argument gives."""
    found = _ARGUMENT.fullmatch(argument)
    if not found:
        raise InputError(f"{argument!r} is neither KEY=VALUE nor KEY:=JSON, @FILE or -")
    path, operator, text = found.groups()
    return _part(rpc.request.DESCRIPTOR, path.split("."), path, text, is_json=operator == ":=")


def _part(
    message: Descriptor, names: list[str], path: str, text: str, *, is_json: bool
) -> dict[str, Any]:
    if message.full_name == STRUCT:
        return _free(names, json_of(text, path) if is_json else text)
    name, *rest = names
    field = field_of(message, name, path)
    inner = field.message_type
    if not rest:
        if is_json:
            value = json_of(text, path)
            if inner and not is_map(field):
                value = _named_each(value, inner)
            single = field.is_repeated and not is_map(field) and not isinstance(value, list)
        elif is_map(field):
            raise InputError(f"{path}: give {path}.KEY=VALUE or {path}:=JSON")
        else:
            value = value_of(field, text, path)
            single = field.is_repeated
        return {field.name: [value] if single else value}
    if is_map(field):
        assert inner is not None
        element = inner.fields_by_name["value"]
        value = json_of(text, path) if is_json else value_of(element, text, path)
        return {field.name: {".".join(rest): value}}
    if inner is None or (inner.full_name != STRUCT and inner.full_name.startswith("google.")):
        raise InputError(f"{path}: {field.name} holds a value, and no fields")
    if field.is_repeated:
        raise InputError(f"{path}: {field.name} is a list of {inner.name}; give {name}:=JSON")
    return {field.name: _part(inner, rest, path, text, is_json=is_json)}


def _free(names: Sequence[str], value: Any) -> dict[str, Any]:
    """Free JSON with a value at a path."""
    for name in reversed(names):
        value = {name: value}
    return dict(value)


def _merge(into: dict[str, Any], part: Mapping[str, Any]) -> None:
    for name, value in part.items():
        before = into.get(name)
        if isinstance(before, dict) and isinstance(value, Mapping):
            into[name] = dict(before)
            _merge(into[name], value)
        elif isinstance(before, list) and isinstance(value, list):
            into[name] = [*before, *value]
        else:
            into[name] = value


def _named_each(value: Any, message: Descriptor, path: str = "") -> Any:
    if isinstance(value, list) and message.full_name != MASK:
        return [_named_each(item, message, path) for item in value]
    is_message = isinstance(value, dict) and not message.full_name.startswith("google.")
    return _named(value, message, path) if is_message else value


def _named(values: Mapping[str, Any], message: Descriptor, path: str = "") -> dict[str, Any]:
    """The same under the schemas' names; an unknown one is refused in our own words."""
    named = {}
    for name, value in values.items():
        field = field_of(message, name, f"{path}{name}")
        inner = None if is_map(field) else field.message_type
        named[field.name] = _named_each(value, inner, f"{path}{name}.") if inner else value
    return named


def _message(rpc: Rpc[Any, Any], values: dict[str, Any]) -> Message:
    request: Message = rpc.request()
    return from_dict(_with_mask(values, rpc.request.DESCRIPTOR), request)


def _with_mask(values: dict[str, Any], request: Descriptor) -> dict[str, Any]:
    """The mask of an update in protobuf's JSON form; without one, what is given is changed."""
    for field in request.fields:
        if field.message_type is None or field.message_type.full_name != MASK:
            continue
        paths = values.get(field.name)
        if paths is None:
            resources = [value for value in values.values() if isinstance(value, dict)]
            paths = [name for one in resources for name in one if name in changeable(field)]
        parts = paths.split(",") if isinstance(paths, str) else paths
        values[field.name] = ",".join(_camel_case(str(part).strip()) for part in parts)
    return values


def _camel_case(name: str) -> str:
    return re.sub(r"_([a-z0-9])", lambda found: found[1].upper(), name)
