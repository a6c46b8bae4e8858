"""Writes what the TypeScript client needs beside protobuf-es: types, names and methods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from google.protobuf.descriptor import MethodDescriptor

from clientgen.description import Api, Rpc, Service
from clientgen.inits import given, homes_of_types, inits, limits, request
from clientgen.options import GenerationError
from clientgen.tsdoc import camel_case, comment, imports, module


def write(api: Api, folder: Path) -> None:
    """Write all modules beside the folder `mneme/v1` of protobuf-es."""
    services = folder / "services"
    services.mkdir(parents=True, exist_ok=True)
    for service in api.services:
        (services / f"{service.short_name}.ts").write_text(module(_service(api, service)))
    (services / "all.ts").write_text(module(_all(api)))
    (folder / "inits.ts").write_text(module(inits(api)))
    (folder / "names.ts").write_text(module(_names(api)))
    (folder / "limits.ts").write_text(module(limits(api)))
    (folder / "index.ts").write_text(module(_index(api, folder)))


def _index(api: Api, folder: Path) -> Iterator[str]:
    yield "/** The messages, enums and services of the API, and what requests are made of. */"
    yield ""
    for name in sorted(name.removesuffix("_pb2").replace(".", "/") for name in api.types):
        if (folder / f"{name}_pb.ts").exists():  # Options are read by servers alone.
            yield f'export * from "./{name}_pb.js";'
    for name in ("inits", "names"):
        yield f'export type * from "./{name}.js";'
    for service in sorted(service.short_name for service in api.services):
        yield f'export * from "./services/{service}.js";'


def _all(api: Api) -> Iterator[str]:
    names = [(service.short_name, _methods(service)) for service in api.services]
    for short, name in names:
        table = camel_case(name)
        yield f'import {{ type {name}, {table} }} from "./{short}.js";'
    yield from ["", "/** The methods of all services. */", "export interface AllMethods"]
    yield f"  extends {', '.join(name for _, name in names)} {{}}"
    yield from ["", "/** What they are made of. */", "export const allMethods = ["]
    yield from (f"  {camel_case(name)}," for _, name in names)
    yield "] as const;"


def _methods(service: Service) -> str:
    return f"{service.name.removesuffix('Service')}Methods"


def _service(api: Api, service: Service) -> list[str]:
    name = _methods(service)
    paged = [rpc for rpc in service.rpcs if rpc.paging]
    shown = [*comment(service.comment, ""), f"export interface {name} {{"]
    for rpc, method in _named(service):
        shown += [*comment(rpc.comment, "  "), f"  {method}{_signature(rpc)};"]
    for rpc in paged:
        about = f"The items of all pages, one after the other.\n\n{rpc.comment}"
        shown += [*comment(about, "  "), f"  {_walk_name(rpc)}{_walk_signature(rpc)};"]
    shown.append("}")
    made = [f"/** What {name} are made of. */"]
    made += [f"export const {camel_case(name)}: ServiceMethods<{name}> = {{", "  calls: {"]
    for rpc, method in _named(service):
        made += [f"    {method}: {{", *(f"      {line}," for line in _call(service, rpc)), "    },"]
    made += ["  },", "  walks: {" if paged else "  walks: {},"]
    for rpc in paged:
        call, items = camel_case(rpc.method_name), _items(rpc)
        made.append(f'    {_walk_name(rpc)}: {{ call: "{call}", items: "{items}" }},')
    made += ["  },", "};"] if paged else ["};"]
    requests = {request(api, rpc).name for rpc in service.rpcs} | {
        inner.name for inner in api.given
    }
    homes = {
        **homes_of_types(api, ".."),
        **{f"{message}Init": "../inits.js" for message in requests},
        **dict.fromkeys(("CallOptions", "Items"), "../../caller.js"),
        "ServiceMethods": "../../methods.js",
        "Stream": "../../stream.js",
    }
    file = _module(service.rpcs[0].descriptor)
    stub = f'import {{ {service.name} }} from "../{file}_pb.js";'
    return [*imports("\n".join([*shown, *made]), homes), stub, "", *shown, "", *made]


def _named(service: Service) -> Iterator[tuple[Rpc, str]]:
    """The RPCs with the names of their methods; one may have two."""
    for rpc in service.rpcs:
        for name in filter(None, [rpc.method_name, rpc.also_called]):
            yield rpc, camel_case(name)


def _signature(rpc: Rpc) -> str:
    method = rpc.descriptor
    answer = f"{'Stream' if method.server_streaming else 'Promise'}<{method.output_type.name}>"
    if method.client_streaming:
        return f"(items: Items<{_streamed(rpc)}>, options?: CallOptions): {answer}"
    return f"({_request(rpc)}, options?: CallOptions): {answer}"


def _request(rpc: Rpc) -> str:
    """The first parameter; it may be left out when nothing in it is required."""
    needed = any(field.required for field in rpc.fields)
    return f"request{'' if needed else '?'}: {rpc.descriptor.input_type.name}Init"


def _streamed(rpc: Rpc) -> str:
    field = rpc.fields[0].descriptor
    if _streamed_item(rpc) and field.message_type:
        return given(field.message_type)
    return f"{rpc.descriptor.input_type.name}Init"


def _walk_name(rpc: Rpc) -> str:
    assert rpc.paging is not None  # Only what has pages is walked.
    return camel_case(rpc.paging.method_name)


def _items(rpc: Rpc) -> str:
    assert rpc.paging is not None  # Only what has pages is walked.
    return camel_case(rpc.paging.items.name)


def _walk_signature(rpc: Rpc) -> str:
    assert rpc.paging is not None  # Only what has pages is walked.
    message = rpc.paging.items.message_type
    item = message.name if message else "string"
    return f"({_request(rpc)}, options?: CallOptions): AsyncGenerator<{item}>"


def _call(service: Service, rpc: Rpc) -> Iterator[str]:
    method = rpc.descriptor
    yield f"method: {service.name}.method.{camel_case(method.name)}"
    yield f"repeatable: {'true' if rpc.repeatable else 'false'}"
    if rpc.long_lived:
        yield "longLived: true"
    if rpc.resumed_by:
        place, after = map(camel_case, rpc.resumed_by)
        yield f'resumedBy: {{ place: "{place}", after: "{after}" }}'
    if rpc.update:
        yield f'update: "{camel_case(rpc.update.resource.name)}"'
    if item := _streamed_item(rpc):
        yield f'item: "{item}"'
    paths = (", ".join(f'"{camel_case(p)}"' for p in path.split(".")) for path in rpc.made_ids)
    yield f"madeIds: [{', '.join(f'[{path}]' for path in paths)}]"


def _streamed_item(rpc: Rpc) -> str | None:
    """The only field of a stream's requests, when that is a message: the stream's items fill it."""
    if not rpc.descriptor.client_streaming or len(rpc.fields) != 1:
        return None
    field = rpc.fields[0]
    return camel_case(field.name) if field.descriptor.message_type else None


def _names(api: Api) -> Iterator[str]:
    yield "/** What enums and names may be given as. */"
    for enum, choices in api.choices.items():
        yield from _choice(f"Names of {enum}, in lower case.", f"{enum}Name", choices)
    for names_of, known in sorted(api.known.items()):
        about = f"What is known of {names_of}; any other name may be given, too."
        yield from _choice(about, f"{names_of}Name", [one.name for one in known], "(string & {})")
    kinds = [kind.name for kind in api.kinds]
    yield from _choice("A kind of memory.", "MemoryKind", kinds, *([] if kinds else ["string"]))


def _choice(about: str, name: str, choices: Iterable[str], *others: str) -> Iterator[str]:
    yield from ["", f"/** {about} */", f"export type {name} ="]
    lines = [*(f'"{choice}"' for choice in choices), *others]
    yield from (f"  | {line}" for line in lines[:-1])
    yield f"  | {lines[-1]};"


def _module(method: MethodDescriptor) -> str:
    file = method.containing_service.file.name
    if not file.endswith(".proto"):
        raise GenerationError(f"{file}: not the name of a schema")
    return file.removesuffix(".proto")
