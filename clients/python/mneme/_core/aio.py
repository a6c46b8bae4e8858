"""Channels and streams of `AsyncMnemeClient`: what differs in kind from those in `sync`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic
from weakref import WeakSet

import grpc
from google.protobuf.message import Message

from mneme._core.calling import Caller, Items, callable_of
from mneme._core.cancelling import closed, is_leaving, told_of_closing
from mneme._core.connection import APART, Connection
from mneme._core.iterables import AnyIterable
from mneme._core.one_loop import OneLoop
from mneme._core.resuming import Resumption
from mneme._core.rpc import AnswerT, AnswerT_co, ItemT, RequestT, Rpc
from mneme._core.status import DOWN, error_of
from mneme.errors import ClosedError, MnemeError


class AsyncStream(Generic[AnswerT_co], AsyncIterator[AnswerT_co]):
    """The messages of a stream, as they come. Leaving the `async with` block ends the stream."""

    def __init__(
        self,
        open_call: Callable[[], tuple[Any, grpc.aio.Channel | None]],
        wrap: Callable[[Any], AnswerT_co],
        error_of: Callable[[grpc.RpcError, grpc.aio.Channel | None], MnemeError],
        finished: Callable[[Any], Awaitable[None]],
        *,
        items: Items | None = None,
        resumption: Resumption | None = None,
    ) -> None:
        self._finished = finished
        self._items = items
        self._resumption = resumption
        self._open_call = open_call
        self._wrap = wrap
        self._error_of = error_of
        self._call: Any = None
        self._own: grpc.aio.Channel | None = None
        self._reading: asyncio.Future[Any] | None = None
        self._turn = asyncio.Lock()
        self._loop = OneLoop("this stream")
        self._closed = False
        self._ended = False

    def __aiter__(self) -> AsyncIterator[AnswerT_co]:
        return self

    async def __anext__(self) -> AnswerT_co:
        self._loop.check()
        async with self._turn:
            return await self._next()

    async def _next(self) -> AnswerT_co:
        while True:
            if self._is_over:
                raise StopAsyncIteration
            if self._call is None:
                self._call, self._own = self._open_call()
            try:
                message = await self._read()
            except grpc.RpcError as failure:
                if self._closed:
                    raise StopAsyncIteration from None
                await self._resume_after(failure)
                continue
            except asyncio.CancelledError:
                if self._reading is not None or is_leaving():
                    raise  # Only who waits gives up.
                if self._closed:
                    raise StopAsyncIteration from None
                self._raise_own_error()
                self._ended = True
                raise closed() from None
            if message is grpc.aio.EOF:
                self._ended = True
                if self._call is not None:  # Else the client was closed just now.
                    await self._finished(self._call)
                await self.free()
            elif self._resumption is None or self._resumption.is_news(message):
                return self._wrap(message)

    async def _read(self) -> Any:
        """The next message; what comes when nobody waits any more is there for who asks next.

        A task reads, because gRPC ends a call whose reader is cancelled.
        """
        reading = self._reading or asyncio.ensure_future(self._call.read())
        self._reading = None
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            if not reading.cancelled():
                self._reading = reading
            raise

    @property
    def _is_over(self) -> bool:
        return self._closed or self._ended

    async def _resume_after(self, failure: grpc.RpcError) -> None:
        """Wait until the stream goes on where it broke off; raise what is final."""
        self._raise_own_error()
        error = self._error_of(failure, self._own)
        pause = None if self._resumption is None else self._resumption.pause_after(error)
        self._ended = pause is None
        try:
            if pause is None:
                # The traceback would hold the call, and with it the connection.
                raise error from failure.with_traceback(None)
        finally:
            await self.free()
        self._call = None
        await asyncio.sleep(pause)

    def _raise_own_error(self) -> None:
        """Raise what the caller's own items raised: gRPC hides it behind a cancelled call."""
        if self._items is not None and self._items.error is not None:
            self._ended = True
            raise self._items.error

    async def aclose(self) -> None:
        """End the stream."""
        self._loop.check()
        self._closed = True
        if self._call is not None:
            self._call.cancel()
        await self.free()

    def __del__(self) -> None:
        """End the call when nobody holds the stream any more; it was not closed."""
        loop = self._loop.loop
        if self._call is None or loop is None or self._ended or self._closed:
            return
        with suppress(RuntimeError):  # The loop has ended, and its calls with it.
            # Python may drop it on any thread.
            loop.call_soon_threadsafe(_drop, loop, self._call, self._own)

    async def free(self) -> None:
        """Close the stream's connection, when it has one of its own."""
        if self._own is not None:
            own, self._own = self._own, None
            self._call = None  # A connection lasts for as long as its calls are held.
            await own.close()

    async def __aenter__(self) -> AsyncStream[AnswerT_co]:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


