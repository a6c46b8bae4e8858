"""Connect's protocol: unary calls and streams of answers, in protobuf's own JSON or in binary."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import orjson
from google.protobuf import json_format
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from mneme._core.json_values import misfit_in
from mneme._core.misfits import in_words

from mneme_server.common.errors import InvalidArgument, MnemeError, Reason
from mneme_server.edge.grpc.entrance import Behaviour, Entrance
from mneme_server.edge.grpc.methods import StreamKind
from mneme_server.edge.grpc.wire import parse
from mneme_server.edge.http import errors
from mneme_server.edge.http.answer import Answer, Peer, ended_with, late
from mneme_server.edge.http.bodies import Bodies
from mneme_server.edge.http.call import CallAborted, HttpCall, only_for_who_reads
from mneme_server.edge.http.exchange import Streamed, answered, left
from mneme_server.edge.http.reading import parse_json
from mneme_server.edge.http.streaming import finish, sink_of

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


class ConnectRpc:
    """One RPC."""

    def __init__(self, method: MethodDescriptor, entrance: Entrance) -> None:
        self.method = method
        self._request = cast(Callable[[], Message], GetMessageClass(method.input_type))
        around = only_for_who_reads if not method.server_streaming else lambda serve: serve
        self.behaviour: Behaviour = entrance.behaviour(method, self.read, around)

    def read(self, raw: ConnectRequest) -> Message:
        """Return the request.

        Raises:
            InvalidArgument: it cannot be read.
        """
        if not raw.json:
            return parse(self._from_bytes, self.method.input_type, raw.body)
        value = parse_json(raw.body) if raw.body.strip() else {}
        request = self._request()
        if not isinstance(value, dict):
            raise InvalidArgument("the body is not a JSON object", reason=Reason.INVALID_TYPE)
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


async def serve_connect(
    entrance: Entrance,
    bodies: Bodies,
    rpc: ConnectRpc,
    peer: Peer,
) -> None:
    """Serve one request."""
    request, answer = peer.request, peer.answer
    if request.verb != "POST":
        await answer.refused(405, f"{request.raw_path} has POST", headers=[("allow", "POST")])
        return
    streams = rpc.method.server_streaming
    kinds = STREAM if streams else UNARY
    if rpc.method.client_streaming or request.content_type not in kinds:
        accepted = "" if rpc.method.client_streaming else ", ".join(kinds)
        why = f"it takes {accepted}" if accepted else "a stream of requests needs gRPC or NDJSON"
        await answer.refused(415, f"{request.raw_path}: {why}", headers=[("accept-post", accepted)])
        return
    try:
        if request.header("connect-protocol-version") not in ("", _VERSION):
            raise InvalidArgument(f"Connect-Protocol-Version: only {_VERSION} is spoken here")
        call = HttpCall(request.headers, request.peer, request.connect_timeout_s())
        body = await bodies.of(rpc.behaviour, call, peer)
    except MnemeError as error:
        await _failed(answer, errors.status_of(error, request.request_id), streams=streams)
        return
    try:
        json = kinds[request.content_type]
        if streams:
            await _stream(entrance, rpc, body, call, peer, json=json)
        else:
            raw = ConnectRequest(body, json)
            await _unary(entrance, rpc, raw, call, peer)
    finally:
        bodies.release(body, call.sender)


async def _unary(
    entrance: Entrance,
    rpc: ConnectRpc,
    raw: ConnectRequest,
    call: HttpCall,
    peer: Peer,
) -> None:
    answer = peer.answer

    def work(run: Callable[..., Any]) -> bytes:
        return rpc.dump(raw, run(raw, call))

    try:
        body = await answered(entrance, rpc.behaviour, call, work, peer.receive)
    except CallAborted:
        await _failed(answer, ended_with(call))
        return
    if body is not None:
        trailers = [(f"trailer-{name}", value) for name, value in call.answered_with()]
        await answer.send(200, body, peer.request.content_type, trailers)
    elif (status := late(call)) is not None:
        await _failed(answer, status)


async def _stream(
    entrance: Entrance,
    rpc: ConnectRpc,
    body: bytes,
    call: HttpCall,
    peer: Peer,
    *,
    json: bool,
) -> None:
    try:
        # Without a key the body was not read, and the call is refused before it would be.
        raw = ConnectRequest(only_message(body) if body else body, json)
    except InvalidArgument as error:
        await _failed(peer.answer, errors.status_of(error, peer.request.request_id), streams=True)
        return

    def part(message: Any) -> bytes:
        return enveloped(rpc.dump(raw, message))

    sink = sink_of(peer, call, peer.request.content_type)
    streamed = Streamed(entrance, rpc.behaviour, call, sink, part)
    if rpc.behaviour.method.stream is StreamKind.WATCH:
        streamed.watch(raw)
    else:
        streamed.download(raw)
    leaving = asyncio.ensure_future(left(peer.receive))
    await finish(streamed, leaving, peer.answer, _end, complete=end_of_stream({}))


async def _failed(answer: Answer, status: Status, *, streams: bool = False) -> None:
    if streams:
        await answer.send(200, _end(status), "application/connect+json")
        return
    body = orjson.dumps(errors.connect_body(status))
    await answer.send(errors.http_status(status), body, headers=errors.headers_of(status))


def _end(status: Status) -> bytes:
    return end_of_stream({"error": errors.connect_body(status)})
