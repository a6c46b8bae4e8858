"""`record_all` of the asyncio client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator

from mneme._core._async.caller import AsyncCaller
from mneme._core.iterables import AnyIterable
from mneme._core.uploading import OnAcknowledged, Recorded, Unacknowledged, unacknowledged
from mneme._generated.event import _STREAM_EVENTS as STREAM_EVENTS
from mneme._generated.fields import NewEventFields
from mneme.errors import MnemeError
from mneme.v1.event_service_pb2 import NewEvent, StreamEventsRequest, StreamEventsResponse


class _Upload:
    """The events of an upload, for one stream after another.

    A task asks the caller for them, so that a stream which breaks off does not cancel the caller's
    iterator.
    """

    def __init__(
        self, events: AnyIterable[NewEventFields | NewEvent], kept: Unacknowledged
    ) -> None:
        self._kept = kept
        self._changed = asyncio.Condition()
        self._sent = 0
        self._stream = 0
        self.asking = asyncio.create_task(self._ask(events))

    async def requests(self) -> AsyncIterator[StreamEventsRequest]:
        """Begin a stream: yield what is not acknowledged, then what is new."""
        self._stream += 1
        stream, self._sent = self._stream, 0
        self._kept.begin()
        while True:
            async with self._changed:
                await self._changed.wait_for(
                    lambda: (
                        stream != self._stream or self._sent < len(self._kept) or self.asking.done()
                    )
                )
                if stream != self._stream:
                    return
                if self._sent == len(self._kept):
                    self.asking.result()  # Raises what the caller's events raised.
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

    async def _ask(self, events: AnyIterable[NewEventFields | NewEvent]) -> None:
        try:
            if isinstance(events, AsyncIterable):
                async for event in events:
                    await self._keep(event)
            else:
                for event in events:
                    await self._keep(event)
        finally:
            asyncio.get_running_loop().call_soon(self._wake)

    async def _keep(self, event: NewEventFields | NewEvent) -> None:
        request = STREAM_EVENTS.build_item(event)
        async with self._changed:
            await self._changed.wait_for(lambda: not self._kept.is_full)
            self._kept.keep(request)
            self._changed.notify_all()

    def _wake(self) -> None:
        async def wake() -> None:
            async with self._changed:
                self._changed.notify_all()

        self._waking = asyncio.create_task(wake())


class AsyncRecordsAll(AsyncCaller):
    """Records any number of events, whatever becomes of connections and servers meanwhile."""

    async def record_all(
        self,
        events: AnyIterable[NewEventFields | NewEvent],
        *,
        on_acknowledged: OnAcknowledged | None = None,
        timeout: float | None = None,
    ) -> Recorded:
        """Record any number of events by `stream_events`, and resume when the stream breaks off.

        What the server has not acknowledged is kept (2,000 events at most) and sent again, under
        the ids that the events have or are given here, so that nothing is lost or doubled.

        Args:
            events: the events, in the asynchronous client also from an asynchronous iterable; they
                are asked for as fast as the server takes them.
            on_acknowledged: called with the counts so far when more has become durable.
            timeout: seconds for all of it; None: no limit. A broken stream is resumed for as long
                as the client waits for a call, counted from the last acknowledgement.

        Returns:
            What became of them.
        """
        connection = self._connection
        kept = unacknowledged(connection.retries, connection.timeout, timeout)
        upload = _Upload(events, kept)
        try:
            while True:
                try:
                    async with self._bidirectional(
                        STREAM_EVENTS, upload.requests(), kept.time_left
                    ) as stream:
                        async for answer in stream:
                            counts = await upload.acknowledge(answer.raw)
                            if on_acknowledged is not None:
                                on_acknowledged(counts)
                    kept.require_all()
                    return kept.recorded
                except MnemeError as error:
                    if upload.asking.done():
                        upload.asking.result()
                    pause = kept.pause_after(error)
                    if pause is None:
                        raise
                await asyncio.sleep(pause)
        finally:
            upload.asking.cancel()
