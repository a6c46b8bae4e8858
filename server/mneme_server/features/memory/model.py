"""Memories."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum

from mneme_server.common.canonical import canonical_json
from mneme_server.common.etags import etag_of
from mneme_server.common.passages import QuotedPassage
from mneme_server.common.texts import composed
from mneme_server.engine.corpus.document import MemoryKind
from mneme_server.features.memory.values import ValueRange

_DIGEST_BYTES = 16
CONTENT_FIELDS = (
    "text", "user_id", "agent_id", "project", "tags", "metadata_json", "importance", "since_us",
    "pinned",
)  # fmt: skip
"""What the author of a memory decides, but for what it supersedes."""
SAYING_FIELDS = frozenset(("text", "user_id", "agent_id", "project"))
"""What decides whether two memories say the same; see `Memory.digest`."""
MEMORY = MemoryKind("memory", successor="superseded_by")
"""Memories, superseded ones too: those are archived."""


OFTEN = 2
"""On how many further days something was said again that was confirmed often."""
_PINNED = 1_000_000
_BY_IMPORTANCE = 100_000


class Importance(IntEnum):
    """How much a memory matters. The numbers are those of `mneme.v1.Importance`."""

    LOW = 1
    NORMAL = 2
    HIGH = 3
    CRITICAL = 4


@dataclass(frozen=True, slots=True)
class Memory:
    """Something remembered; times are in microseconds since 1970.

    `metadata_json` is canonical JSON. `since_us` is when it began to hold. `supersedes` are the ids
    of those that it replaced itself, sorted; `superseded_by` and `until_us` tell what replaced it,
    and since when that holds. `confirmed_count` is on how many further days the same was said
    again; `last_said_us` is then the beginning of the last of the days, else as `since_us`.
    """

    id: str
    text: str
    user_id: str = ""
    agent_id: str = ""
    project: str = ""
    tags: tuple[str, ...] = ()
    metadata_json: str = "{}"
    importance: Importance = Importance.NORMAL
    since_us: int = 0
    supersedes: tuple[str, ...] = ()
    superseded_by: str = ""
    until_us: int | None = None
    created_us: int = 0
    updated_us: int = 0
    pinned: bool = False
    confirmed_count: int = 0
    last_said_us: int = 0

    @property
    def stable(self) -> bool:
        """Whether it matters much, or was confirmed often."""
        return self.importance >= Importance.HIGH or self.confirmed_count >= OFTEN

    @property
    def standing(self) -> int:
        """What it is brought by in its user's profile, the greatest first: pinned ones, then stable
        ones by importance and confirmations; 0 for others, which go by their time alone."""
        if not (self.pinned or self.stable):
            return 0
        confirmed = min(self.confirmed_count, _BY_IMPORTANCE - 1)
        return _PINNED * self.pinned + _BY_IMPORTANCE * self.importance + confirmed

    @property
    def holds(self) -> bool:
        """Whether nothing supersedes it."""
        return not self.superseded_by

    @property
    def digest(self) -> bytes:
        """What memories share that say the same of the same user, for the same agent and project.

        16 bytes.
        """
        said = canonical_json([said_as(self.text), self.user_id, self.agent_id, self.project])
        return hashlib.sha256(said.encode()).digest()[:_DIGEST_BYTES]

    @property
    def etag(self) -> str:
        """What tells this state of the memory from others."""
        return etag_of(self)

    def differing(self, other: Memory) -> list[str]:
        """Return the names of the content's fields in which another differs."""
        return [name for name in CONTENT_FIELDS if getattr(self, name) != getattr(other, name)]


UNSAID: Mapping[str, object] = {
    "tags": (), "metadata_json": "{}", "importance": Importance.NORMAL, "pinned": False,
}  # fmt: skip
"""What fields of the content hold of which nothing was said."""


def said_as(text: str) -> str:
    """Return a text without what makes no difference to what it says: white space, the case of its
    first letter, a full stop at its end, the form of Unicode's it is in."""
    words = " ".join(composed(text).split())
    if words.endswith(".") and not words.endswith(".."):
        words = words[:-1].rstrip()
    return words[:1].lower() + words[1:] or text


