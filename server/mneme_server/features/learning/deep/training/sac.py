"""SAC: Haarnoja et al., "Soft actor-critic algorithms and applications", 2018.

The policy is to be good and undecided: its entropy counts as a reward, weighted so that it stays
near a target, one nat below zero for each coordinate.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from mneme_server.features.learning.deep.policies import LOG_DEVIATION
from mneme_server.features.learning.deep.setup import Setup
from mneme_server.features.learning.deep.training.ddpg_td3 import OffPolicyActorCritic
from mneme_server.features.learning.deep.training.networks import adam
from mneme_server.features.learning.deep.training.trainer import ReplaySample, Update


class Sac(OffPolicyActorCritic):
    """Learns a policy that is good and undecided, and by how much its entropy is to count."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup, critics=2, outputs=2)
        self.temperature = _Temperature(setup.number("entropy_weight"))
        self.temperature_optimiser = adam(
            list(self.temperature.parameters()), setup.number("learning_rate")
        )
        self.modules["temperature"] = self.temperature
        self.optimisers["temperature"] = self.temperature_optimiser

    def update(self, sample: ReplaySample) -> Update:
        """See `OffPolicy`."""
        states = self.scaling(sample.states)
        shape = (2, len(states), self.setup.actions)
        following, here = torch.randn(shape, generator=self.chance)
        worth = self.worth(sample, following)
        loss, value, norm = self.teach_critics(states, self.inside(sample), worth)
        actions, log_density = self.drawn(states, here)
        self.teach_policy(self.policy_loss(states, actions, log_density))
        self.temperature_optimiser.zero_grad()
        self.temperature_loss(log_density).backward()  # type: ignore[no-untyped-call]
        self.temperature_optimiser.step()
        self.follow()
        return Update(loss, value, norm)

    @torch.no_grad()
    def worth(self, sample: ReplaySample, noise: Tensor) -> Tensor:
        """Return what the actions of a sample are to be worth, shape (n,); `noise` is standard
        normal, shape (n, coordinates)."""
        states = self.scaling(sample.next_states)
        actions, log_density = self.drawn(states, noise)
        follows = self.targets(states, actions).amin(0) - self.temperature() * log_density
        return self.worth_next(sample, follows)

    def policy_loss(self, states: Tensor, actions: Tensor, log_density: Tensor) -> Tensor:
        """Return how bad and how decided the policy is."""
        worth = self.critics(states, actions).amin(0)
        loss: Tensor = (self.temperature().detach() * log_density - worth).mean()
        return loss

    def temperature_loss(self, log_density: Tensor) -> Tensor:
        """Return what moves the weight of the entropy up where that is below its target."""
        short = log_density.detach() - self.setup.actions
        loss: Tensor = -(self.temperature.log * short).mean()
        return loss

    def drawn(self, states: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions between -1 and 1, drawn by noise, and the logarithm of their density."""
        mean, log_deviation = self.policy(states).chunk(2, 1)
        log_deviation = log_deviation.clamp(*LOG_DEVIATION)
        at = mean + log_deviation.exp() * noise
        each = -0.5 * noise**2 - log_deviation - 0.5 * math.log(2 * math.pi)
        # log(1 - tanh(x)^2), without losing what is left of it far out.
        squeezed = 2 * (math.log(2) - at - softplus(-2 * at))
        return at.tanh(), (each - squeezed).sum(1)


class _Temperature(nn.Module):
    """How much entropy counts."""

    def __init__(self, first: float) -> None:
        super().__init__()
        self.log = nn.Parameter(torch.tensor(math.log(first)))

    def forward(self) -> Tensor:
        return self.log.exp()
