"""`record_all`: uploads of any length."""

from __future__ import annotations

import asyncio

from mneme._core._async.caller import AsyncCaller
from mneme._core.iterables import AnyIterable
from mneme._core.uploading import AsyncUpload, OnAcknowledged, Recorded, unacknowledged
from mneme._generated.event import _STREAM_EVENTS as STREAM_EVENTS
from mneme._generated.fields import NewEventFields
from mneme.errors import MnemeError
from mneme.v1.event_service_pb2 import NewEvent


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
        upload = AsyncUpload(STREAM_EVENTS, events, kept)
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
                    upload.raise_own_error()
                    pause = kept.pause_after(error)
                    if pause is None:
                        raise
                await asyncio.sleep(pause)
        finally:
            upload.end()
