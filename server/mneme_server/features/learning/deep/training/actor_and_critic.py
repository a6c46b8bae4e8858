"""A policy and what states are worth to it: the networks of the on-policy algorithms."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from mneme_server.features.learning.deep.policies import LOG_DEVIATION, NEARLY_ONE
from mneme_server.features.learning.deep.setup import Setup
from mneme_server.features.learning.deep.training.networks import Arrays, Network, arrays_of


class ActorAndCritic(nn.Module):
    """Over a number of actions a softmax; in a box a normal distribution squashed by tanh, whose
    deviation is the same in all states.

    Args:
        setup: the sizes.
        chance: what the weights are drawn with.
    """

    def __init__(self, setup: Setup, chance: torch.Generator) -> None:
        super().__init__()
        hidden = [setup.whole("hidden_size")] * setup.whole("hidden_layers")
        self.policy = Network([setup.inputs, *hidden, setup.actions], chance, last=0.01)
        self.critic = Network([setup.inputs, *hidden, 1], chance)
        self.log_deviation: nn.Parameter | None = None
        if setup.continuous:
            self.log_deviation = nn.Parameter(torch.zeros(setup.actions))
            self.box = (torch.from_numpy(setup.middle), torch.from_numpy(setup.half))

    def value(self, states: Tensor) -> Tensor:
        """Return what states are worth, shape (n,)."""
        found: Tensor = self.critic(states).squeeze(1)
        return found

    def likelihood(
        self, states: Tensor, actions: Tensor, available: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the logarithm of the probability (or density) of actions, and the entropy of the
        policy, shape (n,); that of a squashed policy is the entropy before it is squashed."""
        out = self.policy(states)
        if self.log_deviation is not None:
            inside = (actions - self.box[0]) / self.box[1]
            deviation = self.log_deviation.clamp(*LOG_DEVIATION)
            entropy = (deviation + 0.5 * math.log(2 * math.pi * math.e)).sum().expand(len(out))
            return squashed_log_density(inside, out, deviation, self.box[1]), entropy
        if available is not None:
            missing = out.shape[1] - available.shape[1]
            out = out.masked_fill(~nn.functional.pad(available, (0, missing)), -1e8)
        logs = out.log_softmax(1)
        entropy = -(logs.exp() * logs).sum(1)
        return logs.gather(1, actions[:, None]).squeeze(1), entropy

    def weights(self) -> Arrays:
        """Return what the policy needs, in the server."""
        found = arrays_of(self.policy, "policy.")
        if self.log_deviation is not None:
            found["log_deviation"] = self.log_deviation.detach().numpy().copy()
        return found

    def fair(self, states: Tensor) -> float:
        """Return how far above the mean output a new action's must be for it to be chosen as often
        as another one, on average over states."""
        with torch.no_grad():
            out = self.policy(states)
            found = out.logsumexp(1) - math.log(out.shape[1]) - out.mean(1)
        return float(found.mean())

    def grow(
        self, actions: int, optimiser: torch.optim.Optimizer | None, above: float = 0.0
    ) -> None:
        """Know more actions, whose outputs are `above` the mean of those that there are."""
        self.policy.grow(actions, optimiser, above)


def squashed_log_density(
    inside: Tensor, means: Tensor, log_deviation: Tensor, half: Tensor
) -> Tensor:
    """Return the logarithm of the density of actions that were squashed by tanh, shape (n,).

    Args:
        inside: the actions, between -1 and 1, shape (n, size); nearer to a bound they count as if
            they were as near as `NEARLY_ONE`.
        means: of the normal distribution before it is squashed.
        log_deviation: the logarithms of its deviations.
        half: half the width of the box.
    """
    inside = inside.clamp(-NEARLY_ONE, NEARLY_ONE)
    at = (inside.atanh() - means) * (-log_deviation).exp()
    each = -0.5 * at**2 - log_deviation - 0.5 * math.log(2 * math.pi)
    return (each - torch.log1p(-(inside**2)) - half.log()).sum(1)
