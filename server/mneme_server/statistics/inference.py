"""The tests and intervals behind the findings."""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mneme_server.statistics.distributions import (
    Z95,
    Interval,
    bootstrap_difference,
    kendall_exact,
    log_factorial,
    rank_sum_exact,
    rank_sum_normal,
    student_point,
    student_two_sided,
    theil_sen,
    two_sided,
)

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

NO_INTERVAL = Interval(float("nan"), float("nan"))
BOOTSTRAP_LIMIT = 1_000
"""Up to this many values a side the difference of means is bootstrapped; the normal interval of
larger samples says the same."""
_RESAMPLES = 2_000
_SEED = 20_261
_EXACT_KENDALL = 50
"""Up to this many points without ties, Kendall's distribution is computed exactly."""
_EXACT_RANK_SUM = 8
"""Up to this many values on either side without ties, so is Mann and Whitney's,"""
_EXACT_PAIRS = 10_000
"""of up to so many pairs: beyond them the normal distribution is as good."""


def sum_by(place: Ints, values: Floats | Ints | NDArray[np.bool_], count: int) -> Floats:
    """Return the sum (count,) of the values (n,) in each place."""
    sums: Floats = np.bincount(place, values, minlength=count).astype(np.float64)
    return sums


def benjamini_hochberg(p_values: Floats, tests: int | None = None) -> Floats:
    """Return q-values (n,) of p-values (n,), in their order.

    `tests` is how many tests were made when those with the largest p-values are left out; counting
    them keeps the rate of false findings. Benjamini and Hochberg (1995).
    """
    count = len(p_values)
    if count == 0:
        return p_values
    order = np.argsort(p_values, kind="stable")
    scaled = p_values[order] * max(count, tests or 0) / np.arange(1, count + 1)
    adjusted = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    q_values = np.empty(count)
    q_values[order] = adjusted
    return q_values


def benjamini_yekutieli(p_values: Floats) -> Floats:
    """Return q-values (n,) of p-values (n,) that may depend on each other in any way: larger than
    Benjamini and Hochberg's by the sum of 1 / i. Benjamini and Yekutieli (2001)."""
    harmonic = float((1 / np.arange(1, len(p_values) + 1)).sum())
    return np.minimum(1.0, benjamini_hochberg(p_values) * harmonic)


class Lift(NamedTuple):
    """Ratios of two rates with their 95 % intervals, each (n,)."""

    lift: Floats
    low: Floats
    high: Floats


def wilson(hits: Floats, trials: Floats) -> tuple[Floats, Floats]:
    """Return the 95 % interval (n,), (n,) of rates (Wilson 1927); 0 to 1 where nothing was tried.

    Counts (n,) may be fractions, as effective counts are.
    """
    tried = np.maximum(trials, 1e-12)
    rate, square = hits / tried, Z95**2
    middle = (rate + square / (2 * tried)) / (1 + square / tried)
    spread = np.sqrt(rate * (1 - rate) / tried + square / (4 * tried**2))
    reach = Z95 * spread / (1 + square / tried)
    # At the ends the interval is exact: rounding must not cut the rate itself off.
    low = np.where(hits <= 0, 0.0, np.clip(middle - reach, 0.0, rate))
    high = np.where(hits >= trials, 1.0, np.clip(middle + reach, rate, 1.0))
    return low, high


def rate_difference(
    hits: Floats, trials: Floats, other_hits: Floats, other_trials: Floats
) -> tuple[Floats, Floats]:
    """Return the 95 % interval (n,), (n,) of rate minus other rate, from Wilson's of either rate
    (Newcombe 1998)."""
    low, high = wilson(hits, trials)
    other_low, other_high = wilson(other_hits, other_trials)
    rate, other = hits / np.maximum(trials, 1), other_hits / np.maximum(other_trials, 1)
    return (
        rate - other - np.hypot(rate - low, other_high - other),
        rate - other + np.hypot(high - rate, other - other_low),
    )


