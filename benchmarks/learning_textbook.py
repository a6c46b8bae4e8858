"""Learners as textbooks have them, and as scikit-learn's users would build them."""

from __future__ import annotations

from collections import defaultdict
from typing import Protocol

import numpy as np
from mneme_server.common.canonical import Json, canonical_json
from mneme_server.features.learning.algorithms.algorithm import Action, Transition, number_of
from numpy.typing import NDArray
from sklearn.feature_extraction import DictVectorizer  # type: ignore[import-untyped]
from sklearn.linear_model import BayesianRidge  # type: ignore[import-untyped]

_RATE = _EPSILON = 0.1
_DISCOUNT = 0.99


class Student(Protocol):
    """What is taught and asked."""

    def choose(self, state: Json, *, explore: bool) -> Action:
        """Choose an action."""
        ...

    def learn(self, one: Transition) -> None:
        """Learn what came of it."""
        ...


class LinUcb:
    """LinUCB with disjoint arms: Li and others, 2010, algorithm 1, alpha and ridge 1.

    A fact is a number, or whether a text is what it is; 200 of them at most.
    """

    def __init__(self, count: int, seed: int) -> None:
        self._chance = np.random.default_rng(seed)
        self._places: dict[str, int] = {"always": 0}
        self._inverse = np.array([np.eye(200) for _ in range(count)])
        self._moment = np.zeros((count, 200))

    def choose(self, state: Json, *, explore: bool) -> Action:
        """See `Student`."""
        x = self._vector(state)
        along = self._inverse @ x
        worth = (along * self._moment).sum(axis=1)
        bound = worth + explore * np.sqrt(np.maximum(0.0, along @ x))
        return int(self._chance.choice(np.flatnonzero(bound >= bound.max() - 1e-12)))

    def learn(self, one: Transition) -> None:
        """See `Student`."""
        x, action = self._vector(one.state), number_of(one.action)
        along = self._inverse[action] @ x
        self._inverse[action] -= np.outer(along, along) / (1 + x @ along)
        self._moment[action] += one.reward * x

    def _vector(self, state: Json) -> NDArray[np.float64]:
        assert isinstance(state, dict)
        x = np.zeros(200)
        x[0] = 1.0
        for name, value in state.items():
            fact, number = (f"{name}={value}", 1.0) if isinstance(value, str) else (name, value)
            if len(self._places) < len(x):
                self._places.setdefault(fact, len(self._places))
            if fact in self._places:
                x[self._places[fact]] = number
        return x


class Peer:
    """A regression of scikit-learn for each action, fitted anew at every tenth reward, with an
    epsilon of 0.1."""

    def __init__(self, count: int, seed: int) -> None:
        self._chance = np.random.default_rng(seed)
        self._told: list[list[tuple[Json, float]]] = [[] for _ in range(count)]
        self._fits: list[tuple[DictVectorizer, BayesianRidge] | None] = [None] * count
        self._count = 0

    def choose(self, state: Json, *, explore: bool) -> Action:
        """See `Student`."""
        new = [action for action, fit in enumerate(self._fits) if fit is None]
        if explore and (new or self._chance.random() < _EPSILON):
            return int(self._chance.choice(new or len(self._fits)))
        worth = [
            float(fit[1].predict(fit[0].transform([state]))[0]) if fit else -np.inf
            for fit in self._fits
        ]
        return int(np.argmax(worth))

    def learn(self, one: Transition) -> None:
        """See `Student`."""
        action = number_of(one.action)
        told = self._told[action]
        told.append((one.state, one.reward))
        self._count += 1
        if len(told) >= 2 and (self._fits[action] is None or self._count % 10 == 0):
            vectors = DictVectorizer(sparse=False)
            states = vectors.fit_transform([state for state, _ in told])
            model = BayesianRidge().fit(states, [reward for _, reward in told])
            self._fits[action] = (vectors, model)


class _Table:
    """A table of values that is followed greedily, but for an epsilon of 0.1."""

    def __init__(self, count: int, seed: int) -> None:
        self._chance = np.random.default_rng(seed)
        self._values: dict[str, NDArray[np.float64]] = defaultdict(lambda: np.zeros(count))

    def choose(self, state: Json, *, explore: bool) -> Action:
        """See `Student`."""
        values = self._values[canonical_json(state)]
        if explore and self._chance.random() < _EPSILON:
            return int(self._chance.integers(len(values)))
        return int(self._chance.choice(np.flatnonzero(values == values.max())))


class QLearning(_Table):
    """Q-learning: Sutton and Barto, section 6.5, with a step size of 0.1."""

    def learn(self, one: Transition) -> None:
        """See `Student`."""
        follows = 0.0 if one.terminated else self._values[canonical_json(one.next_state)].max()
        values, action = self._values[canonical_json(one.state)], number_of(one.action)
        values[action] += _RATE * (one.reward + _DISCOUNT * follows - values[action])


class Sarsa(_Table):
    """Sarsa: Sutton and Barto, section 6.4, with a step size of 0.1."""

    def __init__(self, count: int, seed: int) -> None:
        super().__init__(count, seed)
        self._last: Transition | None = None

    def learn(self, one: Transition) -> None:
        """See `Student`."""
        if self._last is not None:
            self._move(self._last, self._values[canonical_json(one.state)][number_of(one.action)])
        self._last = None if one.ends else one
        if one.ends:
            follows = 0.0 if one.terminated else self._values[canonical_json(one.next_state)].max()
            self._move(one, follows)

    def _move(self, one: Transition, follows: float) -> None:
        values, action = self._values[canonical_json(one.state)], number_of(one.action)
        values[action] += _RATE * (one.reward + _DISCOUNT * follows - values[action])


class MonteCarlo(_Table):
    """On-policy Monte Carlo control of every visit: Sutton and Barto, section 5.4."""

    def __init__(self, count: int, seed: int) -> None:
        super().__init__(count, seed)
        self._visits: dict[str, NDArray[np.float64]] = defaultdict(lambda: np.zeros(count))
        self._episode: list[Transition] = []

    def learn(self, one: Transition) -> None:
        """See `Student`."""
        self._episode.append(one)
        if not one.ends:
            return
        earned = 0.0
        for step in reversed(self._episode):
            earned = step.reward + _DISCOUNT * earned
            state, action = canonical_json(step.state), number_of(step.action)
            self._visits[state][action] += 1
            values = self._values[state]
            values[action] += (earned - values[action]) / self._visits[state][action]
        self._episode = []
