"""The distributions that the tests in `inference` need, and estimates that follow from them.

A statistics library would be a quarter of the server's installed size. The tests compare each
function with SciPy's.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

NORMAL = NormalDist()
Z95 = 1.959963984540054
"""The normal distribution's 97.5 % point: intervals are 95 %."""


class Interval(NamedTuple):
    """A 95 % confidence interval."""

    low: float
    high: float


_TABLE = 256
_LOG_FACTORIALS: Floats = np.cumsum(np.log(np.maximum(1.0, np.arange(_TABLE))))
_STUDENT_IS_NEARLY_NORMAL = 200.0
_STUDENT_GRID = 20_001
_BATCH = 200
_BETA_STEPS = 10_000


def log_factorial(n: Ints) -> Floats:
    """Return log n! of each n (m,), at least 0: from a table, beyond it by Stirling's series."""
    large = np.maximum(n, _TABLE - 1).astype(np.float64)
    series = (large + 0.5) * np.log(large) - large + 0.5 * math.log(2 * math.pi)
    series += 1 / (12 * large) - 1 / (360 * large**3)
    found: Floats = np.where(n < _TABLE, _LOG_FACTORIALS[np.minimum(n, _TABLE - 1)], series)
    return found


def two_sided(z: float) -> float:
    """Return the probability that a normal deviate is at least |z| from 0."""
    return math.erfc(abs(z) / math.sqrt(2))


def kendall_exact(count: int, s: int) -> float:
    """Return the two-sided p-value of Kendall's S for `count` values without ties.

    The number of pairs out of order in a random permutation is a sum of independent uniform
    numbers, 0 to i - 1 for the i-th value.
    """
    pairs = count * (count - 1) // 2
    chances: Floats = np.ones(1)
    for i in range(2, count + 1):
        chances = np.convolve(chances, np.full(i, 1 / i))
    least = (pairs - abs(s)) // 2
    return float(min(1.0, 2 * chances[: least + 1].sum()))


def rank_sum_exact(n: int, m: int, u: float) -> float:
    """Return the two-sided p-value of Mann and Whitney's U for n and m values without ties.

    In how many orders U is k is the coefficient of x^k in the Gaussian binomial (n + m over n),
    which is built up in whole numbers.
    """
    n, m = min(n, m), max(n, m)
    length = n * m + 1
    ways = np.zeros(length, dtype=object)
    ways[0] = 1
    for i in range(1, n + 1):
        ways = _times_and_over(ways, m + i, i)
    least = int(min(u, n * m - u))
    return min(1.0, 2 * sum(ways[: least + 1]) / math.comb(n + m, n))


