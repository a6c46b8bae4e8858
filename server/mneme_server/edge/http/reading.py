"""Requests as REST writes them, into messages, along their descriptors."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, TypeAlias

import orjson
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import NULL_VALUE
from mneme._core.json_values import is_exact, why_inexact
from mneme._core.named import near, short

from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.edge.http.rest_mapping import PLAIN, RestMapping, parameters_of, prefix_of

Json: TypeAlias = Any
Path: TypeAlias = tuple[str, ...]

_DEEPEST = 32
"""Levels of objects and lists within each other; a message in protobuf's form has three for each,
and its parser takes 100."""
_TRUE = {"true": True, "false": False}
_LIMITS: Mapping[int, tuple[int, int]] = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}
_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_LONG_NAME = re.compile(rb'"(?:[^"\\]|\\.){65,}+"\s*:')
_MOST_PATHS = 256 * 1024 * 1024
"""Characters of the paths of all that is in a body, together, where it has long names."""
_DOUBLES = (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT)


def parse_json(body: bytes) -> Json:
    """Return what a body says.

    Raises:
        InvalidArgument: INVALID_TYPE, it is not JSON.
    """
    try:
        value = orjson.loads(body)
        # An integer of more than 64 bits is a double to orjson, which rounds it.
        value = json.loads(body) if _LONG_NUMBER.search(body) else value
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(
            f"the body is not JSON: {error}", reason=Reason.INVALID_TYPE
        ) from None
    if _LONG_NAME.search(body):
        _check_names(value)
    return value


def parse_object(body: bytes) -> dict[str, Json]:
    """Return the object that a body is; an empty one, where it is empty.

    Raises:
        InvalidArgument: INVALID_TYPE, it is none.
    """
    value = parse_json(body) if body.strip() else {}
    if not isinstance(value, dict):
        raise InvalidArgument("the body is not a JSON object", reason=Reason.INVALID_TYPE)
    return value


def _check_names(value: Json) -> None:
    """Refuse names that are long and have much in them: whoever reads it makes the path of each."""
    paths = 0
    left = [(value, 0)]
    while left:
        one, length = left.pop()
        paths += length
        if paths > _MOST_PATHS:
            raise InvalidArgument(
                "the body has names that are too long for how much is in them",
                reason=Reason.OUT_OF_RANGE,
            )
        if isinstance(one, dict):
            left += ((item, length + len(name)) for name, item in one.items())
        elif isinstance(one, list):
            left += ((item, length) for item in one)


class Reader:
    """Reads parameters into a request.

    Args:
        message: what kind of request.
        mapping: how its RPC is written.
        hidden: fields that are no parameters.
    """

    def __init__(
        self, message: Descriptor, mapping: RestMapping = PLAIN, hidden: Iterable[str] = ()
    ) -> None:
        without = set(hidden)
        self._message = message
        self._mapping = mapping
        self._paths: dict[str, Path] = {
            name: path for name, path in parameters_of(message, mapping) if path[0] not in without
        }

    @property
    def names(self) -> Mapping[str, Path]:
        """The parameters, with the paths of their fields."""
        return self._paths

    def read(self, values: Mapping[str, Json], into: Message, *, texts: bool, at: str = "") -> None:
        """Set the fields that parameters name; null leaves one unset.

        Args:
            values: the parameters; lists of texts where they come from a query.
            into: the request.
            texts: whether they come from a query, where numbers are texts.
            at: the path of the message in its request, for errors.

        Raises:
            InvalidArgument: there is no such parameter, or it cannot be read.
        """
        given: dict[Path, str] = {}
        for name, value in values.items():
            path = self._path(name, values, texts=texts)
            said = _under(at, name)
            if (before := given.get(path)) is not None:
                raise InvalidArgument(f"{said} and {before} are the same parameter", field=said)
            given[path] = said
            words = self._mapping.words.get(path[-1])
            if words is not None:
                value = _said(value, words)  # noqa: PLW2901
            target: Message = into
            for part in path[:-1]:
                target = getattr(target, part)
                target.SetInParent()
            read_field(target, path[-1], value, said, texts=texts)

    def _path(self, name: str, values: Mapping[str, Json], *, texts: bool) -> Path:
        if (path := self._paths.get(name)) is not None:
            return path
        if (by := self._mapping.named_by.get(name)) is not None:
            other = values.get(by)
            other = other[0] if texts and isinstance(other, list) else other
            if isinstance(other, str) and other.lower() in self._message.fields_by_name:
                return (other.lower(),)
            raise InvalidArgument(f"{name} needs {by}, whose parameters they are", field=name)
        if texts and "." in name:
            return self._dotted(name)
        close = near(name, self._paths)
        hint = f"did you mean {close[0]}?" if close else f"there are {_listed(self._paths)}"
        name = short(name)
        raise InvalidArgument(f"there is no parameter {name!r}; {hint}", field=name)

    def _dotted(self, name: str) -> Path:
        message: Descriptor | None = self._message
        path: list[str] = []
        for part in name.split("."):
            field = None if message is None else _fields(message).get(part)
            if field is None or (not path and (str(field.name),) not in self._paths.values()):
                name = short(name)
                raise InvalidArgument(f"there is no parameter {name!r}", field=name)
            path.append(str(field.name))
            message = None if field.is_repeated else field.message_type
        return tuple(path)


def read_field(target: Message, name: str, value: Json, at: str, *, texts: bool) -> None:
    """Set one field.

    Raises:
        InvalidArgument: it cannot be read.
    """
    field: Any = target.DESCRIPTOR.fields_by_name[name]
    if value is None:
        return
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        _read_map(getattr(target, name), field, value, at, texts=texts)
    elif field.is_repeated:
        _read_list(getattr(target, name), field, value, at, texts=texts)
    else:
        if texts:
            value = _single(value, at)
        if entry is not None:
            into = getattr(target, name)
            into.SetInParent()
            _message_reader(entry)(into, value, at, texts)
        else:
            setattr(target, name, _scalar(field, value, at, texts=texts))


@cache
def _fields(message: Descriptor) -> Mapping[str, FieldDescriptor]:
    """Return a message's fields by the names that they may have."""
    return {str(f.json_name): f for f in message.fields} | {str(f.name): f for f in message.fields}


