"""Sends planned sessions to a server, many at a time, and keeps count."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeVar

from google.protobuf.timestamp_pb2 import Timestamp

from mneme.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    MnemeError,
    NotFoundError,
    ResourceExhaustedError,
)
from mneme.importing.plan import REPEATED, Planned
from mneme.importing.reading import Broken
from mneme.messages import (
    Lesson,
    NewEvent,
)

_MAX_BATCH_EVENTS = 500
_MAX_BATCH_BYTES = 1024 * 1024
_MAX_PAGE = 1000
_DEFAULT_PAUSE_S = 1.0
# The record is at fault, not the server: the others may well go in.
_REFUSED = (InvalidArgumentError, AlreadyExistsError, FailedPreconditionError)

STARTED_BEFORE = "sessions keep what was first said of them"
ENDED_BEFORE = "sessions keep the status with which they ended"

T = TypeVar("T")


class Sink(Protocol):
    """Where an import goes: the methods of `MnemeClient` that it calls."""

    @property
    def start_session(self) -> Callable[..., Any]:
        """Starts a session."""

    @property
    def record_events(self) -> Callable[..., Any]:
        """Records events, all or none."""

    @property
    def end_session(self) -> Callable[..., Any]:
        """Ends a session."""

    @property
    def record_grades(self) -> Callable[..., Any]:
        """Records grades, all or none."""

    @property
    def list_events(self) -> Callable[..., Any]:
        """Lists the events of a session."""

    @property
    def import_lessons(self) -> Callable[..., Any]:
        """Brings in lessons under their ids."""


@dataclass(slots=True)
class FileReport:
    """What one file holds.

    Args:
        file: its name.
        formats: what its records were recognised as, and how many of each.
        sessions: the sessions that its events belong to.
        events: its events by type ("tool_call"), whether they are new or not.
        lessons: its lessons.
        kept: what was not known and kept as it is.
        bytes: its size, as far as it was read and unpacked; 0 for a pipe.
    """

    file: str
    formats: Counter[str] = field(default_factory=Counter)
    sessions: set[str] = field(default_factory=set)
    events: Counter[str] = field(default_factory=Counter)
    lessons: int = 0
    kept: Counter[str] = field(default_factory=Counter)
    bytes: int = 0

    def count(self, planned: Planned) -> None:
        """Count what was planned of it."""
        if planned.start is not None:
            self.sessions.add(planned.start["session_id"])
        for event in planned.events:
            self.sessions.add(event.session_id)
            self.events[event.event_type] += 1
        self.lessons += len(planned.lessons)
        self.kept += planned.kept


@dataclass(slots=True)
class Totals:
    """What became of an import.

    Args:
        records: records read, broken ones included.
        started: sessions that the records tell of, and that are there now.
        held: sessions that the events went to, or were in already.
        events: events newly recorded.
        duplicates: events that had been recorded before.
        grades: grades newly recorded.
        lessons: lessons that are there now.
        broken: what did not go in, and why.
        notes: what was changed to fit or left out as a repeat, and how often.
        skipped: files of a folder in which nothing was recognised.
        masked: secrets masked, by kind.
        files: what each file holds.
    """

    records: int = 0
    started: set[str] = field(default_factory=set)
    held: set[str] = field(default_factory=set)
    events: int = 0
    duplicates: int = 0
    grades: int = 0
    lessons: int = 0
    broken: list[Broken] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    skipped: list[str] = field(default_factory=list)
    masked: Counter[str] = field(default_factory=Counter)
    files: list[FileReport] = field(default_factory=list)

    @property
    def sessions(self) -> int:
        """How many sessions the records tell of, or have events of."""
        return len(self.started | self.held)

    @property
    def kept(self) -> Counter[str]:
        """What was not known and kept as it is, in all files."""
        return sum((file.kept for file in self.files), Counter())


class Recorder:
    """Collects planned sessions and sends them when enough are there.

    Args:
        sink: the server's client, or what stands for it.
        totals: where to count.
        on_wait: told how many seconds the server asked to wait, and why.
    """

    def __init__(
        self,
        sink: Sink,
        totals: Totals,
        on_wait: Callable[[float, str], None] = lambda seconds, why: None,
    ) -> None:
        self._sink = sink
        self._totals = totals
        self._on_wait = on_wait
        self._waiting: list[Planned] = []
        self._events = 0
        self._bytes = 0
        # Of shared ids: the session in which this import sent them first.
        self._sent: dict[str, str] = {}
        # Of each session: the time of the latest event that has one.
        self._times: dict[str, Timestamp] = {}

    def add(self, planned: Planned) -> None:
        """Take one more; sends what waits when this one does not fit beside it."""
        if planned.shared:
            self._leave_out_what_was_sent(planned)
        self._time_by_neighbours(planned)
        size = sum(event.ByteSize() for event in planned.events)
        if (
            self._events + len(planned.events) > _MAX_BATCH_EVENTS
            or self._bytes + size > _MAX_BATCH_BYTES
        ):
            self.flush()
        self._waiting.append(planned)
        self._events += len(planned.events)
        self._bytes += size

    def _time_by_neighbours(self, planned: Planned) -> None:
        """Give events without a time that of the one before in their session, else of the one
        after: the server's, of now, would put an answer before its question, or years behind it.
        Where nothing of a session has a time, none is made up."""
        first: dict[str, Timestamp] = {}
        for event in reversed(planned.events):
            if event.HasField("timestamp"):
                first[event.session_id] = event.timestamp
        if planned.start is not None and isinstance(planned.start.get("started_at"), datetime):
            started = Timestamp()
            started.FromDatetime(planned.start["started_at"])
            first.setdefault(planned.start["session_id"], started)
        for event in planned.events:
            if event.HasField("timestamp"):
                self._times[event.session_id] = event.timestamp
                continue
            near = self._times.get(event.session_id) or first.get(event.session_id)
            if near is not None:
                event.timestamp.CopyFrom(near)

    def flush(self) -> None:
        """Send everything that waits."""
        batch, self._waiting = self._waiting, []
        self._events = self._bytes = 0
        started = [planned for planned in batch if self._start(planned)]
        for planned in self._record(started):
            self._end(planned)
            self._grade(planned)
            self._bring_lessons(planned)
            self._totals.notes += planned.notes

    def _leave_out_what_was_sent(self, planned: Planned) -> None:
        kept = []
        for event in planned.events:
            if self._sent.setdefault(event.id, event.session_id) == event.session_id:
                kept.append(event)
            else:
                planned.notes[REPEATED] += 1
        planned.events = kept

    def _start(self, planned: Planned) -> bool:
        start = planned.start
        if start is None:
            return True
        try:
            self._patiently(lambda: self._sink.start_session(**start))
        except AlreadyExistsError:
            # The file grew, or came with other options. What tells two records apart that claim
            # the same id are their events.
            self._totals.notes[STARTED_BEFORE] += 1
        except _REFUSED as error:
            self._refuse(planned, error)
            return False
        self._totals.started.add(start["session_id"])
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
                return self._resolve(batch[0], error)
            middle = len(batch) // 2
            return self._record(batch[:middle]) + self._record(batch[middle:])
        return batch

    def _resolve(self, planned: Planned, error: MnemeError) -> list[Planned]:
        """What can be done when a planned session is refused; returns what went in."""
        if isinstance(error, AlreadyExistsError):
            wider = planned.wider() if planned.wider is not None else None
            if wider is not None:
                return self._record([wider]) if self._start(wider) else []
            if planned.shared and len(planned.events) > 0:
                self._record_each(planned)
                return [planned]
        self._refuse(planned, error)
        return []

    def _record_each(self, planned: Planned) -> None:
        """Record events one by one; those that another session already has are the same ones."""
        for event in planned.events:
            try:
                self._send([event])
            except AlreadyExistsError as error:
                if event.id in self._ids_of(event.session_id):
                    self._refuse(planned, error)
                else:
                    self._totals.notes[REPEATED] += 1

    def _ids_of(self, session_id: str) -> set[str]:
        found: set[str] = set()
        token: str | None = None
        while True:
            page = self._sink.list_events(
                session_id=session_id, page_size=_MAX_PAGE, page_token=token
            )
            found.update(event.id for event in page.events)
            token = page.next_page_token
            if not token:
                return found

    def _send(self, events: list[NewEvent]) -> None:
        answer = self._patiently(lambda: self._sink.record_events(events, observed=True))
        self._totals.events += answer.recorded_count
        self._totals.duplicates += answer.duplicate_count
        self._totals.held |= {event.session_id for event in events}

    def _end(self, planned: Planned) -> None:
        end = planned.end
        if end is None:
            return
        try:
            # A session that was seen to end may have turned out in any way.
            self._patiently(lambda: self._sink.end_session(**{"observed": True, **end}))
        except FailedPreconditionError:
            self._totals.notes[ENDED_BEFORE] += 1
        except _REFUSED as error:
            self._refuse(planned, error)

    def _grade(self, planned: Planned) -> None:
        grades = planned.grades
        if not grades:
            return
        try:
            answer = self._patiently(lambda: self._sink.record_grades(grades))
        except (*_REFUSED, NotFoundError) as error:
            self._refuse(planned, error)
        else:
            self._totals.grades += answer.recorded_count

    def _bring_lessons(self, planned: Planned) -> None:
        lessons: list[Lesson] = planned.lessons
        if not lessons:
            return
        try:
            # A lesson that was changed here since is not set back.
            self._patiently(lambda: self._sink.import_lessons(lessons, on_conflict="skip"))
        except _REFUSED as error:
            self._refuse(planned, error)
        else:
            self._totals.lessons += len(lessons)

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
