"""Writes the TypeScript types of what goes in: plain values, named and told field by field."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from clientgen.description import PACKAGE, Api, Field, Message, Rpc, Update
from clientgen.options import GenerationError, known_set, names_kind, options_of
from clientgen.tsdoc import camel_case, comment, imports, union

# What every field of an update may be given without being named in its mask.
_UNMASKED = ("id", "etag")
_WKT = "@bufbuild/protobuf/wkt"
# What well-known types are given as, and what of that is imported from where.
_WELL_KNOWN = {
    "google.protobuf.Timestamp": ("Date | Timestamp", "Timestamp", _WKT),
    "google.protobuf.Duration": ("number | Duration", "Duration", _WKT),
    "google.protobuf.FieldMask": ("readonly string[] | FieldMask", "FieldMask", _WKT),
    "google.protobuf.Struct": ("JsonObject", "JsonObject", "@bufbuild/protobuf"),
}
_NUMBERS = {
    FieldDescriptor.CPPTYPE_BOOL: "boolean",
    FieldDescriptor.CPPTYPE_DOUBLE: "number",
    FieldDescriptor.CPPTYPE_FLOAT: "number",
    FieldDescriptor.CPPTYPE_INT32: "number",
    FieldDescriptor.CPPTYPE_UINT32: "number",
    FieldDescriptor.CPPTYPE_INT64: "number | bigint",
    FieldDescriptor.CPPTYPE_UINT64: "number | bigint",
}
_FITTED = f"{PACKAGE}.CreateReflectionRequest"
"""The request that the client writes texts of its own into, and of others'."""


def inits(api: Api) -> list[str]:
    """The lines of `inits.ts`: an interface for every request and every message inside of one."""
    rpcs = [rpc for service in api.services for rpc in service.rpcs]
    updates = {resource(rpc.update).full_name: rpc.update for rpc in rpcs if rpc.update}
    body: list[str] = []
    for message in _given(api, rpcs):
        body += _interface(f"{message.name}Init", message.comment, _properties(message))
    for update in updates.values():
        about = f"What may change of a {resource(update).name}."
        body += _interface(f"{resource(update).name}Changes", about, _changes(api, update))
    names = {f"{name}Name" for name in [*api.choices, *api.known]} | {"MemoryKind"}
    homes = {
        **{name: home for _, name, home in _WELL_KNOWN.values()},
        **homes_of_types(api, "."),
        **dict.fromkeys(names, "./names.js"),
    }
    return [
        "/** What requests are made of, in plain values. */",
        "",
        *imports("\n".join(body), homes),
        *body,
    ]


def given(message: Descriptor) -> str:
    """What a message is given as. The message itself has these fields, too, and is taken as well.

    It is not named beside them: of a union, editors show no documentation.
    """
    return f"{message.name}Init"


def resource(update: Update) -> Descriptor:
    """The message that an update changes."""
    message = update.resource.descriptor.message_type
    assert message is not None  # That makes it one.
    return message


def request(api: Api, rpc: Rpc) -> Message:
    """The message that an RPC takes."""
    about = api.comments.get(_input(rpc).full_name, "")
    return Message(_input(rpc), about, rpc.fields)


def homes_of_types(api: Api, root: str) -> dict[str, str]:
    """The modules of the messages and enums, by their names."""
    return {
        name: f"{root}/{module.removesuffix('_pb2').replace('.', '/')}_pb.js"
        for module, names in api.types.items()
        for name in names
    }


def limits(api: Api) -> list[str]:
    """The lines of `limits.ts`: which texts the fields take that the client itself fills in."""
    rpcs = (rpc for service in api.services for rpc in service.rpcs)
    fields = next((one.fields for one in rpcs if _input(one).full_name == _FITTED), None)
    if fields is None:
        raise GenerationError(f"there is no {_FITTED}: name the request in _FITTED of inits.py")
    lines = ["/** Which texts an attempt's reflection takes. */", "export const limits = {"]
    for field in fields:
        rules = options_of(field.descriptor).get("field")
        if rules is None or field.descriptor.type != FieldDescriptor.TYPE_STRING:
            continue
        text = rules.repeated.items.string if field.descriptor.is_repeated else rules.string
        shown = f"characters: {text.max_len}, pattern: {json.dumps(text.pattern)}"
        if field.descriptor.is_repeated:
            shown = f"entries: {rules.repeated.max_items}, {shown}"
        lines.append(f"  {camel_case(field.name)}: {{ {shown} }},")
    return [*lines, "} as const;"]


