"""Estimates of what a policy is worth, from episodes that another one played.

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
Lengths = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ValueEstimate:
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
class WeightedEpisodes:
    """Episodes with what the policy thinks of them, their steps one after the other.

    Args:
        ratios: how often the policy would have taken the action, in times of how often the
            behaviour took it, shape (steps,), as the next three.
        rewards: what the steps brought.
        expected: what a model thinks each state is worth under the policy.
        predicted: what it thinks the action that was taken is worth.
        lengths: how many steps each episode has, at least one, shape (episodes,).
        gained: what two models think that the policy has gained since on what is judged, shape
            (2, episodes).
        discount: what a reward one step later is worth.
    """

    ratios: Vector
    rewards: Vector
    expected: Vector
    predicted: Vector
    lengths: Lengths
    gained: Matrix
    discount: float

    @property
    def starts(self) -> Lengths:
        """Which step is the first of each episode, shape (episodes,)."""
        return starts_of(self.lengths)

    @property
    def returns(self) -> Vector:
        """The discounted return of each episode."""
        return discounted(self.rewards, self.lengths, self.discount)

    @property
    def weights(self) -> Vector:
        """The weight of each episode as a whole."""
        found: Vector = np.multiply.reduceat(self.ratios, self.starts)
        return found

    def since(self, first: int) -> WeightedEpisodes:
        """Return the episodes from the one with number `first` on."""
        steps = int(self.lengths[:first].sum())
        return replace(
            self,
            ratios=self.ratios[steps:],
            rewards=self.rewards[steps:],
            expected=self.expected[steps:],
            predicted=self.predicted[steps:],
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


def starts_of(lengths: Lengths) -> Lengths:
    """Return which step is the first of each episode."""
    return np.asarray(np.cumsum(lengths) - lengths, dtype=np.int64)


def discounted(values: Vector, lengths: Lengths, discount: float) -> Vector:
    """Return the discounted sum of each episode's values, which lie one after the other."""
    places = np.arange(len(values)) - np.repeat(starts_of(lengths), lengths)
    found: Vector = np.add.reduceat(values * np.power(discount, places), starts_of(lengths))
    return found


def weighted(data: WeightedEpisodes) -> Vector:
    """Return the influences of weighted importance sampling, per decision; their mean estimates the
    value. An episode that has ended goes on with its last weight and no reward."""
    longest_first, starts, running = _running(data)
    lengths, weights = data.lengths[longest_first], np.ones(len(starts))
    influence = np.zeros(len(starts))
    value = over = 0.0  # `over`: the weights of the episodes that have ended.
    lost = np.zeros(len(running) + 1)  # By a weight of 1 that brings nothing, at all steps before.
    for step, count in enumerate(running):
        at = starts[:count] + step
        weights[:count] *= data.ratios[at]
        total = over + float(weights[:count].sum()) or 1.0
        worth = data.discount**step
        reward = float(weights[:count] @ data.rewards[at]) / total
        influence[:count] += weights[:count] * (worth / total) * (data.rewards[at] - reward)
        value += worth * reward
        lost[step + 1] = lost[step] + worth / total * reward
        still = running[step + 1] if step + 1 < len(running) else 0
        over += float(weights[still:count].sum())
    influence -= weights * (lost[-1] - lost[lengths])
    found = np.empty(len(starts))
    found[longest_first] = value + influence * len(starts)
    return found


def doubly_robust(data: WeightedEpisodes) -> Vector:
    """Return the doubly robust value of each episode; their mean estimates the policy's."""
    longest_first, starts, running = _running(data)
    value = np.zeros(len(starts))
    for step in range(len(running) - 1, -1, -1):
        count = running[step]
        at = starts[:count] + step
        surprise = data.rewards[at] + data.discount * value[:count] - data.predicted[at]
        value[:count] = data.expected[at] + data.ratios[at] * surprise
    found = np.empty(len(starts))
    found[longest_first] = value
    return found


def _running(data: WeightedEpisodes) -> tuple[Lengths, Lengths, list[int]]:
    """Return the episodes, the longest first; where their steps begin, in that order; and how many
    of them each step is in."""
    longest_first = np.argsort(-data.lengths, kind="stable")
    ends = np.bincount(data.lengths)
    running = len(data.lengths) - np.cumsum(ends)[:-1]
    return longest_first, data.starts[longest_first], running.tolist()


def mean_of(values: Vector, effective: float, spread: float, drift: float = 0.0) -> ValueEstimate:
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
    return ValueEstimate(center, center - reach, center + reach)


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
