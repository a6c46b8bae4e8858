"""An algorithm: what it declares, and the learner that it makes, which chooses actions and learns
from what came of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.canonical import Json
from mneme_server.features.learning.spaces import Space

Setting: TypeAlias = int | float | str
Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Action: TypeAlias = int | tuple[float, ...]
"""The number of an action or, where actions are continuous, its coordinates."""

MOST_OPEN = 10_000
"""Episodes under way that are known at once. Those that nothing was heard of for longest are
forgotten first; what comes of them later begins a new one."""


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """A setting of an algorithm.

    Args:
        name: as in a session's config.
        default: what it is unless it is set; a whole number where only whole numbers are valid.
        meaning: a sentence, with the unit.
        low: the smallest valid number.
        high: the largest.
        choices: the valid texts, where it is a text.
    """

    name: str
    default: Setting
    meaning: str
    low: float = 0.0
    high: float = float("inf")
    choices: tuple[str, ...] = ()


REWARD_SCALE = ConfigKey(
    "reward_scale",
    1.0,
    "By what rewards are multiplied before they are learned from, for rewards far from the size of "
    "1; what is told of values is divided by it.",
    1e-9,
    1e9,
)
"""A setting of every algorithm."""


@dataclass(frozen=True, slots=True)
class LearningTask:
    """What a learner is made for.

    Args:
        states: the space of states.
        actions: the space of actions. The learner sees the numbers of actions, from 0 on, but for a
            `Box`, where it sees their coordinates.
        config: a value for each of the algorithm's keys, checked.
        seed: of everything that it draws at random.
        background: whether `learn` may return before everything was learned that was due.
    """

    states: Space
    actions: Space
    config: Mapping[str, Setting]
    seed: int
    background: bool = False

    @property
    def reward_scale(self) -> float:
        """By what rewards are multiplied before they are learned from."""
        return float(self.config[REWARD_SCALE.name])


@dataclass(frozen=True, slots=True)
class Algorithm:
    """An algorithm that sessions can choose.

    Args:
        name: as in the API, like "q_learning".
        summary: a sentence: what it is good for.
        source: the paper or chapter that it follows.
        discrete: whether its actions can be one of a number (Discrete, MultiDiscrete, open labels).
        continuous: whether they can be a Box.
        open_actions: whether new actions may appear while it learns.
        on_policy: whether it learns only from its own behaviour, whose probability must be known.
        keys: its settings.
        make: makes a learner for a task.
        needs_torch: whether it learns with torch, which the extra `rl` brings.
        version: of what its learners dump; what another version dumped cannot be loaded.
    """

    name: str
    summary: str
    source: str
    discrete: bool
    continuous: bool
    open_actions: bool
    on_policy: bool
    keys: tuple[ConfigKey, ...]
    make: Callable[[LearningTask], Learner]
    needs_torch: bool = False
    version: int = 1


def number_of(action: Action) -> int:
    """Return the number of an action, for algorithms whose actions have one."""
    assert isinstance(action, int)
    return action


@dataclass(frozen=True, slots=True)
class ActionQuestion:
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
class UpdateSummary:
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


@dataclass(frozen=True, slots=True)
class BestPolicy:
    """The best policy so far.

    Args:
        mean: the mean return of the episodes that it was judged by, exploration included.
        episode: the last of these, by their number since the session began.
        now: the mean return of the latest as many episodes.
        chooses: whether it chooses where nothing is explored, as the newest one is surely worse.
    """

    mean: float
    episode: int
    now: float
    chooses: bool


class Learner(Protocol):
    """An algorithm at work in one session. Not thread-safe. New actions may come at any time.

    Everything at random is drawn from a generator that is given or part of what `dump` returns, so
    that the same calls with the same seed learn the same.
    """

    def choose(
        self, questions: Sequence[ActionQuestion], *, explore: bool, chance: np.random.Generator
    ) -> list[Choice]:
        """Choose an action for each: the best so far or, exploring, one to learn from."""
        ...

    def learn(self, transitions: Sequence[Transition]) -> UpdateSummary:
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
class DrawsValues(Protocol):
    """A learner that knows how sure it is of values."""

    def drawn_values(self, questions: Sequence[ActionQuestion], count: int) -> list[Matrix]:
        """Return what the allowed actions of each question are thought to be worth, and then what
        they may be worth as well, given what was learned: `count` draws, in the unit of rewards,
        each of the same world for all questions and the same in each call; shape (1 + count,
        actions)."""
        ...


@runtime_checkable
class KnowsStates(Protocol):
    """A learner that knows nothing of states that it was never told of."""

    def knows(self, state: Json) -> bool:
        """Tell whether it has learned anything of a state."""
        ...


@runtime_checkable
class KeepsBest(Protocol):
    """A learner that keeps the best of its policies so far."""

    @property
    def best(self) -> BestPolicy | None:
        """That policy; None before there is one."""
        ...


@runtime_checkable
class SeesChanges(Protocol):
    """A learner that notices when the world has changed, and forgets."""

    @property
    def changes(self) -> Sequence[int]:
        """After how many of the steps that it learned it noticed a change; the last ten."""
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

    def replay(self, transitions: Sequence[Transition]) -> UpdateSummary:
        """Learn from transitions that it has learned from before."""
        ...


@runtime_checkable
class Trains(Protocol):
    """A learner that keeps transitions and can learn from them again."""

    def train(self, steps: int, batch: int = 0) -> UpdateSummary:
        """Take so many steps, each on `batch` of the transitions that it keeps; 0: as many as its
        config says."""
        ...


def scaled(transitions: Sequence[Transition], scale: float) -> Sequence[Transition]:
    """Return transitions whose rewards are multiplied by `scale`."""
    if scale == 1:
        return transitions
    return [replace(one, reward=one.reward * scale) for one in transitions]


def aimed(questions: Sequence[ActionQuestion], scale: float) -> Sequence[ActionQuestion]:
    """Return questions whose returns to aim at are multiplied by `scale`."""
    if scale == 1:
        return questions
    return [
        one if one.target_return is None else replace(one, target_return=one.target_return * scale)
        for one in questions
    ]


def in_rewards(choices: list[Choice], scale: float) -> list[Choice]:
    """Return choices whose values are in the unit of the rewards that were told."""
    if scale == 1:
        return choices
    return [replace(one, values=one.values / scale) for one in choices]


def told(learned: UpdateSummary, scale: float) -> UpdateSummary:
    """Return what learning did, with its value in the unit of the rewards that were told."""
    if scale == 1 or learned.value is None:
        return learned
    return replace(learned, value=learned.value / scale)
