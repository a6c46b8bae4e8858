"""DQN: Mnih et al., "Human-level control through deep reinforcement learning", 2015.

Q(s, a) moves towards r + gamma * Q'(s', b), where Q' is a network that follows slowly. The best
action b is chosen by the network itself (van Hasselt et al., "Deep reinforcement learning with
double Q-learning", 2015). The policy asks the mean of the networks of late (Polyak's averaging),
which forgets less than each of them. Gradients are not cut off, nor are large errors: few and large
are those of transitions where nothing follows, and without them values would rise and rise.

While it explores it learns fast; as exploration falls, the optimiser's steps do, to a tenth: what
it meets from then on is much alike, and long steps would forget what else it met.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from mneme_server.features.learning.algorithms.algorithm import UpdateSummary
from mneme_server.features.learning.deep.setup import Batch, Setup
from mneme_server.features.learning.deep.training.networks import (
    Arrays,
    Network,
    adam,
    arrays_of,
    follow,
    step,
)
from mneme_server.features.learning.deep.training.trainer import OffPolicy, ReplaySample, Update

_LAST_RATE = 0.1
_FIRST_MEAN, _LAST_MEAN = 10, 0.002
"""The mean is over about a tenth of all steps, the last 500 at most."""


class Dqn(OffPolicy):
    """Learns what actions are worth from kept transitions."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        hidden = [setup.whole("hidden_size")] * setup.whole("hidden_layers")
        sizes = [setup.inputs, *hidden, setup.actions]
        self.values = Network(sizes, self.chance, last=0.01)
        self.target = Network(sizes, self.chance, last=0.01)
        self.target.load_state_dict(self.values.state_dict())
        self.optimiser = adam(list(self.values.parameters()), setup.number("learning_rate"))
        self.average = Network(sizes, self.chance, last=0.01)
        self.average.load_state_dict(self.values.state_dict())
        self.modules = {"values": self.values, "target": self.target, "average": self.average}
        self.optimisers = {"values": self.optimiser}
        self._met = self._ended = 0

    def learn(self, batch: Batch) -> UpdateSummary:
        """See `Trainer`."""
        self._met += len(batch)
        self._ended += int(batch.ends.sum())
        steps, episodes = self.setup.whole("epsilon_steps"), self.setup.whole("epsilon_episodes")
        explored = min(1.0, max(self._met / steps, self._ended / episodes))
        slower = 1 - (1 - _LAST_RATE) * explored
        self.optimiser.param_groups[0]["lr"] = slower * self.setup.number("learning_rate")
        return super().learn(batch)

    def update(self, sample: ReplaySample) -> Update:
        """See `OffPolicy`."""
        worth, targets = self.errors(sample)
        loss = mse_loss(worth, targets)
        norm = step(self.optimiser, loss, list(self.values.parameters()), math.inf)
        follow(self.target, self.values, self.setup.number("target_rate"))
        follow(
            self.average, self.values, max(_LAST_MEAN, _FIRST_MEAN / (_FIRST_MEAN + self.updates))
        )
        error = float(((worth.detach() - targets) ** 2).mean())
        self.certainty.note(error, float(targets.var(correction=0)))
        return Update(loss.item(), worth.mean().item(), norm)

    def errors(self, sample: ReplaySample) -> tuple[Tensor, Tensor]:
        """Return what the actions are thought to be worth, and what they are to be, shape (n,)."""
        states, following = self.scaling(sample.states), self.scaling(sample.next_states)
        with torch.no_grad():
            choosing = self.values(following)
            if sample.allowed is not None:
                choosing = choosing.masked_fill(~_wide(sample.allowed, self.actions), -torch.inf)
            best = choosing.argmax(1, keepdim=True)
            follows = self.target(following).gather(1, best).squeeze(1)
            discount = self.setup.number("discount_factor")
            targets = sample.rewards + discount * sample.goes_on * follows
        worth = self.values(states).gather(1, sample.actions[:, None]).squeeze(1)
        return worth, targets

    def weights(self) -> Arrays:
        """See `Trainer`."""
        error = torch.tensor(self.certainty.error).sqrt().numpy()
        return {**arrays_of(self.average, "values."), **self.scaling.weights(), "error": error}

    def grow(self, actions: int) -> None:
        """See `Trainer`."""
        self.values.grow(actions, self.optimiser)
        self.target.grow(actions, None)
        self.average.grow(actions, None)
        self.actions = max(self.actions, actions)

    def dump(self) -> dict[str, Any]:
        """See `Trainer`."""
        rate = self.optimiser.param_groups[0]["lr"]
        return {**super().dump(), "met": self._met, "ended": self._ended, "rate": rate}

    def load(self, state: Mapping[str, Any]) -> None:
        """See `Trainer`."""
        super().load(state)
        self._met, self._ended = state["met"], state["ended"]
        self.optimiser.param_groups[0]["lr"] = state["rate"]


def _wide(flags: Tensor, width: int) -> Tensor:
    missing = width - flags.shape[1]
    return torch.nn.functional.pad(flags, (0, missing)) if missing > 0 else flags
