"""Episodes and skills: attempts at a task with what came of them, and what works for a task."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import IntEnum
from typing import Any

from mneme_server.common.canonical import canonical_json
from mneme_server.common.counting import MAX_COUNT
from mneme_server.common.etags import etag_of
from mneme_server.engine.corpus.document import MemoryKind
from mneme_server.statistics.distributions import Z95

EPISODE = MemoryKind("episode", failed=frozenset({"failure"}))
"""Attempts at tasks. The category of one is how it ended, its value the reward."""
SKILL = MemoryKind("skill")
"""What works for a kind of task. The value of one is its success rate."""
MADE = "_made_skills"
"""Among what is forgotten: skills that were made of it, if they are still there."""
MAX_REWARD = 1e9
"""The largest reward of an episode, and how far below zero the least one is."""
_EPISODE_CONTENT = (
    "session_id", "agent_id", "user_id", "project", "task", "input", "output", "critique", "reward",
    "success", "latency_ms", "tokens_used", "tools", "tags", "metadata_json", "occurred_us",
)  # fmt: skip
MAX_SOURCES = 1_000
"""Episodes of a skill that are shown, the latest."""
CONTENT = (
    "name", "description", "inputs_json", "outputs_json", "code", "project", "tags",
    "metadata_json", "claimed_rate",
)  # fmt: skip
"""What the author of a skill decides."""


def within_bounds(reward: float) -> float:
    """Return the reward as an episode takes it: squares of larger ones overflow."""
    return min(max(reward, -MAX_REWARD), MAX_REWARD)


@dataclass(frozen=True, slots=True)
class Episode:
    """One attempt at a task. `metadata_json` is canonical JSON; times are microseconds since 1970.

    `filled` names the fields that were taken from the session's record; `memory_ids`, sorted, are
    the memories that it rests on.
    """

    id: str
    task: str
    reward: float
    success: bool
    session_id: str = ""
    agent_id: str = ""
    user_id: str = ""
    project: str = ""
    input: str = ""
    output: str = ""
    critique: str = ""
    latency_ms: int | None = None
    tokens_used: int | None = None
    tools: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    metadata_json: str = "{}"
    occurred_us: int = 0
    created_us: int = 0
    filled: tuple[str, ...] = ()
    memory_ids: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What the episode is found by: what it was about, and what was thought of it.

        Not by its output, which draws attempts at one task apart.
        """
        return f"{self.task}\n{self.critique}".strip()

    @property
    def outcome(self) -> str:
        """How it ended, in a word: "success" or "failure"."""
        return "success" if self.success else "failure"

    @property
    def etag(self) -> str:
        """What tells this state of the episode from others."""
        return etag_of(self)

    def changed(self, changes: Mapping[str, Any]) -> Episode:
        """Return it with new values of some fields; those that differ nobody filled in."""
        new = {name for name, value in changes.items() if value != getattr(self, name)}
        return replace(
            self, **changes, filled=tuple(name for name in self.filled if name not in new)
        )

    def differing(self, other: Episode) -> list[str]:
        """Return the fields in which the content differs."""
        return [name for name in _EPISODE_CONTENT if getattr(self, name) != getattr(other, name)]


@dataclass(frozen=True, slots=True)
class NewEpisode:
    """An episode as a caller gives it. Empty and None fields were not given."""

    id: str = ""
    task: str = ""
    reward: float | None = None
    success: bool | None = None
    session_id: str = ""
    agent_id: str = ""
    user_id: str = ""
    project: str = ""
    input: str = ""
    output: str = ""
    critique: str = ""
    latency_ms: int | None = None
    tokens_used: int | None = None
    tools: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    metadata_json: str = "{}"
    occurred_us: int | None = None
    memory_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EpisodeFilter:
    """Which episodes. Empty fields do not filter; given ones must all match.

    `success` None: however they ended. `start_us` is inclusive, `end_us` exclusive.
    """

    session_id: str = ""
    agent_id: str = ""
    user_id: str = ""
    project: str = ""
    tags: tuple[str, ...] = ()
    success: bool | None = None
    min_reward: float | None = None
    start_us: int | None = None
    end_us: int | None = None


@dataclass(frozen=True, slots=True)
class FoundEpisode:
    """An episode and how well it fits: `score` 0 to 1, `similarity` the cosine if it is known."""

    episode: Episode
    score: float
    similarity: float | None


