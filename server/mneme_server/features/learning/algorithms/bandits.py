"""Linear bandits, LinUCB and Thompson sampling: a Bayesian regression of each action's rewards.

A reward is taken to be a centre, plus the weighted sum of a state's facts, plus noise. An action's
weights have the prior N(0, noise^2 * spread) with a spread for each fact, and the posterior of the
weights is that of ridge regression (Bishop, "Pattern Recognition and Machine Learning", sections
2.3.6 and 3.3), updated reward by reward (Sherman and Morrison). Centre, noise and spreads are the
same for all actions and come from the data (empirical Bayes): the noise from what the regressions
leave, so that rewards of any size are learned alike; the spread of a fact from how large its
weights turned out to be (MacKay, "Bayesian interpolation", 1992), so that facts that mean nothing
soon weigh nothing.

A state is told to it as facts ("complexity", "task_type=auth", "complexity ≥ 0.75") and, where
there are few, as their pairs, so that "complex, and of this type" can be worth what neither is
alone. A pair weighs less, so that single facts explain what they can. Numbers are told by the steps
that they are above, not by the range that they are in: ranges beside each other are alike, and what
changes at some number is one weight, not one for each range beyond it.

When rewards keep falling short of what was expected, the world has changed: most of what was
learned is then forgotten, and confidence with it (a cumulative sum: Page, "Continuous inspection
schemes", 1954).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations, islice
from typing import Any, NamedTuple

import numpy as np

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

_ALWAYS = "always"
_AND = " and "
_PAIR = math.sqrt(0.5)
_ABOVE = " ≥ "
_MOST_CROSSED = 24
"""Facts of one state that are crossed, the first by name: their pairs grow with the square."""
_STEPS = (0.25, 0.5, 0.75, *(step * 2.0**octave for octave in range(10) for step in (1.0, 1.5)))
"""Up to 1 evenly apart, beyond it two in each octave. Closer ones among small numbers would be told
apart that hardly differ, and what was chance there would hide where it really changes."""
_DOWN_TO = 1 / 16
"""The part of a number that its lowest step is at least."""
_BLOCK = 16
"""Dimensions that are made room for at once."""
_FIRST_NOISE = 0.5
"""The deviation of rewards of which nothing is known: that of 0 and 1."""
_NOISE_COUNTS = 4.0
"""How many rewards it counts for that all of their variance may be noise."""
_SPREAD_COUNTS = 2.0
"""How many actions it counts for that a fact matters as much as the others do."""
_LARGE = 6.0
"""The squared length of a state up to which its facts may each weigh as much as `ridge` says; of
more facts each weighs less, so that their sum is as uncertain as that of few."""
_ROUNDS = 2
"""How often spreads and weights are fitted to each other when all is fitted anew."""
_ALLOWED, _MOST_SHORT, _CHANGED = 0.5, 2.0, 12.0
"""Of the watch for a change, in deviations: how far a reward may fall short without counting, how
much one counts at most, and the sum at which the world has changed."""
_UNTRIED = 1e-6
"""By so little of the noise an action that was never tried is thought to be worth less than one
that brought as much as all do: nothing speaks for it."""
_KNOWN = 3.0
"""An action of fewer rewards is not known well enough for its rewards to fall short."""
_KEPT = 0.05
"""The share of what was learned that outlasts a change."""


@dataclass(frozen=True, slots=True)
class LinearConfig:
    """See `catalogue.py` for what the keys mean and may be."""

    exploration: float
    epsilon: float
    ridge: float
    features: int
    reward_scale: float = 1.0
    pairs: str = "few"
    half_life: int = 0
    on_change: str = "forget"


class _StateFacts(NamedTuple):
    single: Sequence[Fact]
    pairs: Sequence[Fact]


class RewardSums:
    """Sums over the rewards of one action, less an origin, and over the states that they came in.

    Args:
        size: how many dimensions a state has.

    Attributes:
        gram: the sum of x x', shape (size, size).
        moment: the sum of x y, shape (size,).
        states: the sum of x, shape (size,).
        count: how many there are.
        total: the sum of y.
        squares: the sum of y^2.
    """

    __slots__ = ("count", "gram", "moment", "squares", "states", "total")

    def __init__(self, size: int) -> None:
        self.gram: Matrix = np.zeros((size, size))
        self.moment: Vector = np.zeros(size)
        self.states: Vector = np.zeros(size)
        self.count = self.total = self.squares = 0.0

    def add(self, state: Vector, reward: float) -> None:
        """Count a reward in."""
        self.gram += np.outer(state, state)
        self.moment += reward * state
        self.states += state
        self.count += 1.0
        self.total += reward
        self.squares += reward * reward

    def keep(self, share: float) -> None:
        """Forget all but a share."""
        self.gram *= share
        self.moment *= share
        self.states *= share
        self.count *= share
        self.total *= share
        self.squares *= share

    def about(self, center: float) -> Vector:
        """Return the sum of x (y - center)."""
        found: Vector = self.moment - center * self.states
        return found

    def squares_about(self, center: float) -> float:
        """Return the sum of (y - center)^2."""
        return max(0.0, self.squares - 2 * center * self.total + center * center * self.count)

    def widen(self, size: int) -> None:
        """Know more dimensions from now on."""
        more = size - len(self.moment)
        self.gram = np.pad(self.gram, (0, more))
        self.moment, self.states = np.pad(self.moment, (0, more)), np.pad(self.states, (0, more))

    def dump(self) -> dict[str, Any]:
        """Return them, as JSON and arrays."""
        return {
            "gram": self.gram,
            "moment": self.moment,
            "states": self.states,
            "rewards": [self.count, self.total, self.squares],
        }

    @classmethod
    def load(cls, known: Mapping[str, Any]) -> RewardSums:
        """Return the sums that `dump` was called on."""
        found = cls(0)
        found.gram, found.moment = known["gram"].copy(), known["moment"].copy()
        found.states = known["states"].copy()
        found.count, found.total, found.squares = known["rewards"]
        return found


class LinearArm:
    """What is known of one action: its rewards, and the posterior of its weights.

    Args:
        spreads: the prior variance of each weight, in units of the noise's.
    """

    def __init__(self, spreads: Vector) -> None:
        self.sums = RewardSums(len(spreads))
        self.covariance: Matrix = np.diag(spreads)  # In units of the noise's variance.
        self.mean: Vector = np.zeros(len(spreads))

    def fit(self, spreads: Vector, center: float) -> float:
        """Fit the weights anew; return the sum of squares that is left, the prior's included."""
        precision = self.sums.gram + np.diag(1 / spreads)
        covariance = np.linalg.inv(precision)
        self.covariance = (covariance + covariance.T) / 2
        about = self.sums.about(center)
        self.mean = self.covariance @ about
        return max(0.0, self.sums.squares_about(center) - float(self.mean @ about))

    def deviations(self, states: Matrix) -> Vector:
        """Return the standard deviations of the expected rewards, for noise of variance 1."""
        found: Vector = np.sqrt(np.maximum(0.0, ((states @ self.covariance) * states).sum(axis=1)))
        return found

    def learn(self, state: Vector, reward: float, center: float) -> tuple[float, float]:
        """Learn a reward; return by how much it was more than expected, and how uncertain that was:
        the deviation for noise of variance 1."""
        along = self.covariance @ state
        variance = 1.0 + max(0.0, float(state @ along))
        error = reward - center - float(self.mean @ state)
        self.covariance -= np.outer(along, along) / variance
        self.mean = self.mean + along * (error / variance)
        self.sums.add(state, reward)
        return error, math.sqrt(variance)

    def widen(self, spreads: Vector) -> None:
        """Know more dimensions from now on."""
        known, size = len(self.mean), len(spreads)
        self.sums.widen(size)
        self.mean = np.pad(self.mean, (0, size - known))
        covariance = np.diag(spreads)
        covariance[:known, :known] = self.covariance
        self.covariance = covariance


