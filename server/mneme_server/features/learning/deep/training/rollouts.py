"""What on-policy algorithms gather until they learn from it: what their actors met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme_server.features.learning.deep.setup import Batch, Floats, joined, part

_MOST_ACTORS = 1_000


def advantages(
    *,
    rewards: Floats,
    values: Floats,
    following: Floats,
    ends: NDArray[np.bool_],
    actors: Sequence[str],
    discount: float,
    decay: float,
) -> Floats:
    """Return how much better each action was than the policy's: Schulman et al., "High-dimensional
    continuous control using generalized advantage estimation", 2015.

    Args:
        rewards: shape (n,), in the order in which they came; those of actors may be mixed.
        values: what the states were thought to be worth.
        following: what the states that followed were; 0 where nothing follows.
        ends: which are the last of their episode.
        actors: whose each is.
        discount: what a reward is worth one step later.
        decay: lambda, how much further steps count.
    """
    errors = (rewards + discount * following - values).tolist()
    found = np.empty(len(rewards), np.float32)
    later: dict[str, float] = {}
    for row in range(len(errors) - 1, -1, -1):
        onward = 0.0 if ends[row] else later.get(actors[row], 0.0)
        found[row] = later[actors[row]] = errors[row] + discount * decay * onward
    return found


class Rollouts:
    """Transitions since they were last taken."""

    def __init__(self) -> None:
        self._batches: list[Batch] = []
        self._size = 0

    def __len__(self) -> int:
        """Return how many there are."""
        return self._size

    def add(self, batch: Batch) -> None:
        """Gather transitions."""
        self._batches.append(batch)
        self._size += len(batch)

    def take(self) -> Batch:
        """Return them all and begin anew."""
        found = joined(self._batches)
        self._batches, self._size = [], 0
        return found

    def dump(self) -> Mapping[str, Any]:
        """Return them, as JSON and arrays."""
        return joined(self._batches).told() if self._batches else {}

    def load(self, kept: Mapping[str, Any]) -> None:
        """Take over what `dump` returned."""
        self._batches = [Batch(**kept)] if kept else []
        self._size = sum(map(len, self._batches))


class Returns:
    """How much the returns of actors deviate: rewards are divided by it, so that what is learned is
    of the size of 1 whatever their unit is.

    Args:
        discount: what a reward is worth one step later.
    """

    def __init__(self, discount: float) -> None:
        self._discount = discount
        self._returns: dict[str, float] = {}
        self._count, self._mean, self._squares = 0, 0.0, 0.0

    @property
    def deviation(self) -> float:
        """The deviation; 1 before anything is known of it."""
        found = float(np.sqrt(self._squares / self._count)) if self._count > 1 else 0.0
        return found if found > 1e-6 else 1.0

    def see(self, batch: Batch) -> None:
        """Count rewards in."""
        rewards, ends = batch.rewards.tolist(), batch.ends.tolist()
        for actor, reward, end in zip(batch.actors, rewards, ends, strict=True):
            total = self._returns.pop(actor, 0.0) * self._discount + reward
            if not end:
                self._returns[actor] = total  # The latest come last.
            self._count += 1
            before = total - self._mean
            self._mean += before / self._count
            self._squares += before * (total - self._mean)
        while len(self._returns) > _MOST_ACTORS:
            del self._returns[next(iter(self._returns))]

    def dump(self) -> Mapping[str, Any]:
        """Return the sums, as JSON."""
        return {"returns": self._returns, "sums": [self._count, self._mean, self._squares]}

    def load(self, kept: Mapping[str, Any]) -> None:
        """Take over what `dump` returned."""
        self._returns = dict(kept["returns"])
        self._count, self._mean, self._squares = kept["sums"]


def latest(kept: Batch | None, new: Batch, most: int) -> Batch:
    """Return the latest transitions of two batches, at most so many."""
    both = new if kept is None else joined([kept, new])
    return part(both, np.arange(max(0, len(both) - most), len(both)))
