"""Rules, what they triggered, and the messages about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum

from mneme_server.common.clock import MINUTE_US
from mneme_server.common.etags import etag_of

MAX_RULES = 200
"""Rules of a tenant: each is evaluated while something is recorded."""
MAX_ENTRIES = 10_000
"""What a tenant's history keeps."""

RECORDED = "event"
"""The channel of a message that is recorded as an event."""
TRIGGERED, RESOLVED, TEST = "alert.triggered", "alert.resolved", "alert.test"
"""What a message says."""


class AlertCondition(IntEnum):
    """What a rule watches. The numbers are those of `mneme.v1.AlertCondition`."""

    ERROR_RATE_EXCEEDS = 1
    COST_EXCEEDS = 2
    LATENCY_EXCEEDS = 3
    EVENT_COUNT_EXCEEDS = 4
    NO_EVENTS_FOR = 5
    SESSION_FAILURES_EXCEED = 6
    ERROR_PATTERN_EXCEEDS = 7
    QUEUE_DEPTH_EXCEEDS = 8
    TREND_EXCEEDS = 9


class WatchedMeasure(IntEnum):
    """A measure that can get worse. The numbers are those of `mneme.v1.AlertTrend`."""

    NONE = 0
    SUCCESS_RATE = 1
    LATENCY = 2
    LATENCY_P95 = 3
    ERROR_RATE = 4


class AlertState(IntEnum):
    """Where a rule stands. The numbers are those of `mneme.v1.AlertState`."""

    OK = 1
    TRIGGERED = 2


class Resolution(IntEnum):
    """Why something is no longer triggered: the numbers of `mneme.v1.AlertResolution`."""

    NOT_YET = 0
    RECOVERED = 1
    DISABLED = 2
    DELETED = 3


class Delivered(IntEnum):
    """What became of a message. The numbers are those of `mneme.v1.DeliveryState`."""

    WAITING = 1
    DELIVERED = 2
    FAILED = 3


@dataclass(frozen=True, slots=True)
class Scope:
    """What a rule looks at. Empty fields do not narrow it; given ones must all match."""

    agent_id: str = ""
    project: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """What to watch, and whom to tell.

    Args:
        resolve_threshold: None: the threshold.
        channels: URLs: `https:`, `http:` or `mailto:`.
        key_id: the API key that set them; "": none did.
        open_entry: the entry of the history that it triggered and that is not resolved; "": none.
        triggered_us: when it triggered last.
        created_us: in microseconds since 1970, as all times.
    """

    id: str
    name: str
    condition: AlertCondition
    enabled: bool = True
    threshold: float = 0.0
    resolve_threshold: float | None = None
    min_events: int = 1
    window_minutes: int = 60
    scope: Scope = field(default_factory=Scope)
    channels: tuple[str, ...] = ()
    key_id: str = ""
    pattern: str = ""
    trend: WatchedMeasure = WatchedMeasure.NONE
    open_entry: str = ""
    triggered_us: int | None = None
    created_us: int = 0
    updated_us: int = 0

    @property
    def window_us(self) -> int:
        """How far back it looks, in microseconds."""
        return self.window_minutes * MINUTE_US

    @property
    def resolves_at(self) -> float:
        """The value at or below which it resolves."""
        return self.threshold if self.resolve_threshold is None else self.resolve_threshold

    @property
    def state(self) -> AlertState:
        """Where it stands."""
        return AlertState.TRIGGERED if self.open_entry else AlertState.OK

    @property
    def etag(self) -> str:
        """What tells this state of the rule from others, what it triggered left aside."""
        return etag_of(self, without=("open_entry", "triggered_us"))

    def differing(self, other: Rule) -> Sequence[str]:
        """Return the fields that a caller gives and that differ."""
        own = (one.name for one in fields(self) if one.name not in _KEPT)
        return [name for name in own if getattr(self, name) != getattr(other, name)]


_KEPT = frozenset({"id", "key_id", "open_entry", "triggered_us", "created_us", "updated_us"})


@dataclass(frozen=True, slots=True)
class AlertEntry:
    """One time that a rule triggered."""

    id: str
    rule_id: str
    rule_name: str
    condition: AlertCondition
    agent_id: str
    triggered_us: int
    current_value: float
    threshold: float
    message: str
    resolved_us: int | None = None
    resolved_value: float | None = None
    resolution: Resolution = Resolution.NOT_YET


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message to a channel, or to be recorded as an event.

    Args:
        position: its place among those of the entry.
        kind: what it says, as `TRIGGERED`.
        body_json: the message, the same at every attempt.
        key_id: the API key that had set the channel when it was made; "": none had.
        error: why the last attempt failed, or why there is none.
        next_us: when it is tried next; None: never again.
    """

    id: str
    entry_id: str
    position: int
    channel: str
    kind: str
    body_json: str
    created_us: int
    key_id: str = ""
    state: Delivered = Delivered.WAITING
    attempts: int = 0
    error: str = ""
    next_us: int | None = None
    delivered_us: int | None = None


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Which entries. What is empty does not filter."""

    rule_id: str = ""
    state: AlertState | None = None
    start_us: int | None = None
    end_us: int | None = None


@dataclass(frozen=True, slots=True)
class Secret:
    """What a tenant's webhooks are signed with: `whsec_` and base64. Until `old_until_us` they are
    signed with the one before, too."""

    text: str
    created_us: int
    old_text: str = ""
    old_until_us: int = 0
