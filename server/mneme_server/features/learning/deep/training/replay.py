"""What off-policy algorithms keep to learn from again: the latest transitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mneme_server.features.learning.deep.setup import Batch, Setup, widened
from mneme_server.features.learning.deep.training.networks import tensor

_MOST_BYTES = 32 * 1024 * 1024
_AT_FIRST = 1_024


@dataclass(frozen=True, slots=True)
class Sample:
    """Transitions as tensors: a `Batch`, but that `goes_on` is 0 where nothing follows, else 1."""

    states: Tensor
    actions: Tensor
    rewards: Tensor
    next_states: Tensor
    goes_on: Tensor
    allowed: Tensor | None


class Replay:
    """The latest transitions; the oldest make way.

    Args:
        setup: how large they are.
        capacity: how many at most; fewer where they are large, so that all fit into 32 MiB.
    """

    def __init__(self, setup: Setup, capacity: int) -> None:
        states = np.dtype(np.uint8 if setup.binary else np.float32)
        actions = (setup.actions,) if setup.continuous else ()
        each = 2 * states.itemsize * setup.inputs + 4 * (setup.actions if actions else 2) + 8
        self.capacity = max(_AT_FIRST, min(capacity, _MOST_BYTES // each))
        self._columns: dict[str, NDArray[Any]] = {
            "states": np.empty((0, setup.inputs), states),
            "actions": np.empty((0, *actions), np.float32 if actions else np.int64),
            "rewards": np.empty(0, np.float32),
            "next_states": np.empty((0, setup.inputs), states),
            "terminated": np.empty(0, bool),
        }
        self._size = 0
        self._next = 0

    def __len__(self) -> int:
        """Return how many are kept."""
        return self._size

    def add(self, batch: Batch) -> None:
        """Keep transitions."""
        if batch.allowed is not None:
            self._keep_allowed(batch.allowed.shape[1])
        self._make_room(len(batch))
        rows = (self._next + np.arange(len(batch))) % self.capacity
        for name, column in self._columns.items():
            value = getattr(batch, name)
            if name == "allowed":
                width = column.shape[1]
                value = np.ones((len(batch), width), bool) if value is None else value
                value = widened(value, width)
            column[rows] = value
        self._next = int(rows[-1] + 1) % self.capacity if len(rows) else self._next
        self._size = min(self.capacity, self._size + len(batch))

    def sample(self, count: int, chance: torch.Generator) -> Sample:
        """Draw transitions evenly, any of them more than once."""
        rows = torch.randint(self._size, (count,), generator=chance).numpy()
        found = {name: column[rows] for name, column in self._columns.items()}
        return Sample(
            states=tensor(found["states"]).float(),
            actions=tensor(found["actions"]),
            rewards=tensor(found["rewards"]),
            next_states=tensor(found["next_states"]).float(),
            goes_on=1.0 - tensor(found["terminated"]).float(),
            allowed=tensor(found["allowed"]) if "allowed" in found else None,
        )

    def dump(self) -> dict[str, Any]:
        """Return what is kept, as JSON and arrays."""
        return {
            "next": self._next,
            "columns": {name: column[: self._size] for name, column in self._columns.items()},
        }

    def load(self, kept: Mapping[str, Any]) -> None:
        """Take over what `dump` returned."""
        self._columns = {name: column.copy() for name, column in kept["columns"].items()}
        self._size, self._next = len(self._columns["rewards"]), kept["next"]

    def _make_room(self, count: int) -> None:
        room = len(self._columns["rewards"])
        needed = min(self._size + count, self.capacity)
        if needed <= room:
            return
        room = min(self.capacity, max(needed, 2 * room, _AT_FIRST))
        for name, column in self._columns.items():
            larger = np.zeros((room, *column.shape[1:]), column.dtype)
            larger[: self._size] = column[: self._size]
            self._columns[name] = larger

    def _keep_allowed(self, width: int) -> None:
        """Keep from now on which actions there are in next states."""
        known = self._columns.get("allowed")
        if known is None:
            known = np.ones((len(self._columns["rewards"]), width), bool)
        self._columns["allowed"] = widened(known, width)
