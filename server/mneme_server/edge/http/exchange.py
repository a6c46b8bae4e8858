"""A request and its answer, between the event loop and the threads that serve calls."""

from __future__ import annotations

import asyncio
import queue
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from typing import Any, TypeAlias, cast

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from starlette.types import Receive, Send

from mneme_server.common.errors import MnemeError
from mneme_server.edge.grpc.call import CallContext
from mneme_server.edge.grpc.entrance import Entrance, Serve
from mneme_server.edge.grpc.methods import StreamKind
from mneme_server.edge.http.call import CallAborted, HttpCall

Abort: TypeAlias = Callable[[], None]

KEEP_ALIVE_S = 15.0
"""After so long without a word, a stream that stays open says that it does."""
_NOTICE_S = 5.0
"""How long a thread may take to notice that nobody listens any more."""
_LOOK_S = 1.0
"""How often a thread whose part is not sent yet looks whether the server still runs."""
_AHEAD_BYTES = 256 * 1024
"""What is kept of a stream of requests before it is asked for."""
_LINE_BYTES = 64
"""What a line takes beside its own bytes."""


class Gone(grpc.RpcError):
    """The peer left while it was to send or to take something: what gRPC raises then, too."""


async def left(receive: Receive) -> None:
    """Return when the peer has left; its request is complete."""
    while (await receive())["type"] != "http.disconnect":
        pass


class Rpc(ABC):
    """An RPC as one form of HTTP has it.

    Args:
        method: the RPC.
        entrance: where its calls are served.
        around: changes what serves them.
    """

    def __init__(
        self, method: MethodDescriptor, entrance: Entrance, around: Callable[[Serve], Serve]
    ) -> None:
        self.method = method
        self.behaviour = entrance.behaviour(method, self.read, around)
        self.entrance = entrance
        self._request = cast(Callable[[], Message], GetMessageClass(method.input_type))

    @abstractmethod
    def read(self, raw: Any) -> Message:
        """Return the request that travelled as `raw`.

        Raises:
            InvalidArgument: it cannot be read.
        """

    @abstractmethod
    def dump(self, raw: Any, answer: Any) -> bytes:
        """Return the bytes of the answer to it."""

    async def call(self, raw: Any, call: HttpCall, receive: Receive) -> bytes | Status | None:
        """Return the bytes of the answer, or how the call failed; None when its caller left."""

        def work(run: Callable[..., Any]) -> bytes:
            return self.dump(raw, run(raw, call))

        serving = asyncio.wrap_future(self.entrance.submit(self.behaviour, call, work))
        leaving = asyncio.ensure_future(left(receive))
        try:
            await asyncio.wait(
                (serving, leaving),
                timeout=call.time_remaining(),
                return_when=asyncio.FIRST_COMPLETED,
            )
            if serving.done():
                return serving.result()
            # A worker that is at it notices, and its result is no one's.
            serving.add_done_callback(_forget)
            return call.late()
        except CallAborted:
            return call.failure()
        finally:
            leaving.cancel()
            call.end()


def _forget(serving: asyncio.Future[Any]) -> None:
    if not serving.cancelled():
        serving.exception()


