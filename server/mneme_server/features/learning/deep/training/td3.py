"""TD3: Fujimoto, van Hoof and Meger, "Addressing function approximation error in actor-critic
methods", 2018.

DDPG with three changes: what follows is worth what the more careful of two critics says; actions
that follow are blurred a little; the policy learns at every second step.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mneme_server.features.learning.deep.setup import Setup
from mneme_server.features.learning.deep.training.networks import Network, follow
from mneme_server.features.learning.deep.training.replay import Sample
from mneme_server.features.learning.deep.training.trainer import Update
from mneme_server.features.learning.deep.training.twin_critics import ActorCritics


class Td3(ActorCritics):
    """See the module."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup, critics=2)
        hidden = [setup.whole("hidden_size")] * setup.whole("hidden_layers")
        self.slow_policy = Network([setup.inputs, *hidden, setup.actions], self.chance)
        self.slow_policy.load_state_dict(self.policy.state_dict())
        self.modules["slow_policy"] = self.slow_policy

    def update(self, sample: Sample) -> Update:
        """See `OffPolicy`."""
        states = self.scaling(sample.states)
        blur = torch.randn(len(states), self.setup.actions, generator=self.chance)
        worth = self.worth(sample, blur)
        loss, value, norm = self.teach_critics(states, self.inside(sample), worth)
        if self.updates % self.setup.whole("policy_every") == 0:
            self.teach_policy(-self.critics(states, self.policy(states).tanh())[0].mean())
            self.follow()
            follow(self.slow_policy, self.policy, self.setup.number("target_rate"))
        return Update(loss, value, norm)

    @torch.no_grad()
    def worth(self, sample: Sample, blur: Tensor) -> Tensor:
        """Return what the actions of a sample are to be worth, shape (n,); `blur` is standard
        normal noise, shape (n, coordinates)."""
        states = self.scaling(sample.next_states)
        most = self.setup.number("target_noise_limit")
        noise = (blur * self.setup.number("target_noise")).clamp(-most, most)
        actions = (self.slow_policy(states).tanh() + noise).clamp(-1, 1)
        return self.worth_next(sample, self.targets(states, actions).amin(0))
