"""The RPCs as REST has them: a request is read from path, query and body, an answer is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, TypeAlias, cast
from urllib.parse import parse_qs

import orjson
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from mneme._core.named import short

from mneme_server.common import deadline
from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.entrance import Entrance, Serve
from mneme_server.edge.http.call import HttpCall, only_for_who_reads
from mneme_server.edge.http.exchange import Rpc
from mneme_server.edge.http.reading import Reader, parse_json, parse_object, read_field, read_object
from mneme_server.edge.http.rest_mapping import RestMapping, mapping_of, takes_offset
from mneme_server.edge.http.routes import EVERYTHING, FieldPath, Route, values_in
from mneme_server.edge.http.writing import json_name, of_tenant, writer_of

Query: TypeAlias = Mapping[str, Sequence[str]]

_MOST_PARAMETERS = 1_000
_PAGE = 1_000
"""Rows of a list in one step towards an offset; every `page_size` may be so large."""
_MOST_SKIPPED = 100_000
_MOST_FOUND = 1_000
"""Results of a search that may be left out; all before them are found, too."""
_MASK = "update_mask"
_ETAG = "etag"


@dataclass(slots=True)
class RestRequest:
    """What travelled: read in a worker's thread, when it is the call's turn.

    `lines` says that the body is NDJSON. `message` is what was read.
    """

    raw_path: str
    query: Query
    body: bytes
    call: HttpCall
    lines: bool = False
    message: Message | None = field(default=None)

    def __len__(self) -> int:
        """Its bytes, about."""
        return len(self.body)


class RestRpc(Rpc):
    """One route of an RPC.

    Args:
        route: the route.
        method: the RPC: the route's own, or the one that a parameter chooses.
        mapping: how it is written.
        entrance: where calls are served.
    """

    def __init__(
        self, route: Route, method: MethodDescriptor, mapping: RestMapping, entrance: Entrance
    ) -> None:
        self.route = route
        self.mapping = mapping
        in_path = {path[0] for path in route.variables}
        body = route.body if route.body != EVERYTHING else ""
        hidden = {*in_path, _MASK, body, *([mapping.lines] if mapping.lines else [])} - {""}
        self._paged = takes_offset(method, mapping)
        self._streams = method.client_streaming or method.server_streaming
        self.query = Reader(method.input_type, mapping, hidden)
        self.body = Reader(method.input_type, mapping, in_path)
        super().__init__(method, entrance, self._around)
        self._write = self._answer_writer()

    def read(self, raw: RestRequest) -> Message:
        """Return the request.

        Raises:
            InvalidArgument: it cannot be read.
        """
        request = self._request()
        if self.route.body not in ("", EVERYTHING):
            self._read_update(raw, request)
        elif self.route.body and not (raw.lines and self.mapping.lines):
            if raw.query:
                name = short(next(iter(raw.query)))
                raise InvalidArgument(
                    f"{name}: the parameters of {self.route.verb} {self.route.template} are in the"
                    " body, not in the query",
                    field=name,
                )
            self._read_body(raw, request)
        else:
            self._read_query(raw, request)
            if raw.lines:
                self._read_lines(raw, request)
        self._read_path(raw, request)
        raw.message = request
        return request

    def write(self, raw: RestRequest, answer: Any) -> Any:
        """Return the answer as JSON has it."""
        with of_tenant(raw.call.tenant_id):
            written = self._write(answer)
        for name in self.mapping.echoes:
            if raw.message is not None:
                written[name] = getattr(raw.message, name)
        return written

    def dump(self, raw: RestRequest, answer: Any) -> bytes:
        """Return the answer's bytes."""
        return orjson.dumps(self.write(raw, answer))

    def _read_path(self, raw: RestRequest, request: Any) -> None:
        try:
            for path, value in values_in(self.route, raw.raw_path):
                _set_at(request, path, value)
        except UnicodeDecodeError:
            raise InvalidArgument("the path is not UTF-8", reason=Reason.INVALID_TYPE) from None

    def _read_query(self, raw: RestRequest, request: Any) -> None:
        given = dict(raw.query)
        if self._paged and "offset" in given:
            most = _MOST_SKIPPED if self.mapping is mapping_of(self.method) else _MOST_FOUND
            raw.call.offset = _offset(given.pop("offset"), given, most)
        self.query.read(given, request, texts=True)

    def _read_body(self, raw: RestRequest, request: Any) -> None:
        self.body.read(parse_object(raw.body), request, texts=False)

    def _read_lines(self, raw: RestRequest, request: Any) -> None:
        """Read a body of which each line is an item."""
        items = getattr(request, self.mapping.lines)
        for number, line in enumerate(BytesIO(raw.body), 1):
            if line.strip():
                try:
                    read_object(items.add(), parse_json(line))
                except InvalidArgument as error:
                    error.message = f"line {number}: {error.message}"
                    raise

    def _read_update(self, raw: RestRequest, request: Any) -> None:
        """Read what a PUT changes: the fields that it names, each of them."""
        value = parse_object(raw.body)
        if raw.query:
            name = short(next(iter(raw.query)))
            raise InvalidArgument(f"{name}: a PUT has its parameters in the body", field=name)
        resource = getattr(request, self.route.body)
        resource.SetInParent()
        names: dict[str, str] = {}
        for one in resource.DESCRIPTOR.fields:
            names[str(one.json_name)] = names[str(one.name)] = str(one.name)
        in_path = {path[-1]: text for path, text in values_in(self.route, raw.raw_path)}
        for key, item in value.items():
            if key not in names:
                raise InvalidArgument(
                    f"there is no field {short(key)!r} to change", field=short(key)
                )
            name = names[key]
            if name in in_path:
                if item != in_path[name]:
                    raise InvalidArgument(f"{key} is not the one in the path", field=key)
                continue
            read_field(resource, name, item, key, texts=False)
            if name != _ETAG:
                getattr(request, _MASK).paths.append(name)

    def _answer_writer(self) -> Callable[[Any], Any]:
        response = self.method.output_type
        if self.mapping.answer:
            return _chosen_writer(self.mapping.answer)
        if self.route.answer and self.method is self.route.method:
            name = self.route.answer
            inner = response.fields_by_name[name]
            write = writer_of(cast(Any, inner.message_type))
            return lambda answer: write(getattr(answer, name)) if answer.HasField(name) else None
        write = writer_of(response)
        fields = response.fields_by_name
        renamed = [(json_name(fields[name]), to) for name, to in self.mapping.list_as.items()]
        if not renamed:
            return write

        def write_renamed(answer: Any) -> Any:
            written = write(answer)
            return {to: written.pop(name) for name, to in renamed} | written

        return write_renamed

    def _around(self, serve: Serve) -> Serve:
        """Have an answer say whose it is, and begin at an offset where it may."""
        if self._streams:
            return serve
        answer = only_for_who_reads(self._from_offset(serve) if self._paged else serve)

        def of_caller(request: Any, call: Call) -> Any:
            cast(HttpCall, call.edge).tenant_id = call.tenant
            return answer(request, call)

        return of_caller

    @staticmethod
    def _from_offset(serve: Serve) -> Serve:

        def from_offset(request: Any, call: Call) -> Any:
            offset = cast(HttpCall, call.edge).offset
            if not offset:
                return serve(request, call)
            if "page_token" not in request.DESCRIPTOR.fields_by_name:
                request.limit += offset
                answer = serve(request, call)
                del answer.results[:offset]
                return answer
            return _skip(serve, request, call, offset)

        return from_offset


