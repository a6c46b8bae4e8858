"""What `ddpg`, `td3` and `sac` share: a policy in a box, and critics of what its actions are worth.

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
from mneme_server.features.learning.deep.training.off_policy import OffPolicy
from mneme_server.features.learning.deep.training.replay import Sample

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


class ActorCritics(OffPolicy):
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

    def inside(self, sample: Sample) -> Tensor:
        """Return the actions of a sample, between -1 and 1."""
        return (sample.actions - self._box[0]) / self._box[1]

    def worth_next(self, sample: Sample, follows: Tensor) -> Tensor:
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
