"""Lessons, reflections on attempts, and entries of the knowledge log."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import IntEnum

from mneme.visible import visible_line

from mneme_server.common.canonical import Json, canonical_json
from mneme_server.common.clock import MICROSECONDS
from mneme_server.common.etags import etag_of
from mneme_server.common.texts import composed
from mneme_server.engine.corpus.document import MemoryKind
from mneme_server.features.events.model import Outcome

CONTENT_FIELDS = (
    "title", "content", "category", "importance", "agent_id", "project", "tags", "context_json",
    "source_session_id", "source_event_id",
)  # fmt: skip
"""What the author of a lesson decides."""
_ACCESSES = ("access_count", "last_accessed_us")
_REFLECTION_CONTENT = (
    "session_id", "task_description", "outcome", "project", "agent_id", "what_worked",
    "what_did_not_work", "next_strategy", "tags", "related_entity_ids", "applied_reflection_ids",
)  # fmt: skip
_PIECE = re.compile(r"[^\W_]{1,4}|[^\s]")
LESSON = MemoryKind("lesson")
"""Lessons, archived ones too. The category of one is its own."""
REFLECTION = MemoryKind("reflection", of_session=True)
"""Reflections on attempts."""
KNOWLEDGE = MemoryKind("knowledge")
"""Entries of the knowledge log."""


class LessonImportance(IntEnum):
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
    importance: LessonImportance = LessonImportance.NORMAL
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
        """What tells this state of the lesson from others; reading it changes nothing."""
        return etag_of(self, without=_ACCESSES)

    def same_content(self, other: Lesson) -> bool:
        """Whether it says the same, whatever its counts and times."""
        return all(getattr(self, name) == getattr(other, name) for name in CONTENT_FIELDS)


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
    importance: LessonImportance | None = None
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


@dataclass(frozen=True, slots=True)
class Reflection:
    """What an agent concluded from one attempt at a task. `attempt_number` 0: to be counted."""

    id: str
    session_id: str
    task_description: str
    outcome: Outcome
    project: str = ""
    agent_id: str = ""
    attempt_number: int = 0
    what_worked: tuple[str, ...] = ()
    what_did_not_work: tuple[str, ...] = ()
    next_strategy: str = ""
    tags: tuple[str, ...] = ()
    related_entity_ids: tuple[str, ...] = ()
    applied_reflection_ids: tuple[str, ...] = ()
    created_us: int = 0

    @property
    def text(self) -> str:
        """What the reflection is found by."""
        parts = [self.task_description, *self.what_worked, *self.what_did_not_work]
        return " ".join([*parts, self.next_strategy]).strip()

    @property
    def etag(self) -> str:
        """What tells this state of the reflection from others."""
        return etag_of(self)

    @property
    def sayings(self) -> list[str]:
        """What worked, then what did not."""
        return [*self.what_worked, *self.what_did_not_work]

    @property
    def task_key(self) -> str:
        """The task without case and spacing; attempts at the same task have the same."""
        return " ".join(composed(self.task_description).lower().split())

    def differing(self, other: Reflection) -> list[str]:
        """Return the fields in which the content differs, but for times and counted attempts."""
        names = list(_REFLECTION_CONTENT)
        if self.attempt_number and other.attempt_number:
            names.append("attempt_number")
        return [name for name in names if getattr(self, name) != getattr(other, name)]


@dataclass(frozen=True, slots=True)
class ReflectionFilter:
    """Which reflections. Empty fields do not filter; given ones must all match.

    A reflection is of the user whom its session serves.
    """

    session_id: str = ""
    project: str = ""
    agent_id: str = ""
    user_id: str = ""
    outcomes: frozenset[Outcome] = frozenset()
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundReflection:
    """A reflection and how well it fits: `score` 0 to 1, `similarity` the cosine if known."""

    reflection: Reflection
    score: float
    similarity: float | None


@dataclass(frozen=True, slots=True)
class Saying:
    """Something that a reflection says worked or did not."""

    text: str
    reflection_id: str
    created_us: int


@dataclass(frozen=True, slots=True)
class Theme:
    """What several reflections say, in its most typical wording."""

    text: str
    count: int
    reflection_ids: Sequence[str]
    variants: Sequence[str]


@dataclass(frozen=True, slots=True)
class ReflectionMetrics:
    """What reflections were good for; rates are None before they mean anything."""

    store_count: int
    search_count: int
    hit_rate: float | None
    outcome_improvement_rate: float | None
    cross_session_reuse: int


@dataclass(frozen=True, slots=True)
class ReflectionSummary:
    """A summary of reflections."""

    total: int
    success_rate: float
    common_failures: Sequence[Theme]
    effective_strategies: Sequence[Theme]
    recent: Sequence[Reflection]
    metrics: ReflectionMetrics = field(
        default_factory=lambda: ReflectionMetrics(0, 0, None, None, 0)
    )


@dataclass(frozen=True, slots=True)
class ReflectionLimits:
    """How many reflections are kept; beyond them the oldest leave."""

    per_session: int = 20
    per_project: int = 100


def prompt_of(reflections: Sequence[Reflection]) -> str:
    """Return reflections as text for a prompt; empty without any."""
    if not reflections:
        return ""
    lines = ["## Previous Lessons Learned", ""]
    for reflection in reflections:
        outcome = reflection.outcome.name.lower()
        lines.append(f"### Attempt {reflection.attempt_number} ({outcome})")
        lines.append(f"Task: {visible_line(reflection.task_description)}")
        lines += _listed("What worked:", reflection.what_worked)
        lines += _listed("What did not work:", reflection.what_did_not_work)
        if reflection.next_strategy:
            lines.append(f"Next strategy: {visible_line(reflection.next_strategy)}")
        lines.append("")
    return "\n".join(lines)


def _listed(title: str, items: Sequence[str]) -> list[str]:
    return [title, *(f"  - {visible_line(item)}" for item in items)] if items else []


class KnowledgeType(IntEnum):
    """What kind of experience it is. The numbers are those of `mneme.v1.KnowledgeType`."""

    ERROR = 1
    SUCCESS = 2
    PATTERN = 3


@dataclass(frozen=True, slots=True)
class SuccessRate:
    """How often something worked: `successes` times out of `tries`, of which there is one or more.

    Written as "9/10": so it is stored and shown.
    """

    successes: int
    tries: int

    @classmethod
    def parse(cls, text: str) -> SuccessRate | None:
        """Return the rate that a text "X/Y" says; None for an empty one.

        Raises:
            ValueError: it says none.
        """
        if not text:
            return None
        successes, tries = (int(part) for part in text.split("/"))
        if not 0 <= successes <= tries or tries < 1:
            raise ValueError(f"{text!r} is not a success rate")
        return cls(successes, tries)

    def __str__(self) -> str:
        return f"{self.successes}/{self.tries}"

    @property
    def lower_bound(self) -> float:
        """The lower end of the 95 % Wilson interval.

        Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference,
        JASA 22 (1927). It keeps 1/1 (0.21) below 90/100 (0.83).
        """
        z = 1.959964
        n, p = self.tries, self.successes / self.tries
        centre = p + z * z / (2 * n)
        margin = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return max(0.0, centre - margin) / (1 + z * z / n)


@dataclass(frozen=True, slots=True)
class KnowledgeEntry:
    """One line of the knowledge log: of experience. `timestamp_us` 0: not given."""

    project: str
    type: KnowledgeType
    context: str
    lesson: str
    id: str = ""
    agent_id: str = ""
    command: str = ""
    success_rate: SuccessRate | None = None
    tags: tuple[str, ...] = ()
    timestamp_us: int = 0

    @property
    def text(self) -> str:
        """What the entry is found by."""
        command = f" ({self.command})" if self.command else ""
        return f"{self.context}: {self.lesson}{command}"

    @property
    def etag(self) -> str:
        """What tells this state of the entry from others."""
        return etag_of(self)

    def identified(self, now: int) -> KnowledgeEntry:
        """Return the entry with an id made of what was given, and a time."""
        given: list[Json] = [
            self.project, self.agent_id, int(self.type), self.context, self.command, self.lesson,
            str(self.success_rate or ""), list(self.tags), self.timestamp_us,
        ]  # fmt: skip
        digest = hashlib.sha256(canonical_json(given).encode()).hexdigest()
        return replace(self, id=self.id or digest[:32], timestamp_us=self.timestamp_us or now)

    def same_content(self, other: KnowledgeEntry) -> bool:
        """Whether it says the same, whenever it was said."""
        return replace(self, timestamp_us=0) == replace(other, timestamp_us=0)


@dataclass(frozen=True, slots=True)
class KnowledgeFilter:
    """Which entries. Empty fields do not filter; given ones must all match."""

    project: str = ""
    type: KnowledgeType | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundKnowledge:
    """An entry and how well it fits; see `knowledge.Knowledge.query` for the score."""

    entry: KnowledgeEntry
    score: float
    similarity: float | None
    success_lower_bound: float | None


@dataclass(frozen=True, slots=True)
class KnowledgeAnswer:
    """What was found, and the same as text within a token budget."""

    found: Sequence[FoundKnowledge]
    markdown: str
    tokens: int
    omitted: int
    words_only: bool = False


def count_tokens(text: str) -> int:
    """Return the tokens that a text takes, on the safe side of common tokenizers.

    One for each four letters or digits of a word, or part of four, and one for each other visible
    character. Byte-pair tokenizers need fewer for prose and about as many for code.
    """
    return len(_PIECE.findall(text))


def markdown_of(found: Sequence[FoundKnowledge], budget: int) -> KnowledgeAnswer:
    """Return as many of the entries, the best first, as fit the budget, as a numbered list."""
    text = "No relevant memories found." if not found else "No relevant memory fits the budget."
    lines: list[str] = []
    tokens, of_lines = count_tokens(text), 0
    for place, one in enumerate(found, 1):
        line, title = _line(place, one.entry), f"**Relevant Memories ({place}):**"
        of_lines += count_tokens(line)  # No token reaches from one line into the next.
        if of_lines + count_tokens(title) > budget:
            break
        lines.append(line)
        text, tokens = title, of_lines + count_tokens(title)
    if lines:
        text = "\n".join([text, "", *lines])
    return KnowledgeAnswer(found[: len(lines)], text, tokens, len(found) - len(lines))


def _line(place: int, entry: KnowledgeEntry) -> str:
    day = datetime.fromtimestamp(entry.timestamp_us / MICROSECONDS, UTC).date()
    command = f" `{entry.command}`" if entry.command else ""
    rate = f" ({entry.success_rate} success)" if entry.success_rate else ""
    return visible_line(f"{place}. [{day}] {entry.context}: {entry.lesson}{command}{rate}")
