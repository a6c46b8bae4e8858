"""Events, sessions and agents: how sessions ended, and whose they are."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import IntEnum

from mneme_server.common.canonical import JsonObject
from mneme_server.common.texts import composed
from mneme_server.features.events.event_types import ERROR_TYPES

_KEYS = ("userId", "user_id")
_LONGEST = 200
"""What the API allows for a `user_id`."""


class Severity(IntEnum):
    """How bad it is. The numbers are stored and hashed; they are those of `mneme.v1.Severity`."""

    DEBUG = 1
    INFO = 2
    WARN = 3
    ERROR = 4
    CRITICAL = 5


class SessionStatus(IntEnum):
    """Where a session stands. The numbers are those of `mneme.v1.SessionStatus`."""

    ACTIVE = 1
    COMPLETED = 2
    ERROR = 3


class Outcome(IntEnum):
    """How a session or an attempt ended. The numbers are stored; they are those of
    `mneme.v1.Outcome`."""

    UNKNOWN = 0
    SUCCESS = 1
    PARTIAL = 2
    FAILURE = 3


class GradeSource(IntEnum):
    """Who says how a session turned out: of several the larger counts. The numbers are stored; they
    are those of `mneme.v1.GradeSource`."""

    NOBODY = 0
    AGENT = 1
    METADATA = 2
    GRADER = 3
    PERSON = 4


GRADE = "grade"
"""What a grade is called among the things of a tenant, and in its log."""
REWARDS = {Outcome.SUCCESS: 1.0, Outcome.PARTIAL: 0.5, Outcome.FAILURE: 0.0}
"""What an outcome is worth where no reward is recorded."""


@dataclass(slots=True)
class NewEvent:
    """An event as a caller gives it. Empty and None fields were not given.

    `event_type` is as `event_types.type_named` returns it.
    """

    session_id: str
    event_type: str
    id: str = ""
    agent_id: str = ""
    severity: Severity | None = None
    timestamp_us: int | None = None
    text: str = ""
    payload: JsonObject = field(default_factory=dict)
    metadata: JsonObject = field(default_factory=dict)
    name: str = ""
    call_id: str = ""
    error: str = ""
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    duration_us: int | None = None
    searchable: bool | None = None


@dataclass(slots=True)
class Event:
    """A recorded event.

    `sequence` is its place in the session's chain, from 1; `cursor` its place among all events of
    the tenant, in the order of recording. `payload_json` and `metadata_json` are canonical JSON.
    `features.events.chain` tells what `hash`, `hash_version`, `salt` and `commitment` are.
    """

    id: str
    session_id: str
    agent_id: str
    event_type: str
    severity: int
    timestamp_us: int
    text: str
    name: str
    call_id: str
    error: str
    model: str
    input_tokens: int
    output_tokens: int
    cost_usd: float
    duration_us: int | None
    payload_json: str
    metadata_json: str
    searchable: bool
    sequence: int = 0
    recorded_us: int = 0
    prev_hash: str = ""
    hash: str = ""
    hash_version: int = 0
    salt: bytes = b""
    commitment: bytes = b""
    cursor: int = 0

    @property
    def is_error(self) -> bool:
        """Whether it counts as an error of its session."""
        return self.severity >= Severity.ERROR or self.event_type in ERROR_TYPES


@dataclass(slots=True)
class Session:
    """One run of an agent, with its counters.

    `declared` tells a session that was started by a call from one that its events opened. `system`
    is true where Mneme itself recorded all of it: no agent ran it, and nobody is told of it as a
    session of the past. `observed` is true where its end was only watched or copied, and says
    nothing of how it turned out. `outcome` is what `outcome_by` said of how it turned out, and
    `reward` how good that was; None where they did not say.
    """

    id: str
    agent_id: str = ""
    agent_name: str = ""
    user_id: str = ""
    project: str = ""
    tags: tuple[str, ...] = ()
    metadata_json: str = "{}"
    status: SessionStatus = SessionStatus.ACTIVE
    started_us: int = 0
    ended_us: int | None = None
    last_event_us: int | None = None
    event_count: int = 0
    tool_call_count: int = 0
    error_count: int = 0
    llm_call_count: int = 0
    total_cost_usd: float = 0.0
    total_input_tokens: int = 0
    total_output_tokens: int = 0
    head_hash: str = ""
    declared: bool = False
    system: bool = False
    observed: bool = False
    outcome: Outcome = Outcome.UNKNOWN
    outcome_by: GradeSource = GradeSource.NOBODY
    reward: float | None = None

    @property
    def worth(self) -> float | None:
        """Its reward: what was said of it, else what its outcome is worth; None where nobody said
        how it turned out."""
        return REWARDS.get(self.outcome) if self.reward is None else self.reward


@dataclass(frozen=True, slots=True)
class NewGrade:
    """A grade as a caller gives it. Empty and None fields were not given."""

    session_id: str
    id: str = ""
    outcome: Outcome = Outcome.UNKNOWN
    reward: float | None = None
    source: GradeSource = GradeSource.GRADER
    grader: str = ""
    comment: str = ""
    graded_us: int | None = None


@dataclass(frozen=True, slots=True)
class Grade:
    """What one said of how a session turned out; it never changes."""

    id: str
    session_id: str
    outcome: Outcome
    reward: float | None
    source: GradeSource
    grader: str
    comment: str
    graded_us: int
    recorded_us: int = 0


@dataclass(frozen=True, slots=True)
class GradeFilter:
    """Which grades. Empty fields do not filter; given ones must all match."""

    session_id: str = ""
    grader: str = ""


@dataclass(slots=True)
class Agent:
    """Whoever runs sessions, with its counters."""

    id: str
    name: str = ""
    first_seen_us: int = 0
    last_seen_us: int = 0
    session_count: int = 0
    event_count: int = 0
    tool_call_count: int = 0
    error_count: int = 0
    total_cost_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class EventReceipt:
    """What became of one event of a batch."""

    id: str
    sequence: int
    hash: str
    duplicate: bool


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Which sessions. Empty fields do not filter; given ones must all match."""

    agent_id: str = ""
    user_id: str = ""
    project: str = ""
    status: SessionStatus | None = None
    tags: tuple[str, ...] = ()
    start_us: int | None = None
    end_us: int | None = None
    with_system: bool = False
    """Also those that Mneme itself records."""
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events. Empty fields do not filter; given ones must all match."""

    session_id: str = ""
    agent_id: str = ""
    project: str = ""
    """That of their session."""
    event_types: tuple[str, ...] = ()
    min_severity: Severity | None = None
    name: str = ""
    start_us: int | None = None
    end_us: int | None = None

    def matches(self, event: Event, project: str) -> bool:
        """Tell whether an event, whose session is on that project, is one of those."""
        return (
            (not self.project or project == self.project)
            and (not self.session_id or event.session_id == self.session_id)
            and (not self.agent_id or event.agent_id == self.agent_id)
            and (not self.event_types or event.event_type in self.event_types)
            and (self.min_severity is None or event.severity >= self.min_severity)
            and (not self.name or event.name == self.name)
            and (self.start_us is None or event.timestamp_us >= self.start_us)
            and (self.end_us is None or event.timestamp_us < self.end_us)
        )


def user_in(metadata: JsonObject) -> str:
    """Return the user that the metadata of a session or an event names, where only it says so;
    empty when it names none that could be a `user_id`."""
    for key in _KEYS:
        value = metadata.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            # Every digit of an id counts: fifteen are those of other users, too.
            value = str(int(value)) if float(value).is_integer() else f"{value:.15g}"
        if isinstance(value, str) and value.isprintable():
            user = composed(value)
            if 0 < len(user) <= _LONGEST:
                return user
    return ""


def is_of_user(metadata_json: str, user_id: str) -> bool:
    """Tell whether an event of a session that serves a user is that user's: whether its metadata,
    as it is stored, names nobody else. All are where `user_id` is empty."""
    return not user_id or user_in_json(metadata_json) in ("", user_id)


def user_in_json(metadata_json: str) -> str:
    """Return the same of metadata as it is stored; reads it only when it may name one."""
    if metadata_json != "{}" and any(f'"{key}"' in metadata_json for key in _KEYS):
        return user_in(json.loads(metadata_json))
    return ""