@cache
def _message_reader(message: Descriptor) -> Callable[[Any, Json, str, bool], None]:
    own = _OWN.get(message.full_name)
    return own if own is not None else _plain


def _plain(into: Message, value: Json, at: str, texts: bool) -> None:
    """Read an object into a message that has no form of its own."""
    if texts:
        value = parse_json(value.encode())
    if not isinstance(value, dict):
        raise _wrong(at, "an object", value)
    if at.count(".") >= _DEEPEST:
        raise _too_deep(at)
    fields = _fields(into.DESCRIPTOR)
    said: set[str] = set()
    for key, item in value.items():
        field = fields.get(key)
        here = _under(at, key)
        if field is None:
            close = near(key, fields)
            hint = f"did you mean {close[0]}?" if close else f"there are {_listed(fields)}"
            raise InvalidArgument(f"there is no field {here!r}; {hint}", field=here)
        if field.name in said:
            raise InvalidArgument(f"{here} is given twice", field=here)
        said.add(str(field.name))
        read_field(into, str(field.name), item, here, texts=False)


def read_object(into: Message, value: Json, at: str = "") -> None:
    """Read an object into a message, field by field.

    Raises:
        InvalidArgument: it is no such object.
    """
    _plain(into, value, at, False)


def _read_list(into: Any, field: FieldDescriptor, value: Json, at: str, *, texts: bool) -> None:
    items = value if isinstance(value, list) else [value]
    if not texts and not isinstance(value, list):
        raise _wrong(at, "a list", value)
    if field.message_type is None:
        into.extend(
            _scalar(field, item, f"{at}[{index}]", texts=texts) for index, item in enumerate(items)
        )
        return
    read = _message_reader(field.message_type)
    for index, item in enumerate(items):
        read(into.add(), item, f"{at}[{index}]", texts)


def _read_map(into: Any, field: FieldDescriptor, value: Json, at: str, *, texts: bool) -> None:
    value = parse_json(_single(value, at).encode()) if texts else value
    if not isinstance(value, dict):
        raise _wrong(at, "an object", value)
    entry: Any = field.message_type
    key_field, value_field = entry.fields_by_name["key"], entry.fields_by_name["value"]
    for key, item in value.items():
        here = _under(at, key)
        typed = _scalar(key_field, key, here, texts=True)
        if value_field.message_type is not None:
            _message_reader(value_field.message_type)(into[typed], item, here, False)
        else:
            into[typed] = _scalar(value_field, item, here, texts=False)


def _scalar(field: FieldDescriptor, value: Json, at: str, *, texts: bool) -> Any:
    """Return a value of a field that is no message."""
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_STRING:
        if not isinstance(value, str):
            raise _wrong(at, "a text", value)
        return _bytes(value, at) if field.type == FieldDescriptor.TYPE_BYTES else value
    if (enum := field.enum_type) is not None:
        return _enum(enum, value, at)
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        read = _TRUE.get(value.lower()) if texts and isinstance(value, str) else value
        if not isinstance(read, bool):
            raise _wrong(at, "true or false", value)
        return read
    if kind in _DOUBLES:
        return _double(value, at, texts=texts)
    return _whole(field, value, at, texts=texts)


def _double(value: Json, at: str, *, texts: bool) -> float:
    if texts and isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            raise _wrong(at, "a number", value) from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(at, "a number", value)
    return _exact(value, at)


def _exact(value: float, at: str) -> float:
    """Return a number as a double, unless that would round an integer."""
    if not is_exact(value):
        raise InvalidArgument(f"{at}: {why_inexact(value)}", reason=Reason.OUT_OF_RANGE, field=at)
    return float(value)


