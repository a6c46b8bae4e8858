"""Linear bandits, LinUCB and Thompson sampling: a Bayesian regression of each action's rewards.

The weights have the prior N(0, noise / ridge), the noise an inverse gamma prior. After n rewards
the posterior is of the same form and is updated exactly, reward by reward (Bishop, "Pattern
Recognition and Machine Learning", sections 2.3.6 and 3.3; the inverse by Sherman and Morrison).

A state is told to it as facts ("complexity", "task_type=auth", "complexity ≥ 0.75") and as
their pairs, so that "complex, and of this type" can be worth what neither is alone. A pair weighs
less, so that single facts explain what they can. Numbers are told by the steps that they are above,
not by the range that they are in: ranges beside each other are alike, and what changes at some
number is one weight, not one for each range beyond it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.canonical import Json
from mneme_server.features.learning.algorithms.algorithm import (
    ActionQuestion,
    Choice,
    Transition,
    UpdateSummary,
    Vector,
    in_rewards,
    number_of,
    scaled,
    told,
)
from mneme_server.features.learning.algorithms.choice import (
    Matrix,
    by_count,
    drawn,
    greedy,
    mixed,
    probability_best,
)
from mneme_server.features.learning.features import Dimensions, Fact, facts
from mneme_server.features.learning.spaces import Space

_PAIR = math.sqrt(0.5)
_ABOVE = " ≥ "
PRIOR_SHAPE, PRIOR_RATE = 1.0, 0.25
"""The prior of the noise: an inverse gamma distribution, its mean of the order of 0.25, the
variance of a reward that is 0 or 1."""
_MOST_CROSSED = 24
"""Facts of one state that are crossed, the first by name: their pairs grow with the square."""
_STEPS = (0.25, 0.5, 0.75, *(step * 2.0**octave for octave in range(10) for step in (1.0, 1.5)))
"""Up to 1 evenly apart, beyond it two in each octave. Closer ones among small numbers would be told
apart that hardly differ, and what was chance there would hide where it really changes."""
_DOWN_TO = 1 / 16
"""The part of a number that its lowest step is at least."""


@dataclass(frozen=True, slots=True)
class LinearConfig:
    """See `catalogue.py` for what the keys mean and may be."""

    exploration: float
    epsilon: float
    ridge: float
    features: int
    reward_scale: float = 1.0


class LinearArm:
    """What is known of one action: the posterior of its weights and of the noise.

    Args:
        size: how many dimensions a state has.
        ridge: how many rewards the prior that a weight is 0 counts for.
    """

    def __init__(self, size: int, ridge: float) -> None:
        self.covariance: NDArray[np.float64] = np.eye(size) / ridge  # In units of the noise.
        self.mean: Vector = np.zeros(size)
        self.shape, self.rate = PRIOR_SHAPE, PRIOR_RATE

    def worth(self, state: Vector) -> float:
        """Return the expected reward."""
        return float(self.mean @ state)

    def deviations(self, states: Matrix) -> Vector:
        """Return the standard deviations of the expected rewards, for noise of variance 1."""
        found: Vector = np.sqrt(np.maximum(0.0, ((states @ self.covariance) * states).sum(axis=1)))
        return found

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
        self._arms: dict[int, LinearArm] = {}

    def choose(
        self, questions: Sequence[ActionQuestion], *, explore: bool, chance: np.random.Generator
    ) -> list[Choice]:
        """See `Learner`."""
        chosen: dict[int, Choice] = {}
        for places, group in by_count(questions):
            worth, spread, noise = self._beliefs(group)
            best = probability_best(worth, spread * noise)
            policy = greedy(worth)
            if explore:
                policy = mixed(self._policy(worth, spread, noise, best), self.config.epsilon)
            found = drawn(group, values=worth, policy=policy, best=best, chance=chance)
            chosen.update(zip(places, found, strict=True))
        choices = [chosen[place] for place in range(len(questions))]
        return in_rewards(choices, self.config.reward_scale)

    def _beliefs(self, questions: Sequence[ActionQuestion]) -> tuple[Matrix, Matrix, Matrix]:
        """Return what `_policy` is told of questions with equally many allowed actions."""
        states = np.array([self._dimensions.vector(self._facts(one.state)) for one in questions])
        allowed = np.array([one.allowed for one in questions])
        numbers, places = np.unique(allowed, return_inverse=True)
        arms = [self._arms.get(number) for number in numbers.tolist()]
        new = np.sqrt((states * states).sum(axis=1) / self.config.ridge)  # Of an arm's deviation.
        zero, first = np.zeros(len(states)), math.sqrt(PRIOR_RATE / PRIOR_SHAPE)
        worth = np.array([zero if arm is None else states @ arm.mean for arm in arms])
        spread = np.array([new if arm is None else arm.deviations(states) for arm in arms])
        noise = np.array([first if arm is None else arm.noise for arm in arms])
        rows, places = np.arange(len(states))[:, None], places.reshape(allowed.shape)
        return worth[places, rows], spread[places, rows], noise[places]

    @abstractmethod
    def _policy(self, worth: Matrix, spread: Matrix, noise: Matrix, best: Matrix) -> Matrix:
        """Return the probability of each action when it explores, apart from epsilon.

        Args:
            worth: the expected rewards, shape (questions, actions), as all of these.
            spread: their standard deviations, for noise of variance 1.
            noise: the standard deviations of the noise.
            best: the probabilities that they are the best.
        """

    def learn(self, transitions: Sequence[Transition]) -> UpdateSummary:
        """See `Learner`. What follows a reward is not looked at. The loss is the mean squared error
        of the rewards that were expected."""
        if not transitions:
            return UpdateSummary()
        scale = self.config.reward_scale
        errors, values = zip(*map(self._learn, scaled(transitions, scale)), strict=True)
        found = UpdateSummary(len(errors), sum(errors) / len(errors), sum(values) / len(values))
        return told(found, scale)

    def _learn(self, transition: Transition) -> tuple[float, float]:
        found = self._facts(transition.state)
        self._dimensions.notice(name for name, _ in found)
        number = number_of(transition.action)
        arm = self._arms.get(number)
        if arm is None:
            arm = self._arms[number] = self._new_arm()
        state = self._dimensions.vector(found)
        return arm.learn(state, transition.reward), arm.worth(state)

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

    def _new_arm(self) -> LinearArm:
        return LinearArm(self.config.features, self.config.ridge)

    def _facts(self, state: Json) -> list[Fact]:
        return list(_crossed(list(_stepped(facts(self._space, state)))))


def _stepped(found: Iterator[Fact]) -> Iterator[Fact]:
    """Yield the facts, and for each number also the steps that it is above."""
    for name, number in found:
        yield name, number
        if "=" not in name:
            sign = "-" if number < 0 else ""
            yield from ((f"{name}{_ABOVE}{sign}{step:g}", 1.0) for step in _steps(abs(number)))


def _steps(size: float) -> Iterator[float]:
    """Yield the steps that a number is above, as `facts` tells it."""
    return (step for step in _STEPS if size * _DOWN_TO <= step <= size)


def _crossed(found: Sequence[Fact]) -> Iterator[Fact]:
    yield "always", 1.0
    yield from found
    for (first, x), (second, y) in combinations(sorted(found)[:_MOST_CROSSED], 2):
        pair = _pair(first, second)
        if pair is not None:
            yield pair, x * y * _PAIR


@lru_cache(maxsize=16_384)
def _pair(first: str, second: str) -> str | None:
    """Return what two facts are called together; None if they are of the same part of a state, or
    steps of two numbers: these would be too many, and the numbers themselves must do."""
    numbers = "=" not in first and "=" not in second
    if _path(first) == _path(second) or (numbers and _ABOVE in first + second):
        return None
    return f"{first} and {second}"


def _path(name: str) -> str:
    return name.split("=", 1)[0].split(_ABOVE, 1)[0]


class LinUcb(LinearBandit):
    """LinUCB with disjoint arms: Li, Chu, Langford and Schapire, "A contextual-bandit approach to
    personalized news article recommendation", 2010, algorithm 1.

    The action with the largest upper bound of its expected reward is chosen: the mean plus
    `exploration` times its standard deviation for noise of variance 1.
    """

    def _policy(self, worth: Matrix, spread: Matrix, noise: Matrix, best: Matrix) -> Matrix:
        return greedy(worth + self.config.exploration * spread)


class Thompson(LinearBandit):
    """Thompson sampling: Thompson, 1933; for linear rewards Agrawal and Goyal, "Thompson sampling
    for contextual bandits with linear payoffs", 2013.

    Each action is chosen with the probability that it is the best one, given what came of all
    choices so far. With `exploration` other than 1 the posterior's deviations are scaled by it.
    """

    def _policy(self, worth: Matrix, spread: Matrix, noise: Matrix, best: Matrix) -> Matrix:
        if self.config.exploration == 1:
            return best
        return probability_best(worth, self.config.exploration * spread * noise)