class LinearBandit(ABC):
    """The arms; how one is chosen is the algorithm's.

    Args:
        space: of states.
        config: see `LinearConfig`.
    """

    def __init__(self, space: Space, config: LinearConfig) -> None:
        self._space = space
        self.config = config
        self._clear([])

    def _clear(self, names: Sequence[str]) -> None:
        self._dimensions = Dimensions(self.config.features, names)
        self._arms: dict[int, LinearArm] = {}
        self._spreads: Vector = np.full(self._room(), 1 / self.config.ridge)
        self._origin: float | None = None  # The first reward: sums of large ones stay exact.
        self._center = 0.0  # From the origin on.
        self._noise = _FIRST_NOISE
        self._length = 0.0  # The mean squared length of states.
        self._told = 0  # Rewards.
        self._fitted = 0  # As many of them when all was fitted last.
        self._due = 1
        self._short = 0.0
        self._changes: list[int] = []
        self._drawn: dict[tuple[int, int], Matrix] = {}  # Of weights, until more is learned.

    @property
    def changes(self) -> Sequence[int]:
        """See `SeesChanges`."""
        return self._changes

    def choose(
        self, questions: Sequence[ActionQuestion], *, explore: bool, chance: np.random.Generator
    ) -> list[Choice]:
        """See `Learner`."""
        chosen: dict[int, Choice] = {}
        for places, group in by_count(questions):
            worth, spread = self._beliefs(group)
            best = probability_best(worth, spread)
            policy = greedy(worth)
            if explore:
                policy = mixed(self._policy(worth, spread, best), self.config.epsilon)
            found = drawn(group, values=worth, policy=policy, best=best, chance=chance)
            chosen.update(zip(places, found, strict=True))
        choices = [chosen[place] for place in range(len(questions))]
        return in_rewards(choices, self.config.reward_scale)

    def drawn_values(self, questions: Sequence[ActionQuestion], count: int) -> list[Matrix]:
        """See `DrawsValues`."""
        states = np.array([self._vector(self._facts(one.state)) for one in questions])
        center = self._center + (self._origin or 0.0)
        numbers = sorted({number for one in questions for number in one.allowed})
        worth = {
            number: center + states @ self._drawn_weights(number, count).T for number in numbers
        }
        return [
            np.array([worth[number][row] for number in one.allowed]).T / self.config.reward_scale
            for row, one in enumerate(questions)
        ]

    def _drawn_weights(self, number: int, count: int) -> Matrix:
        """Return an action's weights, and draws of them; shape (1 + count, dimensions)."""
        known = self._drawn.get((number, count))
        if known is None:
            known = self._drawn[number, count] = self._draw_weights(number, count)
        return known

    def _draw_weights(self, number: int, count: int) -> Matrix:
        size = len(self._spreads)
        drawn = self._noise * np.random.default_rng([0, number]).normal(size=(count, size))
        arm = self._arms.get(number)
        if arm is None:
            return np.concatenate([np.zeros((1, size)), drawn * np.sqrt(self._spreads)])
        squares, directions = np.linalg.eigh(arm.covariance)
        found = arm.mean + drawn * np.sqrt(np.maximum(squares, 0.0)) @ directions.T
        return np.concatenate([arm.mean[None], found])

    def _beliefs(self, questions: Sequence[ActionQuestion]) -> tuple[Matrix, Matrix]:
        """Return what `_policy` is told of questions with equally many allowed actions."""
        states = np.array([self._vector(self._facts(one.state)) for one in questions])
        allowed = np.array([one.allowed for one in questions])
        numbers, places = np.unique(allowed, return_inverse=True)
        arms = [self._arms.get(number) for number in numbers.tolist()]
        new = np.sqrt(states * states @ self._spreads)  # Of an arm's deviation.
        untried = np.full(len(states), -_UNTRIED * self._noise)
        worth = np.array([untried if arm is None else states @ arm.mean for arm in arms])
        worth += self._center + (self._origin or 0.0)
        spread = np.array([new if arm is None else arm.deviations(states) for arm in arms])
        rows, places = np.arange(len(states))[:, None], places.reshape(allowed.shape)
        return worth[places, rows], spread[places, rows] * self._noise

    @abstractmethod
    def _policy(self, worth: Matrix, spread: Matrix, best: Matrix) -> Matrix:
        """Return the probability of each action when it explores, apart from epsilon.

        Args:
            worth: the expected rewards, shape (questions, actions), as all of these.
            spread: their standard deviations.
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
        """Learn a reward; return the error, squared, and the reward that is expected from now."""
        found = self._facts(transition.state)
        self._drawn.clear()
        self._notice(found)
        state = self._vector(found)
        number = number_of(transition.action)
        arm = self._arms.get(number)
        if arm is None:
            arm = self._arms[number] = LinearArm(self._spreads)
        if self._origin is None:
            self._origin = transition.reward
        self._told += 1
        self._length += (float(state @ state) - self._length) / self._told
        known = arm.sums.count >= _KNOWN
        error, unsure = arm.learn(state, transition.reward - self._origin, self._center)
        if known and self.config.on_change == "forget":
            self._watch(error / (unsure * self._noise) if self._noise > 0 else 0.0)
        if self._told >= self._due:
            self._fit()
        value = self._center + self._origin + float(arm.mean @ state)
        return error * error, value

    def _watch(self, more: float) -> None:
        """Take into account by how many deviations a reward was more than expected; forget if the
        world has changed."""
        self._short = max(0.0, self._short - max(-_MOST_SHORT, min(_MOST_SHORT, more)) - _ALLOWED)
        if self._short <= _CHANGED:
            return
        self._short = 0.0
        self._changes = [*self._changes[-9:], self._told]
        self._keep(_KEPT)
        self._due = self._told

    def _keep(self, share: float) -> None:
        for arm in self._arms.values():
            arm.sums.keep(share)

    def _fit(self) -> None:
        """Fit all anew: centre, noise, spreads and weights."""
        config, since = self.config, self._told - self._fitted
        if config.half_life:
            self._keep(0.5 ** (since / config.half_life))
        arms = [arm for arm in self._arms.values() if arm.sums.count > 0]
        self._center = _center([arm.sums for arm in arms])
        few = min(1.0, _LARGE / max(self._length, 1e-9)) / config.ridge
        for _ in range(_ROUNDS):
            left = sum(arm.fit(self._spreads, self._center) for arm in arms)
            self._noise = _noise([arm.sums for arm in arms], left, self._origin or 0.0)
            squares = sum((arm.mean**2 for arm in arms), np.zeros(len(self._spreads)))
            unsure = sum((arm.covariance.diagonal() for arm in arms), np.zeros_like(squares))
            found = squares / max(self._noise**2, 1e-300) + unsure
            self._spreads = (_SPREAD_COUNTS * few + found) / (_SPREAD_COUNTS + len(arms))
            self._spreads[len(self._dimensions) :] = few
            self._spreads[0] = max(float(self._spreads[0]), 1 / config.ridge)
        self._fitted = self._told
        pause = max(4, len(arms), self._told // 16)
        if config.half_life:
            pause = min(pause, max(4, config.half_life // 16))
        self._due = self._told + pause

    def dump(self) -> Mapping[str, Any]:
        """See `Learner`."""
        return {
            "names": self._dimensions.names,
            "spreads": self._spreads,
            "center": self._center + (self._origin or 0.0),
            "noise": self._noise,
            "origin": self._origin,
            "length": self._length,
            "told": [self._told, self._fitted, self._due],
            "short": self._short,
            "changes": list(self._changes),
            "arms": {
                str(action): {"covariance": arm.covariance, "mean": arm.mean, **arm.sums.dump()}
                for action, arm in self._arms.items()
            },
        }

    def load(self, learned: Mapping[str, Any]) -> None:
        """See `Learner`."""
        self._clear(learned["names"])
        if "spreads" not in learned:
            self._load_ridge(learned)
            return
        self._spreads = learned["spreads"].copy()
        self._origin, self._length = learned["origin"], learned["length"]
        self._center = learned["center"] - (self._origin or 0.0)
        self._noise, self._short = learned["noise"], learned["short"]
        self._told, self._fitted, self._due = learned["told"]
        self._changes = list(learned["changes"])
        for action, known in learned["arms"].items():
            arm = self._arms[int(action)] = LinearArm(self._spreads)
            arm.covariance, arm.mean = known["covariance"].copy(), known["mean"].copy()
            arm.sums = RewardSums.load(known)

    def _load_ridge(self, learned: Mapping[str, Any]) -> None:
        """Take over what was dumped when all facts had the same spread: the sums follow from the
        posterior."""
        self._spreads = np.full(self.config.features, 1 / self.config.ridge)
        self._origin = 0.0
        always = learned["names"].index(_ALWAYS) if _ALWAYS in learned["names"] else 0
        for action, known in learned["arms"].items():
            arm = self._arms[int(action)] = LinearArm(self._spreads)
            precision = np.linalg.inv(known["covariance"])
            sums = arm.sums
            sums.gram = precision - self.config.ridge * np.eye(len(precision))
            sums.moment, sums.states = precision @ known["mean"], sums.gram[always].copy()
            shape, rate = known["noise"]
            sums.count, sums.total = 2 * (shape - 1.0), float(sums.moment[always])
            sums.squares = 2 * (rate - 0.25) + float(known["mean"] @ sums.moment)
            self._told += round(sums.count)
            self._length = float(np.trace(sums.gram)) / max(sums.count, 1.0)
        self._fitted = self._told
        if self._arms:
            self._fit()

    def _room(self) -> int:
        """Return how many dimensions there is to be room for."""
        needed = -(-max(1, len(self._dimensions)) // _BLOCK) * _BLOCK
        return min(self.config.features, needed)

    def _notice(self, found: _StateFacts) -> None:
        """Give dimensions to facts that are new, and to pairs as long as a quarter is left for
        facts to come."""
        self._dimensions.notice(name for name, _ in found.single)
        left = self.config.features * 3 // 4 - len(self._dimensions)
        new = (name for name, _ in found.pairs if not self._dimensions.has(name))
        self._dimensions.notice(islice(new, max(0, left)))
        if self._room() > len(self._spreads):
            few = min(1.0, _LARGE / max(self._length, 1e-9)) / self.config.ridge
            more = np.full(self._room() - len(self._spreads), few)
            self._spreads = np.concatenate([self._spreads, more])
            for arm in self._arms.values():
                arm.widen(self._spreads)

    def _vector(self, found: _StateFacts) -> Vector:
        """Return facts as a vector; pairs that have no dimension of their own are left out."""
        known = (pair for pair in found.pairs if self._dimensions.has(pair[0]))
        vector: Vector = self._dimensions.vector(chain(found.single, known))[: len(self._spreads)]
        return vector

    def _facts(self, state: Json) -> _StateFacts:
        single = list(_stepped(facts(self._space, state)))
        found = _pairs(single) if self.config.pairs != "never" else iter(())
        few = self.config.features // 2
        pairs = list(islice(found, few + 1) if self.config.pairs == "few" else found)
        if self.config.pairs == "few" and len(pairs) > few:
            pairs = []
        return _StateFacts([(_ALWAYS, 1.0), *single], pairs)


def _center(sums: Sequence[RewardSums]) -> float:
    """Return what an action brings on average, those with few rewards counting less."""
    weights = [one.count / (one.count + 1) for one in sums]
    means = [one.total / one.count for one in sums]
    total = math.fsum(weights)
    return math.fsum(w * m for w, m in zip(weights, means, strict=True)) / total if total else 0.0


def _noise(sums: Sequence[RewardSums], left: float, origin: float) -> float:
    """Return the deviation of the noise.

    Args:
        sums: those of each action.
        left: the sum of squares that the regressions leave.
        origin: which the rewards are told from.
    """
    count = math.fsum(one.count for one in sums)
    if count <= 0:
        return _FIRST_NOISE
    mean = math.fsum(one.total for one in sums) / count
    squares = math.fsum(one.squares_about(mean) for one in sums)
    variance = squares / max(count - 1, 1.0) * (1 + 2 / count)
    if squares <= 1e-18 * (origin + mean) ** 2 * count:
        # All were the same so far, which says nothing of how much they vary.
        variance = ((origin + mean) / 2) ** 2 or _FIRST_NOISE**2
    return math.sqrt((_NOISE_COUNTS * variance + left) / (_NOISE_COUNTS + count))


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


def _pairs(found: Sequence[Fact]) -> Iterator[Fact]:
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
    return f"{first}{_AND}{second}"


def _path(name: str) -> str:
    return name.split("=", 1)[0].split(_ABOVE, 1)[0]


class LinUcb(LinearBandit):
    """LinUCB with disjoint arms: Li, Chu, Langford and Schapire, "A contextual-bandit approach to
    personalized news article recommendation", 2010, algorithm 1.

    The action with the largest upper bound of its expected reward is chosen: the mean plus
    `exploration` times its standard deviation, for the noise that was estimated.
    """

    def _policy(self, worth: Matrix, spread: Matrix, best: Matrix) -> Matrix:
        return greedy(worth + self.config.exploration * spread)


class Thompson(LinearBandit):
    """Thompson sampling: Thompson, 1933; for linear rewards Agrawal and Goyal, "Thompson sampling
    for contextual bandits with linear payoffs", 2013.

    Each action is chosen with the probability that it is the best one, given what came of all
    choices so far. With `exploration` other than 1 the posterior's deviations are scaled by it.
    """

    def _policy(self, worth: Matrix, spread: Matrix, best: Matrix) -> Matrix:
        if self.config.exploration == 1:
            return best
        return probability_best(worth, self.config.exploration * spread)
