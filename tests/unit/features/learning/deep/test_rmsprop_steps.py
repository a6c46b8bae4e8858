"""A step of the actor-critics, computed by hand: RMSprop, from where the shared weights are, with
the gradient of where an actor was."""

from __future__ import annotations

import copy

import numpy as np
import pytest

pytest.importorskip("torch", reason="the extra `rl` is not installed")

import torch
from mneme_server.features.learning.deep.setup import Setup
from mneme_server.features.learning.deep.training.ppo_a3c import (
    A2c,
    A3c,
    ActorCriticNetworks,
    RolloutTensors,
)
from support.deep import config_of

RATE, DECAY, EPSILON, MOST_NORM = 0.01, 0.99, 1e-5, 0.5
INPUTS, ACTIONS, N = 3, 4, 40


def test_actor_critic_steps_by_its_gradient_over_the_root_of_its_mean_square() -> None:
    trainer = A2c(_setup("actor_critic"))
    had = _experience()
    expected = _stepped(trainer.networks, _gradient(trainer, had, trainer.networks))

    trainer.update(had)

    _assert_same(list(trainer.networks.parameters()), expected)


def test_a3c_steps_from_where_others_are_by_the_gradient_of_where_the_actor_was() -> None:
    trainer = A3c(_setup("a3c"))
    actor = trainer._actor("slow")
    began = copy.deepcopy(actor.networks)
    _move(trainer.networks)  # Others learned meanwhile.
    had = _experience()
    there = _gradient(trainer, had, began)
    expected = _stepped(trainer.networks, there)
    here = _stepped(trainer.networks, _gradient(trainer, had, trainer.networks))
    assert not all(torch.allclose(a, b, atol=1e-3) for a, b in zip(expected, here, strict=True))

    trainer._step(actor, had)

    _assert_same(list(trainer.networks.parameters()), expected)
    _assert_same(list(actor.networks.parameters()), expected)


def _setup(name: str) -> Setup:
    none = np.zeros(0, np.float32)
    config = config_of(name, learning_rate=RATE)
    return Setup(name, INPUTS, np.zeros(INPUTS, bool), False, ACTIONS, none, none, config, 1)


def _experience() -> RolloutTensors:
    chance = torch.Generator().manual_seed(5)
    return RolloutTensors(
        states=torch.randn(N, INPUTS, generator=chance),
        actions=torch.randint(ACTIONS, (N,), generator=chance),
        log_probability=torch.full((N,), -1.4),
        available=None,
        advantage=torch.randn(N, generator=chance),
        worth=torch.randn(N, generator=chance),
    )


def _move(networks: ActorCriticNetworks) -> None:
    chance = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in networks.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=chance))


def _gradient(
    trainer: A2c, had: RolloutTensors, networks: ActorCriticNetworks
) -> list[torch.Tensor]:
    """The gradient of the loss, cut off where it is too long."""
    found = torch.autograd.grad(trainer.loss(had, networks), list(networks.parameters()))
    norm = float(sum((one**2).sum() for one in found)) ** 0.5
    return [one * min(1.0, MOST_NORM / norm) for one in found]


def _stepped(networks: ActorCriticNetworks, gradient: list[torch.Tensor]) -> list[torch.Tensor]:
    """The weights after the first step of RMSprop."""
    return [
        weights.detach() - RATE * one / (((1 - DECAY) * one**2).sqrt() + EPSILON)
        for weights, one in zip(networks.parameters(), gradient, strict=True)
    ]


def _assert_same(found: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.detach(), other, atol=1e-4, rtol=1e-4)
