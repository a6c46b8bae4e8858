"""PPO with the clipped objective: Schulman et al., "Proximal policy optimization algorithms", 2017.

A rollout is learned from several times, in parts. Each step keeps the ratio between the policy's
probability of an action and its behaviour's near 1; the rollout is left early when the policy went
further than `target_kl` from its behaviour.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mneme_server.features.learning.deep.setup import Setup
from mneme_server.features.learning.deep.training.networks import adam, step
from mneme_server.features.learning.deep.training.on_policy import MOST_LOG, Experience, OnPolicy
from mneme_server.features.learning.deep.training.trainer import Update


class Ppo(OnPolicy):
    """See the module."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        rate = setup.number("learning_rate")
        self.optimiser = adam(list(self.networks.parameters()), rate, epsilon=1e-5)
        self.optimisers = {"networks": self.optimiser}

    def update(self, experience: Experience) -> Update:
        """See `OnPolicy`."""
        loss, away = self.loss(experience)
        norm = step(self.optimiser, loss, list(self.networks.parameters()), 0.5)
        self.away = float(away)
        value = float(experience.worth.mean()) * self.returns.deviation
        return Update(loss.item(), value, norm)

    def loss(self, experience: Experience) -> tuple[Tensor, Tensor]:
        """Return the loss, and how far the policy is from its behaviour (an estimate of the
        Kullback-Leibler divergence)."""
        likely, entropy = self.networks.likelihood(
            experience.states, experience.actions, experience.available
        )
        log_ratio = (likely - experience.log_probability).clamp(-MOST_LOG, MOST_LOG)
        ratio = log_ratio.exp()
        advantage = experience.advantage
        if len(advantage) > 1:
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        clip = self.setup.number("clip_range")
        gain = torch.min(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
        critic = (self.networks.value(experience.states) - experience.worth) ** 2
        loss = (
            -gain.mean()
            + self.setup.number("value_weight") * critic.mean()
            - self.setup.number("entropy_weight") * entropy.mean()
        )
        return loss, ((ratio - 1) - log_ratio).mean().detach()
