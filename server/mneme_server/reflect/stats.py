"""The tests and intervals behind the findings.

SciPy is imported when the first analysis needs it: a server that never reflects starts without it.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mneme_server.reflect.model import Interval

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

Z95 = 1.959963984540054
"""The normal distribution's 97.5 % point: intervals are 95 %."""
NO_INTERVAL = Interval(float("nan"), float("nan"))
BOOTSTRAP_LIMIT = 1_000
"""Up to this many values a side the difference of means is bootstrapped; the normal interval of
larger samples says the same."""
_RESAMPLES = 2_000
_SEED = 20_261
_EXACT_KENDALL = 50
"""Up to this many points without ties, Kendall's distribution is computed exactly."""


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


class Lift(NamedTuple):
    """Ratios of two rates with their 95 % intervals, each (n,)."""

    lift: Floats
    low: Floats
    high: Floats


def katz(hits: Floats, trials: Floats, other_hits: Floats, other_trials: Floats) -> Lift:
    """Return rate over other rate, with Katz's log interval (Katz et al. 1978).

    Counts (n,) may be fractions, as effective counts are. Where one of the rates is 0, half an
    observation is added to every cell (Haldane-Anscombe), so that the ratio stays finite.
    """
    zero = (hits <= 0) | (other_hits <= 0)
    a, n = hits + 0.5 * zero, trials + 1.0 * zero
    b, m = other_hits + 0.5 * zero, other_trials + 1.0 * zero
    n, m = np.maximum(n, 1e-12), np.maximum(m, 1e-12)
    lift = (a / n) / (b / m)
    spread = Z95 * np.sqrt(np.maximum(1 / a - 1 / n + 1 / b - 1 / m, 0.0))
    return Lift(lift, lift * np.exp(-spread), lift * np.exp(spread))


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
    from scipy.special import gammaln

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
        gammaln(k + 1)
        + gammaln(all_hits - k + 1)
        + gammaln(trials - k + 1)
        + gammaln(all_trials - all_hits - trials + k + 1)
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
    from scipy.stats import kendalltau, norm, theilslopes

    count = len(values)
    later = np.triu_indices(count, 1)
    s = int(np.sign(values[later[1]] - values[later[0]]).sum())
    _, ties = np.unique(values, return_counts=True)
    if len(ties) == 1:
        return Monotone(0, 1.0, 0.0, Interval(0.0, 0.0))
    if len(ties) == count and count <= _EXACT_KENDALL:
        p_value = float(kendalltau(np.arange(count), values, method="exact").pvalue)
    else:
        n = float(count)
        variance = n * (n - 1) * (2 * n + 5) - (ties * (ties - 1.0) * (2 * ties + 5)).sum()
        z = max(abs(s) - 1, 0) / np.sqrt(variance / 18)
        p_value = float(min(1.0, 2 * norm.sf(z)))
    slope = theilslopes(values, times, alpha=0.95)
    interval = Interval(float(slope.low_slope), float(slope.high_slope))
    return Monotone(int(np.sign(s)), p_value, float(slope.slope), interval)


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
    from scipy.stats import mannwhitneyu

    difference = float(first.mean() - second.mean())
    if np.ptp(np.concatenate([first, second])) == 0:
        return Difference(1.0, 0.0, difference, Interval(0.0, 0.0))
    test = mannwhitneyu(first, second, alternative="two-sided")
    delta = 2 * float(test.statistic) / (len(first) * len(second)) - 1
    small = max(len(first), len(second)) <= BOOTSTRAP_LIMIT
    varied = np.ptp(first) > 0 or np.ptp(second) > 0
    interval = _bootstrap(first, second) if small and varied else _welch(first, second)
    return Difference(float(test.pvalue), delta, difference, interval)


def _bootstrap(first: Floats, second: Floats) -> Interval:
    from scipy.stats import bootstrap

    def difference(a: Floats, b: Floats, axis: int = -1) -> Any:
        return a.mean(axis=axis) - b.mean(axis=axis)

    with np.errstate(all="ignore"):
        found = bootstrap(
            (first, second),
            difference,
            n_resamples=_RESAMPLES,
            method="BCa",
            vectorized=True,
            batch=200,
            rng=np.random.default_rng(_SEED),
        ).confidence_interval
    low, high = float(found.low), float(found.high)
    # Where hardly any resample differs, the correction is not defined; Welch's interval always is.
    return Interval(low, high) if np.isfinite(low + high) else _welch(first, second)


def _welch(first: Floats, second: Floats) -> Interval:
    from scipy.stats import t

    parts = first.var(ddof=1) / len(first), second.var(ddof=1) / len(second)
    variance = sum(parts)
    difference = float(first.mean() - second.mean())
    if variance == 0:
        return Interval(difference, difference)
    freedom = variance**2 / (parts[0] ** 2 / (len(first) - 1) + parts[1] ** 2 / (len(second) - 1))
    reach = float(t.ppf(0.975, freedom) * np.sqrt(variance))
    return Interval(difference - reach, difference + reach)
