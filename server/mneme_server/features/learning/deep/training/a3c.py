"""A3C: Mnih et al., "Asynchronous methods for deep reinforcement learning", 2016.

Each actor is an asynchronous worker: it keeps the networks as they were when its rollout began,
takes the gradient there when the rollout is full, and steps with it from where the others have
brought the shared networks since. What it learns from the rollout after that, it learns where all
are. With one actor nobody else moves them, and it is A2C (`actor_critic`).

When a rollout is learned from, other actors have moved the policy away from what gathered it, so
`target_kl` lets it go further than that of `actor_critic`: of eight actors whose rollouts end
together, the last ones would learn next to nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from mneme_server.features.learning.deep.setup import Batch, Setup, joined, part
from mneme_server.features.learning.deep.training.actor_and_critic import ActorAndCritic
from mneme_server.features.learning.deep.training.actor_critic import MOST_NORM, ActorCritic
from mneme_server.features.learning.deep.training.networks import arrays_of, restore
from mneme_server.features.learning.deep.training.on_policy import Experience
from mneme_server.features.learning.deep.training.rollouts import Rollouts
from mneme_server.features.learning.deep.training.trainer import Update, summary
from mneme_server.features.learning.learner import Learned

_MOST_ACTORS = 64
"""Actors whose networks are kept; of more, those that were not heard of for longest begin anew."""


class _Actor:
    """A worker: its rollout, and the networks as they were when that began."""

    def __init__(self, networks: ActorAndCritic) -> None:
        self.rollout = Rollouts()
        self.networks = networks


class A3c(ActorCritic):
    """See the module."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._actors: dict[str, _Actor] = {}

    def wants(self) -> int:
        """See `Trainer`."""
        longest = max((len(actor.rollout) for actor in self._actors.values()), default=0)
        return max(1, self.setup.whole("rollout_steps") - longest)

    def learn(self, batch: Batch) -> Learned:
        """See `Trainer`."""
        done: list[Update] = []
        for name in dict.fromkeys(batch.actors):
            rows = np.array([row for row, actor in enumerate(batch.actors) if actor == name])
            actor = self._actor(name)
            actor.rollout.add(part(batch, rows))
            if len(actor.rollout) >= self.setup.whole("rollout_steps"):
                done += self._rollout(actor, actor.rollout.take())
        return summary(done)

    def gathered(self) -> Batch | None:
        """See `OnPolicy`."""
        begun = [actor.rollout for actor in self._actors.values() if len(actor.rollout)]
        return joined([rollout.take() for rollout in begun]) if begun else None

    def _rollout(self, actor: _Actor, rollout: Batch) -> list[Update]:
        def updates() -> list[Update]:
            experience = self.experience(rollout, actor.networks)
            return [self._step(actor, rows) for rows in self.parts(experience)]

        return self.learn_rollout(rollout, updates)

    def _step(self, actor: _Actor, experience: Experience) -> Update:
        """Take the gradient where the actor is, and step with it from where all are now."""
        loss = self.loss(experience, actor.networks)
        actor.networks.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        shared = list(self.networks.parameters())
        for parameter, local in zip(shared, actor.networks.parameters(), strict=True):
            parameter.grad = local.grad
        norm = float(nn.utils.clip_grad_norm_(shared, MOST_NORM))
        if np.isfinite(norm):
            self.optimiser.step()
        actor.networks.load_state_dict(self.networks.state_dict())
        return self.done(experience, loss, norm)

    def _actor(self, name: str) -> _Actor:
        actor = self._actors.pop(name, None) or _Actor(copy.deepcopy(self.networks))
        self._actors[name] = actor  # The latest comes last.
        if len(self._actors) > _MOST_ACTORS:
            del self._actors[next(iter(self._actors))]
        return actor

    def growing(self) -> Iterator[tuple[ActorAndCritic, torch.optim.Optimizer | None]]:
        """See `OnPolicy`."""
        yield from super().growing()
        yield from ((actor.networks, None) for actor in self._actors.values())

    def dump(self) -> dict[str, Any]:
        """See `Trainer`."""
        return {
            **super().dump(),
            "actors": [
                {
                    "name": name,
                    "rollout": actor.rollout.dump(),
                    "networks": arrays_of(actor.networks),
                }
                for name, actor in self._actors.items()
            ],
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """See `Trainer`."""
        super().load(state)
        self._actors = {}
        for known in state["actors"]:
            actor = self._actor(known["name"])
            actor.rollout.load(known["rollout"])
            restore(actor.networks, known["networks"])
