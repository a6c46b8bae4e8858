"""Write docs/api, the reference of the API, from the comments and options of proto/mneme/v1.

A page for each service, one for the messages and one for the enums that services share, and an
index that says once what holds for all. Their source is the image that `buf build` makes of the
schemas, comments included.

Usage: python scripts/apireference.py [--check]
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from apielements import Elements
from apimarkdown import anchor, first_sentence, page, prose, table
from apiplaces import ENUMS, MESSAGES, heading_of, page_of
from clientgen.description import PACKAGE, Rpc, Service
from clientgen.reading import describe
from clientgen.telling import also_called, repeats, tell
from generate import build
from google.protobuf import descriptor_pb2
from mneme_server.edge.http.routes import Route, routes_of
from pages import ROOT, write_or_check
from rest import curl
from schemas import services
from tenancy import isolation_of

FOLDER = ROOT / "docs/api"
OUTPUTS = (FOLDER,)
# A request of each RPC, in an order in which they can be sent; a list for a stream of requests.
EXAMPLES: Mapping[str, Any] = json.loads((ROOT / "scripts/api_examples.json").read_text())

_INDEX = "README.md"
_HEAD = """\
# The API

Written by `scripts/apireference.py` from the comments and options of
[`proto/mneme/v1`](../../proto/mneme/v1): a page for each service, and one each for
[the messages](messages.md) and [the enums and names](enums.md) that services share.
[Every RPC, and how to reach it](../parity.md) names the clients' methods; [Errors](../errors.md)
lists the reasons that an error carries.
"""
_READING = """\
All services are in the package `mneme.v1`: the path of a call is `/mneme.v1.SERVICE/RPC`.

**Scopes.** A key needs the scope that an RPC names; "any" is whichever it has.

**Repeating.** If it is not known whether a repeatable request arrived, it can be sent again without
acting twice; the clients do so automatically.

**Errors.** Apart from the errors that an RPC names, every call can fail because a key or a scope is
missing, because a limit of calls is exceeded, or because the server is starting, stopping or
broken.

**Fields.** A field that is left out has its default, or is zero or empty; one that is `optional`,
or a message, can also be unset. Of the fields of a `oneof`, at most one is set. Texts are counted
in Unicode characters; a text on one line holds no control characters, and no text holds a NUL.

**Free JSON** is a `google.protobuf.Struct`, whose numbers are doubles: they hold integers up to
2^53. JSON over HTTP, the clients and the command line refuse a larger one and name its field,
instead of rounding it: send it as text. Imports and telemetry keep it as text of its digits.

**Examples** are what a server without keys answers to, over gRPC and over
[HTTP](../guides/http.md); with keys, add `-H 'authorization: Bearer mn_…'`. They build on each
other in the order of [`scripts/api_examples.json`](../../scripts/api_examples.json), in which tests
send them. Some values are the server's to choose: `API_KEY_ID` is `api_key.id` of what
`CreateApiKey` answered, `BACKUP` the name of the file that the `Backup` before it wrote,
`CERTIFICATE_ID` and `CERTIFICATE_JSON` are the `id` and the `json` of the certificate that
`RecallWithCertificate` answered with.
"""
_MESSAGES = """\
# Messages that services share

Those that more than one service uses, and those that no call holds: the schemas' own options are
written in them. [The index](README.md) says how to read the tables.
"""
_ENUMS = """\
# Enums and names that services share

