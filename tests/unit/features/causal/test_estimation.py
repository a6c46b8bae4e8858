"""What Discover estimates of causes that few episodes had."""

from __future__ import annotations

import numpy as np
import pytest
from mneme_server.features.causal.estimation import Problem


@pytest.mark.parametrize("rate", [0.9, 0.95, 0.98])
def test_a_rare_cause_without_effect_is_no_discovery_where_nearly_all_succeed(rate: float) -> None:
    chance = np.random.default_rng(5)
    p_values = []
    for _ in range(150):
        works = (chance.random((1_000, 1)) < rate).astype(np.float64)
        treated = chance.permutation(1_000) < 50
        estimates = Problem(np.ones((1_000, 1)), works).estimate(treated).estimates
        assert estimates is not None
        assert estimates[0] is not None
        p_values.append(estimates[0].p_value)
    assert np.mean(np.array(p_values) < 0.05) <= 0.08
    assert np.mean(np.array(p_values) < 0.005) <= 0.02


def tries(times: int, seed: int = 3) -> tuple[Problem, np.ndarray]:
    """Forty tasks, each tried so often: the hard ones mostly with the cause, which changes
    nothing."""
    chance = np.random.default_rng(seed)
    tasks = np.repeat(np.arange(40), times)
    hard = tasks % 2 == 0
    works = (chance.random(len(tasks)) < np.where(hard, 0.2, 0.9)).astype(np.float64)
    treated = chance.random(len(tasks)) < np.where(hard, 0.9, 0.1)
    return Problem(np.ones((len(tasks), 1)), works[:, None], tasks), treated


def test_hard_tasks_are_not_compared_with_easy_ones_where_some_were_tried_both_ways() -> None:
    """Of forty tasks that were tried twice, eight were tried both ways: too few to be compared
    with themselves, and the others differ in what they are."""
    problem, treated = tries(2)
    assert problem.estimate(treated).estimates is None


def test_tasks_that_were_tried_both_ways_are_compared_with_themselves() -> None:
    problem, treated = tries(20)
    estimates = problem.estimate(treated).estimates
    assert estimates is not None
    assert estimates[0] is not None
    assert estimates[0].low < 0 < estimates[0].high
    assert estimates[0].plain < -0.4
