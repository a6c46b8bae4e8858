"""Series over time: measures in spans of equal length, and tests of whether they rise or fall,
evenly or at one step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mneme_server.common.clock import DAY_US, HOUR_US
from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.features.reflect.history import Array, Ints
from mneme_server.features.reflect.mix import Mix
from mneme_server.features.reflect.model import (
    SIGNIFICANT,
    BucketSpan,
    Level,
    MixVerdict,
    Trend,
    TrendStep,
    TrendTest,
)
from mneme_server.statistics.distributions import Z95, Interval
from mneme_server.statistics.drift import Changes, changes
from mneme_server.statistics.inference import (
    NO_INTERVAL,
    Floats,
    benjamini_hochberg,
    mann_kendall,
    rate_difference,
    sum_by,
    welch,
)

WEEK_US = 7 * DAY_US
_MONDAY_US = 4 * DAY_US
"""1970 began on a Thursday; weeks begin on Mondays."""
_SPANS = {BucketSpan.HOUR: HOUR_US, BucketSpan.DAY: DAY_US, BucketSpan.WEEK: WEEK_US}
_COMFORTABLE = 100
"""Where no span is asked for, the shortest that makes at most so many."""
MAX_BUCKETS = 1_000
MIN_CHANGE = 0.05
"""A change makes at least this share of the measure's level: with enough spans the test tells
changes from chance that nobody would call one."""
MIN_POINTS = 5
"""With fewer points even a perfectly monotone series has a p-value above 0.05."""
_MIN_STEP_POINTS = 8
"""With fewer points even a perfect step has."""
_TREND = 1.4
"""How much more weight a trend has than a step, the two together having 2: of Genovese, Roeder and
Wasserman's (2006) weights, since what changes evenly is harder to see."""
_BEATS = 4
UNTESTED = TrendTest(Trend.UNKNOWN, 0.0, NO_INTERVAL, 1.0, 0)


@dataclass(frozen=True, slots=True)
class Buckets:
    """Spans of equal length, in UTC, that cover the times from `first_us` to `last_us`."""

    origin_us: int
    span_us: int
    count: int
    first_us: int
    last_us: int

    @property
    def together(self) -> Buckets:
        """One that covers all of these."""
        return replace(self, span_us=self.span_us * self.count, count=1)

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

    def rhythm(self, spans: Ints) -> Floats:
        """Return what is known of some spans (k,) by the calendar, shape (k, d): 1; of days also
        the day of the week, of hours the hour of the day as two waves, and whether it is a
        weekend."""
        start = self.origin_us + spans * self.span_us
        columns = [np.ones(len(spans))]
        weekday = (start - _MONDAY_US) // DAY_US % 7
        if self.span_us == DAY_US:
            columns += [(weekday == day).astype(np.float64) for day in range(1, 7)]
        elif self.span_us < DAY_US:
            angle = 2 * np.pi * (start % DAY_US) / DAY_US
            columns += [wave(turn * angle) for turn in (1, 2) for wave in (np.sin, np.cos)]
        found = np.column_stack(columns)
        varied = np.ptp(found, axis=0) > 0
        varied[0] = True
        return found[:, varied]

    @property
    def covered(self) -> Floats:
        """The share of each that lies between the first and the last time."""
        starts = self.origin_us + np.arange(self.count, dtype=np.float64) * self.span_us
        inside = np.minimum(starts + self.span_us, self.last_us) - np.maximum(starts, self.first_us)
        share: Floats = np.clip(inside / self.span_us, 0.0, 1.0)
        return share


def buckets_over(first_us: int, last_us: int, asked: BucketSpan) -> Buckets:
    """Return the buckets of a range.

    Args:
        first_us: the first time, in microseconds.
        last_us: the last time.
        asked: their length; BY_RANGE: the shortest that suits the range, or several weeks.

    Raises:
        InvalidArgument: what was asked for makes too many.
    """
    if asked != BucketSpan.BY_RANGE:
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


