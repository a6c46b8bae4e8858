from __future__ import annotations

import numpy as np
import pytest
from mneme_server.features.events.event_types import EventType
from mneme_server.features.reflect.model import (
    AnalysisFindings,
    MeasureComparison,
    SessionComparison,
    SessionComparisonParams,
    Trend,
)
from mneme_server.features.reflect.session_comparison import NEEDED, session_comparison
from unit.features.reflect.making import most_false_alarms
from unit.features.reflect.record import DAY, Record


def found_in(record: Record, limit: int = 10, **params: float) -> AnalysisFindings:
    given = SessionComparisonParams(**params)  # type: ignore[arg-type]
    return session_comparison(record.history(*NEEDED), record, given, limit)


def comparison_in(record: Record, limit: int = 10, **params: float) -> SessionComparison:
    result = found_in(record, limit, **params).result
    assert isinstance(result, SessionComparison)
    return result


def measure(result: SessionComparison, name: str) -> MeasureComparison:
    (found,) = [c for c in result.comparisons if c.measure == name]
    return found


def sessions(
    seed: int,
    *,
    earlier: int = 40,
    recent: int = 30,
    success: tuple[float, float] = (0.6, 0.6),
    errors: tuple[float, float] = (1.0, 1.0),
    cost: tuple[float, float] = (0.1, 0.1),
) -> Record:
    """Sessions of four weeks, and of the last one; each measure has a value for either."""
    rng = np.random.default_rng(seed)
    record = Record()
    for number in range(earlier + recent):
        side = int(number >= earlier)
        at = (28 + 6.9 * rng.random()) * DAY if side else 27 * DAY * rng.random()
        won = float(rng.random() < success[side])
        session = record.session(f"s{number:03d}", at=at, reward=won)
        for step in range(5):
            record.add(
                session,
                EventType.LLM_RESPONSE,
                at + step,
                cost=float(rng.gamma(2, cost[side] / 10)),
                input_tokens=int(rng.integers(100, 900)),
                duration=int(rng.gamma(3, 1e5)),
            )
        for _ in range(int(rng.poisson(errors[side]))):
            record.add(session, EventType.ERROR, at + 6, error="out of luck")
    return record


def test_planted_differences_between_recent_and_earlier_sessions_are_found() -> None:
    for seed in range(3):
        record = sessions(seed, success=(0.2, 0.95), errors=(0.5, 3.0), cost=(0.1, 0.3))
        result = comparison_in(record)
        assert (result.recent_count, result.earlier_count) == (30, 40)
        assert measure(result, "success_rate").trend is Trend.IMPROVING
        assert measure(result, "errors_per_session").trend is Trend.DEGRADING
        cost = measure(result, "cost_per_session")
        assert cost.trend is Trend.DEGRADING
        assert cost.effect_size > 0.5
        assert 0.05 < cost.difference_interval.low < cost.difference < cost.difference_interval.high
        assert cost.q_value <= 0.05
        told = {insight.type for insight in found_in(record).insights}
        assert {"success_rate_change", "errors_per_session_change"} <= told


def test_sessions_that_do_not_differ_give_false_alarms_as_seldom_as_stated() -> None:
    runs = 30
    alarms = sum(bool(found_in(sessions(seed)).insights) for seed in range(runs))
    assert alarms <= most_false_alarms(runs)


def test_recent_is_a_number_of_days_before_the_last_event_or_a_number_of_sessions() -> None:
    record = Record()
    for day in range(20):
        record.session(f"s{day}", at=day * DAY, reward=1)
    assert comparison_in(record).recent_count == 8  # Days 12 to 19.
    assert comparison_in(record, recent_days=2).recent_count == 3
    by_count = comparison_in(record, recent_sessions=6)
    assert (by_count.recent_count, by_count.earlier_count) == (6, 14)
    assert by_count.split_us == 14 * 86_400_000_000


