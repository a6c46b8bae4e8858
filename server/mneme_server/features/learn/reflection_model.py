"""Reflections: what an agent concluded from an attempt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mneme.visible import visible_line

from mneme_server.common.texts import composed
from mneme_server.features.events.outcome import Outcome


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
    def task_key(self) -> str:
        """The task without case and spacing; attempts at the same task have the same."""
        return " ".join(composed(self.task_description).lower().split())

    def differing(self, other: Reflection) -> list[str]:
        """Return the fields in which the content differs, but for times and counted attempts."""
        names = list(_CONTENT)
        if self.attempt_number and other.attempt_number:
            names.append("attempt_number")
        return [name for name in names if getattr(self, name) != getattr(other, name)]


_CONTENT = (
    "session_id", "task_description", "outcome", "project", "agent_id", "what_worked",
    "what_did_not_work", "next_strategy", "tags", "related_entity_ids", "applied_reflection_ids",
)  # fmt: skip


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
