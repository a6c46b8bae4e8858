"""Whether rewards have settled, and whether that says anything."""

from __future__ import annotations

import numpy as np
import pytest
from mneme_server.features.learning.tally import (
    ConvergenceStatus,
    convergence_score,
    convergence_status,
)


def status(rewards: list[float], window: int = 100) -> ConvergenceStatus:
    score = convergence_score(rewards[-2 * window :], window, min(rewards), max(rewards))
    return convergence_status(score, rewards[:window], rewards[-window:])


def test_rewards_that_rose_and_settled_have_converged() -> None:
    chance = np.random.default_rng(0)
    rewards = [*chance.normal(20, 5, 100).tolist(), *chance.normal(480, 5, 400).tolist()]
    assert status(rewards) is ConvergenceStatus.CONVERGED


@pytest.mark.parametrize("always", [0.0, -200.0, 1.0])
def test_rewards_that_are_always_the_same_have_not_converged(always: float) -> None:
    assert status([always] * 500) is ConvergenceStatus.SETTLED


def test_settling_at_the_return_of_doing_nothing_is_not_converging() -> None:
    """As on a hill that costs force to climb, where the flag was never found."""
    chance = np.random.default_rng(0)
    rewards = [*chance.normal(-33, 3, 150).tolist(), *chance.normal(-0.05, 0.01, 400).tolist()]
    assert status(rewards) is ConvergenceStatus.SETTLED


def test_rewards_that_fell_and_settled_have_not_converged() -> None:
    chance = np.random.default_rng(0)
    rewards = [*chance.normal(-1, 0.1, 150).tolist(), *chance.normal(-700, 5, 400).tolist()]
    assert status(rewards) is ConvergenceStatus.SETTLED
