"""Makes the calls of `MnemeClient`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakSet

import grpc
from google.protobuf.message import Message

from mneme._core.answers import Answer
from mneme._core.calling import Caller, callable_of
from mneme._core.connection import APART, Connection
from mneme._core.long_running import LongRunning
from mneme._core.resuming import Resumption, patience_of
from mneme._core.retry import Attempts
from mneme._core.rpc import AnswerT, RequestT, Rpc, fields_of
from mneme._core.status import DOWN, error_of
from mneme.errors import ClosedError, MnemeError

_TELLS_WITHIN_S = 1.0

ItemT = TypeVar("ItemT")
AnswerT_co = TypeVar("AnswerT_co", bound=Answer[Any], covariant=True)


class Opened(NamedTuple):
    """A call of a stream: what is read from, what frees its connection, its errors, and what looks
    at what came behind the last message."""

    call: Any
    free: Callable[[], None]
    error_of: Callable[[grpc.RpcError], MnemeError]
    ended: Callable[[Any], None]


class Stream(Generic[AnswerT_co], Iterator[AnswerT_co]):
    """The messages of a stream, as they come. Leaving the `with` block ends the stream.

    with client.watch_events() as events:
        for message in events:
            ...

    It begins anew while nothing has come, as any call does; one that can be resumed goes on where
    it was when it breaks off.
    """

    def __init__(
        self,
        open_call: Callable[[], Opened],
        wrap: Callable[[Any], AnswerT_co],
        resumption: Resumption | None = None,
    ) -> None:
        self._open_call = open_call
        self._opened = open_call()
        self._wrap = wrap
        self._resumption = resumption
        self._closed = threading.Event()

    def __iter__(self) -> Iterator[AnswerT_co]:
        return self

    def __next__(self) -> AnswerT_co:
        while True:
            opened = self._opened
            try:
                message = next(opened.call)
            except StopIteration:
                opened.ended(opened.call)
                opened.free()
                raise
            except grpc.RpcError as failure:
                if self._closed.is_set():
                    raise StopIteration from None
                try:
                    error = opened.error_of(failure)
                finally:
                    opened.free()
                self._resume_after(error, failure)
                continue
            if self._resumption is None or self._resumption.is_news(message):
                return self._wrap(message)

    def _resume_after(self, error: MnemeError, failure: grpc.RpcError) -> None:
        """Begin another call where the stream broke off, after a pause; raise what is final."""
        pause = None if self._resumption is None else self._resumption.pause_after(error)
        if pause is None:
            raise error from failure
        if self._closed.wait(pause):
            raise StopIteration
        try:
            opened = self._open_call()
        except ClosedError:
            raise error from failure
        self._opened = opened
        if self._closed.is_set():  # While it was opened.
            self.close()

    def close(self) -> None:
        """End the stream; another thread may do so while this one waits for a message."""
        self._closed.set()
        self._opened.call.cancel()
        self._opened.free()

    def __enter__(self) -> Stream[AnswerT_co]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class SyncCaller(Caller):
    """A channel and the four kinds of calls on it.

    A server takes a bounded number of calls on one connection. A stream that stays open has a
    connection of its own, so that other calls do not wait for it.

    Args:
        connection: where the server is, and how patient to be with it.
        channel: what calls are made on; None: a channel of this connection.
        apart: makes a channel with a connection of its own; None: of this connection.
    """

    def __init__(
        self,
        connection: Connection,
        channel: grpc.Channel | None = None,
        apart: Callable[[], grpc.Channel] | None = None,
    ) -> None:
        super().__init__(connection)
        self._channel = connection.channel() if channel is None else channel
        self._make_apart = apart or (lambda: connection.channel(APART))
        # A stream that nobody holds any more takes its channel with it.
        self._apart: WeakSet[grpc.Channel] = WeakSet()
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the connections; calls and streams that are still open are cancelled."""
        with self._lock:
            self._closed = True
            apart = list(self._apart)
        for channel in (*apart, self._channel):
            channel.close()

    def _start(
        self, rpc: Rpc[RequestT, AnswerT], fields: Mapping[str, Any], timeout: float | None
    ) -> LongRunning[Any, Any]:
        """Start an operation."""
        answer: Any = self._unary(rpc, fields, timeout)
        return LongRunning(self, answer.operation)

    def _unary(
        self, rpc: Rpc[RequestT, AnswerT], fields: Mapping[str, Any], timeout: float | None
    ) -> AnswerT:
        request = rpc.build(fields)
        limit = self._connection.timeout if timeout is None else timeout
        attempts = Attempts(rpc, self._connection.retries, limit)
        while True:
            call = self._callable(rpc, self._channel.unary_unary)
            asked = self._freshness.token
            try:
                with self._told_of_closing():
                    response, made = call.with_call(request, **self._options(attempts.time_left))
            except grpc.RpcError as failure:
                error = self._error_of(failure)
                pause = attempts.pause_after(error)
                if pause is None:
                    raise error from failure
            else:
                self._freshness.note(made.trailing_metadata(), asked)
                return rpc.answer(response)
            time.sleep(pause)

    def _client_stream(
        self, rpc: Rpc[RequestT, AnswerT], items: Iterable[Any], timeout: float | None
    ) -> AnswerT:
        call = self._callable(rpc, self._channel.stream_unary)
        source, asked = _Source(rpc, items), self._freshness.token
        try:
            with self._told_of_closing():
                response, made = call.with_call(source, **self._options(timeout))
        except grpc.RpcError as failure:
            source.raise_own_error()
            raise self._error_of(failure) from failure
        self._freshness.note(made.trailing_metadata(), asked)
        return rpc.answer(response)

    def _server_stream(
        self,
        rpc: Rpc[RequestT, AnswerT],
        fields: Mapping[str, Any],
        timeout: float | None,
        *,
        resumes: bool = True,
    ) -> Stream[AnswerT]:
        connection = self._connection
        patience = patience_of(connection.retries, connection.timeout) if resumes else 0.0
        attempts = Attempts(rpc, connection.retries, timeout)
        resumption = Resumption(rpc, fields, attempts, patience)

        def open_call() -> Opened:
            request = type(resumption.request)()
            request.CopyFrom(resumption.request)  # It moves on while gRPC may still read it.
            return self._open("unary_stream", rpc, request, resumption.time_left, _nothing)

        return Stream(open_call, rpc.answer, resumption)

    def _bidirectional(
        self, rpc: Rpc[RequestT, AnswerT], items: Iterable[Any], timeout: float | None
    ) -> Stream[AnswerT]:
        source = _Source(rpc, items)
        return Stream(
            lambda: self._open("stream_stream", rpc, source, timeout, source.raise_own_error),
            rpc.answer,
        )

    def _open(
        self,
        kind: str,
        rpc: Rpc[RequestT, AnswerT],
        given: Any,
        timeout: float | None,
        raise_own_error: Callable[[], None],
    ) -> Opened:
        """Begin a call of a stream; `kind` names the channel's method that makes such calls."""
        options, asked = self._options(timeout), self._freshness.token

        def ended(call: Any) -> None:
            self._freshness.note(call.trailing_metadata(), asked)

        def error_of(failure: grpc.RpcError) -> MnemeError:
            raise_own_error()
            return self._error_of(failure, channel)

        if not rpc.long_lived:
            channel = self._channel
            with self._told_of_closing():
                call = self._callable(rpc, getattr(channel, kind))(given, **options)
            return Opened(call, _nothing, error_of, ended)
        channel = self._open_apart()
        try:
            with self._told_of_closing():
                call = callable_of(rpc, getattr(channel, kind))(given, **options)
        except BaseException:
            channel.close()
            raise
        return Opened(call, channel.close, error_of, ended)

    def _open_apart(self) -> grpc.Channel:
        with self._lock:
            if self._closed:
                raise ClosedError
            channel = self._make_apart()
            self._apart.add(channel)
        return channel

    @contextmanager
    def _told_of_closing(self) -> Iterator[None]:
        """Begin a call; gRPC raises a ValueError when the client is closed just then.

        Raises:
            ClosedError: the client was closed.
        """
        try:
            yield
        except ValueError as error:
            if self._closed:
                raise ClosedError from error
            raise

    def _pages(
        self,
        rpc: Rpc[RequestT, AnswerT],
        fields: Mapping[str, Any],
        items_of: Callable[[AnswerT], Iterable[ItemT]],
        timeout: float | None,
    ) -> Iterator[ItemT]:
        token = ""
        while True:
            page = self._unary(rpc, {**fields, "page_token": token}, timeout)
            yield from items_of(page)
            token = getattr(page, "next_page_token", "")
            if not token:
                return

    def _error_of(self, failure: grpc.RpcError, channel: grpc.Channel | None = None) -> MnemeError:
        called = self._channel if channel is None else channel
        return error_of(failure, self._connection.target, lambda: _is_down(called))


