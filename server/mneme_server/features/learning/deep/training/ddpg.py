"""DDPG: Lillicrap et al., "Continuous control with deep reinforcement learning", 2016.

The critic learns r + gamma * Q'(s', mu'(s')), where Q' and mu' follow slowly; the policy mu goes
where the critic rises.
"""

from __future__ import annotations

import torch
from torch import Tensor

from mneme_server.features.learning.deep.setup import Setup
from mneme_server.features.learning.deep.training.networks import Network, follow
from mneme_server.features.learning.deep.training.replay import Sample
from mneme_server.features.learning.deep.training.trainer import Update
from mneme_server.features.learning.deep.training.twin_critics import ActorCritics


class Ddpg(ActorCritics):
    """See the module."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup, critics=1)
        hidden = [setup.whole("hidden_size")] * setup.whole("hidden_layers")
        self.slow_policy = Network([setup.inputs, *hidden, setup.actions], self.chance)
        self.slow_policy.load_state_dict(self.policy.state_dict())
        self.modules["slow_policy"] = self.slow_policy

    def update(self, sample: Sample) -> Update:
        """See `OffPolicy`."""
        states = self.scaling(sample.states)
        loss, value, norm = self.teach_critics(states, self.inside(sample), self.worth(sample))
        self.teach_policy(-self.critics(states, self.policy(states).tanh())[0].mean())
        self.follow()
        follow(self.slow_policy, self.policy, self.setup.number("target_rate"))
        return Update(loss, value, norm)

    @torch.no_grad()
    def worth(self, sample: Sample) -> Tensor:
        """Return what the actions of a sample are to be worth, shape (n,)."""
        states = self.scaling(sample.next_states)
        follows = self.targets(states, self.slow_policy(states).tanh())[0]
        return self.worth_next(sample, follows)
