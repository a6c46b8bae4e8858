"""A skill's record: rates with their intervals, and what ranks."""

from __future__ import annotations

import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.features.skills.model import Skill, SkillUse, UseTally, rate_interval, score_of

_UNIT = st.floats(0, 1)


@given(st.integers(1, 5_000), st.data())
def test_the_interval_is_wilsons(uses: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, uses))
    expected = scipy.stats.binomtest(successes, uses).proportion_ci(method="wilson")
    low, high = rate_interval(successes, uses)
    assert low == pytest.approx(expected.low, abs=1e-6)
    assert high == pytest.approx(expected.high, abs=1e-6)
    assert 0 <= low <= successes / uses <= high <= 1


def test_nothing_is_known_before_the_first_use() -> None:
    tally = UseTally()
    assert (tally.interval, tally.rate) == ((0.0, 1.0), None)
    assert (tally.average_reward, tally.average_ms) == (None, None)


@given(st.integers(0, 200), st.integers(0, 200))
def test_a_success_raises_the_lower_bound_and_a_failure_lowers_it(wins: int, losses: int) -> None:
    low, _ = rate_interval(wins, wins + losses)
    better, _ = rate_interval(wins + 1, wins + losses + 1)
    worse, _ = rate_interval(wins, wins + losses + 1)
    assert better > low
    assert worse <= low


@given(_UNIT, _UNIT, _UNIT)
def test_of_two_that_fit_equally_well_the_reliable_one_is_first(
    relevance: float, low: float, other: float
) -> None:
    score = score_of(relevance, low)
    assert relevance / 2 <= score <= relevance
    if low >= other:
        assert score >= score_of(relevance, other)


def test_averages_are_of_the_uses_that_say_something() -> None:
    skill = Skill(id="s", name="s")
    for use in (
        SkillUse("1", "s", success=True, reward=1.0, used_us=5),
        SkillUse("2", "s", success=False, latency_ms=300, used_us=9),
        SkillUse("3", "s", success=True, reward=0.5, latency_ms=100, used_us=7),
    ):
        skill = skill.used(use)
    record = skill.record
    assert (record.uses, record.successes, record.last_us) == (3, 2, 9)
    assert (record.average_reward, record.average_ms) == (0.75, 200)


def test_a_claim_counts_until_the_first_use() -> None:
    skill = Skill(id="s", name="s", claimed_rate=0.9)
    assert skill.value == 0.9
    assert skill.used(SkillUse("1", "s", success=False)).value == 0
    assert Skill(id="s", name="s").value == 0
