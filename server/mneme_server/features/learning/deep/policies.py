"""Policies as the server asks them: networks in NumPy, with the weights that a worker trained.

Weights are arrays by name: "policy.0.weight" is that of the first layer of the network "policy",
"mean" and "scale" standardise what goes in. As long as there are none, actions are drawn evenly.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mneme_server.features.learning.algorithms.algorithm import (
    ActionQuestion,
    Choice,
    Transition,
    number_of,
)
from mneme_server.features.learning.algorithms.choice import (
    Matrix,
    by_count,
    drawn,
    greedy,
    probability_best,
)
from mneme_server.features.learning.deep.encoder import Vectors
from mneme_server.features.learning.deep.exploration import Exploration, PinkNoise

Weights: TypeAlias = Mapping[str, NDArray[np.float32]]

MOST_STANDARD = 10.0
"""Standardised numbers are cut off here."""
NEARLY_ONE = 1 - 1e-5
"""Actions at a bound count as this near to it: the bound itself, tanh never reaches."""
LOG_DEVIATION = (-5.0, 2.0)
"""Between which the logarithms of a Gaussian policy's standard deviations are."""

_Told: TypeAlias = Callable[[list[int], NDArray[np.int64]], tuple[Matrix, Matrix, Matrix]]


class NetworkPolicy(ABC):
    """What chooses.

    Attributes:
        weights: what the worker trained; None before.
    """

    weights: Weights | None = None

    @property
    def exploration_rate(self) -> float | None:
        """With which probability it tries something else than what seems best; None where it draws
        from a policy that never is sure."""
        return None

    @abstractmethod
    def choose(
        self,
        states: Vectors,
        questions: Sequence[ActionQuestion],
        *,
        explore: bool,
        chance: np.random.Generator,
    ) -> list[Choice]:
        """Choose an action for each question, whose state is a row of `states`."""

    def note(self, transitions: Sequence[Transition]) -> None:  # noqa: B027 - some need not know.
        """Hear what will be learned from."""

    @abstractmethod
    def dump(self) -> Mapping[str, Any]:
        """Return what it keeps beside the weights, as JSON and arrays."""

    @abstractmethod
    def load(self, kept: Mapping[str, Any]) -> None:
        """Take over what `dump` returned."""


class _Tries(NetworkPolicy):
    """Over a number of actions, of which it tries others, too."""

    def __init__(self, trying: Exploration) -> None:
        self._trying = trying

    def note(self, transitions: Sequence[Transition]) -> None:
        """See `NetworkPolicy`."""
        actions = [one.action for one in transitions if isinstance(one.action, int)]
        self._trying.note(actions, sum(one.ends for one in transitions))
        for one in transitions:
            if one.ends:
                self._trying.end(one.actor)

    def _noted(
        self, choices: list[Choice], questions: Sequence[ActionQuestion], *, explore: bool
    ) -> list[Choice]:
        if explore:
            actions = [number_of(choice.action) for choice in choices]
            self._trying.chose([question.actor for question in questions], actions)
        return choices

    def dump(self) -> Mapping[str, Any]:
        """See `NetworkPolicy`."""
        return self._trying.dump()

    def load(self, kept: Mapping[str, Any]) -> None:
        """See `NetworkPolicy`."""
        self._trying.load(kept)


class Values(_Tries):
    """Chooses by what actions are worth: the network "values" has a number for each.

    An action is the best with the probability that its value is the largest if each were normal
    around what the network says, with the deviation "error" that its errors had of late.
    """

    @property
    def exploration_rate(self) -> float | None:
        """See `NetworkPolicy`."""
        return self._trying.epsilon

    def choose(
        self,
        states: Vectors,
        questions: Sequence[ActionQuestion],
        *,
        explore: bool,
        chance: np.random.Generator,
    ) -> list[Choice]:
        """See `NetworkPolicy`."""
        if self.weights is None:
            return evenly(questions, chance)
        worth = network(self.weights, "values", standard(self.weights, states))
        deviation = float(self.weights["error"])

        def told(rows: list[int], allowed: NDArray[np.int64]) -> tuple[Matrix, Matrix, Matrix]:
            values = columns(worth[rows], allowed)
            best = probability_best(values, np.full_like(values, deviation))
            policy = greedy(values)
            if explore:
                actors = [questions[row].actor for row in rows]
                policy = self._trying.mixed(policy, allowed, actors)
            return values, policy, best

        return self._noted(by_group(questions, told, chance), questions, explore=explore)


