"""PPO, A2C and A3C: policies that learn from their own behaviour, by rollouts and what came of
them.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mneme_server.common.errors import FailedPrecondition
from mneme_server.features.learning.algorithms.algorithm import UpdateSummary
from mneme_server.features.learning.deep.policies import LOG_DEVIATION, NEARLY_ONE
from mneme_server.features.learning.deep.setup import Batch, Floats, Setup, joined, part
from mneme_server.features.learning.deep.training.networks import (
    Arrays,
    Network,
    adam,
    arrays_of,
    restore,
    rmsprop,
    step,
    tensor,
)
from mneme_server.features.learning.deep.training.trainer import Certainty, Trainer, Update, summary

MOST_KEPT = 2_048
"""Transitions of the latest rollouts, from which `Train` learns again."""
MOST_LOG = 20.0
"""Logarithms of ratios between probabilities are cut off here."""
MOST_NORM = 0.5
_LEAST_SQUARE = 1e-8
_MOST_RETURNS = 1_000


@dataclass(frozen=True, slots=True)
class RolloutTensors:
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

    def rows(self, rows: Tensor) -> RolloutTensors:
        """Return some of them."""
        return RolloutTensors(
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
        self.networks = ActorCriticNetworks(setup, self.chance)
        self.modules = {"networks": self.networks}
        self._steps = setup.whole("rollout_steps")
        self._kept: Batch | None = None

    def wants(self) -> int:
        """See `Trainer`."""
        return max(1, self._steps - len(self.rollouts))

    def learn(self, batch: Batch) -> UpdateSummary:
        """See `Trainer`."""
        self.rollouts.add(batch)
        if len(self.rollouts) < self._steps:
            return UpdateSummary()
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

    def updates(self, experience: RolloutTensors) -> list[Update]:
        """Learn from a rollout."""
        return [self.update(rows) for rows in self.parts(experience)]

    def parts(self, experience: RolloutTensors) -> Iterator[RolloutTensors]:
        """Yield the parts of a rollout that steps are taken on, each transition `epochs` times, as
        long as the policy stays near its behaviour: by what is further away it was not judged."""
        for _ in range(self.setup.whole("epochs")):
            order = torch.randperm(len(experience), generator=self.chance)
            for rows in torch.split(order, self.setup.whole("batch_size")):
                yield experience.rows(rows)
                if self.away > self.setup.number("target_kl"):
                    return

    @abstractmethod
    def update(self, experience: RolloutTensors) -> Update:
        """Take a step on some of a rollout."""

    def train(self, steps: int, batch: int = 0) -> UpdateSummary:
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

    def experience(
        self, batch: Batch, networks: ActorCriticNetworks | None = None
    ) -> RolloutTensors:
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
        return RolloutTensors(
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

    def growing(self) -> Iterator[tuple[ActorCriticNetworks, torch.optim.Optimizer | None]]:
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


class Ppo(OnPolicy):
    """PPO with the clipped objective: Schulman et al., "Proximal policy optimization algorithms",
    2017.

    A rollout is learned from several times, in parts. Each step keeps the ratio between the
    policy's probability of an action and its behaviour's near 1; the rollout is left early when the
    policy went further than `target_kl` from its behaviour.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        rate = setup.number("learning_rate")
        self.optimiser = adam(list(self.networks.parameters()), rate, epsilon=1e-5)
        self.optimisers = {"networks": self.optimiser}

    def update(self, experience: RolloutTensors) -> Update:
        """See `OnPolicy`."""
        loss, away = self.loss(experience)
        norm = step(self.optimiser, loss, list(self.networks.parameters()), 0.5)
        self.away = float(away)
        value = float(experience.worth.mean()) * self.returns.deviation
        return Update(loss.item(), value, norm)

    def loss(self, experience: RolloutTensors) -> tuple[Tensor, Tensor]:
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


