"""Rewards of any size: learned as they are, and scaled only where a session asks for it."""

from __future__ import annotations

import numpy as np
import pytest
from mneme_server.features.learning.algorithms.algorithm import (
    ActionQuestion,
    Learner,
    LearningTask,
    Setting,
    Transition,
    aimed,
)
from mneme_server.features.learning.catalogue import algorithm_named, configured
from mneme_server.features.learning.spaces import Discrete

BANDITS_AND_TABLES = ["linucb", "thompson", "q_learning", "sarsa"]
QUESTIONS = [ActionQuestion(state, [0, 1]) for state in range(3)]


def taught(algorithm: str, unit: float, **given: Setting) -> tuple[Learner, float | None]:
    """A learner that was told rewards of the size of `unit`, and the value that it tells of."""
    named = algorithm_named(algorithm)
    learner = named.make(LearningTask(Discrete(3), Discrete(2), configured(named, given), seed=1))
    chance = np.random.default_rng(1)
    told = []
    for _ in range(60):
        state, action = int(chance.integers(3)), int(chance.integers(2))
        reward = unit * (float(action == state % 2) + float(chance.normal()) / 8)
        told.append(
            Transition(state, action, reward, int(chance.integers(3)), terminated=False,
                       probability=0.5)
        )  # fmt: skip
    told[-1] = Transition(0, 0, unit, probability=0.5)
    return learner, learner.learn(told).value


def asked(learner: Learner, *, explore: bool = True) -> list[tuple[object, ...]]:
    chance = np.random.default_rng(2)
    return [
        (one.action, one.probability, one.confidence)
        for one in learner.choose(QUESTIONS, explore=explore, chance=chance)
    ]


@pytest.mark.parametrize("algorithm", BANDITS_AND_TABLES)
def test_scaled_rewards_are_learned_as_if_they_had_that_size(algorithm: str) -> None:
    plain, _ = taught(algorithm, 1.0)
    scaled, _ = taught(algorithm, 1_024.0, reward_scale=1 / 1_024)

    assert asked(scaled) == asked(plain)


@pytest.mark.parametrize("algorithm", BANDITS_AND_TABLES)
def test_what_is_told_of_values_is_in_the_unit_of_the_rewards_that_came(algorithm: str) -> None:
    plain, value = taught(algorithm, 1.0)
    scaled, value_of_scaled = taught(algorithm, 1_024.0, reward_scale=1 / 1_024)

    assert value is not None
    assert value_of_scaled == pytest.approx(1_024 * value)
    chance = np.random.default_rng(2)
    pairs = zip(
        plain.choose(QUESTIONS, explore=False, chance=chance),
        scaled.choose(QUESTIONS, explore=False, chance=chance),
        strict=True,
    )
    for one, other in pairs:
        assert other.values == pytest.approx(1_024 * one.values)


def test_unless_it_is_asked_for_rewards_are_learned_as_they_are() -> None:
    plain, _ = taught("q_learning", 1.0)
    large, _ = taught("q_learning", 1_024.0)

    chance = np.random.default_rng(2)
    (one, *_), (other, *_) = (
        learner.choose(QUESTIONS, explore=False, chance=chance) for learner in (plain, large)
    )
    assert other.values == pytest.approx(1_024 * one.values)


@pytest.mark.parametrize("algorithm", ["linucb", "thompson"])
def test_bandits_find_the_size_of_rewards_by_themselves(algorithm: str) -> None:
    plain, _ = taught(algorithm, 1.0)
    for unit in (1 / 1_024, 1_024.0):
        other, _ = taught(algorithm, unit)
        pairs = zip(asked(other), asked(plain), strict=True)
        assert all(one == pytest.approx(known) for one, known in pairs)


def test_an_initial_value_is_in_the_unit_of_the_rewards_too() -> None:
    named = algorithm_named("q_learning")
    given: dict[str, Setting] = {"initial_value": 50.0, "reward_scale": 0.01}
    learner = named.make(LearningTask(Discrete(3), Discrete(2), configured(named, given), seed=1))  # type: ignore[arg-type]
    learner.learn([Transition(0, 0, 10.0)])

    (made,) = learner.choose(QUESTIONS[:1], explore=False, chance=np.random.default_rng(1))
    assert made.values.tolist() == pytest.approx([10.0, 50.0])


def test_a_return_to_aim_at_is_scaled_with_the_rewards() -> None:
    found = aimed([ActionQuestion(0, target_return=300.0), ActionQuestion(0)], 0.01)
    assert [one.target_return for one in found] == [pytest.approx(3.0), None]
