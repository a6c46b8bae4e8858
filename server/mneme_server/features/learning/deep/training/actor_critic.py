"""A2C, the advantage actor-critic: Mnih et al., "Asynchronous methods for deep reinforcement
learning", 2016, without the asynchrony; Sutton and Barto, section 13.5.

The policy goes up log pi(a | s) times the advantage of a. It learns from a rollout several times,
in parts (Wang et al., "Sample efficient actor-critic with experience replay", 2017): with one step
for each rollout the critic is too slow to show where nobody was yet. From the second step on
another policy behaved than that which learns: an action counts by the ratio of their probabilities,
at most 1 (Espeholt et al., "IMPALA", 2018), and the rollout is left when the policy has gone
`target_kl` from its behaviour. One epoch with a batch as large as the rollout is A2C as published.
"""

from __future__ import annotations

import math

from torch import Tensor

from mneme_server.features.learning.deep.setup import Setup
from mneme_server.features.learning.deep.training.actor_and_critic import ActorAndCritic
from mneme_server.features.learning.deep.training.networks import rmsprop, step
from mneme_server.features.learning.deep.training.on_policy import MOST_LOG, Experience, OnPolicy
from mneme_server.features.learning.deep.training.trainer import Update

MOST_NORM = 0.5
_LEAST_SQUARE = 1e-8


class ActorCritic(OnPolicy):
    """See the module."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        rate = setup.number("learning_rate")
        self.optimiser = rmsprop(list(self.networks.parameters()), rate)
        self.optimisers = {"networks": self.optimiser}

    def update(self, experience: Experience) -> Update:
        """See `OnPolicy`."""
        loss = self.loss(experience, self.networks)
        norm = step(self.optimiser, loss, list(self.networks.parameters()), MOST_NORM)
        return self.done(experience, loss, norm)

    def done(self, experience: Experience, loss: Tensor, norm: float) -> Update:
        """Return what a step did."""
        return Update(loss.item(), float(experience.worth.mean()) * self.returns.deviation, norm)

    @property
    def surprise(self) -> float:
        """How large advantages are of late, the root of their mean square; they are divided by it.

        Not each batch by its own deviation: where nothing is left to learn that would blow up what
        is but noise, until a good policy is forgotten.
        """
        return math.sqrt(max(self.certainty.error, _LEAST_SQUARE))

    def loss(self, experience: Experience, networks: ActorAndCritic) -> Tensor:
        """Return the loss of the policy, the critic and the entropy together."""
        likely, entropy = networks.likelihood(
            experience.states, experience.actions, experience.available
        )
        advantage = experience.advantage / self.surprise
        log_ratio = (likely.detach() - experience.log_probability).clamp(-MOST_LOG, MOST_LOG)
        ratio = log_ratio.exp()
        self.away = float(((ratio - 1) - log_ratio).mean())
        critic = (networks.value(experience.states) - experience.worth) ** 2
        return (
            -(ratio.clamp(max=1.0) * advantage * likely).mean()
            + self.setup.number("value_weight") * critic.mean()
            - self.setup.number("entropy_weight") * entropy.mean()
        )