@dataclass(frozen=True, slots=True)
class CritiquePoint:
    """Something that critiques say, in the words of one of them, and the episodes that say it."""

    text: str
    episode_ids: Sequence[str]
    failures: int
    successes: int


@dataclass(frozen=True, slots=True)
class CritiqueSummary:
    """What critiques say: `points` in order of weight, `more` of which are left out."""

    points: Sequence[CritiquePoint]
    more: int
    with_critique: int
    without_critique: int
    text: str


@dataclass(frozen=True, slots=True)
class UseTally:
    """Uses, counted. Rewards and times are summed over those that have one."""

    uses: int = 0
    successes: int = 0
    rewards: int = 0
    reward_sum: float = 0.0
    times: int = 0
    time_sum_ms: int = 0
    last_us: int | None = None

    def __add__(self, other: UseTally) -> UseTally:
        if not (self.uses and other.uses):  # Without a use there is nothing else, either.
            return self if self.uses else other
        latest = [us for us in (self.last_us, other.last_us) if us is not None]
        return UseTally(
            uses=min(self.uses + other.uses, MAX_COUNT),
            successes=min(self.successes + other.successes, MAX_COUNT),
            rewards=self.rewards + other.rewards,
            reward_sum=self.reward_sum + other.reward_sum,
            times=self.times + other.times,
            time_sum_ms=self.time_sum_ms + other.time_sum_ms,
            last_us=max(latest, default=None),
        )

    @property
    def rate(self) -> float | None:
        """The share of uses that succeeded; None before the first."""
        return self.successes / self.uses if self.uses else None

    @property
    def interval(self) -> tuple[float, float]:
        """The rate's 95 % interval (Wilson's); 0 to 1 before the first use."""
        return rate_interval(self.successes, self.uses)

    @property
    def average_reward(self) -> float | None:
        """The average of the rewards; None without any."""
        return self.reward_sum / self.rewards if self.rewards else None

    @property
    def average_ms(self) -> float | None:
        """The average time in milliseconds; None without any."""
        return self.time_sum_ms / self.times if self.times else None


