"""The record as analyses read it: by columns, added up, and as digests of sessions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol

from mneme_server.features.events.model import Event, Session

ESCAPE = "\\"
"""What stands in a pattern of `LIKE` before a character that means itself."""


@dataclass(frozen=True, slots=True)
class HistoryFilter:
    """Which part of the record. Empty fields do not filter; given ones must all match.

    `agent_id` is the events'; `user_id`, `project` and `tags` are their sessions'. Times are
    microseconds, the start inclusive, the end exclusive.
    """

    agent_id: str = ""
    user_id: str = ""
    project: str = ""
    tags: tuple[str, ...] = ()
    start_us: int | None = None
    end_us: int | None = None


class Column(Enum):
    """What can be read of every event."""

    SESSION = "session"
    """The session's id."""
    TIME = "time"
    """Microseconds."""
    SEQUENCE = "sequence"
    """Its place in the session's chain."""
    KIND = "kind"
    """The event's type."""
    SEVERITY = "severity"
    CURSOR = "cursor"
    """Its place among all events; names it in `facts` and `payloads`."""
    AGENT = "agent"
    NAME = "name"
    """The tool's name."""
    CALL = "call"
    """What joins a call with its answer."""
    MODEL = "model"
    COST = "cost"
    """US dollars."""
    INPUT_TOKENS = "input_tokens"
    OUTPUT_TOKENS = "output_tokens"
    DURATION = "duration"
    """Microseconds; -1 for none."""
    MESSAGE = "message"
    """The error's message: the beginning and the end of a long one; None for events that are no
    errors."""


class SessionRow(NamedTuple):
    """A session that matches the filter."""

    id: str
    agent_id: str
    tags: tuple[str, ...]
    status: int
    metadata_json: str
    started_us: int
    user_id: str = ""
    project: str = ""
    declared: bool = True
    """Whether it was started or ended as a session, or has events; a handover alone opens one that
    is not."""


class EventFact(NamedTuple):
    """An event as findings show it."""

    id: str
    session_id: str
    timestamp_us: int
    kind: str
    name: str
    model: str
    text: str
    message: str
    input_tokens: int
    output_tokens: int


class HistoryReader(Protocol):
    """The tenant's record, read by columns."""

    def sessions(self, filter_: HistoryFilter) -> Iterator[SessionRow]:
        """Yield the sessions of the filter's user, project and labels, at whatever time."""
        ...

    def scan(
        self, filter_: HistoryFilter, columns: Sequence[Column]
    ) -> Iterator[Sequence[Sequence[Any]]]:
        """Yield the events that match, some thousands at once: a sequence for each column."""
        ...

    def payloads(self, cursors: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Yield these events' cursors and payloads (canonical JSON), by cursor."""
        ...

    def facts(self, cursors: Sequence[int]) -> Mapping[int, EventFact]:
        """Return these events by cursor; texts are cut to what a finding shows."""
        ...


@dataclass(frozen=True, slots=True)
class Totals:
    """What the events of a while come to, added up, for those who watch it. `first_us` is the time
    of the oldest; None without any.

    `timed` of them say how long they took, together `duration_us`; the messages of `matches` errors
    match a pattern.
    """

    count: int = 0
    errors: int = 0
    cost_usd: float = 0.0
    timed: int = 0
    duration_us: float = 0.0
    matches: int = 0
    first_us: int | None = None


class RecordMeasures(Protocol):
    """What the tenant's record comes to. Events that tell of alerts are left out everywhere."""

    def totals(self, filter_: HistoryFilter, message_like: str = "") -> Totals:
        """Return what events come to; `message_like` is a pattern of `LIKE`, with `ESCAPE`."""
        ...

    def matching(self, filter_: HistoryFilter, message_like: str) -> Sequence[int]:
        """Return the cursors of the errors whose messages match a pattern of `LIKE`, as `totals`
        counts them."""
        ...

    def last_us(self, filter_: HistoryFilter, until_us: int) -> int | None:
        """Return when the last event up to a time was."""
        ...

    def next_us(self, filter_: HistoryFilter, after_us: int) -> int | None:
        """Return when the first event after a time is: clocks of agents may be ahead."""
        ...

    def ended(self, filter_: HistoryFilter) -> tuple[int, int]:
        """Return how many sessions ended, and how many of them in failure."""
        ...

    def first_failure_us(self, filter_: HistoryFilter) -> int | None:
        """Return when the first of the sessions that ended in failure did."""
        ...

    def nth_latest_us(self, filter_: HistoryFilter, number: int) -> int | None:
        """Return the time of the event after so many later ones; None if there are not so many."""
        ...

    def endings(self, filter_: HistoryFilter) -> Sequence[tuple[int, bool]]:
        """Return when sessions ended, the earliest first, and whether in failure."""
        ...


def active_us(session: Session) -> int:
    """Return when a session ended, else when it was last active."""
    if session.ended_us is not None:
        return session.ended_us
    return session.started_us if session.last_event_us is None else session.last_event_us


@dataclass(frozen=True, slots=True)
class EventDigest:
    """An event as far as a summary of its session needs it.

    `payload_json` is empty where it was too large.
    """

    id: str
    sequence: int
    event_type: str
    severity: int
    timestamp_us: int
    text: str
    name: str
    call_id: str
    error: str
    model: str
    payload_json: str


@dataclass(frozen=True, slots=True)
class ActivityFilter:
    """Which sessions that agents ran. Empty fields do not filter; given ones must all match.

    A session lies in the range from `start_us` (inclusive) to `end_us` (exclusive) by when it
    ended, or was last active.
    """

    user_id: str = ""
    agent_id: str = ""
    project: str = ""
    start_us: int | None = None
    end_us: int | None = None

    def lets_through(self, session: Session) -> bool:
        """Tell whether the session is one of those."""
        at_us = active_us(session)
        return (
            not session.system
            and self.user_id in ("", session.user_id)
            and self.agent_id in ("", session.agent_id)
            and self.project in ("", session.project)
            and (self.start_us is None or at_us >= self.start_us)
            and (self.end_us is None or at_us < self.end_us)
        )


class ActivityReader(Protocol):
    """The tenant's sessions, and their events one after another."""

    def digests(self, session_id: str, after: int, limit: int) -> Sequence[EventDigest]:
        """Return a session's events in the order of their sequence, after that one."""
        ...

    def recorded_us(self, session_id: str) -> int | None:
        """Return when the session's last event was recorded; None without events."""
        ...

    def errors_of(self, session_ids: Collection[str], limit: int) -> Mapping[str, Sequence[Event]]:
        """Return the latest errors of each session, up to `limit`, the latest first."""
        ...

    def latest(self, filter_: ActivityFilter) -> Session | None:
        """Return the session that was active last."""
        ...

    def count(self, filter_: ActivityFilter) -> int:
        """Return how many sessions there are."""
        ...

    def ids(self, filter_: ActivityFilter, limit: int) -> Sequence[str]:
        """Return up to `limit` of the sessions, in no particular order."""
        ...

    def page(
        self, filter_: ActivityFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Session]:
        """Return sessions, latest start first, that come after the key (started_us, id)."""
        ...