def rate_ratio(hits: Floats, trials: Floats, other_hits: Floats, other_trials: Floats) -> Lift:
    """Return rate over other rate, with the interval that follows from Wilson's of either rate
    (MOVER; Donner and Zou 2012): 3 of 3 is not taken for certain, as a log interval would.

    Counts (n,) may be fractions. Over a rate of 0 the ratio is infinite, or NaN for 0 over 0; the
    interval's lower end is meaningful all the same, its upper end is infinite.
    """
    rate = hits / np.maximum(trials, 1e-12)
    other = other_hits / np.maximum(other_trials, 1e-12)
    low, high = wilson(hits, trials)
    other_low, other_high = wilson(other_hits, other_trials)
    both = rate * other
    with np.errstate(divide="ignore", invalid="ignore"):
        lift = rate / other
        under = np.sqrt(
            np.maximum(both**2 - low * (2 * rate - low) * other_high * (2 * other - other_high), 0)
        )
        over = np.sqrt(
            np.maximum(both**2 - high * (2 * rate - high) * other_low * (2 * other - other_low), 0)
        )
        # (ab - r) / (u (2b - u)), written so that neither end divides by what may be 0.
        ratio_low = low * (2 * rate - low) / (both + under)
        ratio_high = high * (2 * rate - high) / (both - over)
    ratio_low = np.where(low > 0, ratio_low, 0.0)
    ratio_high = np.where(other_low > 0, ratio_high, np.inf)
    return Lift(lift, ratio_low, ratio_high)


def fisher_exact(hits: Ints, trials: Ints, all_hits: Ints, all_trials: Ints) -> Floats:
    """Return the two-sided p-values (n,) of Fisher's exact test.

    Each of `trials` of `all_trials` observations are on one side, with `hits` of `all_hits`. The
    p-value is the probability of all tables with these margins that are no likelier than the one
    seen, as in SciPy's `fisher_exact`, which takes a millisecond a table; here equal tables are
    computed once.
    """
    if not len(hits):
        return np.empty(0)
    tables, where = np.unique(
        np.stack([hits, trials, all_hits, all_trials]), axis=1, return_inverse=True
    )
    p_values = np.array([_fisher(*map(int, table)) for table in tables.T])
    return p_values[where.ravel()]


def _fisher(hits: int, trials: int, all_hits: int, all_trials: int) -> float:
    low, high = max(0, trials + all_hits - all_trials), min(trials, all_hits)
    if low == high:
        return 1.0
    # Beyond forty standard deviations nothing is left that a double could hold.
    mean = trials * (all_hits / all_trials)
    reach = 40 * np.sqrt(max(mean * (1 - all_hits / all_trials), 1.0)) + 40
    k = np.arange(
        max(low, int(min(hits, mean - reach))), min(high, int(max(hits, mean + reach))) + 1
    )
    log_p = -(
        log_factorial(k)
        + log_factorial(all_hits - k)
        + log_factorial(trials - k)
        + log_factorial(all_trials - all_hits - trials + k)
    )
    log_p -= log_p.max()
    weights = np.exp(log_p)
    seen = weights[hits - k[0]]
    return float(min(1.0, weights[weights <= seen * (1 + 1e-7)].sum() / weights.sum()))


class Monotone(NamedTuple):
    """Whether a series rises or falls. `direction` is the sign of Kendall's S."""

    direction: int
    p_value: float
    slope: float
    interval: Interval


def mann_kendall(times: Floats, values: Floats) -> Monotone:
    """Test a series (n,) for a monotone trend, and estimate its slope a unit of time.

    Mann-Kendall: exact for short series without ties, else the normal distribution with the
    variance corrected for ties and a continuity correction (Mann 1945, Kendall 1975). The slope is
    Theil-Sen's, its interval Sen's (1968). `times` rise strictly; n is at least 2.
    """
    count = len(values)
    later = np.triu_indices(count, 1)
    s = int(np.sign(values[later[1]] - values[later[0]]).sum())
    _, ties = np.unique(values, return_counts=True)
    if len(ties) == 1:
        return Monotone(0, 1.0, 0.0, Interval(0.0, 0.0))
    if len(ties) == count and count <= _EXACT_KENDALL:
        p_value = kendall_exact(count, s)
    else:
        n = float(count)
        variance = n * (n - 1) * (2 * n + 5) - (ties * (ties - 1.0) * (2 * ties + 5)).sum()
        z = max(abs(s) - 1, 0) / np.sqrt(variance / 18)
        p_value = two_sided(float(z))
    slope, low, high = theil_sen(times, values)
    return Monotone(int(np.sign(s)), p_value, slope, Interval(low, high))