def rate_interval(successes: int, uses: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson's); 0 to 1 of nothing.

    As `statistics.inference.wilson`, for one share: a search needs hundreds of them.
    """
    if not uses:
        return 0.0, 1.0
    rate, square = successes / uses, Z95**2
    middle = (rate + square / (2 * uses)) / (1 + square / uses)
    spread = math.sqrt(rate * (1 - rate) / uses + square / (4 * uses**2))
    reach = Z95 * spread / (1 + square / uses)
    # At the ends the interval is exact: rounding must not cut the rate itself off.
    low = 0.0 if not successes else min(max(middle - reach, 0.0), rate)
    high = 1.0 if successes == uses else max(min(middle + reach, 1.0), rate)
    return low, high


@dataclass(frozen=True, slots=True)
class SkillUse:
    """A reported use of a skill. Times are microseconds since 1970."""

    id: str
    skill_id: str
    success: bool
    reward: float | None = None
    latency_ms: int | None = None
    used_us: int = 0

    @property
    def tally(self) -> UseTally:
        """What it adds to the skill's record."""
        return UseTally(
            uses=1,
            successes=int(self.success),
            rewards=int(self.reward is not None),
            reward_sum=self.reward or 0.0,
            times=int(self.latency_ms is not None),
            time_sum_ms=self.latency_ms or 0,
            last_us=self.used_us,
        )


@dataclass(frozen=True, slots=True)
class Skill:
    """What works for a kind of task. The `_json` fields are canonical JSON.

    `reported` counts the uses that were reported, `learned` the episodes that it was consolidated
    from, and `findings_json` is what those say. `edited` says that a caller wrote its description.
    `source_ids` are its episodes, the latest first.
    """

    id: str
    name: str
    description: str = ""
    inputs_json: str = "{}"
    outputs_json: str = "{}"
    code: str = ""
    project: str = ""
    tags: tuple[str, ...] = ()
    metadata_json: str = "{}"
    claimed_rate: float | None = None
    reported: UseTally = field(default_factory=UseTally)
    learned: UseTally = field(default_factory=UseTally)
    edited: bool = True
    findings_json: str = "{}"
    source_ids: tuple[str, ...] = ()
    created_us: int = 0
    updated_us: int = 0

    @property
    def text(self) -> str:
        """What the skill is found by."""
        return f"{self.name.replace('_', ' ')}\n{self.description}".strip()

    @property
    def record(self) -> UseTally:
        """How it did so far."""
        return self.reported + self.learned

    @property
    def value(self) -> float:
        """The rate that filters go by: the record's, else the claimed one, else 0."""
        rate = self.record.rate
        return (self.claimed_rate or 0.0) if rate is None else rate

    @property
    def etag(self) -> str:
        """What tells this state of the skill from others, its record left aside."""
        return etag_of(self, without=("reported", "learned", "source_ids")) if self.id else ""

    def differing(self, other: Skill) -> list[str]:
        """Return the fields in which the content differs."""
        return [name for name in CONTENT if getattr(self, name) != getattr(other, name)]

    def used(self, use: SkillUse) -> Skill:
        """Return it with a use counted."""
        return replace(self, reported=self.reported + use.tally)


@dataclass(frozen=True, slots=True)
class SkillFilter:
    """Which skills. Empty fields do not filter; given ones must all match."""

    project: str = ""
    tags: tuple[str, ...] = ()
    min_rate: float = 0.0


class Relationship(IntEnum):
    """How two skills belong together. The numbers are those of `mneme.v1.SkillRelationship`."""

    PREREQUISITE = 1
    ALTERNATIVE = 2
    REFINEMENT = 3
    COMPOSITION = 4


@dataclass(frozen=True, slots=True)
class SkillLink:
    """How two skills belong together. `metadata_json` is canonical JSON; names are for reading."""

    parent_id: str
    child_id: str
    relationship: Relationship
    weight: float = 1.0
    metadata_json: str = "{}"
    parent_name: str = ""
    child_name: str = ""


@dataclass(frozen=True, slots=True)
class FoundSkill:
    """A skill and how well it fits; all from 0 to 1 but `similarity`, the cosine if known."""

    skill: Skill
    score: float
    relevance: float
    similarity: float | None
    links: Sequence[SkillLink] = ()


def score_of(relevance: float, lower_bound: float) -> float:
    """Return what a skill is ranked by: how well it fits, halved if nothing says that it works."""
    score = relevance * (1 + lower_bound) / 2
    assert math.isfinite(score)
    return score


class Trait(IntEnum):
    """Something that attempts may have. The numbers are those of `mneme.v1.SkillTrait`."""

    TOOL = 1
    TAG = 2
    ERROR = 3


@dataclass(frozen=True, slots=True)
class ToolPath:
    """How successes went: the tools they called, and how many did so."""

    tools: tuple[str, ...]
    successes: int


@dataclass(frozen=True, slots=True)
class TraitCounts:
    """How many successes and failures have a trait; `q_value` is 1 where it was not compared."""

    trait: Trait
    name: str
    successes: int
    failures: int
    q_value: float = 1.0


@dataclass(frozen=True, slots=True)
class SkillFindings:
    """What the episodes of a skill say; see `mneme.v1.SkillFindings`."""

    attempts: int
    successes: int
    example_task: str
    example_output: str
    example_id: str
    ways: tuple[ToolPath, ...] = ()
    shared: tuple[TraitCounts, ...] = ()
    differences: tuple[TraitCounts, ...] = ()
    compared: int = 0
    critiques: tuple[CritiquePoint, ...] = ()

    @property
    def failures(self) -> int:
        """Attempts that were no success."""
        return self.attempts - self.successes

    @property
    def json(self) -> str:
        """It as canonical JSON."""
        return canonical_json(asdict(self))


def findings_of(text: str) -> SkillFindings | None:
    """Return the findings that `SkillFindings.json` wrote; None of an empty object."""
    if text == "{}":
        return None
    said: dict[str, Any] = json.loads(text)
    return SkillFindings(
        **said
        | {
            "ways": tuple(ToolPath(tuple(one["tools"]), one["successes"]) for one in said["ways"]),
            "shared": _differences(said["shared"]),
            "differences": _differences(said["differences"]),
            "critiques": tuple(
                CritiquePoint(**one | {"episode_ids": tuple(one["episode_ids"])})
                for one in said["critiques"]
            ),
        }
    )


def _differences(said: Sequence[Mapping[str, Any]]) -> tuple[TraitCounts, ...]:
    return tuple(TraitCounts(**one | {"trait": Trait(one["trait"])}) for one in map(dict, said))
