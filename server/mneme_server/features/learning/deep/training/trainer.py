"""The trainer, the part of an algorithm that learns, in a worker process; and that of off-policy
algorithms, with the transitions that it keeps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mneme_server.common.errors import FailedPrecondition
from mneme_server.features.learning.algorithms.algorithm import UpdateSummary
from mneme_server.features.learning.deep.policies import MOST_STANDARD
from mneme_server.features.learning.deep.setup import Batch, Setup, widened
from mneme_server.features.learning.deep.training.networks import (
    Arrays,
    Network,
    arrays_of,
    optimiser_arrays,
    restore,
    restore_optimiser,
    tensor,
)

_LEAST_DEVIATION = 0.05
"""What hardly ever changes is not blown up further than if it deviated so much."""
_OF_LATE = 0.01
"""How much a new number counts in a mean of late."""
_MOST_BYTES = 32 * 1024 * 1024
_AT_FIRST = 1_024


@dataclass(frozen=True, slots=True)
class Update:
    """What a step of an optimiser did.

    Args:
        loss: what it minimised.
        value: the mean of what the actions learned from were thought to be worth.
        gradient_norm: before it was cut off.
    """

    loss: float
    value: float | None
    gradient_norm: float


class Trainer(ABC):
    """Learns from transitions. Whatever is drawn at random comes from `chance`.

    Args:
        setup: what it is made for.

    Attributes:
        modules: its networks, by name.
        optimisers: their optimisers, by name.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.chance = torch.Generator().manual_seed(setup.seed)
        self.scaling = Scaling(setup.numeric)
        self.modules: dict[str, nn.Module] = {}
        self.optimisers: dict[str, torch.optim.Optimizer] = {}
        self.actions = setup.actions
        self._frozen = False

    @abstractmethod
    def wants(self) -> int:
        """Return how many more transitions it wants before it does anything but keep them."""

    @abstractmethod
    def learn(self, batch: Batch) -> UpdateSummary:
        """Learn from transitions as they come."""

    @abstractmethod
    def train(self, steps: int, batch: int = 0) -> UpdateSummary:
        """Take so many steps, each on `batch` of what it keeps; 0: as many as the config says.

        Raises:
            FailedPrecondition: it keeps nothing to learn from.
        """

    @abstractmethod
    def weights(self) -> Arrays:
        """Return what its policy needs (see `policies.py`)."""

    @abstractmethod
    def grow(self, actions: int) -> None:
        """Know more actions from now on."""

    def freeze(self) -> None:
        """Have what encodes states stay as it is: all layers of a network but the last, and by what
        numbers are standardised."""
        self._frozen = self.scaling.frozen = True
        for module in self.modules.values():
            for network in module.modules():
                if isinstance(network, Network):
                    network.freeze()

    def dump(self) -> dict[str, Any]:
        """Return all of it, as JSON and arrays."""
        return {
            "actions": self.actions,
            "frozen": self._frozen,
            "modules": {name: arrays_of(module) for name, module in self.modules.items()},
            "optimisers": {
                name: optimiser_arrays(optimiser) for name, optimiser in self.optimisers.items()
            },
            "chance": self.chance.get_state().numpy().copy(),
            "scaling": self.scaling.dump(),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Take over what `dump` returned."""
        self.grow(state["actions"])
        for name, module in self.modules.items():
            restore(module, state["modules"][name])
        for name, optimiser in self.optimisers.items():
            restore_optimiser(optimiser, state["optimisers"][name])
        self.chance.set_state(tensor(state["chance"]))
        self.scaling.load(state["scaling"])
        if state.get("frozen"):
            self.freeze()


class Scaling:
    """Standardises the numbers of states by the mean and deviation of those that were seen.

    Args:
        numeric: which are standardised; the others stay as they are.

    Attributes:
        frozen: whether what is seen changes nothing any more.
    """

    def __init__(self, numeric: NDArray[np.bool_]) -> None:
        self.frozen = False
        self._numeric = numeric
        self._count = 0.0
        self._mean = np.zeros(len(numeric))
        self._squares = np.zeros(len(numeric))
        self._set()

    def see(self, states: NDArray[np.float32]) -> None:
        """Count states in (Chan's parallel form of Welford's sums)."""
        if self.frozen or not self._numeric.any() or not len(states):
            return
        mean, total = states.mean(axis=0, dtype=float), self._count + len(states)
        away = mean - self._mean
        self._squares += states.var(axis=0, dtype=float) * len(states)
        self._squares += away**2 * self._count * len(states) / total
        self._mean += away * len(states) / total
        self._count = total
        self._set()

    def _set(self) -> None:
        deviation = np.sqrt(self._squares / max(self._count, 1.0))
        scale = 1 / np.maximum(deviation, _LEAST_DEVIATION)
        known = self._numeric & (self._count > 1)
        self.mean = np.where(known, self._mean, 0.0).astype(np.float32)
        self.scale = np.where(known, scale, 1.0).astype(np.float32)
        self._tensors = (tensor(self.mean), tensor(self.scale))

    def __call__(self, states: Tensor) -> Tensor:
        """Return states standardised, as `policies.standard` does."""
        mean, scale = self._tensors
        return ((states - mean) * scale).clamp(-MOST_STANDARD, MOST_STANDARD)

    def weights(self) -> Arrays:
        """Return what the policy needs to do the same."""
        return {"mean": self.mean, "scale": self.scale}

    def dump(self) -> dict[str, Any]:
        """Return the sums."""
        return {"count": self._count, "mean": self._mean, "squares": self._squares}

    def load(self, sums: Mapping[str, Any]) -> None:
        """Take over what `dump` returned."""
        self._count, self._mean = sums["count"], sums["mean"].copy()
        self._squares = sums["squares"].copy()
        self._set()


class Certainty:
    """Which share of the variance of what actions bring is foretold, of late."""

    def __init__(self) -> None:
        self.error = 0.0
        self.variance = 0.0

    def note(self, error: float, variance: float) -> None:
        """Count in a mean squared error, and the variance of what was to be foretold."""
        rate = _OF_LATE if self.variance else 1.0
        self.error += rate * (error - self.error)
        self.variance += rate * (variance - self.variance)

    def share(self) -> NDArray[np.float32]:
        """Return it, from 0 to 1."""
        found = 1 - self.error / self.variance if self.variance > 0 else 0.0
        return np.array(min(1.0, max(0.0, found)), np.float32)

    def dump(self) -> list[float]:
        """Return the means."""
        return [self.error, self.variance]

    def load(self, means: list[float]) -> None:
        """Take over what `dump` returned."""
        self.error, self.variance = means


def summary(updates: list[Update]) -> UpdateSummary:
    """Return what several updates did."""
    if not updates:
        return UpdateSummary()
    values = [one.value for one in updates if one.value is not None]
    return UpdateSummary(
        updates=len(updates),
        loss=float(np.mean([one.loss for one in updates])),
        value=float(np.mean(values)) if values else None,
        gradient_norm=float(np.mean([one.gradient_norm for one in updates])),
    )


class OffPolicy(Trainer):
    """Learns again and again from kept transitions: after the first `learning_starts` it takes a
    step for every `train_every`.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.replay = ReplayBuffer(setup, setup.whole("buffer_size"))
        self.certainty = Certainty()
        self._batch_size = setup.whole("batch_size")
        self._starts, self._every = setup.whole("learning_starts"), setup.whole("train_every")
        self._seen = 0
        self.updates = 0

    @abstractmethod
    def update(self, sample: ReplaySample) -> Update:
        """Take a step on a sample."""

    def wants(self) -> int:
        """See `Trainer`."""
        if self._seen < self._starts:
            return self._starts + self._every - self._seen
        return self._every - (self._seen - self._starts) % self._every

    def learn(self, batch: Batch) -> UpdateSummary:
        """See `Trainer`."""
        self.scaling.see(batch.states)
        self.replay.add(batch)
        before = self._due()
        self._seen += len(batch)
        return self._steps(self._due() - before)

    def train(self, steps: int, batch: int = 0) -> UpdateSummary:
        """See `Trainer`."""
        if not len(self.replay):
            raise FailedPrecondition("there are no transitions to train on yet")
        return self._steps(steps, batch)

    def _due(self) -> int:
        return max(0, self._seen - self._starts) // self._every

    def _steps(self, count: int, batch: int = 0) -> UpdateSummary:
        done, size = [], batch or self._batch_size
        for _ in range(count):
            done.append(self.update(self.replay.sample(size, self.chance)))
            self.updates += 1
        return summary(done)

    def dump(self) -> dict[str, Any]:
        """See `Trainer`."""
        kept = {"seen": self._seen, "updates": self.updates, "certainty": self.certainty.dump()}
        return {**super().dump(), "replay": self.replay.dump(), **kept}

    def load(self, state: Mapping[str, Any]) -> None:
        """See `Trainer`."""
        super().load(state)
        self.replay.load(state["replay"])
        self._seen, self.updates = state["seen"], state["updates"]
        self.certainty.load(state["certainty"])


@dataclass(frozen=True, slots=True)
class ReplaySample:
    """Transitions as tensors: a `Batch`, but that `goes_on` is 0 where nothing follows, else 1."""

    states: Tensor
    actions: Tensor
    rewards: Tensor
    next_states: Tensor
    goes_on: Tensor
    allowed: Tensor | None


class ReplayBuffer:
    """The latest transitions, to learn from again; the oldest make way.

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

    def sample(self, count: int, chance: torch.Generator) -> ReplaySample:
        """Draw transitions evenly, any of them more than once."""
        rows = torch.randint(self._size, (count,), generator=chance).numpy()
        found = {name: column[rows] for name, column in self._columns.items()}
        return ReplaySample(
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