def counts_by(place: Ints, counts: Ints, size: int) -> Ints:
    """Return the sum of the counts in each of `size` places."""
    summed: Ints = np.zeros(size, np.int64)
    np.add.at(summed, place, counts)
    return summed


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


class ShareCounts(NamedTuple):
    """What a share is of in each span: hits (n,) among trials (n,)."""

    hits: Ints
    trials: Ints


class Scores(NamedTuple):
    """What tells whether a measure changes: of each span the mean of its sessions' scores (n,), and
    how many these are (n,)."""

    means: Floats
    counts: Floats
    spread: float = 0.0
    """The variance of scores within spans; 0: not known."""


@dataclass(frozen=True, slots=True)
class Series:
    """A measure in each span: `values` (n,), NaN where there is no data; of a share its counts. The
    tests take `scores`, else the values as they are."""

    values: Floats
    rising_is_better: bool
    counts: ShareCounts | None = None
    scores: Scores | None = None

    @property
    def level(self) -> float:
        """What a change is measured by: the mean; of a share, what is nearer to its end, so that
        from 2 to 4 % and from 98 to 96 % are the same change."""
        mean = float(np.nanmean(np.abs(self.values)))
        return min(mean, 1 - mean) if self.counts else mean


def ranks(values: Array) -> Floats:
    """Return the ranks (n,) of values, 0 to 1, those that are the same sharing theirs: what a few
    values far off do not move."""
    _, place, tied = np.unique(values, return_inverse=True, return_counts=True)
    found: Floats = (np.cumsum(tied) - (tied - 1) / 2)[place] / max(len(values), 1)
    return found


def scores_by(place: Ints, values: Floats, size: int) -> Scores:
    """Return the mean of the values in each of `size` places, and how many there are."""
    counts = np.bincount(place, minlength=size).astype(np.float64)
    means = mean_by(place, values, size)
    freedom = len(values) - int((counts > 0).sum())
    within = float(((values - means[place]) ** 2).sum()) / freedom if freedom > size / 2 else 0.0
    return Scores(means, counts, within)


def trend_tests(series: list[Series], buckets: Buckets) -> list[TrendTest]:
    """Test each series for a trend and for a step, with q-values adjusted for all those tests."""
    kept = [np.flatnonzero(~np.isnan(s.values)) for s in series]
    told = [i for i, spans in enumerate(kept) if len(spans) >= MIN_POINTS]
    # What never varies is stable without a test, and takes nothing from the power of the others.
    long = [i for i in told if np.ptp(series[i].values[kept[i]]) > 0]
    longer = [i for i in long if len(kept[i]) >= _MIN_STEP_POINTS]
    at = {i: (buckets.starts_days[kept[i]], series[i].values[kept[i]]) for i in long}
    trends = {i: mann_kendall(*at[i]) for i in long}
    changed = {i: _changes(series[i], kept[i], buckets) for i in longer}
    # A series is asked for a trend first.
    p_values = [
        min(1.0, changed[i].trend_p / _TREND if i in changed else trends[i].p_value) for i in long
    ] + [min(1.0, changed[i].step_p / (2 - _TREND)) for i in longer]
    q_values = benjamini_hochberg(np.array(p_values)).tolist()
    step_q_values = dict(zip(longer, q_values[len(long) :], strict=True))
    tests = [replace(UNTESTED, points=len(spans)) for spans in kept]
    for i in told:
        days = buckets.starts_days[kept[i]]
        span = float(days[-1] - days[0])
        tests[i] = TrendTest(Trend.STABLE, 0.0, Interval(0.0, 0.0), 1.0, len(days), span)
    for i, q_value in zip(long, q_values, strict=False):
        days, _ = at[i]
        slope, interval = trends[i].slope, Interval(*trends[i].interval)
        found = changed.get(i)
        if found:
            slope, interval = _slope(series[i], found, slope, interval, buckets)
        test = replace(tests[i], slope_per_day=slope, slope_interval=interval, q_value=q_value)
        change = test.change if _is_change(q_value, interval, test.change, series[i]) else 0.0
        if found and (found.step_fits or not change):
            step = _step(series[i], kept[i], found.since, buckets, step_q_values[i])
            if _is_change(step.q_value, step.interval, step.size, series[i]) and (
                (found.step > 0) == (step.size > 0)
            ):
                test, change = replace(test, step=step), step.size
        if change:
            better = (change > 0) == series[i].rising_is_better
            test = replace(test, trend=Trend.IMPROVING if better else Trend.DEGRADING)
        elif _is_sure(q_value, interval):
            test = replace(test, small=True)
        tests[i] = test
    return tests


