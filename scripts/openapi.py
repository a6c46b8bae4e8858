"""Write the OpenAPI description of REST from the schemas: their routes, comments and rules.

It is part of the server, which shows it at /api/openapi.json.

Usage: python scripts/openapi.py [--check]
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from clientgen.description import PACKAGE, Rpc
from clientgen.reading import comments_of, describe
from clientgen.telling import tell
from generate import build
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor
from mneme import __version__
from mneme.v1 import options_pb2
from mneme_server.edge.grpc.schema_options import extension
from mneme_server.edge.http.rest_mapping import SEARCHED, RestMapping, mapping_of, takes_offset
from mneme_server.edge.http.routes import EVERYTHING, Route, routes_of
from mneme_server.edge.http.writing import json_name
from openapischemas import Schema, Schemas, is_required
from pages import ROOT, write_or_check
from rest import field_at, parameter_names
from schemas import services
from tenancy import isolation_of

PAGE = ROOT / "server/mneme_server/edge/http/openapi.json"
OUTPUTS = (PAGE,)

_ABOUT = """\
The REST interface of Mneme, the memory of AI agents. Times are texts as in RFC 3339, 64-bit numbers
are numbers, and an answer has all its fields. Errors have the form of Google's APIs: `code`,
`status`, `message`, and `details` with a reason. Calls need `Authorization: Bearer mn_…`, unless
the server runs without keys. `Grpc-Timeout` (`500m`) limits a call's time.\
"""
_OFFSET: Schema = {
    "name": "offset",
    "in": "query",
    "description": "How many to skip; page tokens lead further, and are faster.",
    "schema": {"type": "integer", "minimum": 0, "maximum": 100_000},
}
_ERROR: Schema = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "integer", "description": "The HTTP status."},
                "status": {"type": "string", "description": "The status as gRPC names it."},
                "message": {"type": "string"},
                "details": {"type": "array", "items": {"type": "object"}},
            },
            "required": ["code", "status", "message", "details"],
        }
    },
    "required": ["error"],
}
_LINES = "application/x-ndjson"
_EVENTS = "text/event-stream"


