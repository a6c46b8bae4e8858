"""What an algorithm is: it chooses actions, and learns from what came of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.canonical import Json

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Choice:
    """An action that was chosen.

    Args:
        action: its number.
        values: what the algorithm thinks each allowed action is worth, in their order; in the
            unit of rewards.
        probability: with which the policy chose this one of them, in the mode it was asked in.
        confidence: how sure it is that none of the others is better, from 0 to 1; among n actions
            of which nothing is known it is 1/n.
        explored: whether it is not the one that is best so far.
    """

    action: int
    values: Vector
    probability: float
    confidence: float
    explored: bool


@dataclass(frozen=True, slots=True)
class Transition:
    """What came of an action.

    Args:
        state: where it was taken.
        action: its number.
        reward: what it brought.
        next_state: where it led; None when the task is done with it.
        terminated: whether nothing follows; what would have followed a truncated episode is still
            worth something.
        truncated: whether the episode was broken off.
        actor: whose episode it belongs to.
    """

    state: Json
    action: int
    reward: float
    next_state: Json = None
    terminated: bool = True
    truncated: bool = False
    actor: str = ""

    @property
    def ends(self) -> bool:
        """Whether it is the last of its episode."""
        return self.terminated or self.truncated


class Learner(Protocol):
    """An algorithm at work in one session. Not thread-safe. Actions are numbers, from 0 on; new
    ones may come at any time."""

    def choose(
        self, state: Json, allowed: Sequence[int], *, explore: bool, chance: np.random.Generator
    ) -> Choice:
        """Choose one of the allowed actions: the best so far or, exploring, one to learn from."""
        ...

    def learn(self, transition: Transition) -> float | None:
        """Learn from a transition; return the error that was corrected, squared, or None when
        nothing can be learned from it yet."""
        ...

    def dump(self) -> Mapping[str, Any]:
        """Return all that it has learned: JSON, and arrays."""
        ...

    def load(self, learned: Mapping[str, Any]) -> None:
        """Take over what `dump` returned."""
        ...