class Categorical(_Tries):
    """Draws from a softmax over the network "policy"; greedy, it takes the most probable action.

    Its confidence is the policy's probability.
    """

    def choose(
        self,
        states: Vectors,
        questions: Sequence[ActionQuestion],
        *,
        explore: bool,
        chance: np.random.Generator,
    ) -> list[Choice]:
        """See `NetworkPolicy`."""
        if self.weights is None:
            return evenly(questions, chance)
        logits = network(self.weights, "policy", standard(self.weights, states))

        def told(rows: list[int], allowed: NDArray[np.int64]) -> tuple[Matrix, Matrix, Matrix]:
            likely = softmax(columns(logits[rows], allowed))
            policy = greedy(likely)
            if explore:
                actors = [questions[row].actor for row in rows]
                policy = self._trying.mixed(likely, allowed, actors)
            return np.empty((len(rows), 0)), policy, likely

        return self._noted(by_group(questions, told, chance), questions, explore=explore)


class _Continuous(NetworkPolicy):
    """Actions in a box: a network's outputs, squashed by tanh, between its bounds.

    Its confidence is the share of the variance of what actions bring that its critic foretells.

    Args:
        middle: of the box, shape (size,).
        half: half its width.
        correlated: whether the noise of steps that follow each other hangs together.
    """

    def __init__(self, middle: Vectors, half: Vectors, *, correlated: bool) -> None:
        self._middle, self._half = middle.astype(np.float64), half.astype(np.float64)
        self._noise = PinkNoise(len(middle)) if correlated else None

    def choose(
        self,
        states: Vectors,
        questions: Sequence[ActionQuestion],
        *,
        explore: bool,
        chance: np.random.Generator,
    ) -> list[Choice]:
        """See `NetworkPolicy`."""
        noise = None
        if explore or self.weights is None:
            noise = self._drawn([question.actor for question in questions], chance)
        if self.weights is None:
            assert noise is not None
            inside = np.array([[math.erf(x / math.sqrt(2)) for x in row] for row in noise])
            density = np.full(len(inside), float(np.prod(0.5 / self._half)))
            return self._choices(inside, density, 0.0, explored=True)
        vectors = standard(self.weights, states)
        certain = float(np.clip(self.weights["certainty"], 0.0, 1.0))
        if noise is None:
            return self._choices(np.tanh(self._mean(self.weights, vectors)), None, certain)
        inside, log_density = self._noisy(self.weights, vectors, noise)
        density = np.exp(log_density - np.log(self._half).sum())
        return self._choices(inside, density, certain, explored=True)

    @abstractmethod
    def _mean(self, weights: Weights, vectors: Vectors) -> Matrix:
        """Return the best actions before they are squashed, shape (n, size)."""

    @abstractmethod
    def _noisy(self, weights: Weights, vectors: Vectors, noise: Matrix) -> tuple[Matrix, Matrix]:
        """Return actions between -1 and 1 and the logarithm of their density, shape (n,)."""

    def _drawn(self, actors: Sequence[str], chance: np.random.Generator) -> Matrix:
        if self._noise is None:
            return chance.standard_normal((len(actors), len(self._middle)))
        return self._noise.draw(actors, chance)

    def _choices(
        self, inside: Matrix, density: Matrix | None, certain: float, *, explored: bool = False
    ) -> list[Choice]:
        none = np.empty(0)
        return [
            Choice(
                action=tuple(coordinates),
                values=none,
                policy=none,
                probability=None if density is None else float(density[row]),
                confidence=certain,
                explored=explored,
            )
            for row, coordinates in enumerate((self._middle + self._half * inside).tolist())
        ]

    def note(self, transitions: Sequence[Transition]) -> None:
        """See `NetworkPolicy`."""
        if self._noise is not None:
            for one in transitions:
                if one.ends:
                    self._noise.end(one.actor)

    def dump(self) -> Mapping[str, Any]:
        """See `NetworkPolicy`."""
        return {} if self._noise is None else self._noise.dump()

    def load(self, kept: Mapping[str, Any]) -> None:
        """See `NetworkPolicy`."""
        if self._noise is not None:
            self._noise.load(kept)


class Gaussian(_Continuous):
    """Normal before it is squashed, of a deviation that is one for all states ("log_deviation"), or
    a second half of the outputs of the network "policy"."""

    def _mean(self, weights: Weights, vectors: Vectors) -> Matrix:
        return network(weights, "policy", vectors)[:, : len(self._middle)].astype(np.float64)

    def _noisy(self, weights: Weights, vectors: Vectors, noise: Matrix) -> tuple[Matrix, Matrix]:
        out = network(weights, "policy", vectors).astype(np.float64)
        size = len(self._middle)
        told = out[:, size:] if out.shape[1] > size else weights["log_deviation"].astype(float)
        log_deviation = np.clip(told, *LOG_DEVIATION)
        inside = np.clip(
            np.tanh(out[:, :size] + np.exp(log_deviation) * noise), -NEARLY_ONE, NEARLY_ONE
        )
        at = (np.arctanh(inside) - out[:, :size]) / np.exp(log_deviation)  # Cut off, as learned.
        log_density = -0.5 * at**2 - log_deviation - 0.5 * math.log(2 * math.pi)
        return inside, (log_density - np.log1p(-(inside**2))).sum(axis=1)


