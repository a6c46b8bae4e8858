"""Spans of time, and series over them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.reflect.compared import SIGNIFICANT
from mneme_server.reflect.history import Ints
from mneme_server.reflect.model import Trend, TrendTest
from mneme_server.reflect.params import Bucket
from mneme_server.statistics.distributions import Interval
from mneme_server.statistics.inference import (
    NO_INTERVAL,
    Floats,
    benjamini_hochberg,
    mann_kendall,
    sum_by,
)

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
WEEK_US = 7 * DAY_US
_MONDAY_US = 4 * DAY_US
"""1970 began on a Thursday; weeks begin on Mondays."""
_SPANS = {Bucket.HOUR: HOUR_US, Bucket.DAY: DAY_US, Bucket.WEEK: WEEK_US}
_COMFORTABLE = 100
"""Where no span is asked for, the shortest that makes at most so many."""
MAX_BUCKETS = 1_000
MIN_CHANGE = 0.05
"""A trend makes at least this share of the measure's level over the range: with enough spans the
test tells changes from chance that nobody would call one."""
MIN_POINTS = 5
"""With fewer points even a perfectly monotone series has a p-value above 0.05."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """Spans of equal length, in UTC, that cover the times from `first_us` to `last_us`."""

    origin_us: int
    span_us: int
    count: int
    first_us: int
    last_us: int

    def place(self, times: Ints) -> Ints:
        """Return the bucket of each time."""
        return (times - self.origin_us) // self.span_us

    def start_us(self, bucket: int) -> int:
        """Return when a bucket begins."""
        return self.origin_us + bucket * self.span_us

    @property
    def seconds(self) -> int:
        """The length of a bucket in seconds."""
        return self.span_us // 1_000_000

    @property
    def starts_days(self) -> Floats:
        """When each begins, in days from the first."""
        days: Floats = np.arange(self.count, dtype=np.float64) * (self.span_us / DAY_US)
        return days

    @property
    def covered(self) -> Floats:
        """The share of each that lies between the first and the last time."""
        starts = self.origin_us + np.arange(self.count, dtype=np.float64) * self.span_us
        inside = np.minimum(starts + self.span_us, self.last_us) - np.maximum(starts, self.first_us)
        share: Floats = np.clip(inside / self.span_us, 0.0, 1.0)
        return share


def buckets_over(first_us: int, last_us: int, asked: Bucket) -> Buckets:
    """Return the buckets of a range.

    Args:
        first_us: the first time, in microseconds.
        last_us: the last time.
        asked: their length; BY_RANGE: the shortest that suits the range, or several weeks.

    Raises:
        InvalidArgument: what was asked for makes too many.
    """
    if asked != Bucket.BY_RANGE:
        found = _aligned(first_us, last_us, _SPANS[asked])
        if found.count > MAX_BUCKETS:
            raise InvalidArgument(
                f"buckets of one {asked.name.lower()} cut the range into {found.count:,} spans, but"
                f" at most {MAX_BUCKETS:,} are shown: choose a longer one, or a shorter range",
                reason=Reason.OUT_OF_RANGE,
                field="bucket",
            )
        return found
    span = HOUR_US
    for span in _SPANS.values():
        found = _aligned(first_us, last_us, span)
        if found.count <= _COMFORTABLE:
            return found
    weeks = -(-found.count // _COMFORTABLE)
    return _aligned(first_us, last_us, weeks * WEEK_US)


def _aligned(first_us: int, last_us: int, span_us: int) -> Buckets:
    offset = _MONDAY_US if span_us % WEEK_US == 0 else 0
    origin = (first_us - offset) // span_us * span_us + offset
    return Buckets(origin, span_us, (last_us - origin) // span_us + 1, first_us, last_us)


@dataclass(frozen=True, slots=True)
class Series:
    """A measure over time: `values` (n,) at `days` (n,); NaN where there is no data."""

    days: Floats
    values: Floats
    rising_is_better: bool
    is_share: bool = False

    @property
    def level(self) -> float:
        """What a change is measured by: the mean; of a share, what is nearer to its end, so that
        from 2 to 4 % and from 98 to 96 % are the same change."""
        mean = float(np.nanmean(np.abs(self.values)))
        return min(mean, 1 - mean) if self.is_share else mean


def trend_tests(series: list[Series]) -> list[TrendTest]:
    """Test each series, with q-values adjusted for all of them."""
    kept = [~np.isnan(s.values) for s in series]
    long = [i for i, k in enumerate(kept) if k.sum() >= MIN_POINTS]
    found = {i: mann_kendall(series[i].days[kept[i]], series[i].values[kept[i]]) for i in long}
    q_values = benjamini_hochberg(np.array([found[i].p_value for i in long]))
    tests = [TrendTest(Trend.UNKNOWN, 0.0, NO_INTERVAL, 1.0, int(k.sum())) for k in kept]
    for i, q_value in zip(long, q_values.tolist(), strict=True):
        days = series[i].days[kept[i]]
        test = TrendTest(
            Trend.STABLE,
            found[i].slope,
            Interval(*found[i].interval),
            q_value,
            tests[i].points,
            float(days[-1] - days[0]),
        )
        if _is_change(test, series[i].level):
            better = (test.slope_per_day > 0) == series[i].rising_is_better
            test = replace(test, trend=Trend.IMPROVING if better else Trend.DEGRADING)
        tests[i] = test
    return tests


def _is_change(test: TrendTest, level: float) -> bool:
    """Tell whether a series surely changes, and by how much is known and worth telling: its slope's
    interval leaves out 0, and it moves the measure by `MIN_CHANGE` of its level."""
    low, high = test.slope_interval
    known = low > 0 or high < 0
    return test.q_value <= SIGNIFICANT and known and abs(test.change) >= MIN_CHANGE * level


def mean_by(place: Ints, values: Floats, count: int) -> Floats:
    """Return the mean of the values in each of `count` places; NaN where there are none."""
    amount = np.bincount(place, minlength=count)
    total = sum_by(place, values, count)
    return np.where(amount > 0, total / np.maximum(amount, 1), np.nan)


def quantiles_by(place: Ints, values: Floats, count: int, shares: tuple[float, ...]) -> Floats:
    """Return the quantiles (k, count) of the values in each place, interpolated linearly; NaN where
    there are none."""
    order = np.lexsort((values, place))
    ordered = values[order]
    amount = np.bincount(place, minlength=count)
    start = np.cumsum(amount) - amount
    found = np.full((len(shares), count), np.nan)
    filled = amount > 0
    for row, share in enumerate(shares):
        at = start[filled] + share * (amount[filled] - 1)
        below = np.floor(at).astype(np.int64)
        above = np.minimum(below + 1, start[filled] + amount[filled] - 1)
        found[row, filled] = ordered[below] + (at - below) * (ordered[above] - ordered[below])
    return found
