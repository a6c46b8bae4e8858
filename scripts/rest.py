"""How REST writes requests: the names of their parameters, and examples for curl."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from mneme.v1 import options_pb2
from mneme_server.edge.grpc.schema_options import extension
from mneme_server.edge.http.rest_mapping import (
    PARAMETERS,
    RestMapping,
    mapping_of,
    parameters_of,
    prefix_of,
)
from mneme_server.edge.http.routes import EVERYTHING, Route

ADDRESS = "http://127.0.0.1:8080"


def parameter_names(message: Descriptor, mapping: RestMapping) -> dict[str, FieldDescriptor]:
    """Return the parameters of a request: each of them by the name that REST has for it."""
    chosen: dict[tuple[str, ...], str] = {}
    aliases = {**PARAMETERS, **mapping.parameters}
    for name, path in parameters_of(message, mapping):
        if path not in chosen or name in aliases:
            chosen[path] = name
    chosen.pop(("filter",), None)
    chosen.pop(("update_mask",), None)
    return {name: field_at(message, path) for path, name in chosen.items()}


def field_at(message: Descriptor, path: tuple[str, ...]) -> FieldDescriptor:
    """Return the field at the end of a path."""
    *above, last = path
    for name in above:
        inner = message.fields_by_name[name].message_type
        assert inner is not None
        message = inner
    return message.fields_by_name[last]


def curl(route: Route, example: Any) -> str:
    """Return the command that sends an example over REST.

    Args:
        route: where to.
        example: the request in protobuf's JSON, its fields by their own names; a list where the RPC
            takes a stream.
    """
    method = route.method
    if method.client_streaming:
        lines = "\n".join(json.dumps(_value_of(method.input_type, one)) for one in example)
        return _posting("application/x-ndjson", f"{ADDRESS}{route.template}", lines)
    values = _parameters(route, example)
    path = _filled(route, example)
    if not route.body:
        watched = "-N " if extension(method, options_pb2.long_lived) else ""
        verb = "" if route.verb == "GET" else f"-X {route.verb} "
        query = urlencode([*_query(values)], quote_via=quote, safe=":,")
        return f"curl {watched}{verb}'{ADDRESS}{path}{'?' if query else ''}{query}'"
    body = json.dumps(values, ensure_ascii=False, indent=2)
    verb = "" if route.verb == "POST" else f"-X {route.verb} "
    return _posting("application/json", f"{ADDRESS}{path}", body, verb)


def _posting(kind: str, url: str, body: str, verb: str = "") -> str:
    return f"curl {verb}-H 'content-type: {kind}' --data-binary @- '{url}' <<'EOF'\n{body}\nEOF"


def _filled(route: Route, example: Mapping[str, Any]) -> str:
    parts = []
    for segment in route.segments:
        value: Any = example
        if isinstance(segment, str):
            value = segment
        else:
            for name in segment:
                value = value[name]
        parts.append(quote(str(value), safe=""))
    return "/" + "/".join(parts)


def _parameters(route: Route, example: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is in the query or the body."""
    message = route.method.input_type
    if route.body not in ("", EVERYTHING):
        resource = field_at(message, (route.body,)).message_type
        assert resource is not None
        given = example[route.body]
        named = set(example["update_mask"].split(",")) | {"etag"}
        return _value_of(resource, {key: given[key] for key in given if key in named})
    mapping = mapping_of(route.method)
    names = parameter_names(message, mapping)
    in_path = {path[0] for path in route.variables}
    values: dict[str, Any] = {}
    for name, field in names.items():
        holder = example if field.containing_type is message else example.get("filter", {})
        if field.name in holder and field.name not in in_path:
            values[name] = _of_field(field, holder[field.name])
    return values


def _query(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (name, one if isinstance(one, str) else json.dumps(one))
        for name, value in values.items()
        for one in (value if isinstance(value, list) else [value])
    ]


def _value_of(message: Descriptor, value: Mapping[str, Any]) -> dict[str, Any]:
    fields = {str(f.name): f for f in message.fields} | {
        str(f.json_name): f for f in message.fields
    }
    return {str(fields[name].json_name): _of_field(fields[name], v) for name, v in value.items()}


def _of_field(field: FieldDescriptor, value: Any) -> Any:
    if field.is_repeated and isinstance(value, list):
        return [_one(field, item) for item in value]
    return _one(field, value)


def _one(field: FieldDescriptor, value: Any) -> Any:
    if (enum := field.enum_type) is not None:
        return str(value).removeprefix(prefix_of(enum)).lower()
    inner = field.message_type
    if inner is None or inner.full_name.startswith("google.") or inner.GetOptions().map_entry:
        return value
    return _value_of(inner, value)