def _times_and_over(series: NDArray[Any], up: int, down: int) -> NDArray[Any]:
    """Return the power series (k,) times (1 - x^up) / (1 - x^down), as far as it goes."""
    length = len(series)
    product = series.copy()
    if up < length:
        product[up:] = product[up:] - series[: length - up]
    rows = -(-length // down)
    padded = np.zeros(rows * down, dtype=object)
    padded[:length] = product
    quotient: NDArray[Any] = np.add.accumulate(padded.reshape(rows, down)).ravel()[:length]
    return quotient


def rank_sum_normal(n: int, m: int, u: float, tied: Ints) -> float:
    """Return the same p-value from the normal distribution, corrected for ties and continuity.

    `tied` are how many times each value occurs; not all are one value.
    """
    count = float(n + m)
    ties = (tied.astype(np.float64) ** 3 - tied).sum() / (count * (count - 1))
    spread = math.sqrt(n * m / 12 * (count + 1 - ties))
    return min(1.0, two_sided(max(0.0, abs(u - n * m / 2) - 0.5) / spread))


def student_point(freedom: float) -> float:
    """Return the 97.5 % point of Student's t with `freedom` degrees of freedom, at least 1."""
    if freedom > _STUDENT_IS_NEARLY_NORMAL:  # Fisher's expansion; the next term is below 1e-6.
        return (
            Z95
            + (Z95**3 + Z95) / (4 * freedom)
            + (5 * Z95**5 + 16 * Z95**3 + 3 * Z95) / (96 * freedom**2)
        )
    # With t = sqrt(freedom) tan(angle), the density of the angle is cos(angle)^(freedom - 1). The
    # grid is finer towards the right angle, where that is steep.
    from_right = np.pi / 2 * np.linspace(1, 0, _STUDENT_GRID) ** 3
    angles, density = np.pi / 2 - from_right, np.sin(from_right) ** (freedom - 1)
    steps = np.diff(angles) * (density[1:] + density[:-1]) / 2
    mass = np.concatenate([[0.0], np.cumsum(steps)])
    return math.sqrt(freedom) * math.tan(float(np.interp(0.95 * mass[-1], mass, angles)))


def student_two_sided(t: float, freedom: float) -> float:
    """Return the probability that Student's t with `freedom` degrees of freedom, above 0, is at
    least |t| from 0."""
    return _beta_share(freedom / (freedom + t * t), freedom / 2, 0.5)


def _beta_share(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function: what of the distribution lies below x.

    By its continued fraction (Abramowitz and Stegun, 26.5.8), evaluated as Lentz does.
    """
    if x <= 0 or x >= 1:
        return min(max(x, 0.0), 1.0)
    if x > (a + 1) / (a + b + 2):  # Where the fraction converges slowly, that of the rest does not.
        return 1 - _beta_share(1 - x, b, a)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front += a * math.log(x) + b * math.log1p(-x)
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _BETA_STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            c, d = _not_zero(1 + term / c), 1 / _not_zero(1 + term * d)
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return math.exp(front) * fraction / a


def _not_zero(value: float) -> float:
    return value if abs(value) > 1e-300 else 1e-300


def theil_sen(times: Floats, values: Floats) -> tuple[float, float, float]:
    """Return the median slope of all pairs of a series (n,), and the ends of Sen's 95 % interval.

    `times` rise strictly; n is at least 2.
    """
    earlier, later = np.triu_indices(len(values), 1)
    slopes = np.sort((values[later] - values[earlier]) / (times[later] - times[earlier]))
    pairs, n = len(slopes), float(len(values))
    ties = np.unique(values, return_counts=True)[1].astype(np.float64)
    variance = n * (n - 1) * (2 * n + 5) - (ties * (ties - 1) * (2 * ties + 5)).sum()
    reach = Z95 * math.sqrt(variance / 18)
    low = max(int(np.round((pairs - reach) / 2)) - 1, 0)
    high = min(int(np.round((pairs + reach) / 2)), pairs - 1)
    return float(np.median(slopes)), float(slopes[low]), float(slopes[high])


def bootstrap_difference(
    first: Floats, second: Floats, resamples: int, rng: np.random.Generator
) -> tuple[float, float] | None:
    """Return the bias-corrected and accelerated 95 % interval of the difference of two means.

    Efron (1987). None where the correction is not defined: hardly any resample differs, or the
    samples are too skewed for it.
    """
    drawn = np.empty(resamples)
    for start in range(0, resamples, _BATCH):
        size = min(_BATCH, resamples - start)
        means = [
            sample[rng.integers(0, len(sample), (size, len(sample)))].mean(axis=1)
            for sample in (first, second)
        ]
        drawn[start : start + size] = means[0] - means[1]
    difference = first.mean() - second.mean()
    share = float(((drawn < difference).sum() + (drawn <= difference).sum()) / (2 * resamples))
    if not 0 < share < 1:
        return None
    bias = NORMAL.inv_cdf(share)
    off = first - first.mean(), -(second - second.mean())
    cubes = sum(float((part**3).sum()) / len(part) ** 3 for part in off)
    squares = sum(float((part**2).sum()) / len(part) ** 2 for part in off)
    if squares <= 0:
        return None
    pull = cubes / (6 * squares**1.5)
    shifted = bias - Z95, bias + Z95
    if max(pull * z for z in shifted) >= 1:
        return None
    shares = [NORMAL.cdf(bias + z / (1 - pull * z)) for z in shifted]
    low, high = np.quantile(drawn, shares)
    return float(low), float(high)
