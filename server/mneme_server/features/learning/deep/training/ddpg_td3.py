"""DDPG and TD3: a policy in a box that goes where critics of its actions rise; `sac` builds on it.

Inside, actions run from -1 to 1.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from mneme_server.features.learning.deep.setup import Setup
from mneme_server.features.learning.deep.training.networks import (
    Arrays,
    Network,
    adam,
    arrays_of,
    follow,
    step,
)
from mneme_server.features.learning.deep.training.trainer import OffPolicy, ReplaySample, Update

_MOST_NORM = math.inf


class Critics(nn.Module):
    """So many networks of what an action is worth in a state.

    Args:
        count: how many.
        setup: the sizes.
        chance: what the weights are drawn with.
    """

    def __init__(self, count: int, setup: Setup, chance: torch.Generator) -> None:
        super().__init__()
        hidden = [setup.whole("hidden_size")] * setup.whole("hidden_layers")
        sizes = [setup.inputs + setup.actions, *hidden, 1]
        self.each = nn.ModuleList(Network(sizes, chance) for _ in range(count))

    def forward(self, states: Tensor, actions: Tensor) -> Tensor:
        """Return what each critic thinks of actions, shape (critics, n)."""
        both = torch.cat([states, actions], 1)
        return torch.stack([critic(both).squeeze(1) for critic in self.each])


class OffPolicyActorCritic(OffPolicy):
    """A policy with critics, and critics that follow slowly, from which targets come.

    Args:
        setup: what it is made for.
        critics: how many.
        outputs: how many numbers the policy's network has for each coordinate.
    """

    def __init__(self, setup: Setup, critics: int, outputs: int = 1) -> None:
        super().__init__(setup)
        hidden = [setup.whole("hidden_size")] * setup.whole("hidden_layers")
        sizes = [setup.inputs, *hidden, outputs * setup.actions]
        rate = setup.number("learning_rate")
        self.policy = Network(sizes, self.chance, last=0.01)
        self.critics = Critics(critics, setup, self.chance)
        self.targets = Critics(critics, setup, self.chance)
        self.targets.load_state_dict(self.critics.state_dict())
        self.policy_optimiser = adam(list(self.policy.parameters()), rate)
        self.critic_optimiser = adam(list(self.critics.parameters()), rate)
        self.modules = {"policy": self.policy, "critics": self.critics, "targets": self.targets}
        self.optimisers = {"policy": self.policy_optimiser, "critics": self.critic_optimiser}
        self._box = (torch.from_numpy(setup.middle), torch.from_numpy(setup.half))

    def inside(self, sample: ReplaySample) -> Tensor:
        """Return the actions of a sample, between -1 and 1."""
        return (sample.actions - self._box[0]) / self._box[1]

    def worth_next(self, sample: ReplaySample, follows: Tensor) -> Tensor:
        """Return what actions are to be worth where what follows is worth `follows`."""
        return sample.rewards + self.setup.number("discount_factor") * sample.goes_on * follows

    def teach_critics(
        self, states: Tensor, actions: Tensor, worth: Tensor
    ) -> tuple[float, float, float]:
        """Move all critics towards what actions are to be worth; return the loss, what they
        thought, the norm of the gradient."""
        thought = self.critics(states, actions)
        errors = (thought - worth) ** 2
        loss = errors.mean(1).sum()
        norm = step(self.critic_optimiser, loss, list(self.critics.parameters()), _MOST_NORM)
        self.certainty.note(float(errors.detach().mean()), float(worth.var(correction=0)))
        return loss.item(), thought.mean().item(), norm

    def teach_policy(self, loss: Tensor) -> None:
        """Take a step of the policy; what the critics would learn from it is forgotten."""
        step(self.policy_optimiser, loss, list(self.policy.parameters()), _MOST_NORM)

    def follow(self) -> None:
        """Have the slow critics follow."""
        follow(self.targets, self.critics, self.setup.number("target_rate"))

    def weights(self) -> Arrays:
        """See `Trainer`."""
        policy = arrays_of(self.policy, "policy.")
        return {**policy, **self.scaling.weights(), "certainty": self.certainty.share()}

    def grow(self, actions: int) -> None:
        """See `Trainer`. A box has as many coordinates as it has."""


class Ddpg(OffPolicyActorCritic):
    """DDPG: Lillicrap et al., "Continuous control with deep reinforcement learning", 2016.

    The critic learns r + gamma * Q'(s', mu'(s')), where Q' and mu' follow slowly; the policy mu
    goes where the critic rises.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup, critics=1)
        hidden = [setup.whole("hidden_size")] * setup.whole("hidden_layers")
        self.slow_policy = Network([setup.inputs, *hidden, setup.actions], self.chance)
        self.slow_policy.load_state_dict(self.policy.state_dict())
        self.modules["slow_policy"] = self.slow_policy

    def update(self, sample: ReplaySample) -> Update:
        """See `OffPolicy`."""
        states = self.scaling(sample.states)
        loss, value, norm = self.teach_critics(states, self.inside(sample), self.worth(sample))
        self.teach_policy(-self.critics(states, self.policy(states).tanh())[0].mean())
        self.follow()
        follow(self.slow_policy, self.policy, self.setup.number("target_rate"))
        return Update(loss, value, norm)

    @torch.no_grad()
    def worth(self, sample: ReplaySample) -> Tensor:
        """Return what the actions of a sample are to be worth, shape (n,)."""
        states = self.scaling(sample.next_states)
        follows = self.targets(states, self.slow_policy(states).tanh())[0]
        return self.worth_next(sample, follows)


class Td3(OffPolicyActorCritic):
    """TD3: Fujimoto, van Hoof and Meger, "Addressing function approximation error in actor-critic
    methods", 2018.

    DDPG with three changes: what follows is worth what the more careful of two critics says;
    actions that follow are blurred a little; the policy learns at every second step.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup, critics=2)
        hidden = [setup.whole("hidden_size")] * setup.whole("hidden_layers")
        self.slow_policy = Network([setup.inputs, *hidden, setup.actions], self.chance)
        self.slow_policy.load_state_dict(self.policy.state_dict())
        self.modules["slow_policy"] = self.slow_policy

    def update(self, sample: ReplaySample) -> Update:
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
    def worth(self, sample: ReplaySample, blur: Tensor) -> Tensor:
        """Return what the actions of a sample are to be worth, shape (n,); `blur` is standard
        normal noise, shape (n, coordinates)."""
        states = self.scaling(sample.next_states)
        most = self.setup.number("target_noise_limit")
        noise = (blur * self.setup.number("target_noise")).clamp(-most, most)
        actions = (self.slow_policy(states).tanh() + noise).clamp(-1, 1)
        return self.worth_next(sample, self.targets(states, actions).amin(0))
