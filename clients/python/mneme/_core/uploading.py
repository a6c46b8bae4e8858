"""Recording any number of events over streams that may break off."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from grpc import StatusCode

from mneme._core.aio import each
from mneme._core.iterables import AnyIterable
from mneme._core.resuming import Backoff, patience_of
from mneme._core.rpc import Rpc
from mneme.errors import MnemeError, UnavailableError
from mneme.v1.event_service_pb2 import StreamEventsRequest, StreamEventsResponse

MOST_EVENTS = 2_000
MOST_BYTES = 16 * 1024 * 1024
"""What may be sent without being acknowledged: it is kept, to be sent again. The server writes a
batch when it holds fewer, so it never waits for more than it is sent."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of the events that were recorded so far.

    Attributes:
        acknowledged_count: events that are durable.
        recorded_count: of them, those newly recorded.
        duplicate_count: of them, those that had been recorded before; also such as were recorded
            just before a connection broke, and came again.
    """

    acknowledged_count: int = 0
    recorded_count: int = 0
    duplicate_count: int = 0


class Unacknowledged:
    """The events of an upload that nobody has confirmed yet, over all its streams.

    Threads may use it at once: gRPC takes the events on one of its own.

    Args:
        patience_s: seconds after which a stream that broke off is given up; 0: at once.
        timeout: seconds for all of it; None: no limit.
    """

    def __init__(self, patience_s: float, timeout: float | None) -> None:
        self.recorded = Recorded()
        self._before = Recorded()  # What the streams before this one brought.
        self._kept: deque[tuple[StreamEventsRequest, int]] = deque()
        self._bytes = 0
        self._backoff = Backoff(patience_s, timeout)

    @property
    def time_left(self) -> float | None:
        """Seconds until the deadline; None without one."""
        return self._backoff.time_left

    @property
    def is_full(self) -> bool:
        """Whether acknowledgements must come before more is sent."""
        return len(self._kept) >= MOST_EVENTS or self._bytes >= MOST_BYTES

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, place: int) -> StreamEventsRequest:
        return self._kept[place][0]

    def keep(self, request: StreamEventsRequest) -> None:
        """Add an event that is about to be sent."""
        size = request.ByteSize()
        self._kept.append((request, size))
        self._bytes += size

    def acknowledge(self, answer: StreamEventsResponse) -> int:
        """Let go what is durable; return how many events those are."""
        before = self._before
        count = before.acknowledged_count + answer.acknowledged_count
        fresh = count - self.recorded.acknowledged_count
        for _ in range(fresh):
            self._bytes -= self._kept.popleft()[1]
        self.recorded = Recorded(
            count,
            before.recorded_count + answer.recorded_count,
            before.duplicate_count + answer.duplicate_count,
        )
        if fresh:
            self._backoff.reset()
        return fresh

    def require_all(self) -> None:
        """Check that a stream that has ended well left nothing out.

        Raises:
            UnavailableError: something is not acknowledged; it has to be sent again.
        """
        if self._kept:
            raise UnavailableError(
                "the stream ended before all of its events were acknowledged",
                code=StatusCode.UNAVAILABLE,
            )

    def begin(self) -> None:
        """Begin another stream: its counts start at 0, and it sends what is kept first."""
        self._before = self.recorded

    def pause_after(self, error: MnemeError) -> float | None:
        """Seconds to wait before the next stream; None when the error is final."""
        return self._backoff.pause_after(error)


def unacknowledged(
    retries: int | None, limit_s: float | None, timeout: float | None
) -> Unacknowledged:
    """What is not confirmed, of an upload that begins now.

    Args:
        retries: how often the client sends a call again; 0: nothing is resumed.
        limit_s: the client's time for a call, None: no limit. A stream that broke off is given up
            when nothing was acknowledged for so long since.
        timeout: seconds for the whole upload; None: no limit.
    """
    return Unacknowledged(patience_of(retries, limit_s), timeout)


class Upload:
    """The events of an upload, for one stream after another. For synchronous code.

    Args:
        rpc: StreamEvents.
        events: the caller's events.
        kept: where they are kept until they are acknowledged.
    """

    def __init__(self, rpc: Rpc[Any, Any], events: Iterable[Any], kept: Unacknowledged) -> None:
        self._rpc = rpc
        self._events = iter(events)
        self._kept = kept
        self._state = threading.Condition()  # Guards `_kept`, and what follows.
        self._stream = 0
        self._sent = 0
        self._exhausted = False
        # The caller's iterator is asked by one thread at a time: that of a stream which broke off
        # may still wait for it.
        self._asking = threading.Lock()
        self._error: Exception | None = None

    def requests(self) -> Iterator[StreamEventsRequest]:
        """Begin a stream: yield what is not acknowledged, then what is new."""
        with self._state:
            self._stream += 1
            self._sent = 0
            self._kept.begin()
            self._state.notify_all()
            stream = self._stream
        return iter(lambda: self._next(stream), None)

    def acknowledge(self, answer: StreamEventsResponse) -> Recorded:
        """Let go what is durable."""
        with self._state:
            self._sent -= self._kept.acknowledge(answer)
            self._state.notify_all()
            return self._kept.recorded

    def raise_own_error(self) -> None:
        """Raise what the caller's events raised, if they did."""
        if self._error is not None:
            raise self._error from None

    def end(self) -> None:
        """Send nothing more."""
        with self._state:
            self._stream += 1
            self._state.notify_all()

    def _next(self, stream: int) -> StreamEventsRequest | None:
        """The next request; None at the end, and for a stream that has been left."""
        while True:
            with self._asking:
                with self._state:
                    self._state.wait_for(
                        lambda: (
                            stream != self._stream
                            or self._sent < len(self._kept)
                            or not self._kept.is_full
                        )
                    )
                    if stream != self._stream:
                        return None
                    if self._sent < len(self._kept):
                        self._sent += 1
                        return self._kept[self._sent - 1]
                    if self._exhausted:
                        return None
                self._take()

    def _take(self) -> None:
        """Ask the caller for an event; it may take its time."""
        try:
            request = self._rpc.build_item(next(self._events))
        except StopIteration:
            self._exhausted = True
            return
        except Exception as error:
            self._error = error
            raise
        with self._state:
            self._kept.keep(request)