def parse_query(query: bytes) -> Query:
    """Return the parameters of a query.

    Raises:
        InvalidArgument: it is no query.
    """
    if not query:
        return {}
    try:
        return parse_qs(
            query.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MOST_PARAMETERS,
        )
    except (UnicodeDecodeError, ValueError):
        raise InvalidArgument(
            f"the query is not UTF-8, or has more than {_MOST_PARAMETERS} parameters",
            reason=Reason.INVALID_TYPE,
        ) from None


def _offset(given: Sequence[str], others: Query, most: int) -> int:
    text = given[0]
    if len(given) > 1 or not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InvalidArgument(
            "offset: must be one whole number", reason=Reason.INVALID_TYPE, field="offset"
        )
    if int(text) > most:
        raise InvalidArgument(
            f"offset: must be at most {most}; page tokens lead further",
            reason=Reason.OUT_OF_RANGE,
            field="offset",
        )
    if int(text) and any(others.get(name) for name in ("pageToken", "page_token")):
        raise InvalidArgument("offset and pageToken exclude each other", field="offset")
    return int(text)


def _skip(serve: Serve, request: Any, call: Call, offset: int) -> Any:
    """Serve a list from an offset on, in steps of full pages."""
    size = request.page_size
    while offset:
        deadline.check()
        request.page_size = min(offset, _PAGE)
        page = serve(request, call)
        items = _items(page)
        offset -= len(items)
        if not page.next_page_token or not items:
            del items[:]
            page.next_page_token = ""
            return page
        request.page_token = page.next_page_token
    request.page_size = size
    return serve(request, call)


def _items(page: Any) -> Any:
    (items,) = (one for one in page.DESCRIPTOR.fields if one.is_repeated and one.message_type)
    return getattr(page, items.name)


def _set_at(request: Any, path: FieldPath, value: str) -> None:
    for name in path[:-1]:
        request = getattr(request, name)
    setattr(request, path[-1], value)


def _chosen_writer(answer: Mapping[str, str | bool]) -> Callable[[Any], Any]:
    def write(message: Any) -> Any:
        return {
            key: _at(message, said.split(".")) if isinstance(said, str) else said
            for key, said in answer.items()
        }

    return write


def _at(message: Any, path: Sequence[str]) -> Any:
    for name in path:
        message = getattr(message, name)
    return message
