"""The parameters of each analysis, and its results.

Which parameters are given says which analysis is asked for; their names, defaults and ranges are
those of the API, which checks them. What makes a difference a finding is decided here, too: see
`SequenceEffect.is_sure` and `OutcomeSplit.is_sure`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import NamedTuple, TypeAlias

from mneme_server.common.canonical import JsonObject
from mneme_server.statistics.distributions import Interval
from mneme_server.statistics.inference import NO_INTERVAL

EVIDENCE = 10
"""Most sessions or events that are named for a finding."""
SIGNIFICANT = 0.05
"""A finding counts from this q-value down: of such findings, at most this share is expected to be
chance (the false discovery rate)."""
MIN_RATIO = 1.1
"""A rate that is less than this many times the other, or more than its inverse, is no finding,
however sure: with enough events every difference is."""


class Analysis(IntEnum):
    """The question. The numbers are those of `mneme.v1.Analysis`."""

    ERROR_PATTERNS = 1
    TOOL_SEQUENCES = 2
    COST_ANALYSIS = 3
    PERFORMANCE_TRENDS = 4
    SESSION_COMPARISON = 5


class RateBaseline(IntEnum):
    """What an error's rate after a sequence is compared with: `mneme.v1.Baseline`."""

    ALL_CALLS = 1
    SAME_TOOL = 2


class BucketSpan(IntEnum):
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
    baseline: RateBaseline = RateBaseline.ALL_CALLS


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
    bucket: BucketSpan = BucketSpan.BY_RANGE


@dataclass(frozen=True, slots=True)
class PerformanceTrendsParams:
    """Of PERFORMANCE_TRENDS."""

    bucket: BucketSpan = BucketSpan.BY_RANGE


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


class Trend(IntEnum):
    """Where a measure is going. The numbers are those of `mneme.v1.Trend`."""

    UNKNOWN = 0
    IMPROVING = 1
    STABLE = 2
    DEGRADING = 3


@dataclass(frozen=True, slots=True)
class Insight:
    """One finding in words. `q_value` is that of the test behind it; None: it was only counted."""

    type: str
    summary: str
    data: JsonObject
    q_value: float | None = None
    session_ids: tuple[str, ...] = ()
    event_ids: tuple[str, ...] = ()
    strength: float = 0.0
    """How much it bears on, to put the strongest first: see docs/reflect.md."""


@dataclass(frozen=True, slots=True)
class SequenceEffect:
    """How much likelier something is after a sequence of tools; see the API's comments. The lift is
    infinite or NaN where the effect was never seen elsewhere. `expected` is the rate without the
    sequence, all else being equal; `tasks` of how many tasks the sessions with it are, 0 where that
    is not known or says nothing. `leads_only`: an error is likelier
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
    expected: float = math.nan
    tasks: int = 0
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
        return self.rate > self.usual

    @property
    def usual(self) -> float:
        """The rate that the same tool has elsewhere at the same place, or sessions that are alike
        otherwise: `expected` where it is known, else `base_rate`."""
        return self.base_rate if math.isnan(self.expected) else self.expected

    @property
    def has_ratio(self) -> bool:
        """Whether there is a ratio to speak of: the effect was seen on either side."""
        return self.effect_count > 0 and self.base_effect_count > 0 and self.usual > 0

    @property
    def strength(self) -> float:
        """How many effects go with the sequence at the least: those above (or missing below) what
        the rate elsewhere makes expect, taken at the cautious end of the ratio's interval."""
        low, high = self.lift_interval
        if self.is_likelier:
            return self.effect_count * (1 - 1 / low) if low > 1 else 0.0
        return self.count * self.usual * (1 - high) if high < 1 else 0.0

    @property
    def is_sure(self) -> bool:
        """Whether the effect is told from chance, and large enough to be worth telling."""
        large = self.lift >= MIN_RATIO or self.lift <= 1 / MIN_RATIO
        return self.tested and self.q_value <= SIGNIFICANT and large and self.strength > 0


