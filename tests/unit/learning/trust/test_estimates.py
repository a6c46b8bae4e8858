"""The off-policy estimators against closed forms, and their intervals against the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from mneme_server.learning.trust.estimates import (
    Weighed,
    doubly_robust,
    effective_size,
    mean_of,
    student,
    weighted,
)
from scipy import stats

some_weights = arrays(np.float64, 12, elements=st.floats(0.1, 10))
some_rewards = arrays(np.float64, 12, elements=st.floats(-1, 1))


def one_step(
    ratios: np.ndarray, rewards: np.ndarray, expected: float = 0.0, predicted: float = 0.0
) -> Weighed:
    count = len(ratios)
    return Weighed(
        ratios=ratios[:, None],
        rewards=rewards[:, None],
        expected=np.full((count, 1), expected),
        predicted=np.full((count, 1), predicted),
        lengths=np.ones(count, dtype=np.int64),
        gained=np.zeros((2, count)),
        discount=1.0,
    )


@given(some_weights, some_rewards, st.floats(0.1, 10))
def test_weighted_importance_sampling_is_a_weighted_mean_and_does_not_mind_the_weights_scale(
    ratios: np.ndarray, rewards: np.ndarray, scale: float
) -> None:
    found = weighted(one_step(ratios, rewards))
    assert found.mean() == pytest.approx(np.average(rewards, weights=ratios))
    assert weighted(one_step(scale * ratios, rewards)) == pytest.approx(found)


@given(some_rewards)
def test_a_policy_that_does_what_was_done_is_worth_what_was_earned(rewards: np.ndarray) -> None:
    ratios = np.ones(12)
    assert weighted(one_step(ratios, rewards)) == pytest.approx(rewards)
    assert doubly_robust(one_step(ratios, rewards, 0.3, 0.3)) == pytest.approx(rewards)


@given(some_weights, st.floats(-1, 1))
def test_a_model_that_is_right_makes_the_doubly_robust_estimate_exact_whatever_the_weights(
    ratios: np.ndarray, reward: float
) -> None:
    found = doubly_robust(one_step(ratios, np.full(12, reward), reward, reward))
    assert found == pytest.approx(np.full(12, reward))


def test_rewards_are_weighed_by_the_decisions_up_to_them_and_not_by_later_ones() -> None:
    data = Weighed(
        ratios=np.array([[2.0, 3.0], [1.0, 1.0]]),
        rewards=np.array([[1.0, 10.0], [0.0, 2.0]]),
        expected=np.zeros((2, 2)),
        predicted=np.zeros((2, 2)),
        lengths=np.array([2, 2]),
        gained=np.zeros((2, 2)),
        discount=0.5,
    )
    by_hand = (2 * 1) / 3 + 0.5 * (6 * 10 + 1 * 2) / 7
    assert weighted(data).mean() == pytest.approx(by_hand)
    assert doubly_robust(data) == pytest.approx([2 * (1 + 0.5 * 3 * 10), 0.5 * 2])


def test_an_episode_that_ended_early_counts_on_with_no_reward() -> None:
    data = Weighed(
        ratios=np.array([[2.0, 1.0], [1.0, 1.0]]),
        rewards=np.array([[1.0, 0.0], [1.0, 1.0]]),
        expected=np.zeros((2, 2)),
        predicted=np.zeros((2, 2)),
        lengths=np.array([1, 2]),
        gained=np.zeros((2, 2)),
        discount=1.0,
    )
    assert weighted(data).mean() == pytest.approx(1 + (2 * 0 + 1 * 1) / 3)
    assert doubly_robust(data) == pytest.approx([2.0, 1 + 1])


def test_the_effective_size_is_the_number_of_equal_weights() -> None:
    assert effective_size(np.full(7, 3.0)) == pytest.approx(7)
    assert effective_size(np.array([1.0, 0, 0, 1])) == pytest.approx(2)
    assert effective_size(np.zeros(3)) == 0


@pytest.mark.parametrize(
    ("freedom", "error"),
    [(1, 1e-9), (2, 1e-9), (3, 4e-3), (4, 1e-3)]
    + [(freedom, 5e-4) for freedom in (5, 8, 10, 49, 49.5, 200, 1e6)],
)
def test_quantiles_of_students_t_are_those_of_the_tables(freedom: float, error: float) -> None:
    assert student(0.975, freedom) == pytest.approx(stats.t.ppf(0.975, freedom), abs=error)


@pytest.mark.parametrize("freedom", [1.2, 1.9, 2.1, 2.9])
def test_with_very_few_degrees_of_freedom_that_are_not_whole_the_interval_is_not_too_narrow(
    freedom: float,
) -> None:
    assert student(0.975, freedom) >= stats.t.ppf(0.975, freedom)


def test_rewards_that_were_all_the_same_do_not_make_the_interval_a_point() -> None:
    found = mean_of(np.ones(60), 60, spread=1.0)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.99 < found.value == 1.0 < found.high


def test_the_intervals_hold_for_rare_and_heavy_weights() -> None:
    chance = np.random.default_rng(5)
    held = []
    for _ in range(400):
        matched = chance.random(500) < 0.25
        rewards = (chance.random(500) < np.where(matched, 0.8, 0.3)).astype(float)
        data = one_step(matched * 4.0, rewards, 0.6, 0.6)
        for values in (weighted(data), doubly_robust(data)):
            found = mean_of(values, data.effective, 1.0)
            assert found.low is not None
            assert found.high is not None
            held.append(found.low <= 0.8 <= found.high)
    assert 0.92 <= np.mean(held) <= 0.98
