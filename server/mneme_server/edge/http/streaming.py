"""Answers in parts: Server-Sent Events for what is watched, NDJSON for the rest; and uploads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson
from google.protobuf.descriptor import MethodDescriptor
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from mneme.v1 import options_pb2
from starlette.exceptions import HTTPException
from starlette.responses import Response

from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.edge.grpc.methods import StreamKind
from mneme_server.edge.grpc.schema_options import extension
from mneme_server.edge.http import errors
from mneme_server.edge.http.answer import LINES, begin, failed
from mneme_server.edge.http.bodies import Bodies, identify
from mneme_server.edge.http.call import CallAborted, HttpCall
from mneme_server.edge.http.exchange import Lines, Rpc, Sink, Streamed, left
from mneme_server.edge.http.request import Request
from mneme_server.edge.http.rest import RestRequest, RestRpc
from mneme_server.edge.http.rest_mapping import names_of

EVENTS = "text/event-stream"
_IDLE_S = 60.0
"""A peer that uploads is not waited for any longer than this."""


@dataclass(frozen=True, slots=True)
class StreamForm:
    """How a stream is written.

    Args:
        kind: its content type.
        part: writes a message.
        end: writes how it failed.
        quiet: is said while there is nothing to say.
        complete: is said at its end when it succeeded. With it, a call that fails before its first
            message is answered as a stream, too.
    """

    kind: str
    part: Callable[[Any], bytes]
    end: Callable[[Status], bytes]
    quiet: bytes = b""
    complete: bytes | None = None


async def stream_answer(rpc: RestRpc, raw: RestRequest, request: Request) -> Response | None:
    """Serve an RPC whose answer is a stream; return how it failed before that began."""
    watched = rpc.behaviour.method.stream is StreamKind.WATCH
    events = EVENTS in request.accepts or (watched and LINES not in request.accepts)
    if events:
        raw = _resumed(rpc.method, raw, request)
        form = StreamForm(EVENTS, _event_of(rpc, raw), _error_event, quiet=b":\n\n")
    else:
        form = _lines_of(rpc, raw)
    return await send_stream(rpc, raw, raw.call, request, form)


async def stream_both(
    rpc: RestRpc, call: HttpCall, request: Request, bodies: Bodies
) -> Response | None:
    """Serve an RPC whose request is a stream, and its answer, too; return how it failed before that
    began.

    Raises:
        HTTPException: the request is no such stream.
    """
    if request.content_type != LINES:
        raise HTTPException(415, f"the body must be {LINES}, and the header content-type say so")
    may_call = await identify(rpc, call, request)
    largest = bodies.largest
    lines = Lines(call, largest, partial(bodies.hold, call.sender))

    def requests() -> Iterator[RestRequest]:
        for line in lines:
            yield RestRequest(request.raw_path, {}, line, call)

    too_long = InvalidArgument(f"a line is longer than {largest} bytes", reason=Reason.OUT_OF_RANGE)
    listening = lines.feed(request.receive, idle_s=_IDLE_S, too_long=too_long) if may_call else None
    form = _lines_of(rpc, RestRequest(request.raw_path, {}, b"", call))
    return await send_stream(rpc, requests(), call, request, form, listening=listening)


async def send_stream(
    rpc: Rpc,
    raw: Any,
    call: HttpCall,
    request: Request,
    form: StreamForm,
    *,
    listening: Coroutine[Any, Any, None] | None = None,
) -> Response | None:
    """Send what an RPC yields, and how it ended; return how it failed before that began.

    Args:
        rpc: the RPC.
        raw: what travelled.
        call: the call.
        request: the request.
        form: how the answer is written.
        listening: hears whatever else is sent, until the peer leaves.
    """
    head = partial(begin, request, form.kind)
    sink = Sink(request.send, head, request.connection.abort, call)
    call.cut = sink.cut_off
    streamed = Streamed(rpc, call, sink, form.part)
    streamed.start(raw)
    leaving = asyncio.ensure_future(listening or left(request.receive))
    status: Status | None = None
    try:
        await streamed.ended(leaving, form.quiet)
        status = call.status() or call.late()
    except CallAborted:
        status = call.failure()
    except TimeoutError:
        status = errors.status_of(
            InvalidArgument(f"nothing was sent for {_IDLE_S:g} s, and the request is not complete"),
            "",
        )
    finally:
        leaving.cancel()
    if not sink.begun and status is not None and form.complete is None:
        return failed(request, status)
    await sink.write((form.complete or b"") if status is None else form.end(status))
    await sink.close()
    return None


def _lines_of(rpc: RestRpc, raw: RestRequest) -> StreamForm:
    return StreamForm(
        LINES,
        lambda message: rpc.dump(raw, message) + b"\n",
        lambda status: orjson.dumps(errors.rest_body(status)) + b"\n",
    )


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
