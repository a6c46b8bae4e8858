"""The parameters of each analysis; which of them are given says which analysis is asked for.

Names, defaults and ranges are those of the API, which checks them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias


class Baseline(IntEnum):
    """What an error's rate after a sequence is compared with: `mneme.v1.Baseline`."""

    ALL_CALLS = 1
    SAME_TOOL = 2


class Bucket(IntEnum):
    """The spans of a series over time: `mneme.v1.Bucket`."""

    BY_RANGE = 0
    HOUR = 1
    DAY = 2
    WEEK = 3


@dataclass(frozen=True, slots=True)
class ErrorPatternsParams:
    """Of ERROR_PATTERNS."""

    tool: str = ""
    min_count: int = 1
    window: int = 3
    examples: int = 3
    baseline: Baseline = Baseline.ALL_CALLS


@dataclass(frozen=True, slots=True)
class ToolSequencesParams:
    """Of TOOL_SEQUENCES. `max_length` None: 4, or `min_length` where that is more; `min_support`
    counts sessions."""

    min_length: int = 1
    max_length: int | None = None
    min_support: int = 3

    @property
    def lengths(self) -> range:
        """The lengths of the sequences that are looked for."""
        longest = max(4, self.min_length) if self.max_length is None else self.max_length
        return range(self.min_length, longest + 1)


@dataclass(frozen=True, slots=True)
class CostAnalysisParams:
    """Of COST_ANALYSIS."""

    model: str = ""
    bucket: Bucket = Bucket.BY_RANGE


@dataclass(frozen=True, slots=True)
class PerformanceTrendsParams:
    """Of PERFORMANCE_TRENDS."""

    bucket: Bucket = Bucket.BY_RANGE


@dataclass(frozen=True, slots=True)
class SessionComparisonParams:
    """Of SESSION_COMPARISON. None: not said; at most one is."""

    recent_days: float | None = None
    recent_sessions: int | None = None


Params: TypeAlias = (
    ErrorPatternsParams
    | ToolSequencesParams
    | CostAnalysisParams
    | PerformanceTrendsParams
    | SessionComparisonParams
)