@dataclass(frozen=True, slots=True)
class OutcomeSplit:
    """How some sessions ended, and how the others did: those with a known outcome.

    The intervals are of the shares that succeeded; q is NaN where there are too few to be tested.
    `expected` is the share of the others that succeeded, all else being equal, and `difference` is
    from that; `tasks` of how many tasks the sessions are, 0 where that says nothing.
    """

    sessions: int
    successes: int
    interval: Interval
    other_sessions: int
    other_successes: int
    other_interval: Interval
    difference: Interval
    q_value: float
    expected: float = math.nan
    tasks: int = 0

    @property
    def rate(self) -> float:
        """The share of the sessions that succeeded, 0 to 1."""
        return self.successes / self.sessions if self.sessions else 0.0

    @property
    def other_rate(self) -> float:
        """The share of the others that succeeded, 0 to 1."""
        return self.other_successes / self.other_sessions if self.other_sessions else 0.0

    @property
    def usual(self) -> float:
        """`expected`, where it is known, else `other_rate`."""
        return self.other_rate if math.isnan(self.expected) else self.expected

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


@dataclass(frozen=True, slots=True)
class Recovery:
    """What followed an error in sessions that succeeded in the end; see the API's comments."""

    kind: str
    tools: tuple[str, ...]
    sessions: int
    session_ids: tuple[str, ...]
    error_event_id: str
    event_id: str


@dataclass(frozen=True, slots=True)
class ErrorExample:
    """One occurrence of an error."""

    event_id: str
    session_id: str
    message: str
    timestamp_us: int


@dataclass(frozen=True, slots=True)
class ErrorPattern:
    """Errors with one template."""

    template: str
    tool_name: str
    count: int
    sessions_affected: int
    first_seen_us: int
    last_seen_us: int
    rate: float
    preceding: tuple[SequenceEffect, ...]
    examples: tuple[ErrorExample, ...]
    session_ids: tuple[str, ...]
    outcome: OutcomeSplit | None = None
    recoveries: tuple[Recovery, ...] = ()
    failed_sessions: int = 0
    """Sessions with it that are known to have failed."""
    ends_sessions: bool = False
    """Whether it is how sessions with it ended, and so explains nothing."""
    recovered: Mapping[str, int] = field(default_factory=dict)
    """Sessions that succeeded all the same, by the kind of their recovery."""


@dataclass(frozen=True, slots=True)
class ErrorPatterns:
    """The result of ERROR_PATTERNS."""

    patterns: tuple[ErrorPattern, ...]
    pattern_count: int
    error_count: int
    outcome: OutcomeSplit | None = None


@dataclass(frozen=True, slots=True)
class SequenceCount:
    """A sequence of tools and how often it occurs."""

    tools: tuple[str, ...]
    count: int
    sessions: int
    support: float
    session_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToolLoop:
    """The same call made again and again."""

    tool: str
    arguments: str
    longest_run: int
    runs: int
    session_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool and how it fares."""

    tool: str
    count: int
    sessions: int
    failed: int


@dataclass(frozen=True, slots=True)
class ToolSequences:
    """The result of TOOL_SEQUENCES."""

    common: tuple[SequenceCount, ...]
    before_errors: tuple[SequenceEffect, ...]
    before_success: tuple[SequenceEffect, ...]
    before_failure: tuple[SequenceEffect, ...]
    average_length: float
    loops: tuple[ToolLoop, ...]
    sequence_count: int
    tools: tuple[ToolUse, ...] = ()


class Level(NamedTuple):
    """A measure before or since a step; of a share also what it is a share of."""

    value: float
    hits: int = 0
    trials: int = 0


@dataclass(frozen=True, slots=True)
class TrendStep:
    """A change of a series' level. `interval` is that of its size, in the measure's unit."""

    since_us: int
    before: Level
    after: Level
    interval: Interval
    q_value: float

    @property
    def size(self) -> float:
        """By how much the level changes."""
        return self.after.value - self.before.value


@dataclass(frozen=True, slots=True)
class TrendTest:
    """The test of a series over time. The slope is a day's, in the measure's unit."""

    trend: Trend
    slope_per_day: float
    slope_interval: Interval
    q_value: float
    points: int
    days: float = 0.0
    step: TrendStep | None = None
    """What `trend` is of where a step fits the series better than its slope, or alone is shown."""
    mix: MixEffect | None = None
    """Whether what changes is who did which work."""
    small: bool = False
    """Whether the slope can be told from chance, and is too small to be called a trend."""

    @property
    def change(self) -> float:
        """What the slope makes of the whole range, in the measure's unit."""
        return self.slope_per_day * self.days