def allowing_for_mix(test: TrendTest, mix: Mix, values: Floats, starts: Ints) -> TrendTest:
    """Return a test with what the mix of who did which work makes of its change: where it may be
    all that changed, the trend is unknown.

    Args:
        test: the test.
        mix: who did which work.
        values: the measure of each session (s,), NaN where it has none.
        starts: when each began (s,), microseconds.
    """
    if test.trend not in (Trend.IMPROVING, Trend.DEGRADING):
        return test
    when = (starts - starts.min()) / DAY_US
    if test.step:
        when = (starts >= test.step.since_us).astype(np.float64)
    found = mix.effect(values, when)
    if found.verdict is MixVerdict.WORK:
        return replace(test, mix=found)
    return replace(test, mix=found, trend=Trend.UNKNOWN)


def _changes(series: Series, spans: Ints, buckets: Buckets) -> Changes:
    """Look for a trend and a step, with the days of the week, or the hours of the day, allowed
    for."""
    scores = series.scores or Scores(series.values, np.ones(len(series.values)))
    known = buckets.rhythm(spans)
    # A rhythm is learned from what is there: not from hardly more than it has beats.
    if len(spans) < _BEATS * known.shape[1]:
        known = known[:, :1]
    return changes(spans, scores.means[spans], scores.counts[spans], known, scores.spread)


def _slope(
    series: Series, found: Changes, slope: float, interval: Interval, buckets: Buckets
) -> tuple[float, Interval]:
    """Return the slope a day, and its interval: of a share by least squares over its sessions, else
    the median one, which a few points do not move, no surer than the test of the scores."""
    a_day = DAY_US / buckets.span_us
    if series.counts:
        slope, reach = found.slope * a_day, Z95 * found.slope_error * a_day
        return slope, Interval(slope - reach, slope + reach)
    steepness = abs(found.slope) / found.slope_error if found.slope_error else 0.0
    if found.slope * slope > 0 and steepness > Z95:
        reach = abs(slope) * Z95 / steepness
        return slope, Interval(slope - reach, slope + reach)
    return slope, interval


def _is_change(q_value: float, interval: Interval, change: float, series: Series) -> bool:
    """Tell whether a series surely changes, and by how much is known and worth telling: the
    interval leaves out 0, and the change makes `MIN_CHANGE` of its level."""
    return _is_sure(q_value, interval) and abs(change) >= MIN_CHANGE * series.level


def _is_sure(q_value: float, interval: Interval) -> bool:
    return q_value <= SIGNIFICANT and (interval.low > 0 or interval.high < 0)


def _step(series: Series, spans: Ints, point: int, buckets: Buckets, q_value: float) -> TrendStep:
    """Return a step with its size: of a share over all that was counted, also in the spans that
    are too short to be tested; of other measures, over the spans."""
    since = int(spans[point])
    if series.counts:
        before, after = (
            (int(series.counts.hits[side].sum()), int(series.counts.trials[side].sum()))
            for side in (slice(since), slice(since, None))
        )
        ends = rate_difference(*(np.array([float(n)]) for n in after + before))
        low, high = (float(end[0]) for end in ends)
        earlier, later = (Level(hits / trials, hits, trials) for hits, trials in (before, after))
        return TrendStep(buckets.start_us(since), earlier, later, Interval(low, high), q_value)
    values = series.values[spans]
    sides = values[:point], values[point:]
    earlier, later = (Level(float(side.mean())) for side in sides)
    return TrendStep(
        buckets.start_us(since), earlier, later, welch(sides[1], sides[0]).interval, q_value
    )
