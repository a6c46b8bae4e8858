"""Write docs/api.md, the reference of the API, from the comments and options of proto/mneme/v1.

Its source is the image that `buf build` makes of the schemas, comments included.

Usage: python scripts/apireference.py [--check]
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from clientgen.description import PACKAGE, Rpc, Service
from clientgen.options import known_set
from clientgen.reading import comments_of, describe
from clientgen.telling import also_called, repeats, starts, tell
from generate import build
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from mneme_server.http.routes import Route, routes_of
from pages import ROOT, write_or_check
from rest import curl
from schemas import services
from tenancy import isolation_of

PAGE = ROOT / "docs/api.md"
# A request of each RPC, in an order in which they can be sent; a list for a stream of requests.
EXAMPLES: Mapping[str, Any] = json.loads((ROOT / "scripts/api_examples.json").read_text())

_HEAD = """\
# The API

Written by `scripts/apireference.py` from the comments and options of
[`proto/mneme/v1`](../proto/mneme/v1).
All services are in the package `mneme.v1`: the path of a call is `/mneme.v1.SERVICE/RPC`.
[Every RPC, and how to reach it](parity.md) names the clients' methods; [Errors](errors.md) lists
the reasons that an error carries.

A key needs the scope that an RPC names; "any" is whichever it has. If it is not known whether a
repeatable request arrived, it can be sent again without acting twice; the clients do so
automatically. Apart from the errors that an RPC names, every call can fail because a key or a scope
is missing, because a limit of calls is exceeded, or because the server is starting, stopping or
broken.

A field that is left out has its default, or is zero or empty; one that is `optional`, or a message,
can also be unset. Of the fields of a `oneof`, at most one is set. Texts are counted in Unicode
characters; a text on one line holds no control characters, and no text holds a NUL.

Free JSON is a `google.protobuf.Struct`, whose numbers are doubles: they hold integers up to 2^53.
JSON over HTTP, the clients and the command line refuse a larger one and name its field, instead of
rounding it: send it as text. Imports and telemetry keep it as text of its digits.

