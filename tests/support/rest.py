"""The API as a tenant calls it over HTTP, behind the stubs of gRPC: REST turned back to messages.

So that what is tested of the services over gRPC can be tested of their routes as it stands.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

import grpc
import httpx2
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, MethodDescriptor
from google.protobuf.descriptor_pool import Default
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc import status_pb2
from mneme.v1 import options_pb2
from mneme_server.edge.grpc.schema_options import extension
from mneme_server.edge.http.errors import CODES
from mneme_server.edge.http.reading import read_object
from mneme_server.edge.http.rest_mapping import (
    ANSWERS,
    FLAT,
    GROUPS,
    INSIDE,
    OWNED,
    TENANT,
    mapping_of,
)
from mneme_server.edge.http.routes import EVERYTHING, Route, routes_of
from mneme_server.edge.http.writing import json_name, writer_of

from support.api import METHODS, Api
from support.descriptors import services
from support.http import TIMEOUT_S

_ANY = "google.protobuf.Any"
_LINES = "application/x-ndjson"
_ROUTES = {
    f"/{route.method.containing_service.full_name}/{route.method.name}": route
    for route in routes_of(services())
    if route.primary
}


class RestApi(Api):
    """The services, called over REST with one API key.

    Args:
        address: the server's, as a URL.
        api: whose key to call with.
    """

    def __init__(self, address: str, api: Api) -> None:
        super().__init__(api.address, api.secret, api.tenant_id)
        self._client = httpx2.Client(
            base_url=address,
            headers={"authorization": f"Bearer {api.secret}"},
            timeout=TIMEOUT_S,
            verify=False,  # See `Http`.
        )
        self.channel = _Channel(self._client)  # type: ignore[assignment]

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
        super().close()


class RestError(grpc.RpcError):
    """A call that failed, as its body says."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        said = body["error"]
        self._status = status_pb2.Status(message=said["message"])
        self._status.code = grpc.StatusCode[said["status"]].value[0]
        json_format.ParseDict({"details": said["details"]}, self._status)

    def code(self) -> grpc.StatusCode:
        return CODES[self._status.code]

    def details(self) -> str:
        return str(self._status.message)

    def trailing_metadata(self) -> Any:
        return [("grpc-status-details-bin", self._status.SerializeToString())]


class _Channel:
    """As much of a channel as stubs ask for."""

    def __init__(self, client: httpx2.Client) -> None:
        self._client = client

    def unary_unary(self, path: str, *_: Any, **serializers: Any) -> Callable[..., Any]:
        def call(request: Any, **_options: Any) -> Any:
            method = METHODS[path[1:]]
            verb, url, options = _sent(_ROUTES[path], _message(method, request))
            answer = self._client.request(verb, url, **options)
            if answer.status_code != 200:
                raise RestError(answer.json())
            return _given(_received(_ROUTES[path], answer.json()), serializers)

        return call

    def unary_stream(self, path: str, *_: Any, **serializers: Any) -> Callable[..., Any]:
        def call(request: Any, **_options: Any) -> Any:
            verb, url, options = _sent(_ROUTES[path], _message(METHODS[path[1:]], request))
            return _Stream(self._client, _ROUTES[path], verb, url, options, serializers)

        return call

    def stream_stream(self, path: str, *_: Any, **serializers: Any) -> Callable[..., Any]:
        def call(requests: Iterator[Any], **_options: Any) -> Any:
            method = METHODS[path[1:]]
            sent = [_written(_message(method, one)) for one in requests]
            options = {
                "content": "".join(json.dumps(one) + "\n" for one in sent).encode(),
                "headers": {"content-type": _LINES},
            }
            route = _ROUTES[path]
            return _Stream(self._client, route, route.verb, route.template, options, serializers)

        return call

    stream_unary = stream_stream


class _Stream:
    """The messages of an answer in lines, or in events; asked for with the first of them."""

    def __init__(
        self,
        client: httpx2.Client,
        route: Route,
        verb: str,
        url: str,
        options: Mapping[str, Any],
        serializers: Mapping[str, Any],
    ) -> None:
        self._answering = client.stream(verb, url, **options)
        self._route = route
        self._serializers = serializers
        self._messages = self._read()

    def __iter__(self) -> _Stream:
        return self

    def __next__(self) -> Any:
        return next(self._messages)

    def cancel(self) -> None:
        self._messages.close()

    def _read(self) -> Any:
        with self._answering as answer:
            if answer.status_code != 200:
                answer.read()
                raise RestError(answer.json())
            events = not answer.headers["content-type"].startswith(_LINES)
            place = ""
            for line in answer.iter_lines():
                if events and line.startswith("id: "):
                    place = line.removeprefix("id: ")
                elif events and not line and place:  # An id alone: the stream has begun.
                    yield self._given(None, place)
                    place = ""
                elif line.startswith("data: ") or (line and not events):
                    said = json.loads(line.removeprefix("data: "))
                    if isinstance(said, dict) and isinstance(said.get("error"), dict):
                        raise RestError(said)
                    yield self._given(said, place)
                    place = ""

    def _given(self, said: Any, place: str) -> Any:
        method = self._route.method
        message: Any = GetMessageClass(method.output_type)()
        if said is not None:
            message = _received(self._route, said)
        if place:
            setattr(message, extension(method, options_pb2.resumed_by).place, place)
        return _given(message, self._serializers)


