"""What an algorithm is: it chooses actions, and learns from what came of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.canonical import Json

Vector = NDArray[np.float64]

Action: TypeAlias = int | tuple[float, ...]
"""The number of an action or, where actions are continuous, its coordinates."""


def number_of(action: Action) -> int:
    """Return the number of an action, for algorithms whose actions have one."""
    assert isinstance(action, int)
    return action


@dataclass(frozen=True, slots=True)
class Question:
    """A state in which an action is to be chosen.

    Args:
        state: of the session's space.
        allowed: the numbers of the actions to choose from; empty where actions are continuous.
        actor: whose episode it belongs to; algorithms that look back tell episodes apart by it.
        target_return: the return to aim at, for algorithms that follow one.
    """

    state: Json
    allowed: Sequence[int] = ()
    actor: str = ""
    target_return: float | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """An action that was chosen.

    Args:
        action: the action.
        values: what the algorithm thinks each allowed action is worth, in their order and in the
            unit of rewards; empty if it has no such opinion.
        policy: the probability of each allowed action in the mode it was asked in, in their order;
            empty where actions are continuous.
        probability: with which the policy chose this one; where actions are continuous, the
            density. None if the policy cannot choose another one there (it is deterministic).
        confidence: how sure it is that none of the others is better, from 0 to 1; among n actions
            of which nothing is known it is 1/n.
        explored: whether it is not the one that is best so far.
    """

    action: Action
    values: Vector
    policy: Vector
    probability: float | None
    confidence: float
    explored: bool


@dataclass(frozen=True, slots=True)
class Transition:
    """What came of an action.

    Args:
        state: where it was taken.
        action: the action.
        reward: what it brought.
        next_state: where it led; None when the task is done with it.
        terminated: whether nothing follows; what would have followed a truncated episode is still
            worth something.
        truncated: whether the episode was broken off.
        actor: whose episode it belongs to.
        probability: with which its behaviour chose the action (a density where actions are
            continuous); None if that is not known.
        allowed: the numbers of the actions to choose from in `next_state`; empty: all.
        available: the numbers of the actions that it was chosen from; empty: all.
    """

    state: Json
    action: Action
    reward: float
    next_state: Json = None
    terminated: bool = True
    truncated: bool = False
    actor: str = ""
    probability: float | None = None
    allowed: Sequence[int] = ()
    available: Sequence[int] = ()

    @property
    def ends(self) -> bool:
        """Whether it is the last of its episode."""
        return self.terminated or self.truncated


@dataclass(frozen=True, slots=True)
class Learned:
    """What learning did.

    Args:
        updates: how often something was corrected: cells of a table, or steps of an optimiser.
        loss: the mean of what was minimised; None without an update.
        value: the mean of what the actions learned from were thought to be worth, if it thinks so.
        gradient_norm: the mean norm of the gradients, before they were clipped; 0 without any.
    """

    updates: int = 0
    loss: float | None = None
    value: float | None = None
    gradient_norm: float = 0.0


class Learner(Protocol):
    """An algorithm at work in one session. Not thread-safe. New actions may come at any time.

    Everything at random is drawn from a generator that is given or part of what `dump` returns, so
    that the same calls with the same seed learn the same.
    """

    def choose(
        self, questions: Sequence[Question], *, explore: bool, chance: np.random.Generator
    ) -> list[Choice]:
        """Choose an action for each: the best so far or, exploring, one to learn from."""
        ...

    def learn(self, transitions: Sequence[Transition]) -> Learned:
        """Learn from transitions as they come, those of an actor in their order."""
        ...

    def dump(self) -> Mapping[str, Any]:
        """Return all that it has learned, as JSON and arrays."""
        ...

    def load(self, learned: Mapping[str, Any]) -> None:
        """Take over what `dump` returned."""
        ...


@runtime_checkable
class Closes(Protocol):
    """A learner that holds something beside memory, such as a process."""

    def close(self) -> None:
        """Let go of it. What was learned and not dumped is lost."""
        ...


@runtime_checkable
class Explores(Protocol):
    """A learner that explores with a probability that can be told."""

    @property
    def exploration_rate(self) -> float:
        """The probability of an action that is not the best so far being drawn on purpose."""
        ...


@runtime_checkable
class Matures(Protocol):
    """A learner that must be told more than one transition before it has learned anything."""

    @property
    def is_trained(self) -> bool:
        """Whether it chooses by anything that it learned."""
        ...


@runtime_checkable
class Replays(Protocol):
    """A learner that can learn from transitions again."""

    @property
    def replays_in_order(self) -> bool:
        """Whether it needs what followed each, so that they must be told in their order."""
        ...

    def replay(self, transitions: Sequence[Transition]) -> Learned:
        """Learn from transitions that it has learned from before."""
        ...


@runtime_checkable
class Trains(Protocol):
    """A learner that keeps transitions and can learn from them again."""

    def train(self, steps: int, batch: int = 0) -> Learned:
        """Take so many steps, each on `batch` of the transitions that it keeps; 0: as many as its
        config says."""
        ...