The examples are what a server without keys answers to, over gRPC and over
[HTTP](guides/http.md); with keys, add `-H 'authorization: Bearer mn_…'`. They build on each other
in the order of [`scripts/api_examples.json`](../scripts/api_examples.json), in which tests send
them. Some values are the server's to choose: `API_KEY_ID` is `api_key.id` of what `CreateApiKey`
answered, `BACKUP` the name of the file that `Backup` wrote, `CERTIFICATE_ID` and `CERTIFICATE_JSON`
are the `id` and the `json` of the certificate that `RecallWithCertificate` answered with.
"""

_KNOWN = """\
Fields of these take any name of their form. The names listed here have a meaning for the server;
all others are kept as they are given."""
# Types of fields that are neither messages nor enums, as the schemas write them.
_SCALARS = {
    value.number: value.name.removeprefix("TYPE_").lower()
    for value in descriptor_pb2.FieldDescriptorProto.Type.DESCRIPTOR.values
}
Named = TypeVar("Named", Descriptor, EnumDescriptor)
_SHARED = "mneme/v1/common.proto"
_LEAD = re.compile(r"\A([A-Z][a-z ]+\.) ")
_CODE_OR_MARKUP = re.compile(r"(`[^`]*`)|([<*])")


class Reference:
    """The page's parts.

    Args:
        image: the schemas as `buf build` writes them.
    """

    def __init__(self, image: bytes) -> None:
        image = tell(image, rpcs=False)
        files = descriptor_pb2.FileDescriptorSet.FromString(image)
        own = [file for file in files.file if file.package == PACKAGE]
        api = describe(image)
        self._services, self._known, self._kinds = api.services, api.known, api.kinds
        self._shared = _shared_rules(own)
        self._comments = {name: text for file in own for name, text in comments_of(file)}
        pool = self._services[0].rpcs[0].descriptor.containing_service.file.pool
        described = [pool.FindFileByName(file.name) for file in own]
        self._messages: Mapping[str, Descriptor] = _by_name(
            message for file in described for message in file.message_types_by_name.values()
        )
        self._enums: Mapping[str, EnumDescriptor] = _by_name(
            enum for file in described for enum in file.enum_types_by_name.values()
        )
        # Said with its RPC when there is only one; else with the messages.
        used = Counter(
            message.full_name
            for service in self._services
            for rpc in service.rpcs
            for message in (rpc.descriptor.input_type, rpc.descriptor.output_type)
        )
        self._routes: dict[str, list[Route]] = {}
        for route in routes_of(services()):
            self._routes.setdefault(route.method.full_name, []).append(route)
        self._told_with_rpc = {name for name, times in used.items() if times == 1}

    def page(self) -> str:
        """The page."""
        parts = [_HEAD, "\n".join(self._contents()), "## Ids and tokens", self._shared]
        for service in self._services:
            parts += [f"## {service.name}", _prose(service.comment)]
            for rpc in service.rpcs:
                parts += self._rpc(service, rpc)
        parts += ["## Messages", "Those that more than one RPC uses, or that others hold."]
        for full_name, message in self._messages.items():
            if full_name not in self._told_with_rpc:
                parts += [f"### {message.name}", *self._fields(message)]
        parts += ["## Kinds of memory", self._kinds_of_memory(), "## Enums"]
        for full_name, enum in self._enums.items():
            parts += [f"### {enum.name}", self._comment(full_name), self._values(enum)]
        parts += ["## Known names", _KNOWN]
        for names_of, names in self._known.items():
            rows = ((f"`{one.name}`", one.meaning) for one in names)
            parts += [f"### {names_of}", _table(("name", "meaning"), rows)]
        return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"

    def _contents(self) -> Iterator[str]:
        for service in self._services:
            calls = " · ".join(
                f"[{rpc.descriptor.name}](#{_anchor(f'{service.name}.{rpc.descriptor.name}')})"
                for rpc in service.rpcs
            )
            yield f"- [{service.name}](#{_anchor(service.name)}): {calls}"
        yield "- [Ids and tokens](#ids-and-tokens)"
        yield (
            "- [Messages](#messages) · [Kinds of memory](#kinds-of-memory) · [Enums](#enums)"
            " · [Known names](#known-names)"
        )

    def _kinds_of_memory(self) -> str:
        """What a recalled memory may be, and who brings it."""
        return _table(
            ("kind", "meaning", "service"),
            (
                (f"`{k.name}`", _prose(k.meaning), f"[{k.service}](#{_anchor(k.service)})")
                for k in self._kinds
            ),
        )

    def _rpc(self, service: Service, rpc: Rpc) -> Iterator[str]:
        method = rpc.descriptor
        yield f"### {service.name}.{method.name}"
        yield _prose(rpc.comment)
        label, _, words = repeats(rpc).partition(": ")
        called = "".join(
            f" {text.replace('Also called:', '**Also called:**')}" for text in also_called(rpc)
        )
        started = "".join(f" {text.replace('Starts:', '**Starts:**')}" for text in starts(rpc))
        yield f"**Scope:** `{rpc.scope}`. **{label}:** {words}{called}{started}"
        yield "**Errors:**\n\n" + "\n".join(f"- {error}" for error in rpc.errors)
        yield f"**Tenants:** {isolation_of(rpc)}"
        for title, message, streamed in (
            ("Request", method.input_type, method.client_streaming),
            ("Response", method.output_type, method.server_streaming),
        ):
            name = f"`{message.name}`"
            if message.full_name not in self._told_with_rpc:
                name = f"[{name}](#{_anchor(message.name)})"
            yield f"**{title}:** {'a stream of ' if streamed else ''}{name}"
            if message.full_name in self._told_with_rpc:
                yield from self._fields(message)
        routes = self._routes[method.full_name]
        yield "**Over HTTP:** " + ", ".join(f"`{route.verb} {route.template}`" for route in routes)
        yield f"**Example:**\n\n{_example(service.name, str(method.name))}"
        yield f"```console\n{curl(routes[0], _given(service.name, str(method.name)))}\n```"

    def _fields(self, message: Descriptor) -> Iterator[str]:
        """What a message is, and its fields."""
        yield self._comment(message.full_name)
        if not message.fields:
            yield "No fields."
            return
        yield _table(
            ("field", "type", "meaning"),
            (
                (f"`{field.name}`", self._type(field), self._comment(field.full_name))
                for field in message.fields
            ),
        )

    def _type(self, field: FieldDescriptor) -> str:
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            key, value = (self._type_name(entry.fields_by_name[part]) for part in ("key", "value"))
            return f"map of {key} to {value}"
        name = self._type_name(field)
        if field.is_repeated:
            return f"repeated {name}"
        group = field.containing_oneof
        if group is None:
            return name
        # An optional field is alone in a group that the compiler made.
        alone = len(group.fields) == 1 and group.name == f"_{field.name}"
        return f"optional {name}" if alone else f"{name}, oneof `{group.name}`"

    def _type_name(self, field: FieldDescriptor) -> str:
        kind = field.message_type or field.enum_type
        if known := known_set(field):
            return f"{_SCALARS[field.type]} ([{known}](#{_anchor(known)}))"
        if kind is None:
            return _SCALARS[field.type]
        if kind.full_name in self._told_with_rpc:
            return f"`{kind.name}`"
        if kind.full_name in self._messages or kind.full_name in self._enums:
            return f"[{kind.name}](#{_anchor(kind.name)})"
        return f"`{kind.full_name}`"

    def _values(self, enum: EnumDescriptor) -> str:
        return _table(
            ("value", "number", "meaning"),
            (
                (f"`{v.name}`", str(v.number), self._comment(f"{enum.full_name}.{v.name}"))
                for v in enum.values
            ),
        )

    def _comment(self, full_name: str) -> str:
        """The comment of an element; SystemExit when it has none."""
        if not (text := self._comments.get(full_name)):
            sys.exit(f"{full_name} has no comment in proto/")
        return _prose(text)


def _given(service: str, rpc: str) -> Any:
    """An RPC's example; SystemExit when it has none."""
    if (given := EXAMPLES.get(f"{service}.{rpc}")) is None:
        sys.exit(f"{service}.{rpc} has no example in scripts/api_examples.json")
    return given


