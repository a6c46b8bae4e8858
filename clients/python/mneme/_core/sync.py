"""Channels and streams of `MnemeClient`: what differs in kind from asyncio's in `aio`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Generic, NamedTuple
from weakref import WeakSet

import grpc

from mneme._core.calling import Caller, Items, callable_of
from mneme._core.connection import APART, Connection
from mneme._core.resuming import Resumption
from mneme._core.rpc import AnswerT, AnswerT_co, ItemT, RequestT, Rpc
from mneme._core.status import DOWN, error_of
from mneme.errors import ClosedError, MnemeError

_TELLS_WITHIN_S = 1.0


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


class Transport(Caller):
    """A channel, and the ways to begin a call on it.

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

    def _answer(self, call: Any, given: Any, options: Mapping[str, Any]) -> tuple[Any, Any]:
        """Make a call with one answer; return that, and what came behind it."""
        with self._told_of_closing():
            response, made = call.with_call(given, **options)
        return response, made.trailing_metadata()

    _answer_to_all = _answer

    def _stream(
        self,
        kind: str,
        rpc: Rpc[RequestT, AnswerT],
        given: Callable[[], Any],
        timeout: float | None,
        *,
        items: Items | None = None,
        resumption: Resumption | None = None,
    ) -> Stream[AnswerT]:
        """A stream; `kind` is the name of the channel's method that makes such calls."""

        def open_call() -> Opened:
            limit = timeout if resumption is None else resumption.time_left
            return self._open(kind, rpc, given(), limit, items)

        return Stream(open_call, rpc.answer, resumption)

    def _open(
        self,
        kind: str,
        rpc: Rpc[RequestT, AnswerT],
        given: Any,
        timeout: float | None,
        items: Items | None,
    ) -> Opened:
        """Begin a call of a stream."""
        options, asked = self._options(timeout), self._freshness.token

        def ended(call: Any) -> None:
            self._freshness.note(call.trailing_metadata(), asked)

        def error_of(failure: grpc.RpcError) -> MnemeError:
            if items is not None:
                items.raise_own_error()
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

    def _error_of(self, failure: grpc.RpcError, channel: grpc.Channel | None = None) -> MnemeError:
        called = self._channel if channel is None else channel
        return error_of(failure, self._connection.target, lambda: _is_down(called))


def each(items: Iterable[ItemT]) -> Iterator[ItemT]:
    """Go through what the caller gave."""
    return iter(items)


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