class Deterministic(_Continuous):
    """What the network "policy" says, and noise, which is large at first, since a policy that
    learned from few transitions knows nothing of what is elsewhere.

    The density is the noise's, as if it were not cut off at the bounds.

    Args:
        middle: of the box, shape (size,).
        half: half its width.
        noise: the noise's deviation in the end, in halves of the width.
        first: and at first.
        over: after so many transitions, to which it falls evenly.
    """

    def __init__(
        self, middle: Vectors, half: Vectors, noise: float, first: float = 0.0, over: int = 0
    ) -> None:
        super().__init__(middle, half, correlated=True)
        self._last, self._first, self._over = noise, first if over else noise, max(1, over)
        self._seen = 0

    @property
    def deviation(self) -> float:
        """The noise's deviation now, in halves of the width."""
        return self._first + min(1.0, self._seen / self._over) * (self._last - self._first)

    def note(self, transitions: Sequence[Transition]) -> None:
        """See `NetworkPolicy`."""
        super().note(transitions)
        self._seen += len(transitions)

    def dump(self) -> Mapping[str, Any]:
        """See `NetworkPolicy`."""
        return {**super().dump(), "seen": self._seen}

    def load(self, kept: Mapping[str, Any]) -> None:
        """See `NetworkPolicy`."""
        super().load(kept)
        self._seen = kept["seen"]

    def _mean(self, weights: Weights, vectors: Vectors) -> Matrix:
        return network(weights, "policy", vectors).astype(np.float64)

    def _noisy(self, weights: Weights, vectors: Vectors, noise: Matrix) -> tuple[Matrix, Matrix]:
        deviation = self.deviation
        inside = np.tanh(self._mean(weights, vectors)) + deviation * noise
        each = -0.5 * noise**2 - math.log(max(deviation, 1e-9) * math.sqrt(2 * math.pi))
        return np.clip(inside, -1.0, 1.0), each.sum(axis=1)


def network(weights: Weights, name: str, vectors: Vectors) -> Vectors:
    """Return what a network of dense layers, rectified in between, makes of vectors (n, size)."""
    layer = 0
    while f"{name}.{layer}.weight" in weights:
        if layer:
            vectors = np.maximum(vectors, 0.0)
        vectors = vectors @ weights[f"{name}.{layer}.weight"].T + weights[f"{name}.{layer}.bias"]
        layer += 1
    return vectors


def standard(weights: Weights, vectors: Vectors) -> Vectors:
    """Return vectors whose numbers are standardised."""
    moved = (vectors - weights["mean"]) * weights["scale"]
    found: Vectors = np.clip(moved, -MOST_STANDARD, MOST_STANDARD)
    return found


def softmax(logits: Matrix) -> Matrix:
    """Return the probabilities of each row."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    found: Matrix = powers / powers.sum(axis=1, keepdims=True)
    return found


def columns(outputs: Vectors, allowed: NDArray[np.int64]) -> Matrix:
    """Return the outputs of allowed actions; those that the network does not have yet get the mean
    of its outputs."""
    missing = int(allowed.max()) + 1 - outputs.shape[1]
    if missing > 0:
        new = np.repeat(outputs.mean(axis=1, keepdims=True), missing, axis=1)
        outputs = np.concatenate([outputs, new], axis=1)
    return np.take_along_axis(outputs, allowed, axis=1).astype(np.float64)


def evenly(questions: Sequence[ActionQuestion], chance: np.random.Generator) -> list[Choice]:
    """Choose as one does who knows nothing."""

    def told(rows: list[int], allowed: NDArray[np.int64]) -> tuple[Matrix, Matrix, Matrix]:
        even = np.full(allowed.shape, 1 / allowed.shape[1])
        return np.empty((len(rows), 0)), even, even

    return by_group(questions, told, chance)


def by_group(
    questions: Sequence[ActionQuestion], told: _Told, chance: np.random.Generator
) -> list[Choice]:
    """Choose for questions with equally many allowed actions together.

    Args:
        questions: all of them.
        told: returns for some rows and their allowed actions (questions, n) what these are worth,
            the policy, and how probable it is that each is the best.
        chance: what actions are drawn with.
    """
    chosen: dict[int, Choice] = {}
    for rows, group in by_count(questions):
        values, policy, best = told(rows, np.array([question.allowed for question in group]))
        found = drawn(group, values=values, policy=policy, best=best, chance=chance)
        chosen.update(zip(rows, found, strict=True))
    return [chosen[row] for row in range(len(questions))]
