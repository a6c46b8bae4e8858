"""What an algorithm declares: which spaces it can work on, its settings, how it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from mneme_server.features.learning.learner import Learner
from mneme_server.features.learning.spaces import Space

Setting: TypeAlias = int | float | str


@dataclass(frozen=True, slots=True)
class Key:
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


REWARD_SCALE = Key(
    "reward_scale",
    1.0,
    "By what rewards are multiplied before they are learned from, for rewards far from the size of "
    "1; what is told of values is divided by it.",
    1e-9,
    1e9,
)
"""A setting of every algorithm."""


@dataclass(frozen=True, slots=True)
class Task:
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
    keys: tuple[Key, ...]
    make: Callable[[Task], Learner]
    needs_torch: bool = False
    version: int = 1
