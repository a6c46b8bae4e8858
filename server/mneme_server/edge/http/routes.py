"""Routes: the paths that lead to RPCs, read from the schemas' `google.api.http` options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import unquote

from google.api.annotations_pb2 import http  # type: ignore[import-untyped]
from google.api.http_pb2 import HttpRule  # type: ignore[import-untyped]
from google.protobuf.descriptor import (
    Descriptor,
    FieldDescriptor,
    MethodDescriptor,
    ServiceDescriptor,
)

ROOT = "/api/"
EVERYTHING = "*"
"""The body of a rule whose request's fields are all in the body but those in the path."""

FieldPath: TypeAlias = tuple[str, ...]
"""Names of fields, each in the message of the one before."""

_VERBS = ("get", "put", "post", "delete")


class RouteError(Exception):
    """An option `google.api.http` says what cannot be served."""


@dataclass(frozen=True, slots=True)
class Route:
    """A verb and a path of an RPC.

    `segments` are the path's parts after `/`: a text, or the path of the field that the part is
    the value of. `body` is the field that the body is, EVERYTHING, or "" where there is no body;
    fields in neither come as query parameters. `answer` is the field of the response that the
    answer consists of; "" for all. `primary` is the RPC's first route.
    """

    verb: str
    template: str
    segments: tuple[str | FieldPath, ...]
    body: str
    answer: str
    method: MethodDescriptor
    primary: bool

    @property
    def variables(self) -> tuple[FieldPath, ...]:
        """The fields whose values are in the path."""
        return tuple(segment for segment in self.segments if not isinstance(segment, str))

    def meets(self, other: Route) -> bool:
        """Tell whether there is a request that both would take."""
        return (
            self.verb == other.verb
            and len(self.segments) == len(other.segments)
            and all(
                a == b or not (isinstance(a, str) and isinstance(b, str))
                for a, b in zip(self.segments, other.segments, strict=True)
            )
        )


def routes_of(services: Iterable[ServiceDescriptor]) -> Iterator[Route]:
    """Yield the routes of all RPCs that have some.

    Raises:
        RouteError: one cannot be served.
    """
    for service in services:
        for method in service.methods:
            if not method.GetOptions().HasExtension(http):
                continue
            rule: HttpRule = method.GetOptions().Extensions[http]
            for index, one in enumerate((rule, *rule.additional_bindings)):
                yield _route(method, one, primary=index == 0)


class Router:
    """Finds the route of a request.

    Raises:
        RouteError: there is a request that two routes would take.
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._root = _RouteNode()
        alike: dict[tuple[str, int], list[Route]] = {}
        for route in self.routes:
            others = alike.setdefault((route.verb, len(route.segments)), [])
            for other in others:
                if route.meets(other):
                    raise RouteError(
                        f"{route.verb} {route.template} of {route.method.full_name} would take what"
                        f" {other.template} of {other.method.full_name} takes"
                    )
            others.append(route)
            self._root.add(route)

    def find(self, raw_path: str) -> Mapping[str, Route]:
        """Return the routes that a path has, by verb.

        Args:
            raw_path: the path as it travelled: a "/" in an id is %2F.
        """
        found: dict[str, Route] = {}
        self._root.find(raw_path.split("/")[1:], 0, found)
        return found


def values_in(route: Route, raw_path: str) -> Iterator[tuple[FieldPath, str]]:
    """Yield the fields in a path that the route has, with their values.

    Raises:
        UnicodeDecodeError: one is not UTF-8.
    """
    for segment, part in zip(route.segments, raw_path.split("/")[1:], strict=True):
        if not isinstance(segment, str):
            yield segment, unquote(part, errors="strict")


class _RouteNode:
    """A place in a path: where its next part leads, and the routes that end there."""

    def __init__(self) -> None:
        self._texts: dict[str, _RouteNode] = {}
        self._variable: _RouteNode | None = None
        self._routes: dict[str, Route] = {}

    def add(self, route: Route) -> None:
        """Add a route below here."""
        node = self
        for segment in route.segments:
            if isinstance(segment, str):
                node = node._texts.setdefault(segment, _RouteNode())
            else:
                node._variable = node = node._variable or _RouteNode()
        node._routes[route.verb] = route

    def find(self, parts: list[str], at: int, found: dict[str, Route]) -> None:
        """Add the routes that the rest of a path has."""
        if at == len(parts):
            for verb, route in self._routes.items():
                found.setdefault(verb, route)
            return
        if (node := self._texts.get(parts[at])) is not None:
            node.find(parts, at + 1, found)
        if self._variable is not None and parts[at]:
            self._variable.find(parts, at + 1, found)


def _route(method: MethodDescriptor, rule: HttpRule, *, primary: bool) -> Route:
    verb = rule.WhichOneof("pattern")
    if verb not in _VERBS:
        raise RouteError(f"{method.full_name} has a route with another verb than {_VERBS}")
    template: str = getattr(rule, verb)
    if not template.startswith(ROOT):
        raise RouteError(f"{method.full_name}: {template} does not begin with {ROOT}")
    segments = tuple(_segment(method, part) for part in template.split("/")[1:])
    if rule.body not in ("", EVERYTHING) and rule.body not in method.input_type.fields_by_name:
        raise RouteError(f"{method.full_name}: the body {rule.body} is no field of its request")
    answer: str = rule.response_body
    if answer and answer not in method.output_type.fields_by_name:
        raise RouteError(f"{method.full_name}: {answer} is no field of its response")
    return Route(verb.upper(), template, segments, rule.body, answer, method, primary)


def _segment(method: MethodDescriptor, part: str) -> str | FieldPath:
    if not part.startswith("{"):
        return part
    path = tuple(part.strip("{}").split("."))
    field = _field(method.input_type, path)
    if field is None or field.type != FieldDescriptor.TYPE_STRING or field.is_repeated:
        raise RouteError(f"{method.full_name}: {part} is no text in its request")
    return path


def _field(message: Descriptor, path: FieldPath) -> FieldDescriptor | None:
    field: FieldDescriptor | None = None
    inside: Descriptor | None = message
    for name in path:
        field = None if inside is None else inside.fields_by_name.get(name)
        inside = None if field is None else field.message_type
    return field
