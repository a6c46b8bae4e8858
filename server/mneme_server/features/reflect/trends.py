"""Whether a series over time rises or falls, and whether evenly or at one step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mneme_server.features.reflect.buckets import Buckets
from mneme_server.features.reflect.compared import SIGNIFICANT
from mneme_server.features.reflect.history import Ints
from mneme_server.features.reflect.model import Level, Step, Trend, TrendTest
from mneme_server.statistics.change_point import ChangePoint, change_point
from mneme_server.statistics.distributions import Interval
from mneme_server.statistics.inference import (
    NO_INTERVAL,
    Floats,
    benjamini_hochberg,
    mann_kendall,
    rate_difference,
    welch,
)

MIN_CHANGE = 0.05
"""A change makes at least this share of the measure's level: with enough spans the test tells
changes from chance that nobody would call one."""
MIN_POINTS = 5
"""With fewer points even a perfectly monotone series has a p-value above 0.05."""
_MIN_STEP_POINTS = 8
"""With fewer points even a perfect step has."""
UNTESTED = TrendTest(Trend.UNKNOWN, 0.0, NO_INTERVAL, 1.0, 0)


class Counts(NamedTuple):
    """What a share is of in each span: hits (n,) among trials (n,)."""

    hits: Ints
    trials: Ints


@dataclass(frozen=True, slots=True)
class Series:
    """A measure in each span: `values` (n,), NaN where there is no data; of a share its counts."""

    values: Floats
    rising_is_better: bool
    counts: Counts | None = None

    @property
    def level(self) -> float:
        """What a change is measured by: the mean; of a share, what is nearer to its end, so that
        from 2 to 4 % and from 98 to 96 % are the same change."""
        mean = float(np.nanmean(np.abs(self.values)))
        return min(mean, 1 - mean) if self.counts else mean


def trend_tests(series: list[Series], buckets: Buckets) -> list[TrendTest]:
    """Test each series for a trend and for a step, with q-values adjusted for all those tests."""
    kept = [np.flatnonzero(~np.isnan(s.values)) for s in series]
    long = [i for i, spans in enumerate(kept) if len(spans) >= MIN_POINTS]
    longer = [i for i in long if len(kept[i]) >= _MIN_STEP_POINTS]
    at = {i: (buckets.starts_days[kept[i]], series[i].values[kept[i]]) for i in long}
    trends = {i: mann_kendall(*at[i]) for i in long}
    steps = {i: change_point(*at[i]) for i in longer}
    p_values = [trends[i].p_value for i in long] + [steps[i].p_value for i in longer]
    q_values = benjamini_hochberg(np.array(p_values)).tolist()
    step_q_values = dict(zip(longer, q_values[len(long) :], strict=True))
    tests = [replace(UNTESTED, points=len(spans)) for spans in kept]
    for i, q_value in zip(long, q_values, strict=False):
        days, _ = at[i]
        slope, interval = trends[i].slope, Interval(*trends[i].interval)
        span = float(days[-1] - days[0])
        test = TrendTest(Trend.STABLE, slope, interval, q_value, len(days), span)
        change = test.change if _is_change(q_value, interval, test.change, series[i]) else 0.0
        found = steps.get(i)
        if found and (found.fits_better or not change):
            step = _step(series[i], kept[i], found, buckets, step_q_values[i])
            if _is_change(step.q_value, step.interval, step.size, series[i]) and (
                found.rises == (step.size > 0)
            ):
                test, change = replace(test, step=step), step.size
        if change:
            better = (change > 0) == series[i].rising_is_better
            test = replace(test, trend=Trend.IMPROVING if better else Trend.DEGRADING)
        elif _is_sure(q_value, interval):
            test = replace(test, small=True)
        tests[i] = test
    return tests


def _is_change(q_value: float, interval: Interval, change: float, series: Series) -> bool:
    """Tell whether a series surely changes, and by how much is known and worth telling: the
    interval leaves out 0, and the change makes `MIN_CHANGE` of its level."""
    return _is_sure(q_value, interval) and abs(change) >= MIN_CHANGE * series.level


def _is_sure(q_value: float, interval: Interval) -> bool:
    return q_value <= SIGNIFICANT and (interval.low > 0 or interval.high < 0)


def _step(
    series: Series, spans: Ints, found: ChangePoint, buckets: Buckets, q_value: float
) -> Step:
    """Return a step with its size: of a share over all that was counted, also in the spans that
    are too short to be tested; of other measures, over the spans."""
    since = int(spans[found.since])
    if series.counts:
        before, after = (
            (int(series.counts.hits[side].sum()), int(series.counts.trials[side].sum()))
            for side in (slice(since), slice(since, None))
        )
        ends = rate_difference(*(np.array([float(n)]) for n in after + before))
        low, high = (float(end[0]) for end in ends)
        earlier, later = (Level(hits / trials, hits, trials) for hits, trials in (before, after))
        return Step(buckets.start_us(since), earlier, later, Interval(low, high), q_value)
    values = series.values[spans]
    sides = values[: found.since], values[found.since :]
    earlier, later = (Level(float(side.mean())) for side in sides)
    return Step(
        buckets.start_us(since), earlier, later, welch(sides[1], sides[0]).interval, q_value
    )
