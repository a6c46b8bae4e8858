"""A channel to whichever server a folder has now, for asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc

from mneme._core.local_folder import Record
from mneme._core.local_joining import (
    JOIN_S,
    SERVING,
    WATCH,
    WHOLE_SERVER,
    Calls,
    Membership,
    Method,
    Tries,
    options_of,
)
from mneme._core.time_left import TimeLeft
from mneme.errors import ClosedError


@dataclass(slots=True)
class _Joined:
    """A server that was joined; `staying` is done when it ends, by dying or by saying so."""

    record: Record
    channel: grpc.aio.Channel
    staying: asyncio.Task[None]

    @property
    def is_gone(self) -> bool:
        """Whether it has ended, as far as is known here.

        The channel knows of a broken connection before the loop has come round to the task.
        """
        ready = self.channel.get_state() is grpc.ChannelConnectivity.READY
        return self.staying.done() or not ready


class AsyncLocalChannel(Calls):
    """`LocalChannel` for asyncio: what the client uses of a `grpc.aio.Channel`."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership
        self._lock = asyncio.Lock()
        self._joined: _Joined | None = None
        self._former: _Joined | None = None

    @property
    def address(self) -> str:
        """Where the server is, or was."""
        return self._joined.record.address if self._joined else ""

    def apart(self) -> AsyncLocalChannel:
        """A channel with a connection of its own to whichever server this one has joined."""
        return _Apart(self, self._membership)

    def join_when_made(self) -> None:
        """Nothing: to join is to wait, and a client is made without."""

    async def join_when_entered(self) -> None:
        """Join."""
        await self.join(None)

    async def join(self, time_left: float | None) -> _Joined:
        """The server, joined; it runs at least until this process has gone.

        Args:
            time_left: seconds that may be spent on that; None: as many as a start may take.
        """
        self._membership.check()
        joined = self._joined
        if joined is not None and not joined.is_gone:
            return joined
        tries = Tries(self._membership.folder, time_left)
        try:
            async with asyncio.timeout(tries.left()), self._lock:
                self._membership.check()
                joined = self._joined
                if joined is None or joined.is_gone:
                    joined = await self._join(tries)
                return joined
        except TimeoutError:
            raise self._membership.folder.silent(tries.limit) from None

    async def _join(self, tries: Tries) -> _Joined:
        folder = self._membership.folder
        while True:
            record = folder.record()
            joined = await self._try(record, min(JOIN_S, tries.left())) if record else None
            if joined is not None:
                break
            await _in_a_thread(partial(folder.start, tries.left()))
            if record is not None and record == folder.record():
                await asyncio.sleep(tries.pause())
        if self._former is not None:
            # Not the one that was just lost: other tasks are about to hear that it was.
            await self._former.channel.close()
        if self._membership.closed:  # Meanwhile.
            await joined.channel.close()
            raise ClosedError
        self._former, self._joined = self._joined, joined
        return joined

    async def _try(self, record: Record, timeout: float) -> _Joined | None:
        channel = self._connect(record)
        joined = None
        try:
            watch: Any = Method("unary_stream", WATCH, (), {}).on(channel)(WHOLE_SERVER)
            if await asyncio.wait_for(watch.read(), timeout) == SERVING:
                joined = _Joined(record, channel, asyncio.create_task(_stay(watch)))
        except (grpc.RpcError, TimeoutError):
            pass
        finally:
            if joined is None:
                await channel.close()
        return joined

    def _connect(self, record: Record) -> grpc.aio.Channel:
        return grpc.aio.secure_channel(
            record.address, self._membership.credentials(record), self._membership.options
        )

    async def close(self, grace: float | None = None) -> None:
        """Leave the server."""
        self._membership.closed = True
        for joined in (self._former, self._joined):
            if joined is not None:
                await joined.channel.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """As every channel does, of the server that was joined."""
        if self._joined is None:
            return grpc.ChannelConnectivity.IDLE
        return self._joined.channel.get_state(try_to_connect)

    def calls(self, method: Method) -> Any:
        """What calls a method on the server of the moment."""
        made = _Unary if method.kind == "unary_unary" else _Streamed
        return made(self, method)