class Difference(NamedTuple):
    """How two samples differ. `delta` is Cliff's: how much more often the first is larger."""

    p_value: float
    delta: float
    difference: float
    interval: Interval


def compare(first: Floats, second: Floats) -> Difference:
    """Compare two samples (n,) and (m,) of at least two values each.

    Mann-Whitney's U, exact for small samples without ties; Cliff's delta from it; the difference of
    the means with a bias-corrected and accelerated bootstrap interval (Efron 1987) with a fixed
    seed, or Welch's above `BOOTSTRAP_LIMIT` values a side.
    """
    difference = float(first.mean() - second.mean())
    if np.ptp(np.concatenate([first, second])) == 0:
        return Difference(1.0, 0.0, difference, Interval(0.0, 0.0))
    n, m = len(first), len(second)
    _, place, tied = np.unique(
        np.concatenate([first, second]), return_inverse=True, return_counts=True
    )
    ranks = np.cumsum(tied) - (tied - 1) / 2
    u = float(ranks[place[:n]].sum() - n * (n + 1) / 2)
    exact = tied.max() == 1 and min(n, m) <= _EXACT_RANK_SUM and n * m <= _EXACT_PAIRS
    p_value = rank_sum_exact(n, m, u) if exact else rank_sum_normal(n, m, u, tied)
    delta = 2 * u / (n * m) - 1
    small = max(len(first), len(second)) <= BOOTSTRAP_LIMIT
    varied = np.ptp(first) > 0 or np.ptp(second) > 0
    interval = _bootstrap(first, second) if small and varied else _welch(first, second)
    return Difference(p_value, delta, difference, interval)


def _bootstrap(first: Floats, second: Floats) -> Interval:
    found = bootstrap_difference(first, second, _RESAMPLES, np.random.default_rng(_SEED))
    return Interval(*found) if found else _welch(first, second)


def _welch(first: Floats, second: Floats) -> Interval:
    return welch(first, second).interval


def variance_within(first: Floats, second: Floats) -> float:
    """Return the variance that two samples (n,) and (m,) of at least two values each have together,
    each around its own mean."""
    squares = sum(float(((one - one.mean()) ** 2).sum()) for one in (first, second))
    return squares / (len(first) + len(second) - 2)


class Welch(NamedTuple):
    """The difference of two means with its 95 % interval, by Welch's test (1947)."""

    difference: float
    interval: Interval
    p_value: float


def welch(first: Floats, second: Floats, *, spread: float = 0.0) -> Welch:
    """Compare the means of two samples (n,) and (m,) of at least two values each.

    With a `spread`, how far apart values are, a sample whose values are all the same varies as both
    do together, and counts at least as if one half of that off had been missed (after Agresti and
    Coull, 1998): three successes of three do not say that there are no failures.
    """
    usual = variance_within(first, second) if spread else 0.0
    parts = [
        float(one.var(ddof=1)) / len(one)
        if np.ptp(one)
        else max(usual / len(one), (spread / 2 / len(one)) ** 2)
        for one in (first, second)
    ]
    variance = float(sum(parts))
    difference = float(first.mean() - second.mean())
    if variance == 0:
        return Welch(difference, Interval(difference, difference), float(difference == 0))
    freedom = float(
        variance**2 / (parts[0] ** 2 / (len(first) - 1) + parts[1] ** 2 / (len(second) - 1))
    )
    error = math.sqrt(variance)
    reach = student_point(freedom) * error
    p_value = student_two_sided(difference / error, freedom)
    return Welch(difference, Interval(difference - reach, difference + reach), p_value)
