"""What algorithms share that learn from their own behaviour: rollouts, and what they were worth."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mneme_server.common.errors import FailedPrecondition
from mneme_server.features.learning.deep.setup import Batch, Setup
from mneme_server.features.learning.deep.training.actor_and_critic import ActorAndCritic
from mneme_server.features.learning.deep.training.networks import Arrays, tensor
from mneme_server.features.learning.deep.training.rollouts import (
    Returns,
    Rollouts,
    advantages,
    latest,
)
from mneme_server.features.learning.deep.training.trainer import Certainty, Trainer, Update, summary
from mneme_server.features.learning.learner import Learned

MOST_KEPT = 2_048
"""Transitions of the latest rollouts, from which `Train` learns again."""
MOST_LOG = 20.0
"""Logarithms of ratios between probabilities are cut off here."""


@dataclass(frozen=True, slots=True)
class Experience:
    """Transitions as tensors, and what came of them.

    Args:
        states: standardised, shape (n, inputs).
        actions: shape (n,), or (n, size) in a box.
        log_probability: of each action in its behaviour.
        available: which actions each was chosen from; None: all.
        advantage: how much better each was than the policy.
        worth: what each state turned out to be worth, in the unit that the critic works in.
    """

    states: Tensor
    actions: Tensor
    log_probability: Tensor
    available: Tensor | None
    advantage: Tensor
    worth: Tensor

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.worth)

    def rows(self, rows: Tensor) -> Experience:
        """Return some of them."""
        return Experience(
            states=self.states[rows],
            actions=self.actions[rows],
            log_probability=self.log_probability[rows],
            available=None if self.available is None else self.available[rows],
            advantage=self.advantage[rows],
            worth=self.worth[rows],
        )


class OnPolicy(Trainer):
    """Learns when its actors together gathered `rollout_steps` transitions."""

    optimiser: torch.optim.Optimizer
    away = 0.0
    """How far the policy was from its behaviour at the latest step (an estimate of the
    Kullback-Leibler divergence)."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.rollouts = Rollouts()
        self.certainty = Certainty()
        self.returns = Returns(setup.number("discount_factor"))
        self.networks = ActorAndCritic(setup, self.chance)
        self.modules = {"networks": self.networks}
        self._steps = setup.whole("rollout_steps")
        self._kept: Batch | None = None

    def wants(self) -> int:
        """See `Trainer`."""
        return max(1, self._steps - len(self.rollouts))

    def learn(self, batch: Batch) -> Learned:
        """See `Trainer`."""
        self.rollouts.add(batch)
        if len(self.rollouts) < self._steps:
            return Learned()
        rollout = self.rollouts.take()
        return summary(self.learn_rollout(rollout, lambda: self.updates(self.experience(rollout))))

    def learn_rollout(self, rollout: Batch, updates: Callable[[], list[Update]]) -> list[Update]:
        """Have a rollout learned from by `updates`, and keep it.

        What it is asked with is what it learns with, so that probabilities can be compared: states
        are standardised anew only afterwards. But before the first step nobody asked the policy.
        """
        self.returns.see(rollout)
        first = not self.optimiser.state
        if first:
            self.scaling.see(rollout.states)
        done = updates()
        if not first:
            self.scaling.see(rollout.states)
        self._kept = latest(self._kept, rollout, MOST_KEPT)
        return done

    def updates(self, experience: Experience) -> list[Update]:
        """Learn from a rollout."""
        return [self.update(rows) for rows in self.parts(experience)]

    def parts(self, experience: Experience) -> Iterator[Experience]:
        """Yield the parts of a rollout that steps are taken on, each transition `epochs` times, as
        long as the policy stays near its behaviour: by what is further away it was not judged."""
        for _ in range(self.setup.whole("epochs")):
            order = torch.randperm(len(experience), generator=self.chance)
            for rows in torch.split(order, self.setup.whole("batch_size")):
                yield experience.rows(rows)
                if self.away > self.setup.number("target_kl"):
                    return

    @abstractmethod
    def update(self, experience: Experience) -> Update:
        """Take a step on some of a rollout."""

    def train(self, steps: int, batch: int = 0) -> Learned:
        """See `Trainer`. Learns again from the latest rollouts: what the policy would hardly do any
        more counts little."""
        if (rollout := self.gathered()) is not None:
            self.returns.see(rollout)
            self.scaling.see(rollout.states)
            self._kept = latest(self._kept, rollout, MOST_KEPT)
        if self._kept is None:
            raise FailedPrecondition("there are no transitions to train on yet")
        experience = self.experience(self._kept)
        count = batch or self.setup.whole("batch_size")
        rows = torch.randint(len(experience), (steps, count), generator=self.chance)
        return summary([self.update(experience.rows(one)) for one in rows])

    def gathered(self) -> Batch | None:
        """Take the rollouts, which are not full yet; None if there are no transitions."""
        return self.rollouts.take() if len(self.rollouts) else None

    def experience(self, batch: Batch, networks: ActorAndCritic | None = None) -> Experience:
        """Return what came of transitions, as the critic sees it, that of `networks` if given."""
        value = (networks or self.networks).value
        unit, discount = self.returns.deviation, self.setup.number("discount_factor")
        states = self.scaling(tensor(batch.states))
        with torch.no_grad():
            values = value(states).numpy()
            following = value(self.scaling(tensor(batch.next_states))).numpy()
        found = advantages(
            rewards=batch.rewards / np.float32(unit),
            values=values,
            following=np.where(batch.terminated, np.float32(0), following),
            ends=batch.ends,
            actors=batch.actors,
            discount=discount,
            decay=self.setup.number("gae_lambda"),
        )
        worth = found + values
        self.certainty.note(float(np.mean(found**2)), float(worth.var()))
        return Experience(
            states=states,
            actions=tensor(batch.actions),
            log_probability=tensor(batch.log_probability),
            available=None if batch.available is None else tensor(batch.available),
            advantage=tensor(found),
            worth=tensor(worth),
        )

    def weights(self) -> Arrays:
        """See `Trainer`."""
        told = {**self.networks.weights(), **self.scaling.weights()}
        return {**told, "certainty": self.certainty.share()}

    def grow(self, actions: int) -> None:
        """See `Trainer`.

        A policy that is nearly certain would hardly choose what is new, and an action teaches it
        the less, the less probable it is. So a new one begins as probable as the others on average.
        """
        if self.setup.continuous or actions <= self.actions:
            return
        kept = self._kept
        above = 0.0 if kept is None else self.networks.fair(self.scaling(tensor(kept.states)))
        for networks, optimiser in self.growing():
            networks.grow(actions, optimiser, above)
        self.actions = actions

    def growing(self) -> Iterator[tuple[ActorAndCritic, torch.optim.Optimizer | None]]:
        """Yield the networks that know the actions, with their optimisers."""
        yield self.networks, self.optimiser

    def dump(self) -> dict[str, Any]:
        """See `Trainer`."""
        return {
            **super().dump(),
            "rollouts": self.rollouts.dump(),
            "kept": {} if self._kept is None else self._kept.told(),
            "returns": self.returns.dump(),
            "certainty": self.certainty.dump(),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """See `Trainer`."""
        super().load(state)
        self.rollouts.load(state["rollouts"])
        self._kept = Batch(**state["kept"]) if state["kept"] else None
        self.returns.load(state["returns"])
        self.certainty.load(state["certainty"])
