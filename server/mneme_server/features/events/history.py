"""The record as analyses read it: by columns, added up, and as digests of sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol

from mneme_server.features.events.model import Session

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
    TRACE = "trace"
    """1 for a tool's answer that nothing marks as an error and whose text holds a stack trace."""


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
    outcome: int = 0
    """How it turned out, as `features.events.model.Outcome`."""
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
    match a pattern. `answers` are those of tools, of which `answered` are no errors; `replied` are
    replies of models that are none.
    """

    count: int = 0
    errors: int = 0
    cost_usd: float = 0.0
    timed: int = 0
    duration_us: float = 0.0
    matches: int = 0
    first_us: int | None = None
    answers: int = 0
    answered: int = 0
    replied: int = 0

    @property
    def calls(self) -> int:
        """How many calls ended, well or in an error: of tools; of models where no tool answered;
        where neither did, each event is one."""
        if self.answers:
            return self.errors + self.answered
        return self.errors + self.replied if self.replied else self.count


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
    ended, or was last active. With `shared`, sessions of no user, agent or project pass, too, where
    one is given.
    """

    user_id: str = ""
    agent_id: str = ""
    project: str = ""
    start_us: int | None = None
    end_us: int | None = None
    shared: bool = False

    def lets_through(self, session: Session) -> bool:
        """Tell whether the session is one of those."""
        at_us = active_us(session)
        return (
            not session.system
            and self._passes(self.user_id, session.user_id)
            and self._passes(self.agent_id, session.agent_id)
            and self._passes(self.project, session.project)
            and (self.start_us is None or at_us >= self.start_us)
            and (self.end_us is None or at_us < self.end_us)
        )

    def _passes(self, asked: str, found: str) -> bool:
        return asked in ("", found) or (self.shared and not found)
