"""Baselines that a learned policy is held against: a fixed action, an earlier version, or the
behaviour that produced the data, fitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.canonical import Json
from mneme_server.common.errors import InvalidArgument
from mneme_server.features.learning.algorithms.algorithm import ActionQuestion, Learner
from mneme_server.features.learning.algorithms.choice import chosen
from mneme_server.features.learning.spaces import Space
from mneme_server.features.learning.trust.regression import RegressionEncoder
from mneme_server.statistics.regression import Softmax

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Numbers = NDArray[np.int64]

FOLDS = 5
LEAST = 0.01
"""No estimated probability is taken to be smaller: a fit cannot tell rare from never."""


class PolicyBaseline(Protocol):
    """A policy that needs no trust."""

    @property
    def name(self) -> str:
        """What it is called in a sentence, like "the action 'cache'"."""
        ...

    def answers(self, question: ActionQuestion) -> bool:
        """Tell whether it would do anything that is allowed."""
        ...

    def probabilities(self, question: ActionQuestion) -> Vector:
        """Return the probability of each allowed action, in their order."""
        ...


@dataclass(frozen=True, slots=True)
class FixedBaseline:
    """Always the same action.

    Args:
        action: its number.
        label: what it is called.
    """

    action: int
    label: str

    @property
    def name(self) -> str:
        """See `PolicyBaseline`."""
        return f"the action {self.label!r}"

    def answers(self, question: ActionQuestion) -> bool:
        """See `PolicyBaseline`."""
        return self.action in question.allowed

    def probabilities(self, question: ActionQuestion) -> Vector:
        """See `PolicyBaseline`.

        Raises:
            InvalidArgument: the action is not allowed here.
        """
        if not self.answers(question):
            raise InvalidArgument(
                f"the baseline, {self.name}, is not among the allowed actions; allow it, or "
                "ask without a baseline"
            )
        return np.array([float(action == self.action) for action in question.allowed])


@dataclass(frozen=True, slots=True)
class VersionBaseline:
    """What was learned up to some time.

    Args:
        learner: as it was then.
        version: which version that is.
    """

    learner: Learner
    version: int

    @property
    def name(self) -> str:
        """See `PolicyBaseline`."""
        return f"version {self.version}"

    def answers(self, question: ActionQuestion) -> bool:
        """See `PolicyBaseline`."""
        return True

    def probabilities(self, question: ActionQuestion) -> Vector:
        """See `PolicyBaseline`."""
        return probabilities(self.learner, [question])[0]


@dataclass(frozen=True, slots=True)
class BehaviourBaseline:
    """What was done before, fitted.

    Args:
        clone: the fit.
        decisions: to how many it was fitted.
    """

    clone: BehaviourClone
    decisions: int

    @property
    def name(self) -> str:
        """See `PolicyBaseline`."""
        return f"the behaviour fitted to {self.decisions} recorded decisions"

    def answers(self, question: ActionQuestion) -> bool:
        """See `PolicyBaseline`."""
        return True

    def probabilities(self, question: ActionQuestion) -> Vector:
        """See `PolicyBaseline`."""
        return self.clone.probabilities(question.state, question.allowed)


def probabilities(learner: Learner, questions: Sequence[ActionQuestion]) -> list[Vector]:
    """Return the probabilities with which a learner that does not explore chooses each action."""
    choices = chosen(learner, questions, explore=False, chance=np.random.default_rng(0))
    return [choice.policy for choice in choices]


class BehaviourClone:
    """A policy that chooses as often as somebody did.

    Args:
        space: of the states.
        states: in which decisions were taken.
        actions: the numbers of the actions, as many.
    """

    def __init__(self, space: Space, states: Sequence[Json], actions: Sequence[int]) -> None:
        self._encoder = RegressionEncoder(space, states)
        self.actions = sorted(set(actions))
        places = np.searchsorted(self.actions, actions)
        self._fit = Softmax(self._encoder.encode(states), places, len(self.actions))

    def probabilities(self, state: Json, allowed: Sequence[int]) -> Vector:
        """Return the probability of each allowed action, in their order. Actions that were never
        chosen have none, unless only such are allowed."""
        known = dict(
            zip(self.actions, self._fit(self._encoder.encode([state]))[0].tolist(), strict=True)
        )
        shares = np.array([known.get(action, 0.0) for action in allowed])
        total = float(shares.sum())
        return shares / total if total > 0 else np.full(len(allowed), 1 / len(allowed))


def estimated(states: Matrix, places: Numbers, episodes: Numbers, actions: int) -> Vector:
    """Return the probability of each action that was taken, each fitted on other episodes.

    Args:
        states: encoded, shape (n, d).
        places: which action was taken, shape (n,).
        episodes: the number of the episode that it belongs to, shape (n,).
        actions: how many there are.
    """
    found = np.zeros(len(places))
    for fold in range(FOLDS):
        mine = episodes % FOLDS == fold
        if mine.any():
            fit = Softmax(states[~mine], places[~mine], actions)
            found[mine] = fit(states[mine])[np.arange(int(mine.sum())), places[mine]]
    return np.maximum(found, LEAST)
