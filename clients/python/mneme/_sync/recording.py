"""`record_all`: uploads of any length."""

# Made of ../_async/recording.py by scripts/unasync.py. Do not edit.

from __future__ import annotations

import time
from collections.abc import Iterable

from mneme._core._sync.caller import SyncCaller
from mneme._core.uploading import OnAcknowledged, Recorded, Upload, unacknowledged
from mneme._generated.event import _STREAM_EVENTS as STREAM_EVENTS
from mneme._generated.fields import NewEventFields
from mneme.errors import MnemeError
from mneme.v1.event_service_pb2 import NewEvent


class RecordsAll(SyncCaller):
    """Records any number of events, whatever becomes of connections and servers meanwhile."""

    def record_all(
        self,
        events: Iterable[NewEventFields | NewEvent],
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
        upload = Upload(STREAM_EVENTS, events, kept)
        try:
            while True:
                try:
                    with self._bidirectional(
                        STREAM_EVENTS, upload.requests(), kept.time_left
                    ) as stream:
                        for answer in stream:
                            counts = upload.acknowledge(answer.raw)
                            if on_acknowledged is not None:
                                on_acknowledged(counts)
                    kept.require_all()
                    return kept.recorded
                except MnemeError as error:
                    upload.raise_own_error()
                    pause = kept.pause_after(error)
                    if pause is None:
                        raise
                time.sleep(pause)
        finally:
            upload.end()
