from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mneme_server.statistics.inference import (
    BOOTSTRAP_LIMIT,
    benjamini_hochberg,
    benjamini_yekutieli,
    compare,
    fisher_exact,
    mann_kendall,
    rate_ratio,
    welch,
    wilson,
)

VALUES = st.lists(st.integers(-20, 20).map(float), min_size=2, max_size=30)
P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=40)


@given(P_VALUES)
def test_q_values_are_those_of_benjamini_and_hochberg(p_values: list[float]) -> None:
    expected = scipy.stats.false_discovery_control(p_values, method="bh")
    assert benjamini_hochberg(np.array(p_values)) == pytest.approx(expected)


def test_tests_that_were_left_out_count() -> None:
    alone, of_ten = (benjamini_hochberg(np.array([0.01]), tests) for tests in (1, 10))
    assert (alone[0], of_ten[0]) == pytest.approx((0.01, 0.1))


@st.composite
def tables(draw: st.DrawFn) -> tuple[int, int, int, int]:
    a, b, c, d = (draw(st.integers(0, 60)) for _ in range(4))
    return a, a + b, a + c, a + b + c + d


@given(st.lists(tables(), min_size=1, max_size=6))
@settings(max_examples=60)
def test_fishers_exact_test_is_scipys(of: list[tuple[int, int, int, int]]) -> None:
    found = fisher_exact(*(np.array(column) for column in zip(*of, strict=True)))
    for p_value, (hits, trials, all_hits, total) in zip(found, of, strict=True):
        table = [[hits, trials - hits], [all_hits - hits, total - trials - all_hits + hits]]
        assert p_value == pytest.approx(scipy.stats.fisher_exact(table).pvalue, abs=1e-9)


def test_fishers_exact_test_takes_large_tables() -> None:
    table = (30_500, 61_000, 50_000, 120_000)
    (found,) = fisher_exact(*(np.array([n]) for n in table))
    hits, trials, all_hits, total = table
    cells = [[hits, trials - hits], [all_hits - hits, total - trials - all_hits + hits]]
    assert found == pytest.approx(scipy.stats.fisher_exact(cells).pvalue, rel=1e-6)


counts = st.integers(0, 60)


@given(counts, counts, counts, counts)
def test_the_interval_of_a_share_is_wilsons(a: int, b: int, c: int, d: int) -> None:
    hits, trials = np.array([a, c], float), np.array([a + b, c + d], float)
    low, high = wilson(hits, trials)
    for i, (x, n) in enumerate(((a, a + b), (c, c + d))):
        if n == 0:
            assert (low[i], high[i]) == (0, 1)
            continue
        expected = scipy.stats.binomtest(x, n).proportion_ci(method="wilson")
        assert (low[i], high[i]) == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(counts, counts, counts, counts)
def test_the_interval_of_a_ratio_holds_it_and_is_never_closed_by_an_empty_cell(
    a: int, b: int, c: int, d: int
) -> None:
    found = rate_ratio(*(np.array([float(n)]) for n in (a, a + b, c, c + d)))
    lift, low, high = (float(values[0]) for values in found)
    if a and c:
        assert 0 < low < lift < high < np.inf or low <= lift <= high
    elif a:
        assert (lift, high) == (np.inf, np.inf)
        assert np.isfinite(low)
    elif c:
        assert lift == low == 0
        assert 0 < high < np.inf


def test_three_of_three_are_not_taken_for_certain() -> None:
    found = rate_ratio(*(np.array([float(n)]) for n in (3, 3, 70, 1_161)))
    assert found.low[0] < 8  # Katz's log interval would begin at 13.


def test_the_interval_of_a_ratio_covers_it_as_often_as_it_says() -> None:
    rng = np.random.default_rng(7)
    for first, second in ((0.9, 0.45), (0.2, 0.05), (0.5, 0.5)):
        hits = rng.binomial(24, first, 2_000).astype(float)
        others = rng.binomial(160, second, 2_000).astype(float)
        found = rate_ratio(hits, np.full(2_000, 24.0), others, np.full(2_000, 160.0))
        covered = ((found.low <= first / second) & (first / second <= found.high)).mean()
        assert 0.93 <= covered <= 0.98


def test_a_rise_without_ties_has_mann_kendalls_exact_p_value() -> None:
    found = mann_kendall(np.arange(6.0), np.array([1.0, 2, 4, 3, 5, 6]))
    assert found.direction == 1
    assert found.p_value == pytest.approx(_permuted([1.0, 2, 4, 3, 5, 6]))


