"""Documents: memories as the indexes and recall see them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum


class Scope(IntEnum):
    """A kind of memory. The numbers are stored; they are those of `mneme.v1.Scope`."""

    EVENT = 1
    SESSION = 2
    LESSON = 3
    REFLECTION = 4
    KNOWLEDGE = 5


NORMAL_IMPORTANCE = 2

CONTEXT_DOCUMENTS = 2
"""How many spoken documents before one in its session make its context. They are never changed, so
the context is not either."""

SPOKEN = frozenset({"message", "llm_call", "llm_response", "custom", ""})
"""Categories of events that are said, one after another: what is said before and after them tells
what they are about. A tool's call, answer or error stands for itself."""
FAILED = frozenset({"tool_error", "error"})
"""Categories of events that report a failure."""


@dataclass(slots=True)
class Document:
    """One memory. Storage fills in `doc_id` and `context`; nobody changes it after that.

    `doc_id` is positive, grows with every document written to the tenant and is never used again,
    so a changed text is a new document. `position` is the place in the session, from 1, growing in
    the order of recording; 0 without a session. `importance` is 1 (low) to 4 (critical). `context`
    holds the texts of the spoken documents just before a spoken one in its session, oldest first, a
    line each. `category` is an event's type in lower case, or a lesson's category.
    """

    doc_id: int
    scope: Scope
    source_id: str
    text: str
    timestamp_us: int
    session_id: str = ""
    position: int = 0
    agent_id: str = ""
    user_id: str = ""
    project: str = ""
    category: str = ""
    importance: int = NORMAL_IMPORTANCE
    archived: bool = False
    tags: tuple[str, ...] = ()
    context: str = ""

    @property
    def spoken(self) -> bool:
        """Whether it is part of what is said in a session."""
        return self.scope == Scope.EVENT and self.category in SPOKEN

    @property
    def failed(self) -> bool:
        """Whether it is an event that reports a failure."""
        return self.scope == Scope.EVENT and self.category in FAILED


@dataclass(frozen=True, slots=True)
class DocumentFilter:
    """Which documents may be found. Empty fields do not filter; given ones must all match.

    `start_us` is inclusive, `end_us` exclusive. `tags` must all be present,
    `categories` name those that may be.
    """

    scopes: frozenset[Scope] = frozenset()
    agent_id: str = ""
    session_id: str = ""
    user_id: str = ""
    project: str = ""
    categories: frozenset[str] = frozenset()
    importance: int = 0
    start_us: int | None = None
    end_us: int | None = None
    tags: frozenset[str] = field(default_factory=frozenset)
    include_archived: bool = True
