"""Documents, which are memories as the indexes and recall see them, and kinds of memory."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from mneme_server.common.canonical import JsonObject

MAX_KINDS = 256
"""Kinds that a server may know: an index has a byte for a memory's."""
_NAME = re.compile(r"[a-z][a-z_]{0,31}")

NORMAL_IMPORTANCE = 2

CONTEXT_DOCUMENTS = 2
"""How many spoken documents before one in its session make its context. They are never changed, so
the context is not either."""


@dataclass(frozen=True, slots=True)
class MemoryKind:
    """A kind of memory, which a capability brings by its name: there is no central list of numbers.
    What it is, the option `brings_kinds` of its service says.

    Args:
        name: what its memories are stored under, and asked for by.
        spoken: the categories of its memories that are said, one after another: what is said before
            and after them tells what they are about. Others stand for themselves.
        failed: the categories of its memories that report a failure.
        lasting: whether its memories are never removed, so that the feed need not say by name what
            their documents' numbers tell at any time.
        successor: what, of a memory's details, names the id of the one that replaced it; "" where
            none is ever replaced. Recall puts that one before it.
        parts: the kinds of memory that its memories sum up, one a session: searched for alone, they
            are ranked by these, too.
        commits: whether each comes with a commitment to its content, salted, which holds for good.
        of_session: whether each is of the user whom its session serves, and of nobody without one.

    Raises:
        ValueError: the name is none.
    """

    name: str
    spoken: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    lasting: bool = False
    successor: str = ""
    parts: frozenset[MemoryKind] = frozenset()
    commits: bool = False
    of_session: bool = False

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"{self.name!r} is no name for a kind of memory: those are up to 32 lower-case"
                ' letters and "_", a letter first'
            )


@dataclass(slots=True)
class Document:
    """One memory. Storage fills in `doc_id` and `context`; nobody changes it after that.

    `doc_id` is positive, grows with every document written to the tenant and is never used again,
    so a changed text is a new document. `position` is the place in the session, from 1, growing in
    the order of recording; 0 without a session. `importance` is 1 (low) to 4 (critical). `context`
    holds the texts of the spoken documents just before a spoken one in its session, oldest first, a
    line each. `category` is an event's type in lower case, "custom" for one that is not known, or a
    lesson's category; `type` is an event's type as it was given, `name` its tool. `role` says who
    speaks, in lower case: "user", "assistant" or another; "" when nobody said. `severity` is 1
    (debug) to 5 (critical); 0 for what has none. `shape` (64 bits) is the same for texts that
    differ in amounts, dates and ids only; 0 for what is said or learned, where those matter.
    `value` is a number that its kind is filtered by, an episode's reward; 0 where a kind has none.
    `commitment` says of its content what it is without telling it: given by its source where its
    kind `commits`, else once its transaction ends; empty when it is read.
    """

    doc_id: int
    kind: MemoryKind
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
    type: str = ""
    name: str = ""
    role: str = ""
    severity: int = 0
    shape: int = 0
    value: float = 0.0
    tags: tuple[str, ...] = ()
    context: str = ""
    commitment: bytes = b""

    @property
    def spoken(self) -> bool:
        """Whether it is part of what is said in a session."""
        return self.category in self.kind.spoken

    @property
    def failed(self) -> bool:
        """Whether it reports a failure."""
        return self.category in self.kind.failed


OF_SEVERAL = "\x1f"
"""The user of what was made of several users' records: none has this id, so that it is shown to
whoever asks for no user, and to none of them."""


def user_of(sources: Iterable[str]) -> str:
    """Return whose it is that was made of things of these users; "" is nobody."""
    users = set(sources) - {""}
    return users.pop() if len(users) == 1 else OF_SEVERAL if users else ""


class MemoryView(NamedTuple):
    """A memory as it is shown: its document, and what else is known of its source."""

    document: Document
    details: JsonObject


def ids_by_kind(memories: Iterable[MemoryView]) -> dict[str, list[str]]:
    """Return the ids of memories' sources by the names of their kinds."""
    found: dict[str, list[str]] = {}
    for memory in memories:
        found.setdefault(memory.document.kind.name, []).append(memory.document.source_id)
    return found


@dataclass(frozen=True, slots=True)
class DocumentFilter:
    """Which documents may be found. Empty fields do not filter; given ones must all match.

    `start_us` is inclusive, `end_us` exclusive. `tags` must all be present, and one of `any_tags`;
    `categories` and `types` name those that may be. `author` is a role, an agent's id, or the label
    that a spoken text begins with, in any case. With `shared`, what is of no user passes a filter
    on users, what is of no agent one on agents, and what belongs to no project one on projects.
    With `of_no_user` only what is of no user passes. `session_ids` name the sessions of which it
    may be; None for any. `min_value` is the least `value`; None for any. Without
    `include_archived`, of what is archived only those of `archived_kinds` pass.
    """

    kinds: frozenset[MemoryKind] = frozenset()
    agent_id: str = ""
    session_id: str = ""
    user_id: str = ""
    project: str = ""
    categories: frozenset[str] = frozenset()
    importance: int = 0
    start_us: int | None = None
    end_us: int | None = None
    tags: frozenset[str] = field(default_factory=frozenset)
    any_tags: frozenset[str] = field(default_factory=frozenset)
    include_archived: bool = True
    archived_kinds: frozenset[MemoryKind] = frozenset()
    types: frozenset[str] = frozenset()
    min_severity: int = 0
    name: str = ""
    author: str = ""
    shared: bool = False
    of_no_user: bool = False
    session_ids: frozenset[str] | None = None
    min_value: float | None = None