def invoke(
    caller: SyncCaller,
    rpc: Rpc[RequestT, AnswerT],
    requests: Iterable[RequestT],
    timeout: float | None,
) -> Iterator[AnswerT]:
    """Call any RPC, whatever its kind. A stream that breaks off is not resumed: its error is told.

    Args:
        caller: makes the call.
        rpc: what is called.
        requests: the request; several where the RPC takes a stream of them.
        timeout: seconds for the call; None: the client's, and no limit for streams.

    Returns:
        The answers as they come; a single one where the RPC answers with no stream.
    """
    kind = rpc.descriptor
    if kind.client_streaming and not kind.server_streaming:
        yield caller._client_stream(rpc, requests, timeout)
    elif kind.client_streaming:
        with caller._bidirectional(rpc, requests, timeout) as stream:
            yield from stream
    else:
        fields = fields_of(next(iter(requests)))
        if not kind.server_streaming:
            yield caller._unary(rpc, fields, timeout)
            return
        with caller._server_stream(rpc, fields, timeout, resumes=False) as stream:
            yield from stream


def _nothing() -> None:
    """There is nothing to do."""


def _is_down(channel: grpc.Channel) -> bool:
    """Whether the channel has no connection; gRPC tells on a thread of its own."""
    told: SimpleQueue[grpc.ChannelConnectivity] = SimpleQueue()
    channel.subscribe(told.put)
    try:
        return told.get(timeout=_TELLS_WITHIN_S) in DOWN
    except Empty:
        return False
    finally:
        channel.unsubscribe(told.put)


class _Source(Iterator[Message]):
    """The requests of a stream; remembers what the caller's own items raised.

    gRPC takes them on a thread of its own and hides their errors behind a cancelled call.
    """

    def __init__(self, rpc: Rpc[Any, Any], items: Iterable[Any]) -> None:
        self._rpc = rpc
        self._items = iter(items)
        self._error: Exception | None = None

    def __next__(self) -> Message:
        try:
            item: Message = self._rpc.build_item(next(self._items))
        except StopIteration:
            raise
        except Exception as error:
            self._error = error
            raise
        return item

    def raise_own_error(self) -> None:
        """Raise what the items raised, if they did."""
        if self._error is not None:
            raise self._error
