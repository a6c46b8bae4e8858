"""Skills: what works for a kind of task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from mneme_server.common.counting import MAX_COUNT
from mneme_server.statistics.distributions import Z95

MAX_SOURCES = 1_000
"""Episodes of a skill that are shown, the latest."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Uses, counted. Rewards and times are summed over those that have one."""

    uses: int = 0
    successes: int = 0
    rewards: int = 0
    reward_sum: float = 0.0
    times: int = 0
    time_sum_ms: int = 0
    last_us: int | None = None

    def __add__(self, other: Tally) -> Tally:
        if not (self.uses and other.uses):  # Without a use there is nothing else, either.
            return self if self.uses else other
        latest = [us for us in (self.last_us, other.last_us) if us is not None]
        return Tally(
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
    def tally(self) -> Tally:
        """What it adds to the skill's record."""
        return Tally(
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
    reported: Tally = field(default_factory=Tally)
    learned: Tally = field(default_factory=Tally)
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
    def record(self) -> Tally:
        """How it did so far."""
        return self.reported + self.learned

    @property
    def value(self) -> float:
        """The rate that filters go by: the record's, else the claimed one, else 0."""
        rate = self.record.rate
        return (self.claimed_rate or 0.0) if rate is None else rate

    def differing(self, other: Skill) -> list[str]:
        """Return the fields in which the content differs."""
        return [name for name in CONTENT if getattr(self, name) != getattr(other, name)]

    def used(self, use: SkillUse) -> Skill:
        """Return it with a use counted."""
        return replace(self, reported=self.reported + use.tally)


CONTENT = (
    "name", "description", "inputs_json", "outputs_json", "code", "project", "tags",
    "metadata_json", "claimed_rate",
)  # fmt: skip
"""What the author of a skill decides."""


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
