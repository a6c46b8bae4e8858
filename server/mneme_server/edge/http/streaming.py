"""Answers in parts: Server-Sent Events for what is watched, NDJSON for the rest; and uploads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import orjson
from google.protobuf.descriptor import MethodDescriptor
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from mneme.v1 import options_pb2

from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.edge.grpc.entrance import Entrance
from mneme_server.edge.grpc.methods import StreamKind
from mneme_server.edge.grpc.schema_options import extension
from mneme_server.edge.http import errors
from mneme_server.edge.http.answer import LINES, Answer, Peer, ended_with, late
from mneme_server.edge.http.bodies import Bodies, identify
from mneme_server.edge.http.call import CallAborted, HttpCall
from mneme_server.edge.http.exchange import Lines, Sink, Streamed, left
from mneme_server.edge.http.request import Request
from mneme_server.edge.http.rest import RestRequest, RestRpc
from mneme_server.edge.http.rest_mapping import names_of

EVENTS = "text/event-stream"
_IDLE_S = 60.0
"""A peer that uploads is not waited for any longer than this."""

End = Callable[[Status], bytes]
"""What a stream that failed ends with."""


async def stream_answer(
    entrance: Entrance,
    rpc: RestRpc,
    raw: RestRequest,
    peer: Peer,
) -> None:
    """Serve an RPC whose answer is a stream."""
    request = peer.request
    watched = rpc.behaviour.method.stream is StreamKind.WATCH
    events = EVENTS in request.accepts or (watched and LINES not in request.accepts)
    if events:
        raw = _resumed(rpc.method, raw, request)
    part = _event_of(rpc, raw) if events else _line_of(rpc, raw)
    end = _error_event if events else _error_line
    sink = sink_of(peer, raw.call, EVENTS if events else LINES)
    streamed = Streamed(entrance, rpc.behaviour, raw.call, sink, part)
    if watched:
        streamed.watch(raw)
    else:
        streamed.download(raw)
    leaving = asyncio.ensure_future(left(peer.receive))
    await finish(streamed, leaving, peer.answer, end, quiet=b":\n\n" if events else b"")


async def stream_both(
    entrance: Entrance,
    rpc: RestRpc,
    call: HttpCall,
    peer: Peer,
    bodies: Bodies,
) -> None:
    """Serve an RPC whose request is a stream, and its answer, too."""
    request, answer = peer.request, peer.answer
    if request.content_type != LINES:
        await answer.refused(415, f"the body must be {LINES}, and the header content-type say so")
        return
    may_call = await identify(entrance, rpc.behaviour, call, peer)
    largest = bodies.largest
    lines = Lines(call, largest, partial(bodies.hold, call.sender))

    def requests() -> Iterator[RestRequest]:
        for line in lines:
            yield RestRequest(request.raw_path, {}, line, call)

    sink = sink_of(peer, call, LINES)
    raw = RestRequest(request.raw_path, {}, b"", call)
    streamed = Streamed(entrance, rpc.behaviour, call, sink, _line_of(rpc, raw))
    streamed.download(requests())
    too_long = InvalidArgument(f"a line is longer than {largest} bytes", reason=Reason.OUT_OF_RANGE)
    feeding = asyncio.ensure_future(
        lines.feed(peer.receive, idle_s=_IDLE_S, too_long=too_long)
        if may_call
        else left(peer.receive)
    )
    await finish(streamed, feeding, answer, _error_line)


def sink_of(peer: Peer, call: HttpCall, kind: str) -> Sink:
    """Return what takes the parts of an answer."""

    def begin() -> Awaitable[None]:
        return peer.answer.begin(200, kind, [("x-accel-buffering", "no")])

    sink = Sink(peer.answer.raw_send, begin, peer.connection.abort, call)
    call.cut = sink.cut_off
    return sink


async def finish(
    streamed: Streamed,
    leaving: asyncio.Future[None],
    answer: Answer,
    end: End,
    *,
    quiet: bytes = b"",
    complete: bytes | None = None,
) -> None:
    """Wait for a stream's end, and send how it ended: `complete` where it succeeded. With
    `complete`, a call that fails before its first message is answered as a stream, too."""
    call, sink = streamed.call, streamed.sink
    status: Status | None = None
    try:
        await streamed.ended(leaving, quiet)
        status = call.status() or late(call)
    except CallAborted:
        status = ended_with(call)
    except TimeoutError:
        status = errors.status_of(
            InvalidArgument(f"nothing was sent for {_IDLE_S:g} s, and the request is not complete"),
            "",
        )
    finally:
        leaving.cancel()
    if not sink.begun and status is not None and complete is None:
        await answer.failed(status)
        return
    await sink.write((complete or b"") if status is None else end(status))
    await sink.close()


def _line_of(rpc: RestRpc, raw: RestRequest) -> Callable[[Any], bytes]:
    return lambda message: rpc.dump(raw, message) + b"\n"


def _error_line(status: Status) -> bytes:
    return orjson.dumps(errors.rest_body(status)) + b"\n"


def _event_of(rpc: RestRpc, raw: RestRequest) -> Callable[[Any], bytes]:
    place: str = extension(rpc.method, options_pb2.resumed_by).place

    def write(message: Any) -> bytes:
        head = f"id: {getattr(message, place)}\n".encode() if place else b""
        body = rpc.write(raw, message)
        # Without data it is no event, but a browser remembers the id.
        return head + (b"\n" if body is None else b"data: " + orjson.dumps(body) + b"\n\n")

    return write


def _error_event(status: Status) -> bytes:
    return b"event: error\ndata: " + orjson.dumps(errors.rest_body(status)) + b"\n\n"


def _resumed(method: MethodDescriptor, raw: RestRequest, request: Request) -> RestRequest:
    """Return a request that goes on after the last event that the peer has."""
    after: str = extension(method, options_pb2.resumed_by).after
    last = request.header("last-event-id")
    if after and last:
        # An `EventSource` that connects again sends it with the address that it began with.
        field = method.input_type.fields_by_name[after]
        own = set(names_of(field))
        others = {key: said for key, said in raw.query.items() if key not in own}
        raw.query = {**others, str(field.json_name): [last]}
    return raw