def test_where_all_sessions_are_of_one_week_its_halves_are_compared_and_it_says_so() -> None:
    record = Record()
    for number in range(20):
        record.session(f"s{number}", at=number * 60.0, reward=1)
    findings = found_in(record)
    assert isinstance(findings.result, SessionComparison)
    assert (findings.result.recent_count, findings.result.earlier_count) == (10, 10)
    assert "the later half is compared" in findings.notes[0]


def test_too_few_sessions_are_not_compared() -> None:
    record = sessions(1, earlier=40, recent=4, success=(0.0, 1.0))
    findings = found_in(record, recent_sessions=4)
    assert isinstance(findings.result, SessionComparison)
    assert {c.trend for c in findings.result.comparisons} == {Trend.UNKNOWN}
    assert {c.q_value for c in findings.result.comparisons} == {1.0}
    assert "either side needs 5 sessions" in findings.notes[0]


def test_a_measure_that_is_neither_good_nor_bad_has_no_trend() -> None:
    record = Record()
    for number in range(20):
        at = number * DAY
        for step in range(3 if number < 10 else 30):
            record.call(f"s{number:02d}", "a", at + step)
    calls = measure(comparison_in(record, recent_sessions=10), "tool_calls_per_session")
    assert calls.q_value <= 0.05
    assert (calls.trend, calls.effect_size, calls.difference) == (Trend.UNKNOWN, 1.0, 27.0)


def test_errors_that_only_one_side_has_are_named() -> None:
    record = Record()
    for number in range(20):
        error = f"old trouble {number}" if number < 10 else f"new trouble {number}"
        record.call(f"s{number:02d}", "pay", number * DAY, error=error)
        record.add(f"s{number:02d}", EventType.ERROR, number * DAY + 1, error="always there")
    result = comparison_in(record, recent_sessions=10)
    (new,), (gone,) = result.new_errors, result.gone_errors
    assert (new.template, new.tool_name, new.sessions) == ("new trouble <num>", "pay", 10)
    assert gone.template == "old trouble <num>"
    assert new.q_value < 0.001
    assert "new_error" in {i.type for i in found_in(record, recent_sessions=10).insights}


def test_an_error_whose_answers_leave_the_tool_out_is_no_other_one() -> None:
    record = Record()
    for number in range(40):
        name, at = f"s{number:02d}", number * DAY
        record.add(name, EventType.TOOL_CALL, at, name="read", call="1")
        if number % 2:
            tool = "read" if number < 20 else ""
            record.add(name, EventType.TOOL_ERROR, at + 1, name=tool, call="1", error="not found")
        if number >= 20:
            record.add(name, EventType.ERROR, at + 2, name="main", error="out of memory")
    result = comparison_in(record, recent_sessions=20)
    assert [(e.template, e.tool_name) for e in result.new_errors] == [("out of memory", "")]
    assert result.gone_errors == ()


def test_errors_of_too_few_sessions_are_listed_and_not_tested() -> None:
    record = Record()
    for number in range(40):
        record.call(f"s{number:02d}", "read", number * DAY, error="not found" * (number == 39))
    findings = found_in(record, recent_sessions=1)
    assert isinstance(findings.result, SessionComparison)
    assert [change.q_value for change in findings.result.new_errors] == [1.0]
    assert findings.insights == []
    assert "either side needs 5 sessions" in findings.notes[0]


def test_an_error_seen_once_is_no_news() -> None:
    record = sessions(2)
    record.add("s069", EventType.ERROR, 35 * DAY, error="strange thing")
    (new,) = comparison_in(record).new_errors
    assert (new.template, new.sessions) == ("strange thing", 1)
    assert new.q_value > 0.05
    assert "new_error" not in {i.type for i in found_in(record).insights}


@pytest.mark.parametrize("count", [0, 1])
def test_hardly_any_session_is_no_trouble(count: int) -> None:
    record = Record()
    for number in range(count):
        record.session(f"s{number}")
    result = comparison_in(record)
    assert result.recent_count + result.earlier_count == count
