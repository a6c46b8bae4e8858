"""Sends planned sessions to a server, many at a time, and keeps count."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from mneme.client import MnemeClient
from mneme.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    MnemeError,
    ResourceExhaustedError,
)
from mneme.importing.plan import Planned
from mneme.importing.reading import Broken
from mneme.messages import NewEvent

_MAX_BATCH_EVENTS = 500
_MAX_BATCH_BYTES = 1024 * 1024
_DEFAULT_PAUSE_S = 1.0
# The record is at fault, not the server: the others may well go in.
_REFUSED = (InvalidArgumentError, AlreadyExistsError, FailedPreconditionError)

T = TypeVar("T")


@dataclass(slots=True)
class Totals:
    """What became of an import.

    Args:
        records: records read, broken ones included.
        sessions: sessions that are there now.
        events: events newly recorded.
        duplicates: events that had been recorded before.
        broken: what did not go in, and why.
        notes: what was changed to fit, and how often.
    """

    records: int = 0
    sessions: int = 0
    events: int = 0
    duplicates: int = 0
    broken: list[Broken] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)


class Recorder:
    """Collects planned sessions and sends them when enough are there.

    Args:
        client: the server's client.
        totals: where to count.
        on_wait: told how many seconds the server asked to wait, and why.
    """

    def __init__(
        self,
        client: MnemeClient,
        totals: Totals,
        on_wait: Callable[[float, str], None] = lambda seconds, why: None,
    ) -> None:
        self._client = client
        self._totals = totals
        self._on_wait = on_wait
        self._waiting: list[Planned] = []
        self._events = 0
        self._bytes = 0

    def add(self, planned: Planned) -> None:
        """Take one more; sends what waits when this one does not fit beside it."""
        size = sum(event.ByteSize() for event in planned.events)
        if (
            self._events + len(planned.events) > _MAX_BATCH_EVENTS
            or self._bytes + size > _MAX_BATCH_BYTES
        ):
            self.flush()
        self._waiting.append(planned)
        self._events += len(planned.events)
        self._bytes += size

    def flush(self) -> None:
        """Send everything that waits."""
        batch, self._waiting = self._waiting, []
        self._events = self._bytes = 0
        started = [planned for planned in batch if self._start(planned)]
        for planned in self._record(started):
            self._end(planned)
            self._totals.notes += planned.notes

    def _start(self, planned: Planned) -> bool:
        start = planned.start
        if start is None:
            return True
        try:
            self._patiently(lambda: self._client.start_session(**start))
        except _REFUSED as error:
            self._refuse(planned, error)
            return False
        self._totals.sessions += 1
        return True

    def _record(self, batch: list[Planned]) -> list[Planned]:
        """Record the events of a batch; returns those that went in.

        A server takes a batch whole or not at all. When it refuses one, its halves are tried, so
        that only what is at fault stays out.
        """
        if not any(planned.events for planned in batch):
            return batch
        try:
            for events in _chunks(batch):
                self._send(events)
        except _REFUSED as error:
            if len(batch) == 1:
                self._refuse(batch[0], error)
                return []
            middle = len(batch) // 2
            return self._record(batch[:middle]) + self._record(batch[middle:])
        return batch

    def _send(self, events: list[NewEvent]) -> None:
        answer = self._patiently(lambda: self._client.record_events(events))
        self._totals.events += answer.recorded_count
        self._totals.duplicates += answer.duplicate_count

    def _end(self, planned: Planned) -> None:
        end = planned.end
        if end is None:
            return
        try:
            self._patiently(lambda: self._client.end_session(**end))
        except _REFUSED as error:
            self._refuse(planned, error)

    def _patiently(self, call: Callable[[], T]) -> T:
        """Make a call, and wait as long as the server has too much to do."""
        while True:
            try:
                return call()
            except ResourceExhaustedError as error:
                if error.reason == "QUOTA_EXCEEDED":
                    raise  # A full disk does not empty itself.
                pause = error.retry_after or _DEFAULT_PAUSE_S
                self._on_wait(pause, error.message)
            time.sleep(pause)

    def _refuse(self, planned: Planned, error: MnemeError) -> None:
        self._totals.broken.append(Broken(planned.place, f"refused by the server: {error}"))


def _chunks(batch: list[Planned]) -> Iterator[list[NewEvent]]:
    """The events of a batch in portions that one call takes."""
    chunk: list[NewEvent] = []
    size = 0
    for event in (event for planned in batch for event in planned.events):
        length = event.ByteSize()
        if chunk and (len(chunk) == _MAX_BATCH_EVENTS or size + length > _MAX_BATCH_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(event)
        size += length
    if chunk:
        yield chunk