class _Apart(AsyncLocalChannel):
    """Another connection to a server that was joined, for one call; it takes no part of its own.

    Args:
        joining: joins the servers.
        membership: what it joins them with.
    """

    def __init__(self, joining: AsyncLocalChannel, membership: Membership) -> None:
        super().__init__(membership)
        self._joining = joining
        self._closed = False

    async def join(self, time_left: float | None) -> _Joined:
        """The server, joined by the other channel, with this one's own connection."""
        there = await self._joining.join(time_left)
        if self._closed:
            raise ClosedError
        self._joined = _Joined(there.record, self._connect(there.record), there.staying)
        return self._joined

    async def close(self, grace: float | None = None) -> None:
        """Close the connection; the other channel still takes part."""
        self._closed = True
        if self._joined is not None:
            await self._joined.channel.close(grace)


async def _in_a_thread(work: Callable[[], None]) -> None:
    """Have a thread do it that nobody waits for at the end: a start outlasts who asked for it."""
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def settle(error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        error: BaseException | None = None
        try:
            work()
        except BaseException as failure:
            error = failure
        with suppress(RuntimeError):  # The loop has ended.
            loop.call_soon_threadsafe(settle, error)

    threading.Thread(target=run, name="mneme-local-start", daemon=True).start()
    await done


async def _stay(watch: Any) -> None:
    """Read on: gRPC does not tell that a stream has ended before all of it was read."""
    with suppress(grpc.RpcError):
        while await watch.read() == SERVING:
            pass


class _Call:
    """A method, called on the server of the moment, with its key.

    Args:
        channel: knows the server.
        method: what is called.
    """

    def __init__(self, channel: AsyncLocalChannel, method: Method) -> None:
        self._channel = channel
        self._method = method

    async def _begin(
        self, requests: tuple[Any, ...], left: TimeLeft, options: dict[str, Any]
    ) -> Any:
        """Begin the call; return gRPC's own call."""
        joined = await self._channel.join(left())
        given = options_of(options, joined.record, left())
        return self._method.on(joined.channel)(*requests, **given)


class _Unary(_Call):
    """Calls with one request and one answer."""

    def __call__(
        self, request: Any, *, timeout: float | None = None, **options: Any
    ) -> _LateAnswer:
        left = TimeLeft(timeout)
        return _LateAnswer(lambda: self._begin((request,), left, options))


class _LateAnswer:
    """A call with one answer that is begun when the answer is awaited."""

    def __init__(self, begin: Callable[[], Awaitable[Any]]) -> None:
        self._begin = begin
        self._call: Any = None

    def __await__(self) -> Generator[Any, None, Any]:
        return self._answer().__await__()

    async def _answer(self) -> Any:
        self._call = await self._begin()
        return await self._call

    async def trailing_metadata(self) -> Any:
        """What came behind the answer, once it was awaited."""
        return await self._call.trailing_metadata()


class _Streamed(_Call):
    """Calls with a stream on either side."""

    def __call__(self, *requests: Any, timeout: float | None = None, **options: Any) -> _LateCall:
        left = TimeLeft(timeout)
        return _LateCall(lambda: self._begin(requests, left, options))


class _LateCall:
    """A call that begins when it is first used: gRPC's calls begin without waiting, joining waits.

    Args:
        begin: begins it.
    """

    def __init__(self, begin: Callable[[], Awaitable[Any]]) -> None:
        self._begin = begin
        self._begun: asyncio.Future[Any] | None = None

    async def write(self, request: Any) -> None:
        """Send a request."""
        await (await self._call()).write(request)

    async def done_writing(self) -> None:
        """Say that there are no more."""
        await (await self._call()).done_writing()

    async def read(self) -> Any:
        """The next answer, or `grpc.aio.EOF`."""
        return await (await self._call()).read()

    async def trailing_metadata(self) -> Any:
        """What came behind the answers."""
        return await (await self._call()).trailing_metadata()

    def cancel(self) -> bool:
        """Give the call up."""
        begun = self._begun
        if begun is None or not begun.done():
            return begun is not None and begun.cancel()
        return not begun.cancelled() and begun.exception() is None and begun.result().cancel()

    def __await__(self) -> Generator[Any, None, Any]:
        return self._answer().__await__()

    async def _answer(self) -> Any:
        return await (await self._call())

    async def _call(self) -> Any:
        if self._begun is None:
            self._begun = asyncio.ensure_future(self._begin())
        return await asyncio.shield(self._begun)