class A2c(OnPolicy):
    """A2C, the advantage actor-critic: Mnih et al., "Asynchronous methods for deep reinforcement
    learning", 2016, without the asynchrony; Sutton and Barto, section 13.5.

    The policy goes up log pi(a | s) times the advantage of a. It learns from a rollout several
    times, in parts (Wang et al., "Sample efficient actor-critic with experience replay", 2017):
    with one step for each rollout the critic is too slow to show where nobody was yet. From the
    second step on another policy behaved than that which learns: an action counts by the ratio of
    their probabilities, at most 1 (Espeholt et al., "IMPALA", 2018), and the rollout is left when
    the policy has gone `target_kl` from its behaviour. One epoch with a batch as large as the
    rollout is A2C as published.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        rate = setup.number("learning_rate")
        self.optimiser = rmsprop(list(self.networks.parameters()), rate)
        self.optimisers = {"networks": self.optimiser}

    def update(self, experience: RolloutTensors) -> Update:
        """See `OnPolicy`."""
        loss = self.loss(experience, self.networks)
        norm = step(self.optimiser, loss, list(self.networks.parameters()), MOST_NORM)
        return self.done(experience, loss, norm)

    def done(self, experience: RolloutTensors, loss: Tensor, norm: float) -> Update:
        """Return what a step did."""
        return Update(loss.item(), float(experience.worth.mean()) * self.returns.deviation, norm)

    @property
    def surprise(self) -> float:
        """How large advantages are of late, the root of their mean square; they are divided by it.

        Not each batch by its own deviation: where nothing is left to learn that would blow up what
        is but noise, until a good policy is forgotten.
        """
        return math.sqrt(max(self.certainty.error, _LEAST_SQUARE))

    def loss(self, experience: RolloutTensors, networks: ActorCriticNetworks) -> Tensor:
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


_MOST_ACTORS = 64
"""Actors whose networks are kept; of more, those that were not heard of for longest begin anew."""


class _Actor:
    """A worker: its rollout, and the networks as they were when that began."""

    def __init__(self, networks: ActorCriticNetworks) -> None:
        self.rollout = Rollouts()
        self.networks = networks


class A3c(A2c):
    """A3C: Mnih et al., "Asynchronous methods for deep reinforcement learning", 2016.

    Each actor is an asynchronous worker: it keeps the networks as they were when its rollout began,
    takes the gradient there when the rollout is full, and steps with it from where the others have
    brought the shared networks since. What it learns from the rollout after that, it learns where
    all are. With one actor nobody else moves them, and it is A2C (`A2c`).

    When a rollout is learned from, other actors have moved the policy away from what gathered it,
    so `target_kl` lets it go further than that of `A2c`: of eight actors whose rollouts end
    together, the last ones would learn next to nothing.
    """

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._actors: dict[str, _Actor] = {}

    def wants(self) -> int:
        """See `Trainer`."""
        longest = max((len(actor.rollout) for actor in self._actors.values()), default=0)
        return max(1, self.setup.whole("rollout_steps") - longest)

    def learn(self, batch: Batch) -> UpdateSummary:
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

    def _step(self, actor: _Actor, experience: RolloutTensors) -> Update:
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

    def growing(self) -> Iterator[tuple[ActorCriticNetworks, torch.optim.Optimizer | None]]:
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


class ActorCriticNetworks(nn.Module):
    """A policy and what states are worth to it.

    Over a number of actions a softmax; in a box a normal distribution squashed by tanh, whose
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


def advantages(
    *,
    rewards: Floats,
    values: Floats,
    following: Floats,
    ends: NDArray[np.bool_],
    actors: Sequence[str],
    discount: float,
    decay: float,
) -> Floats:
    """Return how much better each action was than the policy's: Schulman et al., "High-dimensional
    continuous control using generalized advantage estimation", 2015.

    Args:
        rewards: shape (n,), in the order in which they came; those of actors may be mixed.
        values: what the states were thought to be worth.
        following: what the states that followed were; 0 where nothing follows.
        ends: which are the last of their episode.
        actors: whose each is.
        discount: what a reward is worth one step later.
        decay: lambda, how much further steps count.
    """
    errors = (rewards + discount * following - values).tolist()
    found = np.empty(len(rewards), np.float32)
    later: dict[str, float] = {}
    for row in range(len(errors) - 1, -1, -1):
        onward = 0.0 if ends[row] else later.get(actors[row], 0.0)
        found[row] = later[actors[row]] = errors[row] + discount * decay * onward
    return found


class Rollouts:
    """What actors met: transitions since they were last taken."""

    def __init__(self) -> None:
        self._batches: list[Batch] = []
        self._size = 0

    def __len__(self) -> int:
        """Return how many there are."""
        return self._size

    def add(self, batch: Batch) -> None:
        """Gather transitions."""
        self._batches.append(batch)
        self._size += len(batch)

    def take(self) -> Batch:
        """Return them all and begin anew."""
        found = joined(self._batches)
        self._batches, self._size = [], 0
        return found

    def dump(self) -> Mapping[str, Any]:
        """Return them, as JSON and arrays."""
        return joined(self._batches).told() if self._batches else {}

    def load(self, kept: Mapping[str, Any]) -> None:
        """Take over what `dump` returned."""
        self._batches = [Batch(**kept)] if kept else []
        self._size = sum(map(len, self._batches))


class Returns:
    """How much the returns of actors deviate: rewards are divided by it, so that what is learned is
    of the size of 1 whatever their unit is.

    Args:
        discount: what a reward is worth one step later.
    """

    def __init__(self, discount: float) -> None:
        self._discount = discount
        self._returns: dict[str, float] = {}
        self._count, self._mean, self._squares = 0, 0.0, 0.0

    @property
    def deviation(self) -> float:
        """The deviation; 1 before anything is known of it."""
        found = float(np.sqrt(self._squares / self._count)) if self._count > 1 else 0.0
        return found if found > 1e-6 else 1.0

    def see(self, batch: Batch) -> None:
        """Count rewards in."""
        rewards, ends = batch.rewards.tolist(), batch.ends.tolist()
        for actor, reward, end in zip(batch.actors, rewards, ends, strict=True):
            total = self._returns.pop(actor, 0.0) * self._discount + reward
            if not end:
                self._returns[actor] = total  # The latest come last.
            self._count += 1
            before = total - self._mean
            self._mean += before / self._count
            self._squares += before * (total - self._mean)
        while len(self._returns) > _MOST_RETURNS:
            del self._returns[next(iter(self._returns))]

    def dump(self) -> Mapping[str, Any]:
        """Return the sums, as JSON."""
        return {"returns": self._returns, "sums": [self._count, self._mean, self._squares]}

    def load(self, kept: Mapping[str, Any]) -> None:
        """Take over what `dump` returned."""
        self._returns = dict(kept["returns"])
        self._count, self._mean, self._squares = kept["sums"]


def latest(kept: Batch | None, new: Batch, most: int) -> Batch:
    """Return the latest transitions of two batches, at most so many."""
    both = new if kept is None else joined([kept, new])
    return part(both, np.arange(max(0, len(both) - most), len(both)))