class AsyncTransport(Caller):
    """A channel, and the ways to begin a call on it.

    The channel belongs to the event loop that runs when it is first used. A stream that stays open
    has one of its own, as with `Transport`.

    Args:
        connection: where the server is, and how patient to be with it.
        channel: what calls are made on; None: a channel of this connection.
        apart: makes a channel with a connection of its own; None: of this connection.
    """

    def __init__(
        self,
        connection: Connection,
        channel: grpc.aio.Channel | None = None,
        apart: Callable[[], grpc.aio.Channel] | None = None,
    ) -> None:
        super().__init__(connection)
        self._opened = channel
        self._loop = OneLoop("this AsyncMnemeClient")
        self._make_apart = apart or (lambda: connection.aio_channel(APART))
        self._apart: WeakSet[AsyncStream[Any]] = WeakSet()

    async def aclose(self) -> None:
        """Close the connections; calls and streams that are still open are cancelled."""
        self._loop.check()
        self._closed = True
        for stream in list(self._apart):
            await stream.free()
        if self._opened is not None:
            await self._opened.close()

    @property
    def _channel(self) -> grpc.aio.Channel:
        if self._closed:
            raise ClosedError
        self._loop.check()
        if self._opened is None:
            self._opened = self._connection.aio_channel()
        return self._opened

    async def _answer(
        self, call: Any, request: Message, options: Mapping[str, Any]
    ) -> tuple[Any, Any]:
        """Make a call with one answer; return that, and what came behind it."""
        made = call(request, **options)
        with told_of_closing():
            response = await made
        return response, await made.trailing_metadata()

    async def _answer_to_all(
        self, call: Any, requests: AsyncIterator[Message], options: Mapping[str, Any]
    ) -> tuple[Any, Any]:
        """The same with many requests."""
        made = call(**options)
        try:
            async for request in requests:
                with told_of_closing():
                    await made.write(request)
            with told_of_closing():
                await made.done_writing()
        except asyncio.InvalidStateError:
            # The server has answered already; its status follows.
            pass
        except BaseException:
            made.cancel()
            raise
        with told_of_closing():
            response = await made
        return response, await made.trailing_metadata()

    def _stream(
        self,
        kind: str,
        rpc: Rpc[RequestT, AnswerT],
        given: Callable[[], Any],
        timeout: float | None,
        *,
        items: Items | None = None,
        resumption: Resumption | None = None,
    ) -> AsyncStream[AnswerT]:
        """A stream; `kind` is the name of the channel's method that makes such calls."""
        asked = ""

        def open_call() -> tuple[Any, grpc.aio.Channel | None]:
            nonlocal asked
            asked = self._freshness.token
            options = self._options(timeout if resumption is None else resumption.time_left)
            if not rpc.long_lived:
                call = self._callable(rpc, getattr(self._channel, kind))
                return call(given(), **options), None
            if self._closed:
                raise ClosedError
            self._loop.check()
            channel = self._make_apart()
            return callable_of(rpc, getattr(channel, kind))(given(), **options), channel

        async def finished(call: Any) -> None:
            self._freshness.note(await call.trailing_metadata(), asked)

        stream = AsyncStream(
            open_call, rpc.answer, self._error_of, finished, items=items, resumption=resumption
        )
        if rpc.long_lived:
            self._apart.add(stream)
        return stream

    def _error_of(
        self, failure: grpc.RpcError, channel: grpc.aio.Channel | None = None
    ) -> MnemeError:
        called = channel or self._opened

        def is_down() -> bool:
            return called is not None and called.get_state() in DOWN

        return error_of(failure, self._connection.target, is_down)


# A loop holds its tasks weakly.
_closing: set[asyncio.Task[None]] = set()


def _drop(loop: asyncio.AbstractEventLoop, call: Any, own: grpc.aio.Channel | None) -> None:
    """End a call whose stream is gone, with the connection of its own."""
    call.cancel()
    if own is not None:
        task = loop.create_task(own.close())
        _closing.add(task)
        task.add_done_callback(_closing.discard)


async def each(items: AnyIterable[ItemT]) -> AsyncIterator[ItemT]:
    """Go through what the caller gave, whether it comes asynchronously or not."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item
