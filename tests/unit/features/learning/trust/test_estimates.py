"""The off-policy estimators against closed forms, and their intervals against the truth."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from mneme_server.features.learning.trust.estimates import (
    WeightedEpisodes,
    doubly_robust,
    effective_size,
    mean_of,
    student,
    weighted,
)

some_weights = arrays(np.float64, 12, elements=st.floats(0.1, 10))
some_rewards = arrays(np.float64, 12, elements=st.floats(-1, 1))


def one_step(
    ratios: np.ndarray, rewards: np.ndarray, expected: float = 0.0, predicted: float = 0.0
) -> WeightedEpisodes:
    count = len(ratios)
    return WeightedEpisodes(
        ratios=ratios,
        rewards=rewards,
        expected=np.full(count, expected),
        predicted=np.full(count, predicted),
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
    data = WeightedEpisodes(
        ratios=np.array([2.0, 3.0, 1.0, 1.0]),
        rewards=np.array([1.0, 10.0, 0.0, 2.0]),
        expected=np.zeros(4),
        predicted=np.zeros(4),
        lengths=np.array([2, 2]),
        gained=np.zeros((2, 2)),
        discount=0.5,
    )
    by_hand = (2 * 1) / 3 + 0.5 * (6 * 10 + 1 * 2) / 7
    assert weighted(data).mean() == pytest.approx(by_hand)
    assert doubly_robust(data) == pytest.approx([2 * (1 + 0.5 * 3 * 10), 0.5 * 2])


def test_an_episode_that_ended_early_counts_on_with_no_reward() -> None:
    data = WeightedEpisodes(
        ratios=np.array([2.0, 1.0, 1.0]),
        rewards=np.array([1.0, 1.0, 1.0]),
        expected=np.zeros(3),
        predicted=np.zeros(3),
        lengths=np.array([1, 2]),
        gained=np.zeros((2, 2)),
        discount=1.0,
    )
    assert weighted(data).mean() == pytest.approx(1 + (2 * 0 + 1 * 1) / 3)
    assert doubly_robust(data) == pytest.approx([2.0, 1 + 1])


def in_tables(data: WeightedEpisodes) -> tuple[np.ndarray, np.ndarray]:
    """Both estimates as the papers write them, with a row for each episode and a column for each
    step of the longest."""
    there = np.arange(data.lengths.max()) < data.lengths[:, None]

    def table(values: np.ndarray, after: float) -> np.ndarray:
        found = np.full(there.shape, after)
        found[there] = values
        return found

    ratios, rewards = table(data.ratios, 1.0), table(data.rewards, 0.0)
    discounts = data.discount ** np.arange(there.shape[1])
    so_far = np.cumprod(ratios, axis=1)
    shares = so_far / so_far.sum(axis=0)
    means = (shares * rewards).sum(axis=0)
    influence = (shares * (rewards - means)) @ discounts * len(so_far)
    value = np.zeros(len(data.lengths))
    expected, predicted = table(data.expected, 0.0), table(data.predicted, 0.0)
    for step in range(there.shape[1] - 1, -1, -1):
        surprise = rewards[:, step] + data.discount * value - predicted[:, step]
        now = expected[:, step] + ratios[:, step] * surprise
        value = np.where(there[:, step], now, value)
    return means @ discounts + influence, value


@given(st.lists(st.integers(1, 6), min_size=2, max_size=8), st.integers(0, 2**32 - 1))
def test_episodes_of_any_lengths_are_estimated_as_in_tables_with_a_column_for_each_step(
    lengths: list[int], seed: int
) -> None:
    chance = np.random.default_rng(seed)
    steps = chance.uniform(0.1, 2.0, (4, sum(lengths)))
    data = WeightedEpisodes(*steps, np.array(lengths), np.zeros((2, len(lengths))), 0.9)
    by_sampling, robust = in_tables(data)
    assert weighted(data) == pytest.approx(by_sampling)
    assert doubly_robust(data) == pytest.approx(robust)
    assert data.weights == pytest.approx(
        [one.prod() for one in np.split(data.ratios, np.cumsum(lengths)[:-1])]
    )
    assert data.since(1).returns == pytest.approx(data.returns[1:])


def test_one_long_episode_among_many_short_ones_takes_no_table_of_both() -> None:
    lengths = np.array([*[1] * 3_000, 3_000])
    steps = np.ones((4, 6_000))
    tracemalloc.start()
    try:
        data = WeightedEpisodes(*steps, lengths, np.zeros((2, len(lengths))), 1.0)
        assert len(weighted(data)) == len(doubly_robust(data)) == len(lengths)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * 2**20


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
    assert student(0.975, freedom) == pytest.approx(scipy.stats.t.ppf(0.975, freedom), abs=error)


@pytest.mark.parametrize("freedom", [1.2, 1.9, 2.1, 2.9])
def test_with_very_few_degrees_of_freedom_that_are_not_whole_the_interval_is_not_too_narrow(
    freedom: float,
) -> None:
    assert student(0.975, freedom) >= scipy.stats.t.ppf(0.975, freedom)


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