def _permuted(values: list[float]) -> float:
    """The p-value by trying every order."""

    def s(order: tuple[float, ...]) -> int:
        pairs = itertools.combinations(order, 2)
        return abs(sum((b > a) - (b < a) for a, b in pairs))

    every = list(itertools.permutations(values))
    return sum(s(order) >= s(tuple(values)) for order in every) / len(every)


def test_mann_kendalls_variance_is_corrected_for_ties() -> None:
    values = [1.0, 1, 1, 2, 3, 3, 4, 5]
    found = mann_kendall(np.arange(8.0), np.array(values))
    s = sum((b > a) - (b < a) for a, b in itertools.combinations(values, 2))
    n, ties = 8, (3, 2)
    variance = (n * (n - 1) * (2 * n + 5) - sum(t * (t - 1) * (2 * t + 5) for t in ties)) / 18
    z = (abs(s) - 1) / variance**0.5
    assert found.p_value == pytest.approx(2 * scipy.stats.norm.sf(z))


def test_the_slope_is_theil_sens_and_one_outlier_does_not_move_it() -> None:
    days = np.arange(20.0)
    values = 3 * days + 1
    values[10] = 1e6
    found = mann_kendall(days, values)
    assert found.slope == pytest.approx(3)
    assert found.interval.low <= 3 <= found.interval.high


def test_a_constant_series_has_no_trend() -> None:
    assert mann_kendall(np.arange(9.0), np.full(9, 2.5))[:3] == (0, 1.0, 0.0)


@pytest.mark.parametrize("ties", [False, True])
def test_the_trend_test_keeps_its_rate_of_false_alarms(ties: bool) -> None:
    rng = np.random.default_rng(5)
    draws = (
        np.array(rng.poisson(1.0, 12) if ties else rng.normal(size=12), np.float64)
        for _ in range(600)
    )
    alarms = sum(mann_kendall(np.arange(12.0), draw).p_value <= 0.05 for draw in draws)
    assert alarms <= 600 * 0.05 + 3 * (600 * 0.05 * 0.95) ** 0.5


@given(
    st.lists(st.integers(0, 9), min_size=2, max_size=12),
    st.lists(st.integers(0, 9), min_size=2, max_size=12),
)
@settings(max_examples=25)
def test_the_effect_size_is_cliffs_delta(first: list[int], second: list[int]) -> None:
    found = compare(np.array(first, float), np.array(second, float))
    larger = sum((a > b) - (a < b) for a in first for b in second)
    assert found.delta == pytest.approx(larger / (len(first) * len(second)))
    assert found.interval.low <= found.interval.high


def test_the_same_samples_give_the_same_interval() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.gamma(2, 1, 40), rng.gamma(3, 1, 50)
    assert compare(first, second) == compare(first, second)


def test_the_bootstraps_interval_covers_the_difference_as_often_as_it_says() -> None:
    rng = np.random.default_rng(8)
    found = [compare(rng.gamma(2, 1, 25), rng.gamma(3, 1, 25)).interval for _ in range(60)]
    covered = sum(interval.low <= -1 <= interval.high for interval in found)
    assert covered >= 60 * 0.95 - 3 * (60 * 0.95 * 0.05) ** 0.5


def test_large_samples_get_the_interval_that_the_bootstrap_would_give() -> None:
    rng = np.random.default_rng(4)
    first, second = rng.gamma(2, 1, BOOTSTRAP_LIMIT), rng.gamma(2.2, 1, BOOTSTRAP_LIMIT)
    small = compare(first, second).interval
    large = compare(np.r_[first, first[:1]], second).interval
    assert large == pytest.approx(small, abs=0.02)


@given(VALUES, VALUES)
def test_welchs_test(first: list[float], second: list[float]) -> None:
    one, two = np.array(first), np.array(second)
    assume(one.var() + two.var() > 1e-9)
    expected = scipy.stats.ttest_ind(one, two, equal_var=False)
    found = welch(one, two)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-6)
    interval = expected.confidence_interval()
    assert found.interval == pytest.approx((interval.low, interval.high), rel=1e-4, abs=1e-6)


def test_q_values_of_p_values_that_depend_on_each_other_in_any_way() -> None:
    p_values = np.array([0.001, 0.04, 0.02, 0.9])
    expected = scipy.stats.false_discovery_control(p_values, method="by")
    np.testing.assert_allclose(benjamini_yekutieli(p_values), expected)


def test_a_few_that_all_succeeded_do_not_differ_from_many_of_which_nearly_all_did() -> None:
    # One in eight of thirteen that succeed at this rate all do: that is no discovery.
    few, many = np.ones(13), np.r_[np.zeros(150), np.ones(850)]
    found = welch(few, many, spread=1.0)
    assert found.p_value > 0.05
    assert found.interval.low < 0 < found.interval.high