class Description:
    """The description's parts.

    Args:
        image: the schemas as `buf build` writes them.
    """

    def __init__(self, image: bytes) -> None:
        image = tell(image, rpcs=False)
        files = descriptor_pb2.FileDescriptorSet.FromString(image)
        own = [file for file in files.file if file.package == PACKAGE]
        comments = {name: text for file in own for name, text in comments_of(file)}
        self._schemas = Schemas(comments)
        self._rpcs: Mapping[str, Rpc] = {
            rpc.descriptor.full_name: rpc for s in describe(image).services for rpc in s.rpcs
        }
        self._routes = list(routes_of(services()))
        # A path has one name for each of its variables, whatever the verbs call them.
        self._variables: dict[tuple[str | None, ...], list[str]] = {}
        for route in sorted(self._routes, key=lambda one: max(map(len, one.variables), default=0)):
            names = [
                str(field_at(route.method.input_type, path).json_name) for path in route.variables
            ]
            self._variables.setdefault(_shape(route), names)
        self._methods = {m.full_name: m for service in services() for m in service.methods}

    def document(self) -> Schema:
        """The document."""
        paths: dict[str, Schema] = {"/api/health": _HEALTH}
        for route in self._routes:
            operation = self._operation(route)
            paths.setdefault(self._path(route), {})[route.verb.lower()] = operation
        schemas = dict(sorted(self._schemas.components.items()))
        return {
            "openapi": "3.1.0",
            "info": {"title": "Mneme", "version": __version__, "description": _ABOUT},
            "security": [{"key": []}],
            "paths": dict(sorted(paths.items())),
            "components": {
                "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
                "responses": {
                    "Error": {
                        "description": "It failed.",
                        "content": {"application/json": {"schema": _ERROR}},
                    }
                },
                "schemas": schemas,
            },
        }

    def _operation(self, route: Route) -> Schema:
        method, rpc = route.method, self._rpcs[route.method.full_name]
        mapping = mapping_of(method)
        operation: Schema = {
            "operationId": _id(route),
            "tags": [str(method.containing_service.name)],
            "summary": rpc.comment.partition(". ")[0].rstrip(".") + ".",
            "description": "\n\n".join(_description(rpc)),
        }
        parameters = [*self._in_path(route), *self._in_query(route, mapping)]
        if parameters:
            operation["parameters"] = parameters
        if route.body:
            operation["requestBody"] = self._body(route, mapping)
        operation["responses"] = {
            "200": {"description": rpc.response_comment, "content": self._answer(route, mapping)},
            "default": {"$ref": "#/components/responses/Error"},
        }
        return operation

    def _path(self, route: Route) -> str:
        names = iter(self._variables[_shape(route)])
        parts = (s if isinstance(s, str) else "{" + next(names) + "}" for s in route.segments)
        return "/" + "/".join(parts)

    def _in_path(self, route: Route) -> Iterator[Schema]:
        for name, path in zip(self._variables[_shape(route)], route.variables, strict=True):
            field = field_at(route.method.input_type, path)
            schema = self._schemas.given(field)
            yield self._schemas.described(
                {
                    "name": name,
                    "in": "path",
                    "required": True,
                    "schema": {"minLength": 1, **schema},
                },
                field,
            )

    def _in_query(self, route: Route, mapping: RestMapping) -> Iterator[Schema]:
        if route.body:
            return
        in_path = {path[0] for path in route.variables}
        names = parameter_names(route.method.input_type, mapping)
        searched = SEARCHED.get(route.method.full_name)
        if searched is not None:
            word, other, _ = searched
            (wanted,) = searched[2].parameters.values()
            names[word] = field_at(self._methods[other].input_type, (wanted,))
        for name, field in names.items():
            if field.name in in_path:
                continue
            schema = self._said(field, mapping)
            parameter: Schema = {"name": name, "in": "query"}
            if is_required(field) and (searched is None or name != searched[0]):
                parameter["required"] = True
            if schema.get("type", "object") == "object":  # References are to objects, too.
                parameter["content"] = {"application/json": {"schema": schema}}
            else:
                parameter["schema"] = schema
            yield self._schemas.described(parameter, field)
        if takes_offset(route.method, mapping):
            yield _OFFSET
        for name, by in mapping.named_by.items():
            yield {
                "name": name,
                "in": "query",
                "description": f"The parameters of `{by}`, as the field of its name.",
                "content": {"application/json": {"schema": {"type": "object"}}},
            }

    def _said(self, field: FieldDescriptor, mapping: RestMapping) -> Schema:
        """The schema of a parameter, whose words may be REST's."""
        schema = self._schemas.given(field)
        words = mapping.words.get(str(field.name))
        if words and schema.get("type") == "array":
            schema["items"] = {"anyOf": [{"enum": sorted(words)}, schema["items"]]}
        return schema

    def _body(self, route: Route, mapping: RestMapping) -> Schema:
        content: dict[str, Schema] = {}
        if route.method.client_streaming:
            line = self._schemas.given_message(route.method.input_type)
            content[_LINES] = {"schema": {"type": "string"}, "x-line": line}
        elif route.body == EVERYTHING:
            content["application/json"] = {"schema": self._everything(route, mapping)}
        else:
            content["application/json"] = {"schema": self._changes(route)}
        if mapping.lines:
            (field,) = (f for f in route.method.input_type.fields if f.name == mapping.lines)
            line = self._schemas.given(field)["items"]
            content[_LINES] = {"schema": {"type": "string"}, "x-line": line}
        return {"required": True, "content": content}

    def _everything(self, route: Route, mapping: RestMapping) -> Schema:
        in_path = {path[0] for path in route.variables}
        names = parameter_names(route.method.input_type, mapping)
        properties = {
            name: self._schemas.described(self._said(field, mapping), field)
            for name, field in names.items()
            if field.name not in in_path
        }
        for name in mapping.named_by:
            properties[name] = {"type": "object"}
        required = [name for name, field in names.items() if is_required(field)]
        schema: Schema = {
            "type": "object",
            "properties": properties,
            "additionalProperties": False,
        }
        required = [name for name in required if name in properties]
        return schema | ({"required": required} if required else {})

    def _changes(self, route: Route) -> Schema:
        resource = field_at(route.method.input_type, (route.body,)).message_type
        assert resource is not None
        mask = field_at(route.method.input_type, ("update_mask",))
        paths = [*extension(mask, options_pb2.changeable).paths, "etag"]
        properties: dict[str, Schema] = {}
        for name in paths:
            field = resource.fields_by_name.get(name)
            if field is not None:
                schema = self._schemas.given(field)
                nullable: Schema = {"anyOf": [schema, {"type": "null"}]}
                properties[str(field.json_name)] = self._schemas.described(nullable, field)
        return {
            "type": "object",
            "properties": properties,
            "additionalProperties": False,
            "minProperties": 1,
        }

    def _answer(self, route: Route, mapping: RestMapping) -> dict[str, Schema]:
        method = route.method
        schema = self._answered(route, mapping)
        if not method.server_streaming:
            return {"application/json": {"schema": schema}}
        watched = extension(method, options_pb2.long_lived)
        kinds = (_EVENTS, _LINES) if watched else (_LINES, _EVENTS)
        return {kind: {"schema": {"type": "string"}, "x-line": schema} for kind in kinds}

    def _answered(self, route: Route, mapping: RestMapping) -> Schema:
        response = route.method.output_type
        if mapping.answer:
            properties: dict[str, Schema] = {
                key: {"type": "string" if isinstance(said, str) else "boolean"}
                for key, said in mapping.answer.items()
            }
            return {"type": "object", "properties": properties, "required": list(properties)}
        if route.answer:
            inner = response.fields_by_name[route.answer]
            return self._schemas.field_of_answer(inner)
        schema = self._schemas.answer(response)
        if mapping.echoes:
            echoed: dict[str, Schema] = {name: {"type": "string"} for name in mapping.echoes}
            more = {"type": "object", "properties": echoed, "required": list(echoed)}
            return {"allOf": [schema, more]}
        searched = SEARCHED.get(route.method.full_name)
        if searched is not None:
            return {"anyOf": [schema, self._searched(*searched[1:])]}
        return schema

    def _searched(self, rpc: str, mapping: RestMapping) -> Schema:
        response = self._methods[rpc].output_type
        written = self._schemas.written_fields(response)
        for name, to in mapping.list_as.items():
            written[to] = written.pop(json_name(response.fields_by_name[name]))
        return {"type": "object", "properties": written, "required": list(written)}


