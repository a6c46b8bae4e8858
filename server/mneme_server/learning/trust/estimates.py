"""What a policy is worth, estimated from episodes that another one played.

An episode's value is its discounted return. What would have followed one that was broken off does
not count: it is not among what was earned, which the policy is held against. Both estimators weigh
what happened by how much more or less often the policy would have done it:

- weighted importance sampling, per decision: Precup, Sutton and Singh, "Eligibility traces for
  off-policy policy evaluation", 2000;
- doubly robust: Jiang and Li, "Doubly robust off-policy value evaluation for reinforcement
  learning", 2016, which for one step is that of Dudík, Langford and Li, 2011.

Each is the mean of one number per episode (of the estimator's influence function), so that its
interval is that of a mean. Student's t has as many degrees of freedom as there are effective
episodes, less one: few large weights make an estimate less certain than its deviation shows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate of a value.

    Args:
        value: the estimate.
        low: the lower end of its 95 % interval; None where there is no interval.
        high: the upper end.
    """

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Weighed:
    """Episodes with what the policy thinks of them, as matrices of shape (episodes, steps).

    Args:
        ratios: how often the policy would have taken the action, in times of how often the
            behaviour took it. 1 after the end.
        rewards: 0 after the end.
        expected: what a model thinks each state is worth under the policy; 0 after the end.
        predicted: what it thinks the action that was taken is worth; 0 after the end.
        lengths: how many steps each episode has, shape (episodes,).
        gained: what two models think that the policy has gained since on what is judged, shape
            (2, episodes).
        discount: what a reward one step later is worth.
    """

    ratios: Matrix
    rewards: Matrix
    expected: Matrix
    predicted: Matrix
    lengths: NDArray[np.int64]
    gained: Matrix
    discount: float

    @property
    def discounts(self) -> Vector:
        """What a reward at each step is worth, shape (steps,)."""
        return np.power(self.discount, np.arange(self.rewards.shape[1]), dtype=np.float64)

    @property
    def returns(self) -> Vector:
        """The discounted return of each episode."""
        found: Vector = self.rewards @ self.discounts
        return found

    @property
    def weights(self) -> Vector:
        """The weight of each episode as a whole."""
        found: Vector = self.ratios.prod(axis=1)
        return found

    def since(self, first: int) -> Weighed:
        """Return the episodes from the one with number `first` on."""
        return replace(
            self,
            ratios=self.ratios[first:],
            rewards=self.rewards[first:],
            expected=self.expected[first:],
            predicted=self.predicted[first:],
            lengths=self.lengths[first:],
            gained=self.gained[:, first:],
        )

    @property
    def drift(self) -> float:
        """How far the policy may be from what is judged: the root mean square of two opinions of
        what it has gained since. Nobody saw that, so that it is not added to any estimate."""
        return float(np.sqrt((self.gained.mean(axis=1) ** 2).mean()))

    @property
    def effective(self) -> float:
        """The effective sample size of the weights: Kish, "Survey Sampling", 1965."""
        return effective_size(self.weights)


def effective_size(weights: Vector) -> float:
    """Return how many equally weighted observations would be worth as much; 0 if all weigh 0."""
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def weighted(data: Weighed) -> Vector:
    """Return the influences of weighted importance sampling, per decision; their mean estimates the
    value. An episode that has ended goes on with its last weight and no reward."""
    so_far = np.cumprod(data.ratios, axis=1)
    total = so_far.sum(axis=0)
    shares = so_far / np.where(total > 0, total, 1.0)
    rewards = (shares * data.rewards).sum(axis=0)
    influence = (shares * (data.rewards - rewards)) @ data.discounts * len(so_far)
    found: Vector = float(rewards @ data.discounts) + influence
    return found


def doubly_robust(data: Weighed) -> Vector:
    """Return the doubly robust value of each episode; their mean estimates the policy's."""
    value = np.zeros(len(data.lengths))
    for step in range(data.rewards.shape[1] - 1, -1, -1):
        surprise = data.rewards[:, step] + data.discount * value - data.predicted[:, step]
        now = data.expected[:, step] + data.ratios[:, step] * surprise
        value = np.where(step < data.lengths, now, value)
    return value


def mean_of(values: Vector, effective: float, spread: float, drift: float = 0.0) -> Estimate:
    """Return a mean with its 95 % interval.

    Args:
        values: one for each episode.
        effective: how many equally weighted ones they are worth, above 1.
        spread: how far apart outcomes can be. One outcome so far off, among the effective ones, may
            have been missed, as Agresti and Coull, 1998, count outcomes that were not seen: rewards
            that were all the same so far do not make the interval a point.
        drift: the standard deviation of what the mean may be off by beside that.
    """
    center = float(values.mean())
    chance = float(values.std(ddof=1)) / math.sqrt(len(values))
    error = math.hypot(chance, 0.5 * spread / effective, drift)
    reach = student(0.975, effective - 1) * error
    return Estimate(center, center - reach, center + reach)


def student(probability: float, freedom: float) -> float:
    """Return the quantile of Student's t.

    From 3 degrees of freedom on by Abramowitz and Stegun, 26.7.5, whose error for 0.975 is below
    0.004 there, and below 0.0005 from 5 on. Below 3 it is that of 1 or of 2, whichever is not
    more, exactly: an interval may be too wide, but not too narrow.
    """
    if freedom < 2:
        return math.tan(math.pi * (probability - 0.5))
    if freedom < 3:
        return (2 * probability - 1) / math.sqrt(2 * probability * (1 - probability))
    z = NormalDist().inv_cdf(probability)
    return z + sum(
        term / freedom**power
        for power, term in enumerate(
            (
                (z**3 + z) / 4,
                (5 * z**5 + 16 * z**3 + 3 * z) / 96,
                (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
                (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
            ),
            1,
        )
    )