Those that more than one service uses, and the [reasons of errors](#errorreason).
"""
_KNOWN = """\
Fields of these take any name of their form. The names listed here have a meaning for the server;
all others are kept as they are given."""
_SHARED = "mneme/v1/common.proto"
_LEAD = re.compile(r"\A([A-Z][a-z ]+\.) ")


class Reference:
    """The pages.

    Args:
        image: the schemas as `buf build` writes them.
    """

    def __init__(self, image: bytes) -> None:
        image = tell(image, rpcs=False)
        files = descriptor_pb2.FileDescriptorSet.FromString(image)
        own = [file for file in files.file if file.package == PACKAGE]
        api = describe(image)
        self._services, self._kinds = api.services, api.kinds
        self._elements = Elements(api, own)
        self._shared = _shared_rules(own)
        self._routes: dict[str, list[Route]] = {}
        for route in routes_of(services()):
            self._routes.setdefault(route.method.full_name, []).append(route)

    def pages(self) -> dict[str, str]:
        """Every page by its name."""
        return {
            _INDEX: page(self._index()),
            MESSAGES: page([_MESSAGES, *self._messages(MESSAGES, "##")]),
            ENUMS: page(self._shared_enums()),
            **{page_of(service): page(self._service(service)) for service in self._services},
        }

    def _index(self) -> Iterator[str]:
        yield _HEAD
        yield table(
            ("service", "what it is for"),
            (
                (f"[{service.name}]({page_of(service)})", first_sentence(service.comment))
                for service in self._services
            ),
        )
        yield from ("## How to read it", _READING, "## Ids and tokens", self._shared, "## RPCs")
        for service in self._services:
            yield f"### {service.name}"
            yield table(
                ("RPC", "what it does", "scope", "over HTTP"),
                (self._summary(service, rpc) for rpc in service.rpcs),
            )

    def _summary(self, service: Service, rpc: Rpc) -> tuple[str, ...]:
        """An RPC's row of the index."""
        name = rpc.descriptor.name
        link = f"[{name}]({page_of(service)}#{anchor(heading_of(service, rpc))})"
        return link, first_sentence(rpc.comment), f"`{rpc.scope}`", f"`{self._reached(rpc)[0]}`"

    def _service(self, service: Service) -> Iterator[str]:
        """A service's page: its RPCs, then the messages and enums that no other service uses."""
        own = page_of(service)
        messages, enums = list(self._messages(own, "###")), list(self._enums(own, "###"))
        calls = [
            f"[{rpc.descriptor.name}](#{anchor(heading_of(service, rpc))})" for rpc in service.rpcs
        ]
        parts = [
            f"[{title}](#{anchor(title)})"
            for title, told in (("Messages", messages), ("Enums", enums))
            if told
        ]
        yield f"# {service.name}"
        yield prose(service.comment)
        yield "[The index](README.md) has what holds for every call, and all other services."
        yield "\n".join(f"- {' · '.join(links)}" for links in (calls, parts) if links)
        yield "## RPCs"
        for rpc in service.rpcs:
            yield from self._rpc(service, rpc)
        if messages:
            yield from ("## Messages", "Those that more than one RPC uses, or that others hold.")
            yield from messages
        if enums:
            yield from ("## Enums", *enums)

    def _rpc(self, service: Service, rpc: Rpc) -> Iterator[str]:
        method, own = rpc.descriptor, page_of(service)
        yield f"### {heading_of(service, rpc)}"
        yield prose(rpc.comment)
        label, _, words = repeats(rpc).partition(": ")
        called = "".join(
            f" {text.replace('Also called:', '**Also called:**')}" for text in also_called(rpc)
        )
        yield f"**Scope:** `{rpc.scope}`. **{label}:** {words}{called}{self._started(rpc, own)}"
        yield "**Errors:**\n\n" + "\n".join(f"- {error}" for error in rpc.errors)
        yield f"**Tenants:** {isolation_of(rpc)}"
        for title, message, streamed in (
            ("Request", method.input_type, method.client_streaming),
            ("Response", method.output_type, method.server_streaming),
        ):
            told_here = self._elements.place(message).rpc == method.full_name
            name = f"`{message.name}`" if told_here else self._elements.link(message, own)
            yield f"**{title}:** {'a stream of ' if streamed else ''}{name}"
            if told_here:
                yield from self._elements.message(message, own)
        yield "**Over HTTP:** " + ", ".join(f"`{one}`" for one in self._reached(rpc))
        yield f"**Example:**\n\n{_example(service.name, str(method.name))}"
        route = self._routes[method.full_name][0]
        yield f"```console\n{curl(route, _given(service.name, str(method.name)))}\n```"

    def _started(self, rpc: Rpc, own: str) -> str:
        if rpc.starts is None:
            return ""
        ends_with = self._elements.link(rpc.starts.response, own)
        return f" **Starts:** an operation `{rpc.starts.kind}`, which ends with a {ends_with}."

    def _reached(self, rpc: Rpc) -> list[str]:
        """Where an RPC is over HTTP."""
        return [f"{one.verb} {one.template}" for one in self._routes[rpc.descriptor.full_name]]

    def _messages(self, own: str, level: str) -> Iterator[str]:
        for message in self._elements.messages_on(own):
            yield f"{level} {message.name}"
            yield from self._elements.message(message, own)

    def _enums(self, own: str, level: str) -> Iterator[str]:
        for enum in self._elements.enums_on(own):
            yield f"{level} {enum.name}"
            yield from self._elements.enum(enum)
        for names_of in self._elements.known_on(own):
            yield f"{level} {names_of}"
            yield from (_KNOWN, self._elements.known(names_of))

    def _shared_enums(self) -> Iterator[str]:
        yield _ENUMS
        yield "## Kinds of memory"
        yield self._kinds_of_memory()
        yield from self._enums(ENUMS, "##")

    def _kinds_of_memory(self) -> str:
        """What a recalled memory may be, and who brings it."""
        pages = {service.name: page_of(service) for service in self._services}
        return table(
            ("kind", "meaning", "service"),
            (
                (f"`{k.name}`", prose(k.meaning), f"[{k.service}]({pages[k.service]})")
                for k in self._kinds
            ),
        )


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


def main() -> int:
    """Write the pages, or check that they are up to date and alone in their folder."""
    with tempfile.TemporaryDirectory() as scratch:
        image = Path(scratch) / "image.binpb"
        build(image)
        texts = Reference(image.read_bytes()).pages()
    return write_or_check({FOLDER / name: text for name, text in texts.items()}, owned=FOLDER)


if __name__ == "__main__":
    sys.exit(main())
