"""What `linucb` and `thompson` share: for each action a Bayesian linear regression of its rewards.

The weights have the prior N(0, noise / ridge), the noise an inverse gamma prior. After n rewards
the posterior is of the same form and is updated exactly, reward by reward (Bishop, "Pattern
Recognition and Machine Learning", sections 2.3.6 and 3.3; the inverse by Sherman and Morrison).

A state is told to it as facts ("complexity", "task_type=auth", "complexity in [0.75, 1)") and as
their pairs, so that "complex, and of this type" can be worth what neither is alone. A pair weighs
less, so that single facts explain what they can.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.canonical import Json
from mneme_server.learning.certainty import probability_best
from mneme_server.learning.features import Fact, facts
from mneme_server.learning.learner import Choice, Transition, Vector
from mneme_server.learning.named import Dimensions
from mneme_server.learning.spaces import Space

_PAIR = math.sqrt(0.5)
_SHAPE, _RATE = 1.0, 0.25
"""The prior of the noise: an inverse gamma distribution, its mean of the order of 0.25, the
variance of a reward that is 0 or 1."""
_MOST_CROSSED = 24
"""Facts of one state that are crossed, the first by name: their pairs grow with the square."""


@dataclass(frozen=True, slots=True)
class LinearConfig:
    """See `catalogue.py` for what the keys mean and may be."""

    exploration: float
    epsilon: float
    ridge: float
    features: int


class Arm:
    """What is known of one action: the posterior of its weights and of the noise.

    Args:
        size: how many dimensions a state has.
        ridge: how many rewards the prior that a weight is 0 counts for.
    """

    def __init__(self, size: int, ridge: float) -> None:
        self.covariance: NDArray[np.float64] = np.eye(size) / ridge  # In units of the noise.
        self.mean: Vector = np.zeros(size)
        self.shape, self.rate = _SHAPE, _RATE

    def worth(self, state: Vector) -> float:
        """Return the expected reward."""
        return float(self.mean @ state)

    def deviation(self, state: Vector) -> float:
        """Return the standard deviation of the expected reward, for noise of variance 1."""
        return math.sqrt(max(0.0, float(state @ self.covariance @ state)))

    @property
    def noise(self) -> float:
        """The expected standard deviation of the noise."""
        return math.sqrt(self.rate / self.shape)

    def learn(self, state: Vector, reward: float) -> float:
        """Learn a reward; return the error, squared."""
        along = self.covariance @ state
        spread = 1.0 + float(state @ along)
        error = reward - self.worth(state)
        self.covariance -= np.outer(along, along) / spread
        self.mean = self.mean + along * (error / spread)
        self.shape += 0.5
        self.rate += 0.5 * error * error / spread
        return error * error


class LinearBandit(ABC):
    """The arms; how one is chosen is the algorithm's.

    Args:
        space: of states.
        config: see `LinearConfig`.
    """

    def __init__(self, space: Space, config: LinearConfig) -> None:
        self._space = space
        self.config = config
        self._dimensions = Dimensions(config.features)
        self._arms: dict[int, Arm] = {}

    def choose(
        self, state: Json, allowed: Sequence[int], *, explore: bool, chance: np.random.Generator
    ) -> Choice:
        """See `Learner`."""
        vector = self._dimensions.vector(self._facts(state))
        arms = [self._arms.get(action) or self._new_arm() for action in allowed]
        worth = np.array([arm.worth(vector) for arm in arms])
        spread = np.array([arm.deviation(vector) for arm in arms])
        noise = np.array([arm.noise for arm in arms])
        best = probability_best(worth, spread * noise)
        policy = self._policy(worth, spread, noise, best) if explore else _greedy(worth)
        if explore:
            policy = (1 - self.config.epsilon) * policy + self.config.epsilon / len(allowed)
        place = int(chance.choice(len(allowed), p=policy))
        return Choice(
            action=allowed[place],
            values=worth,
            probability=float(policy[place]),
            confidence=float(best[place]),
            explored=bool(worth[place] < worth.max()),
        )

    @abstractmethod
    def _policy(self, worth: Vector, spread: Vector, noise: Vector, best: Vector) -> Vector:
        """Return the probability of each action when it explores, apart from epsilon.

        Args:
            worth: the expected reward of each.
            spread: its standard deviation, for noise of variance 1.
            noise: the standard deviation of its noise.
            best: the probability that it is the best.
        """

    def learn(self, transition: Transition) -> float | None:
        """See `Learner`. What follows a reward is not looked at."""
        found = self._facts(transition.state)
        self._dimensions.notice(name for name, _ in found)
        arm = self._arms.setdefault(transition.action, self._new_arm())
        return arm.learn(self._dimensions.vector(found), transition.reward)

    def dump(self) -> Mapping[str, Any]:
        """See `Learner`."""
        return {
            "names": self._dimensions.names,
            "arms": {
                str(action): {
                    "covariance": arm.covariance,
                    "mean": arm.mean,
                    "noise": [arm.shape, arm.rate],
                }
                for action, arm in self._arms.items()
            },
        }

    def load(self, learned: Mapping[str, Any]) -> None:
        """See `Learner`."""
        self._dimensions = Dimensions(self.config.features, learned["names"])
        self._arms = {}
        for action, known in learned["arms"].items():
            arm = self._new_arm()
            arm.covariance, arm.mean = known["covariance"], known["mean"]
            arm.shape, arm.rate = known["noise"]
            self._arms[int(action)] = arm

    def _new_arm(self) -> Arm:
        return Arm(self.config.features, self.config.ridge)

    def _facts(self, state: Json) -> list[Fact]:
        return list(_crossed(list(_binned(facts(self._space, state)))))


def _greedy(worth: Vector) -> Vector:
    best = (worth == worth.max()).astype(float)
    return best / best.sum()


def _binned(found: Iterator[Fact]) -> Iterator[Fact]:
    """Yield the facts, and for each number also in which part of its range it is."""
    for name, number in found:
        yield name, number
        if "=" not in name:
            yield f"{name} in {_part(number)}", 1.0


def _part(number: float) -> str:
    """Return the half of the octave that a number is in: parts as wide as the number is large."""
    if abs(number) < 1 / 64:
        return "0"
    mantissa, exponent = math.frexp(number)
    half = "upper" if abs(mantissa) >= 0.75 else "lower"
    return f"{'-' if number < 0 else ''}2^{exponent} {half}"


def _crossed(found: Sequence[Fact]) -> Iterator[Fact]:
    yield "always", 1.0
    yield from found
    for (first, x), (second, y) in combinations(sorted(found)[:_MOST_CROSSED], 2):
        if _path(first) != _path(second):
            yield f"{first} and {second}", x * y * _PAIR


def _path(name: str) -> str:
    return name.split("=", 1)[0].split(" in ", 1)[0]
