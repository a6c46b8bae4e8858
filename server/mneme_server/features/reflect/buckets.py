"""Spans of time, and measures in each."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mneme_server.common.clock import DAY_US, HOUR_US
from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.features.reflect.history import Ints
from mneme_server.features.reflect.params import Bucket
from mneme_server.statistics.inference import Floats, sum_by

WEEK_US = 7 * DAY_US
_MONDAY_US = 4 * DAY_US
"""1970 began on a Thursday; weeks begin on Mondays."""
_SPANS = {Bucket.HOUR: HOUR_US, Bucket.DAY: DAY_US, Bucket.WEEK: WEEK_US}
_COMFORTABLE = 100
"""Where no span is asked for, the shortest that makes at most so many."""
MAX_BUCKETS = 1_000


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