class AsyncUpload:
    """The same for asyncio.

    A task asks the caller for the events, so that a stream which breaks off does not cancel the
    caller's iterator.
    """

    def __init__(self, rpc: Rpc[Any, Any], events: AnyIterable[Any], kept: Unacknowledged) -> None:
        self._rpc = rpc
        self._kept = kept
        self._changed = asyncio.Condition()
        self._sent = 0
        self._stream = 0
        self._asking = asyncio.create_task(self._ask(events))

    async def requests(self) -> AsyncIterator[StreamEventsRequest]:
        """Begin a stream: yield what is not acknowledged, then what is new."""
        self._stream += 1
        stream, self._sent = self._stream, 0
        self._kept.begin()
        while True:
            async with self._changed:
                await self._changed.wait_for(
                    lambda: (
                        stream != self._stream
                        or self._sent < len(self._kept)
                        or self._asking.done()
                    )
                )
                if stream != self._stream:
                    return
                if self._sent == len(self._kept):
                    self._asking.result()  # Raises what the caller's events raised.
                    return
                self._sent += 1
                request = self._kept[self._sent - 1]
            yield request

    async def acknowledge(self, answer: StreamEventsResponse) -> Recorded:
        """Let go what is durable."""
        async with self._changed:
            self._sent -= self._kept.acknowledge(answer)
            self._changed.notify_all()
        return self._kept.recorded

    def raise_own_error(self) -> None:
        """Raise what the caller's events raised, if they did."""
        if self._asking.done():
            self._asking.result()

    def end(self) -> None:
        """Send nothing more."""
        self._asking.cancel()

    async def _ask(self, events: AnyIterable[Any]) -> None:
        try:
            async for event in each(events):
                await self._keep(event)
        finally:
            asyncio.get_running_loop().call_soon(self._wake)

    async def _keep(self, event: Any) -> None:
        request = self._rpc.build_item(event)
        async with self._changed:
            await self._changed.wait_for(lambda: not self._kept.is_full)
            self._kept.keep(request)
            self._changed.notify_all()

    def _wake(self) -> None:
        async def wake() -> None:
            async with self._changed:
                self._changed.notify_all()

        self._waking = asyncio.create_task(wake())


OnAcknowledged = Callable[[Recorded], object]