_HEALTH: Schema = {
    "get": {
        "operationId": "health",
        "summary": "Tells whether the server takes calls.",
        "security": [],
        "responses": {
            str(code): {
                "description": said,
                "content": {
                    "application/json": {
                        "schema": {
                            "type": "object",
                            "properties": {"status": {"enum": ["serving", "not_serving"]}},
                            "required": ["status"],
                        }
                    }
                },
            }
            for code, said in ((200, "It does."), (503, "It starts or ends."))
        },
    }
}


def _description(rpc: Rpc) -> Iterator[str]:
    yield rpc.comment
    yield f"Scope: `{rpc.scope}`."
    yield f"Tenants: {isolation_of(rpc)}"
    if rpc.errors:
        yield "Errors:\n\n" + "\n".join(f"- {error}" for error in rpc.errors)


def _shape(route: Route) -> tuple[str | None, ...]:
    return tuple(segment if isinstance(segment, str) else None for segment in route.segments)


def _id(route: Route) -> str:
    name = f"{route.method.containing_service.name}_{route.method.name}"
    return name if route.primary else f"{name}_{route.verb.lower()}_{route.segments[-1]}"


def main() -> int:
    """Write the document, or check that it is up to date."""
    with tempfile.TemporaryDirectory() as scratch:
        image = Path(scratch) / "image.binpb"
        build(image)
        document = Description(image.read_bytes()).document()
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), indent=0)
    return write_or_check({PAGE: text + "\n"})


if __name__ == "__main__":
    sys.exit(main())
