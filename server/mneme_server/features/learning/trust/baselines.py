"""What a learned policy is held against: a fixed action, an earlier version, or the behaviour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.errors import InvalidArgument
from mneme_server.features.learning.choosing import chosen
from mneme_server.features.learning.learner import Learner, Question
from mneme_server.features.learning.trust.clone import Clone

Vector = NDArray[np.float64]


class Baseline(Protocol):
    """A policy that needs no trust."""

    @property
    def name(self) -> str:
        """What it is called in a sentence, like "the action 'cache'"."""
        ...

    def answers(self, question: Question) -> bool:
        """Tell whether it would do anything that is allowed."""
        ...

    def probabilities(self, question: Question) -> Vector:
        """Return the probability of each allowed action, in their order."""
        ...


@dataclass(frozen=True, slots=True)
class FixedAction:
    """Always the same action.

    Args:
        action: its number.
        label: what it is called.
    """

    action: int
    label: str

    @property
    def name(self) -> str:
        """See `Baseline`."""
        return f"the action {self.label!r}"

    def answers(self, question: Question) -> bool:
        """See `Baseline`."""
        return self.action in question.allowed

    def probabilities(self, question: Question) -> Vector:
        """See `Baseline`.

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
class Version:
    """What was learned up to some time.

    Args:
        learner: as it was then.
        version: which version that is.
    """

    learner: Learner
    version: int

    @property
    def name(self) -> str:
        """See `Baseline`."""
        return f"version {self.version}"

    def answers(self, question: Question) -> bool:
        """See `Baseline`."""
        return True

    def probabilities(self, question: Question) -> Vector:
        """See `Baseline`."""
        return probabilities(self.learner, [question])[0]


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What was done before, fitted.

    Args:
        clone: the fit.
        decisions: to how many it was fitted.
    """

    clone: Clone
    decisions: int

    @property
    def name(self) -> str:
        """See `Baseline`."""
        return f"the behaviour fitted to {self.decisions} recorded decisions"

    def answers(self, question: Question) -> bool:
        """See `Baseline`."""
        return True

    def probabilities(self, question: Question) -> Vector:
        """See `Baseline`."""
        return self.clone.probabilities(question.state, question.allowed)


def probabilities(learner: Learner, questions: Sequence[Question]) -> list[Vector]:
    """Return the probabilities with which a learner that does not explore chooses each action."""
    choices = chosen(learner, questions, explore=False, chance=np.random.default_rng(0))
    return [choice.policy for choice in choices]
