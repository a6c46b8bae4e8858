"""The distributions, each beside SciPy's."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import scipy
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mneme_server.statistics.distributions import (
    bootstrap_difference,
    kendall_exact,
    log_factorial,
    rank_sum_exact,
    rank_sum_normal,
    student_point,
    student_two_sided,
    theil_sen,
    two_sided,
)

SAMPLES = st.lists(st.integers(-50, 50).map(float), min_size=2, max_size=25)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=20))
def test_the_logarithms_of_factorials(numbers: list[int]) -> None:
    expected = scipy.special.gammaln(np.array(numbers, float) + 1)
    np.testing.assert_allclose(log_factorial(np.array(numbers)), expected, rtol=1e-13, atol=1e-12)


def test_the_table_of_factorials_and_the_series_meet() -> None:
    around = np.arange(200, 320)
    expected = [math.lgamma(n + 1) for n in around]
    np.testing.assert_allclose(log_factorial(around), expected, rtol=1e-14)


@given(st.floats(-30, 30))
def test_the_normal_distributions_tails(z: float) -> None:
    assert two_sided(z) == pytest.approx(2 * scipy.stats.norm.sf(abs(z)), rel=1e-12)


@given(st.integers(2, 50).flatmap(lambda n: st.permutations(range(n))))
@settings(max_examples=60)
def test_kendalls_exact_p_value(order: list[int]) -> None:
    n = len(order)
    s = int(sum(np.sign(order[j] - order[i]) for i in range(n) for j in range(i + 1, n)))
    expected = scipy.stats.kendalltau(range(n), order, method="exact").pvalue
    assert kendall_exact(n, s) == pytest.approx(expected, rel=1e-9)


@given(st.integers(1, 8), st.integers(1, 60), st.data())
@settings(max_examples=60)
def test_the_exact_p_value_of_a_rank_sum(n: int, m: int, data: st.DataObject) -> None:
    ranks = data.draw(st.permutations(range(n + m)))
    test = scipy.stats.mannwhitneyu(ranks[:n], ranks[n:], method="exact")
    assert rank_sum_exact(n, m, test.statistic) == pytest.approx(test.pvalue, rel=1e-9)
    assert rank_sum_exact(m, n, n * m - test.statistic) == pytest.approx(test.pvalue, rel=1e-9)


@given(SAMPLES, SAMPLES)
def test_the_normal_p_value_of_a_rank_sum_with_ties(
    first: list[float], second: list[float]
) -> None:
    tied = np.unique(first + second, return_counts=True)[1]
    assume(len(tied) > 1)
    test = scipy.stats.mannwhitneyu(first, second, method="asymptotic")
    found = rank_sum_normal(len(first), len(second), test.statistic, tied)
    assert found == pytest.approx(test.pvalue, rel=1e-9)


@given(st.floats(1, 100_000))
def test_students_point(freedom: float) -> None:
    assert student_point(freedom) == pytest.approx(scipy.stats.t.ppf(0.975, freedom), rel=1e-5)


@given(SAMPLES, st.integers(1, 1000))
def test_the_slope_and_its_interval(values: list[float], step: int) -> None:
    times = np.arange(len(values)) * float(step)
    expected = scipy.stats.theilslopes(values, times, alpha=0.95)
    found = theil_sen(times, np.array(values))
    assert found == pytest.approx((expected.slope, expected.low_slope, expected.high_slope))


@given(SAMPLES, SAMPLES, st.integers(0, 2**32))
@settings(max_examples=40)
def test_the_bootstraps_interval(first: list[float], second: list[float], seed: int) -> None:
    a, b = np.array(first), np.array(second)
    found = bootstrap_difference(a, b, 500, np.random.default_rng(seed))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        expected = scipy.stats.bootstrap(
            (a, b),
            lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis),
            n_resamples=500,
            batch=200,
            method="BCa",
            rng=np.random.default_rng(seed),
        ).confidence_interval
    if found is None:
        assert not np.isfinite(expected.low + expected.high)
    else:
        assert found == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(st.floats(-60, 60), st.floats(1, 5_000))
def test_the_tails_of_students_t(t: float, freedom: float) -> None:
    expected = 2 * scipy.stats.t.sf(abs(t), freedom)
    assert student_two_sided(t, freedom) == pytest.approx(expected, rel=1e-6, abs=1e-300)