@dataclass(frozen=True, slots=True)
class Updated:
    """A memory after a change.

    `known_id` is the id of another memory that holds and says the same, "" if there is none or the
    change was of nothing that says something.
    """

    memory: Memory
    known_id: str = ""


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory to store, with what is to be done with it.

    `memory` may lack an id; since when it holds is `since_us`, None for now. Its `supersedes` are
    ids of memories of the same user. With `keep_copy` it is stored although another says the same.
    """

    memory: Memory
    since_us: int | None = None
    keep_copy: bool = False

    def completed(self, memory_id: str, now: int) -> NewMemory:
        """Return it with what was left open: this id, and times."""
        since_us = now if self.since_us is None else self.since_us
        whole = replace(
            self.memory,
            id=self.memory.id or memory_id,
            since_us=since_us,
            last_said_us=since_us,
            created_us=now,
            updated_us=now,
        )
        return replace(self, memory=whole)

    def differing(self, stored: Memory) -> list[str]:
        """Return the names of the content's fields in which a stored memory differs.

        Since when it holds may not be given; and that one is pinned now that was not to be when it
        was stored is no difference: what it supersedes, or somebody since, has pinned it.
        """
        given = {"since_us": self.since_us is not None, "pinned": self.memory.pinned}
        return [name for name in self.memory.differing(stored) if given.get(name, True)]

    def contradicted(self, stored: Memory) -> list[str]:
        """Return the names of the content's fields that were given and in which a stored one
        differs."""
        return [
            name
            for name in self.differing(stored)
            if name not in UNSAID or getattr(self.memory, name) != UNSAID[name]
        ]


@dataclass(frozen=True, slots=True)
class MemoryFilter:
    """Which memories. Empty fields do not filter; given ones must all match.

    `tags` must all be present, of `any_tags` one; `start_us` (inclusive) and `end_us` (exclusive)
    bound since when they hold; of each of `values` the metadata holds one.
    """

    user_id: str = ""
    agent_id: str = ""
    project: str = ""
    tags: tuple[str, ...] = ()
    any_tags: tuple[str, ...] = ()
    values: tuple[ValueRange, ...] = ()
    start_us: int | None = None
    end_us: int | None = None
    include_superseded: bool = False
    only_pinned: bool = False


@dataclass(frozen=True, slots=True)
class OfUser:
    """Whose profile: a user's, of what this agent and every agent remembers, about this project and
    none; "" for whichever agent and project. If not `shared`, of the agent and project alone.
    """

    user_id: str
    agent_id: str = ""
    project: str = ""
    shared: bool = True


class MemoryPart(Enum):
    """What of a memory is read as one text."""

    TEXT = "text"
    METADATA = "metadata"


@dataclass(frozen=True, slots=True)
class JoinedTexts:
    """What was read of `count` memories: what was asked for, in UTF-8 with NUL between them.
    `last_id` is the id that is last in order."""

    count: int = 0
    joined: bytes = b""
    last_id: str = ""


@dataclass(frozen=True, slots=True)
class FoundMemory:
    """A memory and the cosine of its vector with another.

    If they were reranked: `uplift` is what a causal edge says of it, None if none does, and `score`
    what it was ranked by. `passage` is what of a long text bears most on the query.
    """

    memory: Memory
    similarity: float
    uplift: float | None = None
    score: float | None = None
    passage: QuotedPassage | None = None


@dataclass(slots=True)
class Figures:
    """What storing took, in seconds, and where vectors came from; adds up.

    `embedded` counts memories stored with their vectors.
    """

    cache_hits: int = 0
    cache_misses: int = 0
    queued: int = 0
    embedded: int = 0
    embedding_s: float = 0.0
    writing_s: float = 0.0

    def __iadd__(self, other: Figures) -> Figures:
        self.cache_hits += other.cache_hits
        self.cache_misses += other.cache_misses
        self.queued += other.queued
        self.embedded += other.embedded
        self.embedding_s += other.embedding_s
        self.writing_s += other.writing_s
        return self

    @property
    def vectors_per_second(self) -> float:
        """Memories stored with their vectors, by the time that all of it took."""
        took = self.embedding_s + self.writing_s
        return self.embedded / took if took else 0.0


@dataclass(frozen=True, slots=True)
class MemoryReceipt:
    """What became of a memory that was to be stored: where its text is, and whether it was there.

    `differing` are fields of the content in which the one that was there differs.
    """

    memory: Memory
    known: bool
    differing: Sequence[str] = ()


@dataclass(slots=True)
class Stored:
    """What became of memories that were to be stored: a receipt for each, in their order.

    `superseded` are those that were marked, as they are now; `similar` the closest older ones, None
    when they are not known.
    """

    receipts: list[MemoryReceipt] = field(default_factory=list)
    superseded: list[Memory] = field(default_factory=list)
    similar: Sequence[FoundMemory] | None = ()
    figures: Figures = field(default_factory=Figures)


@dataclass(frozen=True, slots=True)
class Deleted:
    """What was deleted, or would be: ids, sorted; `vectors` counts theirs.

    `restored` are those that a deleted one superseded and that hold again; `resting` the ids of
    what rested on them, sorted, by what it is called.
    """

    memory_ids: Sequence[str]
    restored: Sequence[str]
    vectors: int
    resting: Mapping[str, Sequence[str]] = field(default_factory=dict)