def _whole(field: FieldDescriptor, value: Json, at: str, *, texts: bool) -> int:
    number: Json = value
    # 64 bits are more than other languages' numbers hold exactly: they may come as texts.
    if isinstance(value, str) and value.isascii() and value.removeprefix("-").isdigit():
        number = int(value) if len(value) < 25 else None
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    if isinstance(number, bool) or not isinstance(number, int):
        raise _wrong(at, "a whole number", value)
    least, most = _LIMITS[field.cpp_type]
    if not least <= number <= most:
        raise InvalidArgument(
            f"{at}: must be between {least} and {most}", reason=Reason.OUT_OF_RANGE, field=at
        )
    return number


def _enum(enum: EnumDescriptor, value: Json, at: str) -> int:
    if isinstance(value, str):
        said = value.upper().replace("-", "_")
        found = enum.values_by_name.get(said) or enum.values_by_name.get(prefix_of(enum) + said)
        if found is not None and found.number:
            return int(found.number)
    words = [
        str(one.name).removeprefix(prefix_of(enum)).lower() for one in enum.values if one.number
    ]
    raise InvalidArgument(
        f"{at}: {_shown(value)} is none of {', '.join(words)}",
        reason=Reason.INVALID_PARAMETER if isinstance(value, str) else Reason.INVALID_TYPE,
        field=at,
    )


def _bytes(value: str, at: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise _wrong(at, "Base64", value) from None


def _single(value: Json, at: str) -> Any:
    if isinstance(value, list):
        if len(value) != 1:
            raise InvalidArgument(f"{at} is given {len(value)} times", field=at)
        return value[0]
    return value


def _text_form(what: str) -> Callable[[Any, Json, str, bool], None]:
    """Return what reads a message that JSON has as a text."""

    def read(into: Any, value: Json, at: str, texts: bool) -> None:
        if not isinstance(value, str):
            raise _wrong(at, what, value)
        try:
            into.FromJsonString(value)
        except (ValueError, OverflowError):
            raise _wrong(at, what, value) from None

    return read


def _struct(into: Any, value: Json, at: str, texts: bool) -> None:
    if texts:
        value = parse_json(value.encode())
    if not isinstance(value, dict):
        raise _wrong(at, "an object", value)
    _fill(into, value, at, _DEEPEST)


def _fill(into: Any, value: Mapping[str, Json], at: str, left: int) -> None:
    if not left:
        raise _too_deep(at)
    for key, item in value.items():
        _set(into.fields[key], item, _under(at, key), left - 1)


def _set(into: Any, item: Json, at: str, left: int) -> None:
    if isinstance(item, str):
        into.string_value = item
    elif isinstance(item, bool):
        into.bool_value = item
    elif isinstance(item, int | float):
        into.number_value = _exact(item, at)
    elif isinstance(item, dict):
        into.struct_value.SetInParent()
        _fill(into.struct_value, item, at, left)
    elif isinstance(item, list):
        if not left:
            raise _too_deep(at)
        into.list_value.SetInParent()
        for index, one in enumerate(item):
            _set(into.list_value.values.add(), one, f"{at}[{index}]", left - 1)
    else:
        into.null_value = NULL_VALUE


def _value(into: Any, value: Json, at: str, texts: bool) -> None:
    _set(into, parse_json(value.encode()) if texts else value, at, _DEEPEST)


def _said(value: Json, words: Mapping[str, str | None]) -> Json:
    """Return a value, or a list of values, in the API's words."""
    items = value if isinstance(value, list) else [value]
    said = [words.get(item.lower(), item) if isinstance(item, str) else item for item in items]
    return [] if None in said else said


def _wrong(at: str, wanted: str, value: Json) -> InvalidArgument:
    return InvalidArgument(
        f"{at}: {_shown(value)} is not {wanted}", reason=Reason.INVALID_TYPE, field=at
    )


def _too_deep(at: str) -> InvalidArgument:
    field = at.split(".", 1)[0]
    return InvalidArgument(
        f"{field} is nested more than {_DEEPEST} levels deep",
        reason=Reason.OUT_OF_RANGE,
        field=field,
    )


def _under(at: str, name: str) -> str:
    """Return the path of what has a name within something: short enough to be made for each."""
    return f"{at}.{short(name)}" if at else short(name)


def _shown(value: Json) -> str:
    if isinstance(value, str):
        value = value[:60]
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= 60 else text[:57] + "…"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(name for name in names if "_" not in name)) or "none"


_OWN: Mapping[str, Callable[[Any, Json, str, bool], None]] = {
    "google.protobuf.Timestamp": _text_form("a time such as 2026-11-22T18:30:00Z"),
    "google.protobuf.Duration": _text_form('a duration such as "1.5s"'),
    "google.protobuf.FieldMask": _text_form("a list of fields, separated by commas"),
    "google.protobuf.Struct": _struct,
    "google.protobuf.Value": _value,
}
