"""Rates compared: after a sequence of tools and elsewhere, in some sessions and in the others. What
makes a difference a finding is decided here."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mneme_server.statistics.distributions import Interval

SIGNIFICANT = 0.05
"""A finding counts from this q-value down: of such findings, at most this share is expected to be
chance (the false discovery rate)."""
MIN_RATIO = 1.1
"""A rate that is less than this many times the other, or more than its inverse, is no finding,
however sure: with enough events every difference is."""


@dataclass(frozen=True, slots=True)
class SequenceEffect:
    """How much likelier something is after a sequence of tools; see the API's comments. The lift is
    infinite or NaN where the effect was never seen elsewhere. `leads_only`: an error is likelier
    only as the sequence leads to the tool that fails, as far as that tool's other calls tell."""

    tools: tuple[str, ...]
    effect: str
    count: int
    effect_count: int
    base_count: int
    base_effect_count: int
    lift: float
    lift_interval: Interval
    q_value: float
    tested: bool
    session_ids: tuple[str, ...]
    leads_only: bool = False

    @property
    def rate(self) -> float:
        """How often the effect followed the sequence, 0 to 1."""
        return self.effect_count / self.count if self.count else 0.0

    @property
    def base_rate(self) -> float:
        """How often it came where the sequence was not seen, 0 to 1."""
        return self.base_effect_count / self.base_count if self.base_count else 0.0

    @property
    def is_likelier(self) -> bool:
        """Whether the effect is likelier after the sequence, not rarer."""
        return self.rate > self.base_rate

    @property
    def has_ratio(self) -> bool:
        """Whether there is a ratio to speak of: the effect was seen on either side."""
        return self.effect_count > 0 and self.base_effect_count > 0

    @property
    def strength(self) -> float:
        """How many effects go with the sequence at the least: those above (or missing below) what
        the rate elsewhere makes expect, taken at the cautious end of the ratio's interval."""
        low, high = self.lift_interval
        if self.is_likelier:
            return self.effect_count * (1 - 1 / low) if low > 1 else 0.0
        return self.count * self.base_rate * (1 - high) if high < 1 else 0.0

    @property
    def is_sure(self) -> bool:
        """Whether the effect is told from chance, and large enough to be worth telling."""
        large = self.lift >= MIN_RATIO or self.lift <= 1 / MIN_RATIO
        return self.tested and self.q_value <= SIGNIFICANT and large and self.strength > 0


@dataclass(frozen=True, slots=True)
class OutcomeSplit:
    """How some sessions ended, and how the others did: those with a known outcome.

    The intervals are of the shares that succeeded; q is NaN where there are too few to be tested.
    """

    sessions: int
    successes: int
    interval: Interval
    other_sessions: int
    other_successes: int
    other_interval: Interval
    difference: Interval
    q_value: float

    @property
    def rate(self) -> float:
        """The share of the sessions that succeeded, 0 to 1."""
        return self.successes / self.sessions if self.sessions else 0.0

    @property
    def other_rate(self) -> float:
        """The share of the others that succeeded, 0 to 1."""
        return self.other_successes / self.other_sessions if self.other_sessions else 0.0

    @property
    def tested(self) -> bool:
        """Whether there were enough sessions."""
        return not math.isnan(self.q_value)

    @property
    def strength(self) -> float:
        """How many sessions ended otherwise than the others' rate makes expect, at the cautious end
        of the difference's interval."""
        low, high = self.difference
        return self.sessions * max(low, -high, 0.0)

    @property
    def is_sure(self) -> bool:
        """Whether the difference is told from chance, and large enough to be worth telling."""
        return self.tested and self.q_value <= SIGNIFICANT and self.strength > 0


@dataclass(frozen=True, slots=True)
class OutcomeGroup:
    """Sessions that have something in common, e.g. a task, and how they ended."""

    key: str
    split: OutcomeSplit
    session_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OutcomeBy:
    """Outcome by something that tells sessions apart: task, tag, project, agent or user."""

    dimension: str
    groups: tuple[OutcomeGroup, ...]
    group_count: int
    q_value: float
    excess: float
    best: OutcomeGroup
    worst: OutcomeGroup

    @property
    def is_sure(self) -> bool:
        """Whether the outcome differs between the groups by more than chance."""
        return not math.isnan(self.q_value) and self.q_value <= SIGNIFICANT and self.excess > 0
