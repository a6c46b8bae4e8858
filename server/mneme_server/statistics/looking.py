"""The difference of two means, looked at as often as one likes: a confidence sequence.

`sequence.LowerBound` holds exactly, for numbers that are known never to be below a bound. Outcomes
of any size have none. This one holds as sums become normal: Waudby-Smith, Arbour, Sinha, Kennedy
and Ramdas, "Time-uniform central limit theory and asymptotic confidence sequences", 2024, for the
difference of the means of two arms. The number of standard errors that it allows comes from a
mixture of normal martingales (Robbins, 1970). What that leaves open where the arms are small is
made up for three times: standard errors are those of Student's t at the same probability, each arm
counts as if an outcome half the range off had been missed, as Agresti and Coull, 1998, count, and
one whose outcomes are all the same varies as both do together: of few that succeed nearly always,
all did for many looks.
"""

from __future__ import annotations

import math

import numpy as np

from mneme_server.statistics.distributions import Interval
from mneme_server.statistics.inference import Floats, variance_within

LEVEL = 0.05
_TIGHTEST_AT = 400
"""Observations at which the intervals are tightest beside those for a single look."""
_MIXTURE = (-2 * math.log(LEVEL) + math.log(-2 * math.log(LEVEL)) + 1) / _TIGHTEST_AT
_MOST = 300.0


def difference_at_any_look(first: Floats, second: Floats) -> Interval | None:
    """Return an interval of how much higher the first mean is. That any of the intervals of a
    growing experiment misses the truth has a probability of about 5 %.

    None when they are too few to say anything.

    Args:
        first: what was observed in one arm, at least two numbers, shape (n,).
        second: in the other, shape (m,).
    """
    spread, usual = float(np.ptp(np.concatenate([first, second]))), variance_within(first, second)
    variances = [float(arm.var(ddof=1)) if np.ptp(arm) else usual for arm in (first, second)]
    parts = [
        one / len(arm) + (spread / 2 / len(arm)) ** 2
        for one, arm in zip(variances, (first, second), strict=True)
    ]
    variance = sum(parts)
    if variance == 0:
        return None
    freedom = variance**2 / sum(
        part**2 / (len(arm) - 1) for part, arm in zip(parts, (first, second), strict=True)
    )
    errors = _students(_normal_errors(len(first) + len(second)), freedom)
    if errors is None:
        return None
    difference = float(first.mean() - second.mean())
    reach = errors * math.sqrt(variance)
    return Interval(difference - reach, difference + reach)


def _normal_errors(count: int) -> float:
    """Return how many standard errors off a mean of so many numbers may ever be."""
    x = count * _MIXTURE
    return math.sqrt(2 * (x + 1) / x * math.log(math.sqrt(x + 1) / LEVEL))


def _students(errors: float, freedom: float) -> float | None:
    """Return the t as probable as so many normal standard errors (Wallace, 1959); None when it is
    beyond measure."""
    scaled = (errors * (8 * freedom + 3) / (8 * freedom + 1)) ** 2 / freedom
    return None if scaled > _MOST else math.sqrt(freedom * math.expm1(scaled))