def _given(api: Api, rpcs: Iterable[Rpc]) -> list[Message]:
    """The requests, and what they hold but for what they change, by name."""
    known = {message.descriptor.full_name: message for message in api.given}

    def held(fields: Iterable[Field]) -> list[Message]:
        inner = (field.descriptor.message_type for field in fields)
        return [known[one.full_name] for one in inner if one and one.full_name in known]

    found: dict[str, Message] = {}
    waiting = [request(api, rpc) for rpc in rpcs]
    waiting += [message for rpc in rpcs if rpc.update for message in held(rpc.update.fields)]
    while waiting:
        message = waiting.pop()
        if message.descriptor.full_name not in found:
            found[message.descriptor.full_name] = message
            changed = _changed(message.descriptor)
            waiting += held(field for field in message.fields if field.name != changed)
    return sorted(found.values(), key=lambda message: message.name)


def _changed(message: Descriptor) -> str:
    """The field that an update's request changes, "" of other messages."""
    names = [field.name for field in message.fields]
    return next((name for name in names if name != "update_mask"), "") * ("update_mask" in names)


def _input(rpc: Rpc) -> Descriptor:
    return rpc.descriptor.input_type


def _interface(name: str, about: str, properties: Iterable[str]) -> list[str]:
    lines = ["", *comment(about or f"The fields of {name}.", "")]
    inner = list(properties) or ["  [name: string]: never;"]
    return [*lines, f"export interface {name} {{", *inner, "}"]


def _properties(message: Message) -> Iterator[str]:
    changed = _changed(message.descriptor)
    told: set[str] = set()
    for field in message.fields:
        oneof = field.descriptor.containing_oneof
        if oneof is None or len(oneof.fields) == 1:
            required = field.required and field.name != "update_mask"  # The client makes it.
            yield from _property(field, required=required, changed=field.name == changed)
        elif oneof.name not in told:
            told.add(oneof.name)
            members = [one for one in message.fields if one.descriptor.containing_oneof is oneof]
            yield from _oneof(oneof.name, members)


def _changes(api: Api, update: Update) -> Iterator[str]:
    names = [*_UNMASKED, *(field.name for field in update.fields)]
    (message,) = (one for one in api.given if one.descriptor is resource(update))
    for field in message.fields:
        if field.name in names:
            yield from _property(field, required=field.name == "id")


def _property(field: Field, *, required: bool, changed: bool = False) -> list[str]:
    kind = _kind(field.descriptor, changed=changed)
    name = camel_case(field.name)
    if required:
        head, ending = f"  {name}: ", ";"
    else:
        head, ending = f"  {name}?: ", " | undefined;"
    return [*comment(field.comment, "  "), f"{head}{kind}{ending}"]


def _oneof(name: str, members: Sequence[Field]) -> Iterator[str]:
    """One of several fields, as protobuf-es has it: which one, and its value."""
    cases = " or ".join(camel_case(field.name) for field in members)
    yield from comment(f"Its `case`, {cases}, and the `value` of that.", "  ")
    yield f"  {camel_case(name)}?:"
    for field in members:
        yield "    | {"
        yield f'        case: "{camel_case(field.name)}";'
        yield from comment(field.comment, "        ")
        yield f"        value: {_kind(field.descriptor)};"
        yield "      }"
    yield "    | { case: undefined; value?: undefined }"
    yield "    | undefined;"


def _kind(field: FieldDescriptor, *, changed: bool = False) -> str:
    if changed and field.message_type:
        return f"{field.message_type.name}Changes"
    one = _single(field)
    if not field.is_repeated:
        return one
    return f"readonly {union(one)}[]"


def _single(field: FieldDescriptor) -> str:
    if field.message_type:
        return _message(field, field.message_type)
    if field.enum_type:
        return f"{field.enum_type.name} | {field.enum_type.name}Name"
    if known := known_set(field):
        return f"{known}Name"
    if field.type == FieldDescriptor.TYPE_STRING:
        return "MemoryKind" if names_kind(field) else "string"
    return "Uint8Array" if field.type == FieldDescriptor.TYPE_BYTES else _NUMBERS[field.cpp_type]


def _message(field: FieldDescriptor, message: Descriptor) -> str:
    if message.full_name.startswith(f"{PACKAGE}.") and not message.GetOptions().map_entry:
        return given(message)
    if message.full_name not in _WELL_KNOWN:
        raise GenerationError(f"{field.full_name}: say in inits.py what {message.name} is given as")
    return _WELL_KNOWN[message.full_name][0]