class Sink:
    """Sends the parts of an answer from whatever thread has one.

    A part is sent before the next one is asked for, so that a peer that reads slowly is waited for.

    Args:
        send: of the request.
        begin: sends the head of the answer, before its first part.
        abort: cuts the connection.
        call: the call.
    """

    def __init__(
        self, send: Send, begin: Callable[[], Awaitable[None]], abort: Abort, call: CallContext
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._send = send
        self._begin = begin
        self._abort = abort
        self._call = call
        self.begun = False
        self.sent_at = self._loop.time()

    def put(self, part: bytes) -> None:
        """Send a part, from a thread of its own.

        Raises:
            Gone: nobody takes it.
        """
        if not self._call.is_active():
            raise Gone
        sending = self.write(part)
        try:
            sent = asyncio.run_coroutine_threadsafe(sending, self._loop)
            while not wait((sent,), _LOOK_S).done:
                if self._loop.is_closed():  # It was, before it came to this part.
                    sending.close()
                    raise Gone
            sent.result()
        except CancelledError as error:  # The server stops, and waits for this peer no longer.
            raise Gone from error
        except RuntimeError as error:
            if not self._loop.is_closed():
                raise
            sending.close()
            raise Gone from error

    async def write(self, part: bytes) -> None:
        """Send a part, from the event loop."""
        if not self.begun:
            self.begun = True
            await self._begin()
        self.sent_at = self._loop.time()
        await self._send({"type": "http.response.body", "body": part, "more_body": True})

    async def close(self) -> None:
        """Send the end."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def cut_off(self) -> None:
        """Cut the connection, from whatever thread: what waits to be sent waits no more."""
        with suppress(RuntimeError):  # The server has stopped.
            self._loop.call_soon_threadsafe(self._abort)


# Without a step of this loop's for each of them, on which everybody's requests are read.
_BLANK_LINES = re.compile(rb"\n\s*\n")


class Lines:
    """The lines of a body while it comes, for the thread that reads them.

    Args:
        call: the call, at whose end there are no more.
        largest: the longest line, in bytes.
        hold: told how much more is held of a line that is not complete, or less; raises where
            there is no room for it.
    """

    def __init__(
        self, call: HttpCall, largest: int, hold: Callable[[int], None] = lambda _more: None
    ) -> None:
        self._hold = hold
        self._loop = asyncio.get_running_loop()
        self._lines: queue.SimpleQueue[bytes | Exception | None] = queue.SimpleQueue()
        self._largest = largest
        self._ahead = 0
        self._lock = threading.Lock()
        self._room = asyncio.Event()
        self._room.set()
        if not call.add_callback(self._end):
            self._end()

    def __iter__(self) -> Iterator[bytes]:
        """Yield the lines that are not empty."""
        while True:
            line = self._lines.get()
            if line is None:
                return
            if isinstance(line, Exception):
                raise line
            with self._lock:
                self._ahead -= len(line) + _LINE_BYTES
                freed = self._ahead <= _AHEAD_BYTES
            if freed:
                with suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._room.set)
            yield line

    async def feed(self, receive: Receive, *, idle_s: float, too_long: Exception) -> None:
        """Take the body in, until it ends; then wait until the peer leaves.

        Raises:
            TimeoutError: nothing came for `idle_s`.
        """
        rest = bytearray()
        held = 0
        try:
            while True:
                await self._room.wait()
                async with asyncio.timeout(idle_s):
                    event = await receive()
                if event["type"] == "http.disconnect":
                    return
                # Only what came is looked at: a long line may come in very many parts.
                first, *more = _BLANK_LINES.sub(b"\n", event.get("body", b"")).split(b"\n")
                rest += first
                lines: list[bytes] = []
                if more:
                    *between, tail = more
                    lines = [bytes(rest), *between]
                    rest = bytearray(tail)
                for line in lines:
                    self._put(line)
                if len(rest) > self._largest or any(len(line) > self._largest for line in lines):
                    self._lines.put(too_long)
                    break
                self._hold(len(rest) - held)
                held = len(rest)
                if not event.get("more_body", False):
                    self._put(bytes(rest))
                    self._lines.put(None)
                    break
        except MnemeError as error:  # There is no room.
            self._lines.put(error)
        finally:
            self._hold(-held)
            rest.clear()
        await left(receive)

    def _put(self, line: bytes) -> None:
        if not line.strip():  # They cost nothing to send, and would cost much to keep.
            return
        with self._lock:
            self._ahead += len(line) + _LINE_BYTES
            if self._ahead > _AHEAD_BYTES:
                self._room.clear()
        self._lines.put(line)

    def _end(self) -> None:
        self._lines.put(Gone())


class Streamed:
    """An answer in parts, of a call that a worker or the threads of open streams serve.

    Args:
        rpc: the RPC.
        call: the call.
        sink: takes the parts.
        part: makes a part of a message.
    """

    def __init__(self, rpc: Rpc, call: HttpCall, sink: Sink, part: Callable[[Any], bytes]) -> None:
        self._rpc = rpc
        self.call = call
        self.sink = sink
        self._part = part
        self._ended: Future[None] = Future()

    def start(self, raw: Any) -> None:
        """Begin to send what the RPC yields, or what there will be to see."""
        if self._rpc.behaviour.method.stream is StreamKind.WATCH:
            self._watch(raw)
        else:
            self._download(raw)

    def _download(self, raw: Any) -> None:

        def work(run: Callable[..., Any]) -> None:
            for message in run(raw, self.call):
                self.sink.put(self._part(message))

        self._submit(work)

    def _watch(self, raw: Any) -> None:

        def send(message: Any) -> None:
            if message is None:
                self._finish(None)
            else:
                self.sink.put(self._part(message))

        def work(run: Callable[..., Any]) -> None:
            if self._rpc.behaviour.run is run:
                run(raw, self.call, send)
            else:  # What refuses takes no more than any other.
                run(raw, self.call)

        self._submit(work, until_told=True)

    async def ended(self, leaving: asyncio.Future[None], quiet: bytes) -> None:
        """Wait until everything was sent, or `leaving` is over; say `quiet` while there is nothing.

        Raises:
            Aborted: the call has the status that it failed with.
        """
        loop = asyncio.get_running_loop()
        ended = asyncio.wrap_future(self._ended)
        try:
            while not ended.done() and not leaving.done():
                remaining = self.call.time_remaining()
                if remaining is not None and remaining <= 0:
                    break
                pause = KEEP_ALIVE_S if remaining is None else min(KEEP_ALIVE_S, remaining)
                await asyncio.wait(
                    (ended, leaving), timeout=pause, return_when=asyncio.FIRST_COMPLETED
                )
                if quiet and self.sink.begun and loop.time() - self.sink.sent_at >= KEEP_ALIVE_S:
                    await self.sink.write(quiet)
        finally:
            self.call.end()
            ended.add_done_callback(_forget)
        if leaving.done() and not leaving.cancelled() and (error := leaving.exception()):
            raise error
        await asyncio.wait((ended,), timeout=_NOTICE_S)
        if ended.done():
            ended.result()

    def _submit(self, work: Callable[..., Any], *, until_told: bool = False) -> None:
        def done(serving: Future[Any]) -> None:
            error = serving.exception()
            if error is not None or not until_told:
                self._finish(error)

        submitted = self._rpc.entrance.submit(self._rpc.behaviour, self.call, work)
        submitted.add_done_callback(done)

    def _finish(self, error: BaseException | None) -> None:
        if self._ended.done():
            return
        if error is None or isinstance(error, Gone):
            self._ended.set_result(None)
        else:
            self._ended.set_exception(error)
