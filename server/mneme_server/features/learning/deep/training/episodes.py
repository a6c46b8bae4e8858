"""What a decision transformer keeps: episodes, as a whole, from which it draws windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mneme_server.features.learning.deep.setup import Batch, Setup, joined, part
from mneme_server.features.learning.deep.training.networks import tensor
from mneme_server.features.learning.tally import MOST_OPEN

_MOST_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Windows:
    """Parts of episodes, n of `length` transitions; after the end of an episode come zeros.

    Args:
        returns: what was still to be gained before each transition, shape (n, length).
        states: shape (n, length, inputs).
        actions: shape (n, length), or (n, length, actions) in a box.
        real: which are transitions and not zeros, shape (n, length).
    """

    returns: Tensor
    states: Tensor
    actions: Tensor
    real: Tensor


class Episodes:
    """The latest episodes that ended; the oldest make way.

    Args:
        setup: how large transitions are.
        capacity: how many at most; fewer where they are large, so that all fit into 32 MiB.
    """

    def __init__(self, setup: Setup, capacity: int) -> None:
        actions = setup.actions if setup.continuous else 2
        self._capacity = min(capacity, _MOST_BYTES // (4 * (setup.inputs + actions + 2)))
        shape = (0, setup.actions) if setup.continuous else (0,)
        kind = np.float32 if setup.continuous else np.int64
        self._states = np.zeros((0, setup.inputs), np.float32)
        self._actions: NDArray[Any] = np.zeros(shape, kind)
        self._returns = np.zeros(0, np.float32)
        self._ends = np.zeros(0, np.int64)  # Of each transition: where the next episode begins.
        self._open: dict[str, list[Batch]] = {}

    def __len__(self) -> int:
        """Return how many transitions there are, of episodes that ended."""
        return len(self._returns)

    @property
    def best(self) -> float:
        """The highest return of an episode."""
        return float(self._starts().max()) if len(self) else 0.0

    @property
    def unit(self) -> float:
        """What returns are divided by, so that they are of the size of 1."""
        size = float(np.abs(self._returns).max()) if len(self) else 0.0
        return size if size > 1e-6 else 1.0

    def _starts(self) -> NDArray[np.float32]:
        """Return the returns of whole episodes."""
        first = np.concatenate([[0], np.unique(self._ends)[:-1]])
        found: NDArray[np.float32] = self._returns[first]
        return found

    def add(self, batch: Batch) -> None:
        """Gather transitions; an episode is kept when its last one comes."""
        whole: list[Batch] = []
        for name in dict.fromkeys(batch.actors):
            own = np.array([row for row, actor in enumerate(batch.actors) if actor == name])
            parts = self._open.pop(name, [])
            for rows in np.split(own, np.flatnonzero(batch.ends[own]) + 1):
                if len(rows):
                    parts.append(part(batch, rows))
                if len(rows) and batch.ends[rows[-1]]:
                    whole.append(joined(parts))
                    parts = []
            if parts:
                self._open[name] = parts  # The latest comes last.
                if len(self._open) > MOST_OPEN:
                    del self._open[next(iter(self._open))]
        if whole:
            self._keep(whole)

    def _keep(self, whole: list[Batch]) -> None:
        lengths = [len(one) for one in whole]
        ends = len(self) + np.repeat(np.cumsum(lengths), lengths)
        returns = [one.rewards[::-1].cumsum()[::-1] for one in whole]
        self._states = np.concatenate([self._states, *(one.states for one in whole)])
        self._actions = np.concatenate([self._actions, *(one.actions for one in whole)])
        self._returns = np.concatenate([self._returns, *returns]).astype(np.float32)
        self._ends = np.concatenate([self._ends, ends])
        self._make_way()

    def _make_way(self) -> None:
        """Forget the oldest episodes; the latest stays, however long it is."""
        over = len(self) - self._capacity
        if over <= 0:
            return
        begins = [0, *np.unique(self._ends).tolist()][:-1]
        cut = next((begin for begin in begins if begin >= over), begins[-1])
        self._states, self._actions = self._states[cut:], self._actions[cut:]
        self._returns, self._ends = self._returns[cut:], self._ends[cut:] - cut

    def windows(self, count: int, length: int, chance: torch.Generator) -> Windows:
        """Draw windows; each transition is as likely as any other to be the first of one."""
        first = torch.randint(len(self), (count,), generator=chance).numpy()
        places = first[:, None] + np.arange(length)
        real = places < self._ends[first][:, None]
        places = np.where(real, places, 0)
        states = self._states[places]
        states[~real] = 0
        return Windows(
            returns=tensor(np.where(real, self._returns[places], np.float32(0))),
            states=tensor(states),
            actions=tensor(self._actions[places]),
            real=tensor(real),
        )

    def dump(self) -> dict[str, Any]:
        """Return them, as JSON and arrays."""
        return {
            "states": self._states,
            "actions": self._actions,
            "returns": self._returns,
            "ends": self._ends,
            "open": {name: joined(parts).told() for name, parts in self._open.items()},
        }

    def load(self, kept: Mapping[str, Any]) -> None:
        """Take over what `dump` returned."""
        self._states, self._actions = kept["states"].copy(), kept["actions"].copy()
        self._returns, self._ends = kept["returns"].copy(), kept["ends"].copy()
        self._open = {name: [Batch(**told)] for name, told in kept["open"].items()}