def _example(service: str, rpc: str) -> str:
    """A call with grpcurl."""
    given = _given(service, rpc)
    requests = given if isinstance(given, list) else [given]
    shown = "\n".join(
        json.dumps(one, ensure_ascii=False, indent=None if len(requests) > 1 else 2)
        for one in requests
    )
    call = f"grpcurl -plaintext -d @ 127.0.0.1:50051 {PACKAGE}.{service}/{rpc}"
    return f"```console\n{call} <<'EOF'\n{shown}\nEOF\n```"


def _shared_rules(files: Iterable[descriptor_pb2.FileDescriptorProto]) -> str:
    """What holds for all services: the comment of common.proto after its first paragraph."""
    (file,) = (file for file in files if file.name == _SHARED)
    package = [descriptor_pb2.FileDescriptorProto.PACKAGE_FIELD_NUMBER]
    places = file.source_code_info.location
    (comment,) = (place.leading_comments for place in places if list(place.path) == package)
    lines = "\n".join(line.strip() for line in comment.splitlines())
    _, *paragraphs = lines.strip().split("\n\n")
    return "\n\n".join(_LEAD.sub(r"**\1** ", paragraph) for paragraph in paragraphs)


def _prose(text: str) -> str:
    """A comment as Markdown that reads as it does: `*` and `<` mean themselves in it."""
    return _CODE_OR_MARKUP.sub(lambda found: found[1] or f"\\{found[2]}", text)


def _by_name(named: Iterable[Named]) -> dict[str, Named]:
    return {one.full_name: one for one in sorted(named, key=lambda one: str(one.name))}


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in line) + " |"
        for line in lines
    )


def main() -> int:
    """Write the page, or check that it is up to date."""
    with tempfile.TemporaryDirectory() as scratch:
        image = Path(scratch) / "image.binpb"
        build(image)
        return write_or_check({PAGE: Reference(image.read_bytes()).page()})


if __name__ == "__main__":
    sys.exit(main())
