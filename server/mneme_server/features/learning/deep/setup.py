"""The setup of a worker, what it trains for, and transitions as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme_server.features.learning.algorithms.algorithm import Setting

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]

RECORDED_AT_ONCE = 256
"""How many transitions are handed over together where they are only kept."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a trainer is made for.

    Args:
        algorithm: its name.
        inputs: how many numbers a state has.
        numeric: which of them are numbers to be standardised, shape (inputs,).
        binary: whether all are 0 or 1.
        actions: how many actions are known; where they are a box, how many coordinates they have.
        middle: of the box, shape (actions,); empty where there is none.
        half: half its width.
        config: a value for each key.
        seed: of everything that is drawn at random.
    """

    algorithm: str
    inputs: int
    numeric: Flags
    binary: bool
    actions: int
    middle: Floats
    half: Floats
    config: Mapping[str, Setting]
    seed: int

    @property
    def continuous(self) -> bool:
        """Whether actions are coordinates."""
        return len(self.middle) > 0

    def told(self) -> dict[str, Any]:
        """Return it as JSON and arrays."""
        return asdict(self)

    def number(self, key: str) -> float:
        """Return the value of a key that is a number."""
        return float(self.config[key])

    def whole(self, key: str) -> int:
        """Return the value of a key that is a whole number."""
        return int(self.config[key])


@dataclass(frozen=True, slots=True)
class Batch:
    """Transitions, in the order in which they were learned from; n of them.

    Args:
        states: shape (n, inputs).
        actions: their numbers, shape (n,), int64; or coordinates in the box, shape (n, actions).
        rewards: shape (n,).
        next_states: shape (n, inputs); zeros where nothing follows.
        terminated: where nothing follows, shape (n,).
        ends: which are the last of their episode, shape (n,).
        log_probability: of each action in its behaviour, shape (n,); NaN where it is not known.
        actors: whose each is, n names.
        available: which actions each was chosen from, shape (n, actions); None: all.
        allowed: which actions there are in its next state, shape (n, actions); None: all.
    """

    states: Floats
    actions: NDArray[Any]
    rewards: Floats
    next_states: Floats
    terminated: Flags
    ends: Flags
    log_probability: Floats
    actors: list[str]
    available: Flags | None = None
    allowed: Flags | None = None

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.rewards)

    def told(self) -> dict[str, Any]:
        """Return them as JSON and arrays."""
        return asdict(self)


def joined(batches: list[Batch]) -> Batch:
    """Return the transitions of several batches as one."""
    if len(batches) == 1:
        return batches[0]
    width = max(
        (
            flags.shape[1]
            for one in batches
            for flags in (one.available, one.allowed)
            if flags is not None
        ),
        default=0,
    )
    return Batch(
        states=np.concatenate([one.states for one in batches]),
        actions=np.concatenate([one.actions for one in batches]),
        rewards=np.concatenate([one.rewards for one in batches]),
        next_states=np.concatenate([one.next_states for one in batches]),
        terminated=np.concatenate([one.terminated for one in batches]),
        ends=np.concatenate([one.ends for one in batches]),
        log_probability=np.concatenate([one.log_probability for one in batches]),
        actors=[actor for one in batches for actor in one.actors],
        available=_joined([one.available for one in batches], [len(one) for one in batches], width),
        allowed=_joined([one.allowed for one in batches], [len(one) for one in batches], width),
    )


def part(batch: Batch, rows: NDArray[Any]) -> Batch:
    """Return some transitions of a batch."""
    return Batch(
        states=batch.states[rows],
        actions=batch.actions[rows],
        rewards=batch.rewards[rows],
        next_states=batch.next_states[rows],
        terminated=batch.terminated[rows],
        ends=batch.ends[rows],
        log_probability=batch.log_probability[rows],
        actors=[batch.actors[row] for row in np.arange(len(batch))[rows]],
        available=None if batch.available is None else batch.available[rows],
        allowed=None if batch.allowed is None else batch.allowed[rows],
    )


def widened(flags: Flags, width: int) -> Flags:
    """Return flags with more columns; actions that were new later are not among them."""
    missing = width - flags.shape[1]
    return np.pad(flags, ((0, 0), (0, missing))) if missing > 0 else flags


def _joined(parts: list[Flags | None], sizes: list[int], width: int) -> Flags | None:
    if all(one is None for one in parts):
        return None
    return np.concatenate(
        [
            np.ones((size, width), bool) if one is None else widened(one, width)
            for one, size in zip(parts, sizes, strict=True)
        ]
    )
