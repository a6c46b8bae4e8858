"""Serves Connect's protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import orjson
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]

from mneme_server.common.errors import InvalidArgument, MnemeError
from mneme_server.edge.grpc.entrance import Entrance
from mneme_server.edge.grpc.methods import StreamKind
from mneme_server.edge.http import errors
from mneme_server.edge.http.answer import Answer, Peer, ended_with, late
from mneme_server.edge.http.bodies import Bodies
from mneme_server.edge.http.call import Aborted, HttpCall
from mneme_server.edge.http.connect import (
    STREAM,
    UNARY,
    ConnectRequest,
    ConnectRpc,
    end_of_stream,
    enveloped,
    only_message,
)
from mneme_server.edge.http.exchange import Streamed, answered, left
from mneme_server.edge.http.streaming import finish, sink_of

_VERSION = "1"


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
    except Aborted:
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