def _message(method: MethodDescriptor, request: Any) -> Any:
    if isinstance(request, Message):
        return request
    return GetMessageClass(method.input_type).FromString(request)


def _given(answer: Message, serializers: Mapping[str, Any]) -> Any:
    deserializer = serializers.get("response_deserializer")
    return answer if deserializer is not None else answer.SerializeToString()


def _sent(route: Route, request: Message) -> tuple[str, str, dict[str, Any]]:
    """Return verb, address and the rest of a request."""
    parts = []
    for segment in route.segments:
        if isinstance(segment, str):
            parts.append(segment)
            continue
        holder: Any = request
        for name in segment[:-1]:
            holder = getattr(holder, name)
        parts.append(quote(getattr(holder, segment[-1]), safe=""))
    url = "/" + "/".join(parts)
    in_path = {path[0] for path in route.variables}
    said = _written(request)
    names = {one.name: one.json_name for one in request.DESCRIPTOR.fields}
    if route.body == EVERYTHING:
        for name in in_path:
            said.pop(names[name], None)
        return route.verb, url, {"json": said}
    if route.body:
        return route.verb, url, {"json": _changes(route, request)}
    for name in in_path:
        said.pop(names[name], None)
    said |= said.pop(INSIDE, {}) if INSIDE in names else {}
    return route.verb, url, {"params": _parameters(said)}


def _changes(route: Route, request: Any) -> dict[str, Any]:
    """Return the body of a PUT: the fields that the mask names."""
    resource = getattr(request, route.body)
    written = writer_of(resource.DESCRIPTOR)(resource)
    wanted = [*request.update_mask.paths, *(["etag"] if getattr(resource, "etag", "") else [])]
    fields = resource.DESCRIPTOR.fields_by_name
    return {fields[name].json_name: written[json_name(fields[name])] for name in wanted}


def _parameters(said: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (name, one if isinstance(one, str) else json.dumps(one))
        for name, value in said.items()
        for one in (value if isinstance(value, list) else [value])
    ]


def _written(message: Message) -> dict[str, Any]:
    """Return the fields that are set, those of messages within likewise."""
    written = writer_of(message.DESCRIPTOR)(message)
    said = {}
    for one, value in message.ListFields():
        key = json_name(one)
        plain = one.message_type is not None and not one.message_type.full_name.startswith("google")
        if plain and not one.is_repeated:
            said[one.json_name] = _written(value)
        elif plain and not one.message_type.GetOptions().map_entry:
            said[one.json_name] = [_written(item) for item in value]
        else:
            said[one.json_name] = written[key]
    return said


def _received(route: Route, said: Any) -> Message:
    """Return the response that an answer was written from."""
    method = route.method
    response: Any = GetMessageClass(method.output_type)()
    mapping = mapping_of(method)
    if mapping.answer:
        for key, path in mapping.answer.items():
            if isinstance(path, str):
                *above, name = path.split(".")
                holder = response
                for part in above:
                    holder = getattr(holder, part)
                setattr(holder, name, said[key])
    elif route.answer:
        if said is not None:
            into = getattr(response, route.answer)
            into.SetInParent()
            _fill(into, said)
    else:
        for name in mapping.echoes:
            said.pop(name)
        _fill(response, said)
    return response  # type: ignore[no-any-return]


def _fill(into: Any, said: Mapping[str, Any]) -> None:
    """Read an object into a message; what is packed in it is read as what it says it is."""
    plain = dict(said)
    for one in into.DESCRIPTOR.fields:
        if one.message_type is not None and one.message_type.full_name == _ANY:
            packed = plain.pop(one.json_name)
            if packed is not None:
                name = packed.pop("@type").rpartition("/")[2]
                message = GetMessageClass(Default().FindMessageTypeByName(name))()
                _fill(message, packed)
                getattr(into, one.name).Pack(message)
    read_object(into, _unwritten(plain, into.DESCRIPTOR))


def _unwritten(said: Mapping[str, Any], message: Descriptor) -> dict[str, Any]:
    """Return an object as the schemas have it, without what is not set."""
    found = dict(said)
    if message.full_name in OWNED:
        found.pop(TENANT, None)
    for group, members in GROUPS.get(message.full_name, {}).items():
        inside = found.pop(group)
        for name, key in members.items():
            found[json_name(message.fields_by_name[name])] = inside[key]
    inner = FLAT.get(message.full_name)
    if inner is not None:
        own = {json_name(one) for one in message.fields}
        flat = {key: found.pop(key) for key in list(found) if key not in own}
        found[inner] = flat
    spelled = {ANSWERS.get(one.name, one.json_name): one for one in message.fields}
    read: dict[str, Any] = {}
    for key, value in found.items():
        one = spelled[key]
        if value is None or value in ("", [], {}) or (value in (0, False) and not one.has_presence):
            continue
        kind = one.message_type
        if kind is None or kind.full_name.startswith("google."):
            read[one.json_name] = value
        elif kind.GetOptions().map_entry:
            read[one.json_name] = _map(value, kind)
        elif one.is_repeated:
            read[one.json_name] = [_unwritten(item, kind) for item in value]
        else:
            read[one.json_name] = _unwritten(value, kind)
    return read


def _map(said: Mapping[str, Any], entry: Descriptor) -> dict[str, Any]:
    kind = entry.fields_by_name["value"].message_type
    if kind is None or kind.full_name.startswith("google."):
        return dict(said)
    return {key: _unwritten(value, kind) for key, value in said.items()}