@dataclass(frozen=True, slots=True)
class CostShare:
    """A part of the cost."""

    key: str
    cost_usd: float
    share: float
    input_tokens: int
    output_tokens: int
    event_count: int
    session_count: int


@dataclass(frozen=True, slots=True)
class CostPoint:
    """The cost of a span of time."""

    start_us: int
    cost_usd: float
    session_count: int
    cost_per_session: float | None


@dataclass(frozen=True, slots=True)
class CostlyOperation:
    """One of the most expensive events."""

    event_id: str
    session_id: str
    description: str
    cost_usd: float
    model: str


@dataclass(frozen=True, slots=True)
class CostAnalysis:
    """The result of COST_ANALYSIS."""

    total_cost_usd: float
    estimated_cost_usd: float
    average_cost_per_session: float
    total_input_tokens: int
    total_output_tokens: int
    by_model: tuple[CostShare, ...]
    by_tag: tuple[CostShare, ...]
    by_tool: tuple[CostShare, ...]
    by_agent: tuple[CostShare, ...]
    over_time: tuple[CostPoint, ...]
    cost_per_session: TrendTest
    most_expensive: tuple[CostlyOperation, ...]
    unpriced_events: int
    bucket_seconds: int
    costed_sessions: int = 0


@dataclass(frozen=True, slots=True)
class PerformancePoint:
    """The performance in a span of time. None: no data.

    Sessions are of the span in which they started, with all that went wrong in them; `told_count`
    of them have events, and so can tell of errors. Timed events are of the span they are in.
    """

    start_us: int
    session_count: int
    known_count: int
    told_count: int
    timed_count: int
    error_count: int
    success_rate: float | None
    errors_per_session: float | None
    latency_p50_ms: float | None
    latency_p95_ms: float | None
    latency_mean_ms: float | None
    sessions_per_hour: float


@dataclass(frozen=True, slots=True)
class PerformanceTrends:
    """The result of PERFORMANCE_TRENDS."""

    points: tuple[PerformancePoint, ...]
    success_rate: TrendTest
    latency: TrendTest
    latency_p95: TrendTest
    throughput: TrendTest
    error_rate: TrendTest
    bucket_seconds: int
    overall: PerformancePoint | None = None


class MixVerdict(Enum):
    """What a change is one of."""

    WORK = "work"
    MIX = "mix"
    EITHER = "either"


@dataclass(frozen=True, slots=True)
class MixEffect:
    """What is left of a change with the same mix: `change` and its interval, NaN where nothing can
    be said; `dimension` is what differs, "agents", with the words that tell how."""

    verdict: MixVerdict
    dimension: str = ""
    told: str = ""
    change: float = math.nan
    interval: Interval = NO_INTERVAL


@dataclass(frozen=True, slots=True)
class MeasureComparison:
    """One measure in recent and in earlier sessions."""

    measure: str
    recent_mean: float
    earlier_mean: float
    difference: float
    difference_interval: Interval
    effect_size: float
    q_value: float
    trend: Trend
    recent_count: int
    earlier_count: int
    differs: bool = False
    mix: MixEffect | None = None


@dataclass(frozen=True, slots=True)
class ErrorChange:
    """An error that only one side has."""

    template: str
    tool_name: str
    sessions: int
    q_value: float
    session_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SessionComparison:
    """The result of SESSION_COMPARISON."""

    recent_count: int
    earlier_count: int
    split_us: int | None
    comparisons: tuple[MeasureComparison, ...]
    new_errors: tuple[ErrorChange, ...]
    gone_errors: tuple[ErrorChange, ...]
    outcomes: tuple[OutcomeBy, ...] = ()


Result: TypeAlias = (
    ErrorPatterns | ToolSequences | CostAnalysis | PerformanceTrends | SessionComparison
)


@dataclass(slots=True)
class AnalysisFindings:
    """What one analysis found. `caps` says which limits of the computation were hit, `notes` what
    else a reader should know of the figures."""

    result: Result
    insights: list[Insight]
    notes: list[str] = field(default_factory=list)
    caps: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AnalysisCoverage:
    """What an analysis looked at."""

    sessions: int
    events: int
    first_us: int | None
    last_us: int | None
    truncated: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnalysisReport:
    """What one analysis answers."""

    analysis: Analysis
    result: Result
    insights: tuple[Insight, ...]
    coverage: AnalysisCoverage
    caveat: str = ""
