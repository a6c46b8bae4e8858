"""The linear bandits against the regression that they update step by step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from mneme_server.features.learning.algorithms.algorithm import (
    ActionQuestion,
    Transition,
    number_of,
)
from mneme_server.features.learning.algorithms.bandits import (
    LinearArm,
    LinearConfig,
    LinUcb,
    Thompson,
    _stepped,
)
from mneme_server.features.learning.algorithms.choice import probability_best
from mneme_server.features.learning.spaces import OpenObject

CONFIG = LinearConfig(exploration=1.0, epsilon=0.0, ridge=1.0, features=64)


def test_an_arm_holds_the_posterior_of_ridge_regression_over_all_its_rewards() -> None:
    chance = np.random.default_rng(0)
    states, rewards = chance.normal(size=(50, 4)), chance.normal(size=50)
    arm = LinearArm(4, ridge=2.0)
    for state, reward in zip(states, rewards, strict=True):
        arm.learn(state, reward)
    precision = 2.0 * np.eye(4) + states.T @ states
    mean = np.linalg.solve(precision, states.T @ rewards)
    assert arm.mean == pytest.approx(mean)
    assert arm.covariance == pytest.approx(np.linalg.inv(precision))
    assert arm.shape == 1.0 + 25
    quadratic = rewards @ rewards - mean @ precision @ mean
    assert arm.rate == pytest.approx(0.25 + 0.5 * quadratic)


def _taught(kind: type[LinUcb | Thompson], config: LinearConfig) -> tuple[Any, np.ndarray, Any]:
    """A bandit that was told 40 rewards of three actions; the vectors of some states, and what
    ridge regression makes of the same rewards: for each action the mean and the inverse."""
    chance = np.random.default_rng(3)
    learner = kind(OpenObject(), config)
    told = [({"size": float(chance.random()), "of": "ab"[n % 2]}, n % 3) for n in range(40)]
    rewards = chance.normal(size=40) + [action for _, action in told]
    for (state, action), reward in zip(told, rewards, strict=True):
        learner.learn([Transition(state, action, float(reward))])
    vectors = np.array([learner._dimensions.vector(learner._facts(state)) for state, _ in told])
    fits = []
    for action in range(3):
        rows = np.array([one == action for _, one in told])
        inverse = np.linalg.inv(
            config.ridge * np.eye(vectors.shape[1]) + vectors[rows].T @ vectors[rows]
        )
        fits.append((inverse @ vectors[rows].T @ rewards[rows], inverse))
    return learner, vectors, fits


@pytest.mark.parametrize("exploration", [0.0, 1.0, 5.0])
def test_linucb_chooses_the_largest_mean_plus_so_many_deviations(exploration: float) -> None:
    learner, vectors, fits = _taught(LinUcb, replace(CONFIG, exploration=exploration))
    bounds = [
        [mean @ x + exploration * np.sqrt(x @ inverse @ x) for mean, inverse in fits]
        for x in vectors
    ]
    chance = np.random.default_rng(3)
    for number, bound in enumerate(bounds):  # The states are drawn again as they were.
        state = {"size": float(chance.random()), "of": "ab"[number % 2]}
        (made,) = learner.choose(
            [ActionQuestion(state, [0, 1, 2])], explore=True, chance=np.random.default_rng(1)
        )
        assert made.action == int(np.argmax(bound))


def test_thompson_chooses_each_action_as_often_as_its_draws_from_the_posterior_are_the_best() -> (
    None
):
    learner, vectors, fits = _taught(Thompson, CONFIG)
    chance = np.random.default_rng(3)
    state = {"size": float(chance.random()), "of": "a"}
    (made,) = learner.choose([ActionQuestion(state, [0, 1, 2])], explore=True, chance=chance)
    noise = [learner._arms[action].noise for action in range(3)]
    drawn = np.array(
        [
            chance.multivariate_normal(mean, deviation**2 * inverse, 200_000) @ vectors[0]
            for (mean, inverse), deviation in zip(fits, noise, strict=True)
        ]
    )
    shares = np.bincount(drawn.argmax(axis=0), minlength=3) / drawn.shape[1]
    assert made.policy == pytest.approx(shares, abs=0.01)


def test_the_probability_of_being_the_best_is_what_sampling_finds() -> None:
    chance = np.random.default_rng(1)
    means, deviations = np.array([0.5, 0.6, 0.1]), np.array([0.2, 0.05, 0.4])
    drawn = chance.normal(means, deviations, size=(400_000, 3)).argmax(axis=1)
    (found,) = probability_best(means[None], deviations[None])
    assert found == pytest.approx(np.bincount(drawn) / len(drawn), abs=0.01)
    assert found.sum() == pytest.approx(1.0)


def test_it_is_so_for_many_values_too_of_which_some_are_known_well() -> None:
    chance = np.random.default_rng(2)
    means, deviations = chance.normal(size=60), np.full(60, 0.6)
    means[:2], deviations[:2] = (2.0, 2.002), 0.001
    drawn = chance.normal(means, deviations, size=(100_000, 60)).argmax(axis=1)
    (found,) = probability_best(means[None], deviations[None])
    assert found == pytest.approx(np.bincount(drawn, minlength=60) / len(drawn), abs=0.015)


def test_among_actions_of_which_nothing_is_known_each_is_as_sure_as_the_others() -> None:
    for count in (4, 200):
        (found,) = probability_best(np.zeros((1, count)), np.ones((1, count)))
        assert found == pytest.approx(np.full(count, 1 / count))
    assert probability_best(np.zeros((1, 1)), np.zeros((1, 1))).tolist() == [[1.0]]


@pytest.mark.parametrize("kind", [LinUcb, Thompson])
@pytest.mark.parametrize("seed", range(3))
def test_tens_of_rewards_are_enough_to_choose_well_by_type(
    kind: type[LinUcb | Thompson], seed: int
) -> None:
    right = {"auth": 2, "ui": 0, "db": 1}
    chance = np.random.default_rng(seed)
    learner = kind(OpenObject(), CONFIG)
    for _ in range(120):
        state = {"task_type": str(chance.choice(list(right)))}
        question = ActionQuestion(state, [0, 1, 2])
        action = number_of(learner.choose([question], explore=True, chance=chance)[0].action)
        learner.learn([Transition(state, action, float(action == right[state["task_type"]]))])
    for kind_of_task, action in right.items():
        question = ActionQuestion({"task_type": kind_of_task}, [0, 1, 2])
        chosen = learner.choose([question], explore=False, chance=chance)[0]
        assert chosen.action == action
        assert chosen.confidence > 0.9


def test_a_number_is_told_by_steps_that_are_evenly_apart_up_to_1_and_by_their_ratio_beyond() -> (
    None
):
    told = dict(_stepped(iter([("cost", -0.8), ("size", 5.0), ("of=a", 1.0)])))
    assert list(told) == [
        "cost", "cost ≥ -0.25", "cost ≥ -0.5", "cost ≥ -0.75",
        "size", "size ≥ 0.5", "size ≥ 0.75", "size ≥ 1", "size ≥ 1.5", "size ≥ 2", "size ≥ 3",
        "size ≥ 4", "of=a",
    ]  # fmt: skip
    assert dict(_stepped(iter([("tiny", 0.0)]))) == {"tiny": 0.0}


def _close(kind: int, complexity: float, action: int) -> float:
    """How often an action succeeds where the best is not much better than the others, and another
    one for each kind and again beyond some complexity."""
    return 0.7 if action == (kind + (complexity > 0.6)) % 3 else 0.45


def test_300_rewards_are_enough_where_the_best_is_hardly_better_than_the_others() -> None:
    config = LinearConfig(exploration=2.0, epsilon=0.02, ridge=2.0, features=96)
    shares = []
    for seed in range(11):
        chance, learner = np.random.default_rng(seed), LinUcb(OpenObject(), config)
        for _ in range(300):
            kind, complexity = int(chance.integers(4)), float(chance.random())
            state = {"kind": f"k{kind}", "complexity": complexity}
            (made,) = learner.choose(
                [ActionQuestion(state, [0, 1, 2])], explore=True, chance=chance
            )
            won = chance.random() < _close(kind, complexity, number_of(made.action))
            learner.learn([Transition(state, made.action, float(won))])
        tasks = [(kind, n / 50) for kind in range(4) for n in range(50)]
        questions = [
            ActionQuestion({"kind": f"k{a}", "complexity": b}, [0, 1, 2]) for a, b in tasks
        ]
        made_of = learner.choose(questions, explore=False, chance=chance)
        got = [
            _close(*task, number_of(one.action)) for task, one in zip(tasks, made_of, strict=True)
        ]
        shares.append(float(np.mean(got)) / 0.7)
    assert np.median(shares) >= 0.9, shares


@pytest.mark.parametrize("kind", [LinUcb, Thompson])
def test_what_was_learned_survives_being_stored(kind: type[LinUcb | Thompson]) -> None:
    learner, again = kind(OpenObject(), CONFIG), kind(OpenObject(), CONFIG)
    for n in range(20):
        state = {"size": n / 20, "of": "a" if n % 3 else "b"}
        learner.learn([Transition(state, n % 2, n / 10)])
    again.load(learner.dump())
    questions = [ActionQuestion({"size": 0.4, "of": "b"}, [0, 1, 2])]
    one, other = (
        a.choose(questions, explore=True, chance=np.random.default_rng(7))[0]
        for a in (learner, again)
    )
    assert one.values.tolist() == other.values.tolist()
    assert (one.action, one.probability) == (other.action, other.probability)
