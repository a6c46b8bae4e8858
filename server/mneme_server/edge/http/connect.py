"""Connect's protocol: unary calls and streams of answers, in protobuf's own JSON or in binary."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from google.protobuf import json_format
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from mneme._core.json_values import misfit_in
from mneme._core.misfits import in_words
from starlette.exceptions import HTTPException
from starlette.responses import Response

from mneme_server.common.errors import InvalidArgument, MnemeError, Reason
from mneme_server.edge.grpc.entrance import Entrance
from mneme_server.edge.grpc.wire import parse
from mneme_server.edge.http import errors
from mneme_server.edge.http.answer import JSON, answer
from mneme_server.edge.http.bodies import Bodies
from mneme_server.edge.http.call import HttpCall, only_for_who_reads
from mneme_server.edge.http.exchange import Rpc
from mneme_server.edge.http.reading import parse_object
from mneme_server.edge.http.request import Request
from mneme_server.edge.http.streaming import StreamForm, send_stream

UNARY: Mapping[str, bool] = {"application/json": True, "application/proto": False}
STREAM: Mapping[str, bool] = {
    "application/connect+json": True,
    "application/connect+proto": False,
}
"""The content types, and whether they are JSON."""

_PREFIX = struct.Struct(">BI")
_COMPRESSED, _END = 1, 2


_VERSION = "1"


@dataclass(frozen=True, slots=True)
class ConnectRequest:
    """What travelled."""

    body: bytes
    json: bool

    def __len__(self) -> int:
        """Its bytes."""
        return len(self.body)


class ConnectRpc(Rpc):
    """One RPC."""

    def __init__(self, method: MethodDescriptor, entrance: Entrance) -> None:
        around = only_for_who_reads if not method.server_streaming else lambda serve: serve
        super().__init__(method, entrance, around)

    def read(self, raw: ConnectRequest) -> Message:
        """Return the request.

        Raises:
            InvalidArgument: it cannot be read.
        """
        if not raw.json:
            return parse(self._from_bytes, self.method.input_type, raw.body)
        value = parse_object(raw.body)
        request = self._request()
        try:
            self.fill(request, value)
        except (json_format.ParseError, ValueError, TypeError, RecursionError) as error:
            raise InvalidArgument(
                f"the request cannot be read: {in_words(error, request.DESCRIPTOR)}",
                reason=Reason.INVALID_TYPE,
            ) from None
        return request

    def fill(self, request: Message, value: dict[str, Any]) -> None:
        """Set the fields of a request that a JSON object says."""
        misfit = misfit_in(value, request.DESCRIPTOR)
        if misfit is not None:
            raise InvalidArgument(
                f"{misfit.path}: {misfit.problem}",
                reason=Reason.INVALID_TYPE if misfit.of_type else Reason.OUT_OF_RANGE,
                field=misfit.path,
            )
        json_format.ParseDict(value, request)

    def dump(self, raw: ConnectRequest, answer: Message) -> bytes:
        """Return the answer's bytes, in the request's form."""
        if raw.json:
            return orjson.dumps(json_format.MessageToDict(answer))
        return answer.SerializeToString()

    def _from_bytes(self, body: bytes) -> Message:
        request = self._request()
        request.ParseFromString(body)
        return request


def enveloped(payload: bytes) -> bytes:
    """Return a message of a stream."""
    return _PREFIX.pack(0, len(payload)) + payload


def end_of_stream(body: Mapping[str, Any]) -> bytes:
    """Return what a stream ends with."""
    payload = orjson.dumps(body)
    return _PREFIX.pack(_END, len(payload)) + payload


def only_message(body: bytes) -> bytes:
    """Return the one message of a stream of requests.

    Raises:
        InvalidArgument: there is not exactly one, or it is compressed.
    """
    if len(body) >= _PREFIX.size:
        flags, size = _PREFIX.unpack_from(body)
        if not flags & (_COMPRESSED | _END) and len(body) == _PREFIX.size + size:
            return body[_PREFIX.size :]
    raise InvalidArgument(
        "the body is not one uncompressed message in an envelope", reason=Reason.INVALID_TYPE
    )


async def serve_connect(rpc: ConnectRpc, request: Request, bodies: Bodies) -> Response | None:
    """Serve one request; return its answer, unless that was sent in parts.

    Raises:
        HTTPException: it is none of the protocol's.
    """
    request.allow("POST")
    streams = rpc.method.server_streaming
    kinds = STREAM if streams else UNARY
    if rpc.method.client_streaming or request.content_type not in kinds:
        accepted = "" if rpc.method.client_streaming else ", ".join(kinds)
        why = f"it takes {accepted}" if accepted else "a stream of requests needs gRPC or NDJSON"
        raise HTTPException(415, f"{request.raw_path}: {why}", {"accept-post": accepted})
    try:
        if request.header("connect-protocol-version") not in ("", _VERSION):
            raise InvalidArgument(f"Connect-Protocol-Version: only {_VERSION} is spoken here")
        call = HttpCall(request.metadata, request.peer, request.connect_timeout_s())
        body = await bodies.of(rpc, call, request)
    except MnemeError as error:
        status = errors.status_of(error, request.request_id)
        return _failed(request, status, streams=streams)
    try:
        serve = _stream if streams else _unary
        return await serve(rpc, body, call, request, json=kinds[request.content_type])
    finally:
        bodies.release(body, call.sender)


async def _unary(
    rpc: ConnectRpc, body: bytes, call: HttpCall, request: Request, *, json: bool
) -> Response | None:
    told = await rpc.call(ConnectRequest(body, json), call, request.receive)
    if isinstance(told, bytes):
        trailers = {f"trailer-{name}": value for name, value in call.answered_with().items()}
        return answer(request, told, 200, request.content_type, trailers)
    return None if told is None else _failed(request, told)


async def _stream(
    rpc: ConnectRpc, body: bytes, call: HttpCall, request: Request, *, json: bool
) -> Response | None:
    try:
        # Without a key the body was not read, and the call is refused before it would be.
        raw = ConnectRequest(only_message(body) if body else body, json)
    except InvalidArgument as error:
        return _failed(request, errors.status_of(error, request.request_id), streams=True)

    form = StreamForm(
        request.content_type,
        lambda message: enveloped(rpc.dump(raw, message)),
        _end,
        complete=end_of_stream({}),
    )
    return await send_stream(rpc, raw, call, request, form)


def _failed(request: Request, status: Status, *, streams: bool = False) -> Response:
    if streams:
        return answer(request, _end(status), 200, "application/connect+json")
    body = orjson.dumps(errors.connect_body(status))
    code = errors.http_status(status)
    return answer(request, body, code, JSON, errors.headers_of(status))


def _end(status: Status) -> bytes:
    return end_of_stream({"error": errors.connect_body(status)})
