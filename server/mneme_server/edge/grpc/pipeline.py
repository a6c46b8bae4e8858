"""The pipeline that every call passes on its way to a servicer.

gRPC has four kinds of handlers (one message or a stream, in and out). Each is wrapped here once,
so that a layer is written once too: a layer stands before the call and, where it returns a context
manager, around all of it, until its last answer was taken; a check looks at every request message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from types import TracebackType
from typing import Any, TypeAlias, cast

import grpc
import structlog
from google.protobuf.message import Message

from mneme_server.common import deadline, tracing, turns
from mneme_server.common.deadline import Abandoned
from mneme_server.common.errors import InvalidArgument
from mneme_server.edge.grpc.admission import Admission, too_many_calls
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.methods import Method, StreamKind
from mneme_server.edge.grpc.open_stream import OpenStream, Send, Sending, Source
from mneme_server.edge.grpc.peers import Direct, Exchange, Peers
from mneme_server.edge.grpc.room import Room
from mneme_server.edge.grpc.wire import Deserialize, parse_parts
from mneme_server.engine.scheduling.foreground import Foreground

Layer: TypeAlias = Callable[[Call], AbstractContextManager[None] | None]
"""Code before a call, which raises to refuse it, and returns what goes around it, if anything."""

Check: TypeAlias = Callable[[Call, Message], None]
"""Code that looks at a request message. It raises to refuse it."""

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

Respond: TypeAlias = Callable[[Any, Any], Any]
"""What serves a request, or an iterator of them."""

_log = structlog.get_logger(__name__)

_MAKE_ASKING = {
    False: grpc.stream_unary_rpc_method_handler,
    True: grpc.stream_stream_rpc_method_handler,
}
"""What makes the handlers that ask for their requests, by whether they answer with a stream."""

_SMALL_REQUEST = 16_384
"""Bytes that are parsed and checked within a millisecond."""


class Pipeline(grpc.ServerInterceptor):
    """Wraps the handlers of `methods`; other methods are served untouched.

    Requests are parsed here, in the worker's thread, not in gRPC's own: bytes that do not parse
    get an answer that says what is wrong, and the one thread that reads from all connections does
    not spend its time parsing.

    Args:
        methods: what is known of each method, by path.
        layers: the first is the outermost.
        checks: the order in which they look at a message.
        admission: shows calls to their lanes, before anything else.
        foreground: hands out the turns to compute.
        sending: sends what open streams have to say.
        room: of requests in memory; None where nothing limits it.
        around: change what serves a method, behind all layers; the last is the outermost.
    """

    def __init__(
        self,
        methods: Mapping[str, Method],
        layers: Sequence[Layer],
        checks: Sequence[Check],
        admission: Admission,
        *,
        foreground: Foreground,
        sending: Sending,
        room: Room | None = None,
        around: Sequence[Callable[[Method, Respond], Respond]] = (),
    ) -> None:
        self._around = around
        self._admission = admission
        self._sending = sending
        self._foreground = foreground
        self._room = room
        self._methods = methods
        self._layers = tuple(layers)
        self._checks = tuple(checks)
        self._wrapped: dict[str, Handler] = {}
        self._peers = Peers(sending.watchdog)
        self._refusal: Callable[[], Exception] | None = None

    def refuse(self, error: Callable[[], Exception]) -> None:
        """Raise `error` for the calls that come from now on; those that came before are served."""
        self._refusal = error

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Handler | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Return the wrapped handler of the call's method; None when there is no such method."""
        path = handler_call_details.method
        method = self._methods.get(path)
        refused = self.admit(method, handler_call_details.invocation_metadata or ())
        if refused is not None:
            return refused
        wrapped = self._wrapped.get(path)
        if wrapped is not None:
            return wrapped
        handler = continuation(handler_call_details)
        if handler is None:
            return None
        if method is None:
            return handler if handler.request_streaming else self._asking(handler)
        wrapped = self._wrapped[path] = self.wrap(method, handler, self._peers)
        return wrapped

    def admit(
        self, method: Method | None, metadata: Iterable[tuple[str, str | bytes]]
    ) -> Handler | None:
        """Have the call that this thread submits next stand in its lane; return what to serve
        instead of it where it is refused."""
        admitted = self._admission.admits(method, metadata)
        if method is None:
            return None
        if self._refusal is not None:
            return self._refused(method, self._refusal)
        return None if admitted else self._refused(method, too_many_calls)

    def wrap(self, method: Method, handler: Handler, peers: Peers | None = None) -> Handler:
        """Put the layers and checks around a handler, whose deserializer reads requests.

        Args:
            method: what is known of the method.
            handler: serves it.
            peers: gRPC's. The handler that is returned takes a stream of requests then, also where
                there is one: gRPC asks for the message of another before anybody looks at the key.
                None: what is returned takes the request.
        """
        exchange: Exchange = peers or Direct()
        if method.stream is StreamKind.WATCH:
            return self._wrap_watch(method, handler, exchange)
        make, respond = _shape(handler)
        if peers is not None:
            make = _MAKE_ASKING[handler.response_streaming]
        serialize = handler.response_serializer
        for put_around in self._around:
            respond = put_around(method, respond)
        read_one = partial(self._read, _present(handler.request_deserializer))
        takes_one = not handler.request_streaming
        read = partial(self._read_sized if takes_one else self._read_all, read_one)
        takes_room = self._room is not None and takes_one

        def answer(raw: Any, context: grpc.ServicerContext) -> Any:
            call = Call(method, context)
            with _Entered() as entered:
                self._enter(entered, call)
                if takes_one:
                    raw = exchange.receive(call, raw)
                if takes_room:
                    entered.enter(self._room_for(raw))
                made = respond(read(call, raw), call if method.takes_call else context)
                return exchange.give(call, made, serialize)

        def stream_answers(raw: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            call = Call(method, context)
            with _Entered() as entered:
                self._enter(entered, call)
                if takes_one:
                    raw = exchange.receive(call, raw)
                if takes_room:
                    entered.enter(self._room_for(raw))
                answers = respond(read(call, raw), call if method.takes_call else context)
                for one in exchange.give_all(call, answers, serialize):
                    if call.lost is not None:
                        raise call.lost
                    yield one

        return make(
            stream_answers if handler.response_streaming else answer,
            request_deserializer=None,
            response_serializer=None,
        )

    def _wrap_watch(self, method: Method, handler: Handler, exchange: Exchange) -> Handler:
        """Wrap a handler that returns a `Source`: the layers stay around the call until its end,
        and its thread is let go as soon as it is open."""
        open_source = _present(handler.unary_stream)
        read_one = partial(self._read, _present(handler.request_deserializer))

        def watch(raw: Any, context: grpc.ServicerContext, send: Send) -> None:
            call = Call(method, context)
            entered = _Entered()
            with self._bound(call), entered.unless_done():
                self._enter_layers(entered, call)
                raw = exchange.receive(call, raw)
                with self._room_for(raw):
                    source: Source[Message] = open_source(read_one(call, raw), call)
            stream = OpenStream(
                source,
                send,
                self._sending,
                tenant_id=call.tenant_id,
                is_over=lambda: call.ended,
                cut_off=partial(_cut_off, call),
                finish=partial(_finish, entered, context, send),
            )
            stream.start()
            call.on_end(stream.wake)

        # gRPC's own way, and its health service's, to serve a stream without a thread of the pool.
        watch.experimental_non_blocking = True  # type: ignore[attr-defined]
        make = _shape(handler)[0] if isinstance(exchange, Direct) else _MAKE_ASKING[True]
        return make(
            watch,
            request_deserializer=None,
            response_serializer=handler.response_serializer,
        )

    def _asking(self, handler: Handler) -> Handler:
        """Have a handler of another's service ask for the request that it takes."""
        _, respond = _shape(handler)
        read = _present(handler.request_deserializer)

        def answer(raws: Any, context: grpc.ServicerContext, *send: Send) -> Any:
            try:
                raw = self._peers.receive_unknown(context.cancel, raws)
            except (Abandoned, InvalidArgument) as error:
                late = isinstance(error, Abandoned)
                code = grpc.StatusCode.CANCELLED if late else grpc.StatusCode.INVALID_ARGUMENT
                context.abort(code, error.message)
            return respond(read(raw), context, *send)

        if getattr(respond, "experimental_non_blocking", False):
            answer.experimental_non_blocking = True  # type: ignore[attr-defined]
        return _MAKE_ASKING[handler.response_streaming](
            answer,
            request_deserializer=None,
            response_serializer=handler.response_serializer,
        )

    def _refused(self, method: Method, refusal: Callable[[], Exception]) -> Handler:
        """Return a handler that raises, of a kind that waits for no request, whatever the method's:
        one that never comes must not hold up the thread that refuses."""

        def refuse(_raws: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            call = Call(method, context)
            with _Entered() as entered:
                self._enter(entered, call)
                raise refusal()

        refuse.experimental_thread_pool = self._admission.refusals  # type: ignore[attr-defined]
        return grpc.stream_stream_rpc_method_handler(refuse)

    def _enter(self, entered: _Entered, call: Call) -> None:
        entered.enter(self._bound(call))
        self._enter_layers(entered, call)

    @contextmanager
    def _bound(self, call: Call) -> Iterator[None]:
        """Tell what is below how long the caller waits, and whose turn it computes in; forget it at
        the call's end, and its span: the layer of a stream that stays open ends in another thread.
        """
        deadline.enter(call.time_left)
        turns.enter(self._foreground.turn())
        try:
            yield
        finally:
            deadline.leave()
            turns.leave()
            tracing.leave()

    def _enter_layers(self, entered: _Entered, call: Call) -> None:
        for layer in self._layers:
            around = layer(call)
            if around is not None:
                entered.enter(around)

    def _room_for(self, raw: bytes) -> AbstractContextManager[None]:
        if self._room is None:
            return nullcontext()
        self._room.check()
        return self._room.taken(len(raw)) if len(raw) > _SMALL_REQUEST else nullcontext()

    def _read_sized(
        self, read_one: Callable[[Call, bytes], Message], call: Call, raw: bytes
    ) -> Message:
        """Return the request, and say what computing it asks for; batches of a stream do later."""
        request = read_one(call, raw)
        turns.size(large=call.method.is_large(request))
        return request

    def _read_all(
        self, read_one: Callable[[Call, bytes], Message], call: Call, raws: Iterator[bytes]
    ) -> Iterator[Message]:
        for index, raw in enumerate(raws):
            try:
                with self._room_for(raw):  # Until the next one is asked for.
                    yield read_one(call, raw)
            except InvalidArgument as error:
                error.metadata.setdefault("message_index", str(index))
                raise

    def _read(self, deserialize: Deserialize, call: Call, raw: bytes) -> Message:
        if len(raw) <= _SMALL_REQUEST:
            return self._parse(deserialize, call, raw)
        with self._foreground.turn(large=True).computing(len(raw) / _SMALL_REQUEST):
            return self._parse(deserialize, call, raw)

    def _parse(self, deserialize: Deserialize, call: Call, raw: bytes) -> Message:
        message = parse_parts(deserialize, call.method.request_type, raw, call.method.parts)
        for check in self._checks:
            check(call, message)
        return message


class _Entered:
    """The layers around a call, left in reverse; none of them swallows an error.

    Not `contextlib.ExitStack`: it keeps an error and its frames in a circle, so that each refused
    call would live, and count among its connection's streams, until the garbage is collected.
    """

    def __init__(self) -> None:
        self._layers: list[AbstractContextManager[None]] = []

    def enter(self, layer: AbstractContextManager[None]) -> None:
        """Enter one more."""
        layer.__enter__()
        self._layers.append(layer)

    @contextmanager
    def unless_done(self) -> Iterator[None]:
        """Leave the layers if the block fails; else they are left later, by `__exit__`."""
        try:
            yield
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise

    def __enter__(self) -> _Entered:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        raised = error
        try:
            while self._layers:
                layer = self._layers.pop()
                try:
                    if raised is None:
                        layer.__exit__(None, None, None)
                    else:
                        layer.__exit__(type(raised), raised, raised.__traceback__)
                except BaseException as other:
                    raised = other
            if raised is not None and raised is not error:
                raise raised
        finally:
            del raised, error, trace  # A traceback holds this frame, which must not hold it.


def _cut_off(call: Call) -> None:
    _log.info(
        "the peer of a stream stopped reading; the stream was cut off",
        method=call.method.path, tenant=call.tenant_id, request_id=call.request_id, peer=call.peer,
    )  # fmt: skip
    call.cancel()


def _finish(
    entered: _Entered,
    context: grpc.ServicerContext,
    send: Send,
    error: BaseException | None,
) -> None:
    """Leave the layers around an open stream, and send its status."""
    try:
        if error is None:
            entered.__exit__(None, None, None)
        else:
            entered.__exit__(type(error), error, error.__traceback__)
            raise error
    except BaseException as raised:
        if cast(Any, context).code() is None:  # Else a layer has said what the caller is told.
            context.set_code(grpc.StatusCode.UNKNOWN)
            if not isinstance(raised, grpc.RpcError):
                _log.exception("a stream failed", error=str(raised))
    finally:
        del error
    send(None)


def _shape(handler: Handler) -> tuple[Callable[..., Handler], Callable[[Any, Any], Any]]:
    """Return what makes handlers of this kind, and this one's behaviour."""
    if handler.request_streaming and handler.response_streaming:
        return grpc.stream_stream_rpc_method_handler, _present(handler.stream_stream)
    if handler.request_streaming:
        return grpc.stream_unary_rpc_method_handler, _present(handler.stream_unary)
    if handler.response_streaming:
        return grpc.unary_stream_rpc_method_handler, _present(handler.unary_stream)
    return grpc.unary_unary_rpc_method_handler, _present(handler.unary_unary)


def _present(part: Callable[..., Any] | None) -> Callable[..., Any]:
    if part is None:
        raise TypeError("the handler is not as generated code makes it")
    return part
