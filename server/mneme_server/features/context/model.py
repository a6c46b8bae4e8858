"""Sessions: what they came to, and what they leave to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from mneme_server.engine.corpus.document import MemoryKind
from mneme_server.features.events.event_types import EVENT
from mneme_server.features.events.history import active_us
from mneme_server.features.events.model import Outcome, Session
from mneme_server.features.memory.model import Memory

SESSION = MemoryKind("session", parts=frozenset({EVENT}))
"""Summaries of sessions."""


@dataclass(frozen=True, slots=True)
class SessionError:
    """An error that a session had, with those of the same tool that differ from it in values only.

    `event_ids` are the latest ones. `resolved` tells that the tool worked afterwards.
    """

    template: str
    example: str
    tool: str
    count: int
    event_ids: tuple[str, ...]
    resolved: bool


@dataclass(frozen=True, slots=True)
class TouchedFile:
    """A file that a session's tools named, and the first event that did."""

    path: str
    event_id: str
    changed: bool


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """What a session came to. `tools` counts calls, the most used first; `tool_sequence` is in the
    order of the calls, runs of the same tool once. `text` is what the session is found by."""

    session_id: str
    text: str
    topics: tuple[str, ...] = ()
    tools: tuple[tuple[str, int], ...] = ()
    tool_sequence: tuple[str, ...] = ()
    error_summary: str = ""
    errors: tuple[SessionError, ...] = ()
    files: tuple[TouchedFile, ...] = ()
    outcome: Outcome = Outcome.UNKNOWN
    created_us: int = 0
    updated_us: int = 0


@dataclass(frozen=True, slots=True)
class Todo:
    """Something to do. `priority` is 1 (most urgent) to 5; 0: not said."""

    content: str
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided, and why."""

    decision: str
    rationale: str = ""


@dataclass(frozen=True, slots=True)
class LockedContext:
    """A context that was pinned during a session."""

    label: str
    version: str = ""


@dataclass(frozen=True, slots=True)
class Collected:
    """An entry of a handover that nobody gave: the list that it is in, its place there from 0, and
    the events that it comes from."""

    kind: str
    index: int
    event_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Handover:
    """What one session leaves to the next. What is not among `collected` was given."""

    session_id: str
    project: str = ""
    agent_id: str = ""
    progress: tuple[str, ...] = ()
    completed_todos: tuple[str, ...] = ()
    open_todos: tuple[Todo, ...] = ()
    decisions: tuple[Decision, ...] = ()
    locked_contexts: tuple[LockedContext, ...] = ()
    files: tuple[str, ...] = ()
    unresolved_errors: tuple[str, ...] = ()
    collected: tuple[Collected, ...] = ()
    tools: tuple[str, ...] = ()
    duration_s: int = 0
    summary: str = ""
    created_us: int = 0

    @property
    def has_content(self) -> bool:
        """Whether it hands over anything."""
        return bool(
            self.progress
            or self.completed_todos
            or self.open_todos
            or self.decisions
            or self.locked_contexts
            or self.files
            or self.unresolved_errors
        )

    @property
    def given_files(self) -> list[str]:
        """The files that the caller named."""
        found = {entry.index for entry in self.collected if entry.kind == "files"}
        return [path for place, path in enumerate(self.files) if place not in found]

    @property
    def all_collected(self) -> bool:
        """Whether nobody gave anything of it."""
        entries = sum(
            len(entries)
            for entries in (
                self.progress, self.completed_todos, self.open_todos, self.decisions,
                self.locked_contexts, self.files, self.unresolved_errors,
            )
        )  # fmt: skip
        return 0 < entries == len(self.collected)

    @property
    def weight(self) -> int:
        """How much was done: progress and decisions, counted."""
        return len(self.progress) + len(self.decisions)


@dataclass(frozen=True, slots=True)
class KeyEvent:
    """An event that tells what happened in a session."""

    event_id: str
    event_type: str
    text: str
    timestamp_us: int


@dataclass(frozen=True, slots=True)
class PastSession:
    """A session with what is known of it; the summary may not be made yet."""

    session: Session
    summary: SessionSummary | None = None
    handover: Handover | None = None

    @property
    def files(self) -> list[str]:
        """The files that it touched: those of its handover, then those its tools named."""
        named = [file.path for file in self.summary.files] if self.summary else []
        return list(dict.fromkeys([*(self.handover.files if self.handover else ()), *named]))

    @property
    def tools(self) -> list[str]:
        """The tools that it used, the most used first."""
        if self.summary is not None and self.summary.tools:
            return [name for name, _ in self.summary.tools]
        return list(self.handover.tools) if self.handover else []

    @property
    def at_us(self) -> int:
        """When it was handed over or ended, else when it was last active."""
        return self.handover.created_us if self.handover else active_us(self.session)


@dataclass(frozen=True, slots=True)
class ContextSession:
    """A past session that bears on a topic. `score` is 0 to 1; `similarity` the cosine of the
    summary, None where there is none."""

    past: PastSession
    score: float
    similarity: float | None
    key_events: Sequence[KeyEvent] = ()


@dataclass(frozen=True, slots=True)
class Related:
    """A past session that resembles another, and why it ranks where it does."""

    past: PastSession
    similarity: float
    recency: float
    importance: float
    score: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a statement rests on."""

    session_ids: tuple[str, ...]
    event_ids: tuple[str, ...] = ()
    lesson_ids: tuple[str, ...] = ()
    reflection_ids: tuple[str, ...] = ()
    episode_ids: tuple[str, ...] = ()
    skill_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkPattern:
    """Something that recurs over sessions. `subject` is what recurs, for further use."""

    type: str
    description: str
    evidence: Evidence
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A next step that the evidence points to."""

    type: str
    description: str
    evidence: Evidence


class ProfileReason(Enum):
    """Why a memory is in its user's profile; the names are those of `mneme.v1.ProfileReason`."""

    PINNED = "pinned"
    STABLE = "stable"
    RECENT = "recent"


def reason_of(memory: Memory) -> ProfileReason:
    """Return why a memory is in its user's profile."""
    if memory.pinned:
        return ProfileReason.PINNED
    return ProfileReason.STABLE if memory.stable else ProfileReason.RECENT


@dataclass(frozen=True, slots=True)
class ProfileItem:
    """A memory of a user, and the tokens that its line counts."""

    memory: Memory
    tokens: int

    @property
    def reason(self) -> ProfileReason:
        """Why it is there."""
        return reason_of(self.memory)


@dataclass(frozen=True, slots=True)
class Profile:
    """What is known of a user. `left_out` counts what holds and is not there."""

    items: Sequence[ProfileItem] = ()
    text: str = ""
    tokens: int = 0
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Awakening:
    """What an agent needs at the start of a session.

    `later` are the latest sessions after the last one; `more_later` tells that there may be more.
    `not_compared` tells that no related session could be looked for. `tries` are the sessions that
    were asked the same as the last one, it among them; empty where no other was. `profile` is what
    is known of the user.
    """

    last: PastSession | None
    later: Sequence[PastSession] = ()
    more_later: bool = False
    related: Sequence[Related] = ()
    patterns: Sequence[WorkPattern] = ()
    suggestions: Sequence[Suggestion] = ()
    narrative: str = ""
    considered: int = 0
    not_compared: bool = False
    tries: Sequence[PastSession] = ()
    profile: Profile = Profile()


@dataclass(frozen=True, slots=True)
class QueuedSummary:
    """A session whose summary is to be made, and how often that has failed."""

    session_id: str
    attempts: int = 0
