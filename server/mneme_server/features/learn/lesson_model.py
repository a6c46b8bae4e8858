"""Lessons."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from mneme_server.common.canonical import canonical_json
from mneme_server.common.texts import composed

_ETAG_DIGITS = 32


class Importance(IntEnum):
    """How much a lesson matters. The numbers are those of `mneme.v1.Importance`."""

    LOW = 1
    NORMAL = 2
    HIGH = 3
    CRITICAL = 4


@dataclass(frozen=True, slots=True)
class Lesson:
    """A distilled insight. `context_json` is canonical JSON; no `agent_id` means all agents."""

    id: str
    title: str
    content: str
    category: str
    importance: Importance = Importance.NORMAL
    agent_id: str = ""
    project: str = ""
    tags: tuple[str, ...] = ()
    context_json: str = "{}"
    source_session_id: str = ""
    source_event_id: str = ""
    access_count: int = 0
    last_accessed_us: int | None = None
    created_us: int = 0
    updated_us: int = 0
    archived_us: int | None = None

    @property
    def text(self) -> str:
        """What the lesson is found by."""
        return f"{self.title}: {self.content}"

    @property
    def etag(self) -> str:
        """What tells this state of the lesson from others: 32 hexadecimal digits.

        Made of what callers change and when, and of no access: reading changes nothing.
        """
        said = [getattr(self, name) for name in CONTENT_FIELDS]
        times = [self.created_us, self.updated_us, self.archived_us]
        state = canonical_json([self.id, *said, *times])
        return hashlib.sha256(state.encode()).hexdigest()[:_ETAG_DIGITS]

    def same_content(self, other: Lesson) -> bool:
        """Whether it says the same, whatever its counts and times."""
        return all(getattr(self, name) == getattr(other, name) for name in CONTENT_FIELDS)


CONTENT_FIELDS = (
    "title", "content", "category", "importance", "agent_id", "project", "tags", "context_json",
    "source_session_id", "source_event_id",
)  # fmt: skip
"""What the author of a lesson decides."""


@dataclass(frozen=True, slots=True)
class Access:
    """How often a lesson was returned, and when it was last, in microseconds since 1970."""

    times: int = 0
    last_us: int = 0

    def __add__(self, other: Access) -> Access:
        return Access(self.times + other.times, max(self.last_us, other.last_us))


@dataclass(frozen=True, slots=True)
class LessonFilter:
    """Which lessons. Empty fields do not filter; given ones must all match."""

    agent_id: str = ""
    category: str = ""
    importance: Importance | None = None
    project: str = ""
    tags: tuple[str, ...] = ()
    include_archived: bool = False


@dataclass(frozen=True, slots=True)
class LessonText:
    """What words are looked for in, and the lesson's place among the others."""

    updated_us: int
    id: str
    title: str
    content: str

    def holds(self, words: Sequence[str]) -> bool:
        """Tell whether title and content hold each of the words, which are `folded`."""
        text = folded(f"{self.title}\n{self.content}")
        return all(word in text for word in words)


def folded(text: str) -> str:
    """Return a text as it is compared: in one case and one of Unicode's forms."""
    return composed(text.casefold())


@dataclass(frozen=True, slots=True)
class FoundLesson:
    """A lesson and how well it fits: `score` 0 to 1, `similarity` the cosine if it is known."""

    lesson: Lesson
    score: float
    similarity: float | None
