"""Puts what the schemas' options say into an image's comments: all generated code then tells it."""

from __future__ import annotations

import textwrap

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import EnumValueDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.rpc.code_pb2 import Code  # type: ignore[import-untyped]

from clientgen.description import PACKAGE, Rpc
from clientgen.options import known_set, names_kind, options_of
from clientgen.reading import describe, name_at

_WIDTH = 78


def tell(image: bytes, *, rpcs: bool = True) -> bytes:
    """The image with the options' meaning added to the comments of fields, and of RPCs."""
    api = describe(image)
    said: dict[str, list[str]] = {}
    fields = [field for message in api.given for field in message.fields]
    for rpc in (rpc for service in api.services for rpc in service.rpcs):
        if rpcs:
            scope = f"Scope: {rpc.scope}. {repeats(rpc)}"
            said[rpc.descriptor.full_name] = [
                "", *also_called(rpc), scope, *starts(rpc), errors(rpc)
            ]  # fmt: skip
        if rpc.update:
            names = ", ".join(field.name for field in rpc.update.fields)
            mask = f"{rpc.descriptor.input_type.full_name}.update_mask"
            said[mask] = [f"It may name {names}."]
        fields += rpc.fields
    # A message that one RPC takes and another one's message holds has its fields in both.
    fields = list({field.descriptor.full_name: field for field in fields}.values())
    for field in fields:
        if names_kind(field.descriptor):
            names = ", ".join(f'"{kind.name}"' for kind in api.kinds)
            said.setdefault(field.descriptor.full_name, []).append(f"Kinds: {names}.")
        if field.limits:
            said.setdefault(field.descriptor.full_name, []).append(field.limits)
    for field in fields:
        if known := api.known.get(known_set(field.descriptor)):
            listed = ", ".join(one.name for one in known)
            said.setdefault(field.descriptor.full_name, []).append(f"Known: {listed}.")
    said |= {
        f"{PACKAGE}.ErrorReason.{one.name}": [status]
        for one in api.reasons
        if (status := _status(one))
    }
    files = descriptor_pb2.FileDescriptorSet.FromString(image)
    for file in files.file:
        if file.package != PACKAGE:
            continue
        for location in file.source_code_info.location:
            name = f"{PACKAGE}.{name_at(file, tuple(location.path))}"
            if location.leading_comments and name in said:
                lines = [
                    part for text in said[name] for part in textwrap.wrap(text, _WIDTH) or [""]
                ]
                location.leading_comments += "".join(f" {line}\n" for line in lines)
    return files.SerializeToString()


def _status(reason: EnumValueDescriptor) -> str:
    codes = options_of(reason).get("codes", ())
    return f"Status: {' or '.join(map(Code.Name, codes))}." if codes else ""


def errors(rpc: Rpc) -> str:
    """How an RPC fails, in one sentence."""
    return f"Errors: {'; '.join(map(str, rpc.errors))}."


def also_called(rpc: Rpc) -> list[str]:
    """The clients' other name of an RPC's method, in a sentence, if it has one."""
    return [f"Also called: `{rpc.also_called}`, in the clients."] if rpc.also_called else []


def starts(rpc: Rpc) -> list[str]:
    """What an RPC starts, in a sentence, if it starts anything."""
    if rpc.starts is None:
        return []
    response = rpc.starts.response.name
    return [f"Starts: an operation `{rpc.starts.kind}`, which ends with a {response}."]


def repeats(rpc: Rpc) -> str:
    """Whether a request may be sent again, in words."""
    if rpc.made_ids:
        ids = " and ".join(f"`{path}`" for path in rpc.made_ids)
        return f"Repeatable: with {ids}, which the clients fill in."
    if rpc.level == MethodOptions.NO_SIDE_EFFECTS:
        return "Repeatable: yes, it changes nothing."
    return f"Repeatable: {'yes' if rpc.repeatable else 'no'}."
