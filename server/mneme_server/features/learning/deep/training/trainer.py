"""What a trainer is: the part of an algorithm that learns, in a worker process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mneme_server.features.learning.deep.policies import MOST_STANDARD
from mneme_server.features.learning.deep.setup import Batch, Setup
from mneme_server.features.learning.deep.training.networks import (
    Arrays,
    Network,
    arrays_of,
    optimiser_arrays,
    restore,
    restore_optimiser,
    tensor,
)
from mneme_server.features.learning.learner import Learned

_LEAST_DEVIATION = 0.05
"""What hardly ever changes is not blown up further than if it deviated so much."""
_OF_LATE = 0.01
"""How much a new number counts in a mean of late."""


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
    def learn(self, batch: Batch) -> Learned:
        """Learn from transitions as they come."""

    @abstractmethod
    def train(self, steps: int, batch: int = 0) -> Learned:
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


def summary(updates: list[Update]) -> Learned:
    """Return what several updates did."""
    if not updates:
        return Learned()
    values = [one.value for one in updates if one.value is not None]
    return Learned(
        updates=len(updates),
        loss=float(np.mean([one.loss for one in updates])),
        value=float(np.mean(values)) if values else None,
        gradient_norm=float(np.mean([one.gradient_norm for one in updates])),
    )
