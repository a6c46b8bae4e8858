"""Spans and log records as they were received, and what is known of those that became events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from mneme_server.common.canonical import Json

Attributes = Mapping[str, Json]
_TOLD = ":texts"
"""Ends the id of what waits for texts: the same span may come again, as a row of its own."""


@dataclass(frozen=True, slots=True)
class Note:
    """An event of a span: something that happened in it, at a time in microseconds."""

    name: str
    time_us: int
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TelemetrySpan:
    """A span, or with `is_log` a log record, which has no end and no children.

    Args:
        trace_id: 32 hexadecimal digits; empty for a log record outside of any trace.
        span_id: 16 hexadecimal digits; a log record's is that of the span it was written in.
        parent_id: of the span around it; empty for the root of a trace.
        name: the span's, or the log record's event name.
        start_us: when it began, in microseconds since 1970.
        end_us: when it ended.
        attributes: those that say something to Mneme.
        notes: its events.
        failed: whether its status is an error.
        error: the status's message.
        service: the resource's `service.name`.
        body: a log record's.
    """

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    start_us: int
    end_us: int
    attributes: Attributes = field(default_factory=dict)
    notes: Sequence[Note] = ()
    failed: bool = False
    error: str = ""
    service: str = ""
    is_log: bool = False
    body: Json = None

    @property
    def is_root(self) -> bool:
        """Whether the trace began with it."""
        return not self.parent_id and not self.is_log


class TelemetryKind(StrEnum):
    """What a span is to Mneme."""

    MODEL = "model"
    """A call of a model."""
    TOOL = "tool"
    """A call of a tool, or of what finds documents."""
    AGENT = "agent"
    """What only holds other spans: an agent, a chain, a workflow."""
    OTHER = "other"
    """Anything else, like a request or a query of a database: it becomes nothing."""
    TRACE = "trace"
    """No span: stands for all of a trace that has no session of its own."""


@dataclass(frozen=True, slots=True)
class Received:
    """A row of the inbox.

    Args:
        id: names the span or log record; the same again is the same row.
        span: what was received.
        session_id: the session that it names itself; empty when it names none.
        user_id: the user that it names.
        due_us: when it becomes events, whatever else has arrived by then.
        patient: whether it waits even when the root is there: for what comes on another way.
        attempts: how often that failed.
    """

    id: str
    span: TelemetrySpan
    session_id: str
    user_id: str
    due_us: int
    patient: bool = False
    attempts: int = 0

    @property
    def is_told(self) -> bool:
        """Whether its call is an event already, and only its texts are waited for."""
        return self.id.endswith(_TOLD)

    def for_texts(self) -> Received:
        """Return the row that waits for the texts of a call that is an event."""
        row_id = self.id if self.is_told else f"{self.id}{_TOLD}"
        return replace(self, id=row_id, patient=True, attempts=0)


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """What is kept of a span whose events are recorded; of a trace, its session.

    Args:
        trace_id: its trace.
        span_id: itself; empty for the trace.
        parent_id: of the span around it.
        session_id: where its events are.
        kind: what it was.
        failed: whether it failed.
    """

    trace_id: str
    span_id: str
    parent_id: str
    session_id: str
    kind: TelemetryKind
    failed: bool = False


@dataclass(slots=True)
class IntakeResult:
    """What became of a batch: how many were taken, and why others were not."""

    taken: int = 0
    refused: dict[str, int] = field(default_factory=dict)

    def refuse(self, reason: str) -> None:
        """Count one that cannot be taken."""
        self.refused[reason] = self.refused.get(reason, 0) + 1

    @property
    def refused_count(self) -> int:
        """How many were not taken."""
        return sum(self.refused.values())

    def reasons(self) -> str:
        """Return why, for people: "2: the trace id is not 16 bytes"."""
        return "; ".join(f"{count}: {reason}" for reason, count in self.refused.items())
