from __future__ import annotations

import numpy as np
import pytest
from mneme_server.common.errors import InvalidArgument
from mneme_server.features.events.event_types import EventType
from mneme_server.features.events.model import SessionStatus
from mneme_server.features.reflect.model import (
    AnalysisFindings,
    BucketSpan,
    PerformanceTrends,
    PerformanceTrendsParams,
    Trend,
)
from mneme_server.features.reflect.performance_trends import NEEDED, performance_trends
from mneme_server.features.reflect.time_series import (
    MAX_BUCKETS,
    Series,
    ShareCounts,
    buckets_over,
    trend_tests,
)
from unit.features.reflect.making import daily_sessions, most_false_alarms
from unit.features.reflect.record import DAY, HOUR, Record


def found_in(record: Record, bucket: BucketSpan = BucketSpan.BY_RANGE) -> AnalysisFindings:
    return performance_trends(record.history(*NEEDED), record, PerformanceTrendsParams(bucket))


def trends_in(record: Record, bucket: BucketSpan = BucketSpan.BY_RANGE) -> PerformanceTrends:
    result = found_in(record, bucket).result
    assert isinstance(result, PerformanceTrends)
    return result


def test_trend_data_has_success_rate_latency_and_sessions_an_hour_over_time() -> None:
    record = Record()
    for number, (won, milliseconds) in enumerate(((True, 100), (False, 300), (True, 200))):
        status = SessionStatus.COMPLETED if won else SessionStatus.ERROR
        record.session(f"s{number}", at=number * 60.0, status=status)
        record.add(
            f"s{number}", EventType.LLM_RESPONSE, number * 60.0, duration=milliseconds * 1_000
        )
    record.session("under way", at=180.0, status=SessionStatus.ACTIVE)
    record.session("later", at=2 * HOUR, status=SessionStatus.COMPLETED)
    record.add("later", EventType.ERROR, 2 * HOUR, error="x")
    first, empty, last = trends_in(record, BucketSpan.HOUR).points
    assert (first.session_count, first.known_count) == (4, 3)
    assert first.success_rate == pytest.approx(2 / 3)
    assert first.latency_p50_ms == first.latency_mean_ms == 200
    assert first.latency_p95_ms == pytest.approx(290)
    assert first.sessions_per_hour == 4
    assert (empty.session_count, empty.sessions_per_hour) == (0, 0)
    assert empty.success_rate is None
    assert empty.latency_p50_ms is None
    assert (last.errors_per_session, last.success_rate) == (1, 1)


def test_planted_trends_are_identified_as_improving_or_degrading() -> None:
    for seed in range(3):
        good = trends_in(
            daily_sessions(seed, success=(0.3, 0.95), latency_ms=(900, 300), per_day=(4, 16))
        )
        bad = trends_in(
            daily_sessions(seed, success=(0.95, 0.3), latency_ms=(300, 900), per_day=(16, 4))
        )
        for result, expected in ((good, Trend.IMPROVING), (bad, Trend.DEGRADING)):
            assert result.success_rate.trend is expected
            assert result.latency.trend is expected
            assert result.latency_p95.trend is expected
            assert result.throughput.trend is expected
        slope = good.success_rate.slope_interval
        assert slope.low < 0.65 / 29 < slope.high


def test_steady_performance_is_stable_with_false_alarms_as_rare_as_stated() -> None:
    runs = 40
    alarms = 0
    for seed in range(runs):
        result = trends_in(daily_sessions(seed, 14))
        tests = (
            result.success_rate, result.latency, result.latency_p95, result.throughput,
        )  # fmt: skip
        assert all(test.trend is not Trend.UNKNOWN for test in tests)
        alarms += any(test.trend is not Trend.STABLE for test in tests)
    assert alarms <= most_false_alarms(runs)


def test_that_no_change_was_found_is_no_finding() -> None:
    findings = found_in(daily_sessions(1, 14))
    assert isinstance(findings.result, PerformanceTrends)
    assert findings.result.latency.trend is Trend.STABLE
    assert findings.insights == []


def test_a_change_of_next_to_nothing_is_no_trend_however_sure() -> None:
    record = Record()
    for day in range(40):
        record.session(f"s{day}", at=day * DAY, status=SessionStatus.COMPLETED)
        for step in range(3):
            # From 400 to 400.4 ms in forty days, without any noise.
            record.add(
                f"s{day}", EventType.LLM_RESPONSE, day * DAY + step, duration=400_000 + 10 * day
            )
    findings = found_in(record, BucketSpan.DAY)
    assert isinstance(findings.result, PerformanceTrends)
    latency = findings.result.latency
    assert latency.q_value < 0.01
    assert latency.trend is Trend.STABLE
    assert findings.insights == []


def test_a_trend_whose_slope_is_0_is_none() -> None:
    record = Record()
    for day in range(60):
        for number in range(4):
            name = f"s{day:02d}-{number}"
            record.session(name, at=day * DAY + number, status=SessionStatus.COMPLETED)
            record.add(name, EventType.MESSAGE, day * DAY + number, text="hello")
            # Errors on a few of the later days: the test is sure, most days have none all the same.
            if day > 30 and day % 3 == 0:
                record.add(name, EventType.ERROR, day * DAY + number, error="bad")
    findings = found_in(record, BucketSpan.DAY)
    assert isinstance(findings.result, PerformanceTrends)
    errors = findings.result.error_rate
    assert errors.q_value <= 0.05
    assert errors.slope_per_day == 0
    assert [insight.type for insight in findings.insights] == ["error_rate_step"]


def broken_on(day: int, days: int, per_day: int = 1, errors: int = 8) -> Record:
    """A project whose sessions succeed without an error, until all fail from one day on."""
    record = Record()
    for number in range(days * per_day):
        at = number // per_day * DAY + 10 * HOUR + number % per_day
        failed = number >= day * per_day
        status = SessionStatus.ERROR if failed else SessionStatus.COMPLETED
        name = record.session(f"s{number:04d}", at=at, status=status)
        record.add(name, EventType.MESSAGE, at, text="hello")
        for step in range(errors if failed else 0):
            record.add(name, EventType.ERROR, at + step, error="bad")
    return record


def test_what_broke_and_when_is_told_with_the_sessions_before_and_since() -> None:
    findings = found_in(broken_on(10, 14))
    assert isinstance(findings.result, PerformanceTrends)
    assert findings.result.success_rate.trend is Trend.DEGRADING
    assert findings.result.error_rate.trend is Trend.DEGRADING
    # Of the last day less than half was seen: it is not tested, but its session counts.
    assert {insight.type: insight.summary for insight in findings.insights} == {
        "success_rate_step": (
            "The success rate fell from 10 of 10 (100 %) before 1970-01-11 to 0 of 4 (0 %) since,"
            " by 100 percentage points (by between 44 percentage points and 100 percentage points,"
            " 95 %)"
            " (13 spans, q = 0.005): degrading."
        ),
        "error_rate_step": (
            "The number of errors a session rose from 0 before 1970-01-11 to 8 since, by 8"
            " (13 spans, q = 0.005): degrading."
        ),
    }


def test_a_step_within_a_day_is_told_with_its_hour() -> None:
    record = Record()
    for hour in range(30):
        status = SessionStatus.ERROR if hour >= 20 else SessionStatus.COMPLETED
        record.session(f"s{hour:02d}", at=hour * HOUR, status=status)
    (told,) = found_in(record).insights
    assert " before 1970-01-01 20:00 to " in told.summary
    assert told.data["since"] == "1970-01-01 20:00"


def test_a_measure_has_a_trend_or_a_step_whichever_fits_better() -> None:
    chance = np.random.default_rng(5)
    days = np.arange(40.0)
    even = Series(100 + 5 * days + chance.normal(0, 20, 40), rising_is_better=False)
    sudden = Series(100 + 200 * (days >= 25) + chance.normal(0, 20, 40), rising_is_better=False)
    buckets = buckets_over(0, round(40 * DAY * 1e6) - 1, BucketSpan.DAY)
    trend, step = trend_tests([even, sudden], buckets)
    assert (trend.trend, trend.step) == (Trend.DEGRADING, None)
    assert step.trend is Trend.DEGRADING
    assert step.step is not None
    assert step.step.since_us == 25 * DAY * 1e6
    assert step.step.interval.low < 200 < step.step.interval.high
    # It rises on the whole, too, but that is not said beside it.
    assert step.q_value <= 0.05
    assert step.slope_interval.low > 0


def test_two_bad_days_at_the_end_are_no_level() -> None:
    assert found_in(broken_on(28, 30, per_day=2)).insights == []


def test_noise_has_a_trend_or_a_step_as_seldom_as_stated() -> None:
    runs, days = 200, 21
    buckets = buckets_over(0, round(days * DAY * 1e6) - 1, BucketSpan.DAY)
    alarms = 0
    for seed in range(runs):
        chance = np.random.default_rng(seed)
        known = chance.poisson(4, days) + 1
        won = chance.binomial(known, 0.8)
        noise = [
            Series(won / known, True, ShareCounts(won, known)),
            Series(chance.lognormal(5, 1, days), False),
            Series(chance.poisson(0.4, days) / 1.0, False),
            Series(chance.normal(10, 2, days), True),
        ]
        tests = trend_tests(noise, buckets)
        alarms += any(test.trend is not Trend.STABLE for test in tests)
    assert alarms <= most_false_alarms(runs)


def test_a_trend_is_told_with_its_change_over_the_range() -> None:
    findings = found_in(daily_sessions(1, 30, latency_ms=(300, 900)))
    (told,) = [i for i in findings.insights if i.type == "latency_trend"]
    assert isinstance(findings.result, PerformanceTrends)
    assert findings.result.latency.change == pytest.approx(600, rel=0.15)
    assert told.summary.startswith("The median latency rises by ")
    assert " over 29 days (by between " in told.summary
    assert told.summary.endswith(" (30 spans, q = 0.0029): degrading.")


def test_a_change_of_the_success_rate_is_told_in_percentage_points() -> None:
    findings = found_in(daily_sessions(3, 30, success=(0.9, 0.3)))
    (told,) = [i for i in findings.insights if i.type == "success_rate_trend"]
    assert told.summary == (
        "The success rate falls by 60 percentage points over 29 days (by between 46 percentage"
        " points and 74 percentage points, 95 %), around a median of 61 % (30 spans, q = 0.0057):"
        " degrading."
    )


def test_sessions_that_all_began_at_once_have_no_rate_beyond_their_number() -> None:
    record = Record()
    for number in range(200):
        record.session(f"s{number}", at=number / 1_000, status=SessionStatus.COMPLETED)
    assert trends_in(record).points[0].sessions_per_hour == 200


def test_with_fewer_than_five_spans_there_is_no_trend() -> None:
    findings = found_in(daily_sessions(1, 4, success=(0, 1)), BucketSpan.DAY)
    result = findings.result
    assert isinstance(result, PerformanceTrends)
    assert result.success_rate.trend is Trend.UNKNOWN
    assert findings.insights == []
    assert findings.notes[0] == "the range makes 4 spans of time; a trend needs 5"


def test_spans_without_data_have_no_rate_but_a_throughput_of_zero() -> None:
    record = Record()
    for day in (0, 1, 2, 10, 11, 12):
        record.session(f"s{day}", at=day * DAY + HOUR, status=SessionStatus.COMPLETED)
    result = trends_in(record, BucketSpan.DAY)
    assert result.success_rate.points == 5  # Of the last day less than half was seen.
    assert result.throughput.points == 12


def test_sessions_without_a_known_outcome_do_not_count_for_the_rate() -> None:
    record = Record()
    record.session("done", status=SessionStatus.COMPLETED)
    record.session("active")
    findings = found_in(record)
    assert isinstance(findings.result, PerformanceTrends)
    assert findings.result.points[0].success_rate == 1
    assert "1 session without a known outcome left out of the rates" in findings.notes


def test_without_sessions_there_is_nothing() -> None:
    result = trends_in(Record())
    assert (result.points, result.success_rate.trend) == ((), Trend.UNKNOWN)


@pytest.mark.parametrize(
    ("seconds", "span"),
    [(3 * HOUR, HOUR), (4 * DAY, HOUR), (10 * DAY, DAY), (300 * DAY, 7 * DAY)],
)
def test_the_span_follows_from_the_range(seconds: float, span: float) -> None:
    assert buckets_over(0, round(seconds * 1e6), BucketSpan.BY_RANGE).seconds == span


def test_spans_of_many_years_are_several_weeks_each() -> None:
    found = buckets_over(0, round(50 * 365 * DAY * 1e6), BucketSpan.BY_RANGE)
    assert found.count <= 101
    assert found.seconds % (7 * DAY) == 0


def test_weeks_begin_on_mondays_and_days_at_midnight() -> None:
    wednesday = 1_780_444_800_000_000  # 2026-06-03.
    assert (
        buckets_over(wednesday, wednesday, BucketSpan.WEEK).start_us(0)
        == wednesday - 2 * 86_400_000_000
    )
    noon = wednesday + 43_200_000_000
    assert buckets_over(noon, noon, BucketSpan.DAY).start_us(0) == wednesday


def test_a_span_that_makes_too_many_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="at most 1,000") as refused:
        buckets_over(0, round((MAX_BUCKETS + 1) * HOUR * 1e6), BucketSpan.HOUR)
    assert refused.value.field == "bucket"


def test_errors_are_counted_where_they_are_and_never_rebuilt_from_a_mean() -> None:
    record = Record()
    for number in range(20):
        record.session(f"empty{number}", at=number * 60.0, status=SessionStatus.COMPLETED)
    for number, errors in enumerate((3, 0)):
        record.session(f"s{number}", at=number * 60.0)
        record.add(f"s{number}", EventType.MESSAGE, number * 60.0)
        for _ in range(errors):
            record.add(f"s{number}", EventType.TOOL_ERROR, number * 60.0, error="x")
    record.session("later", at=2 * HOUR)
    result = trends_in(record, BucketSpan.HOUR)
    first, empty, last = result.points
    assert (first.session_count, first.told_count, first.error_count) == (22, 2, 3)
    assert first.errors_per_session == 1.5
    assert (empty.session_count, empty.told_count, empty.error_count) == (0, 0, 0)
    assert (last.session_count, last.told_count, last.error_count) == (1, 0, 0)
    assert empty.errors_per_session is last.errors_per_session is None, "not known, so not none"
    overall = result.overall
    assert overall is not None
    assert (overall.session_count, overall.told_count, overall.error_count) == (23, 2, 3)
    assert overall.errors_per_session == 1.5


def test_the_whole_range_has_figures_of_its_own() -> None:
    record = Record()
    # A median of medians would be 150.
    for hour, durations in enumerate(((100, 100, 100), (200,))):
        for number, milliseconds in enumerate(durations):
            name = f"s{hour}-{number}"
            status = SessionStatus.ERROR if hour else SessionStatus.COMPLETED
            record.session(name, at=hour * HOUR + number, status=status)
            took = milliseconds * 1_000
            record.add(name, EventType.LLM_RESPONSE, hour * HOUR + number, duration=took)
    result = trends_in(record, BucketSpan.HOUR)
    overall = result.overall
    assert overall is not None
    assert overall.start_us == result.points[0].start_us
    assert (overall.latency_p50_ms, overall.latency_mean_ms, overall.timed_count) == (100, 125, 4)
    assert (overall.success_rate, overall.known_count) == (0.75, 4)
    assert trends_in(Record()).overall is None


def test_a_slope_that_is_sure_and_small_is_no_trend_and_says_so() -> None:
    rng = np.random.default_rng(1)
    record = Record()
    for day in range(60):
        for number in range(40):
            name = record.session(f"{day:02}-{number:02}", at=day * DAY + number)
            took = int((1_000 + 0.5 * day + rng.normal(0, 2)) * 1_000)
            record.add(name, EventType.LLM_RESPONSE, day * DAY + number, duration=took)
    latency = trends_in(record, BucketSpan.DAY).latency
    assert (latency.trend, latency.small) == (Trend.STABLE, True)
    assert latency.slope_interval.low > 0
    flat = trends_in(daily_sessions(0, 14)).latency
    assert (flat.trend, flat.small) == (Trend.STABLE, False)


def test_a_measure_that_never_varies_makes_no_other_less_sure() -> None:
    days = np.arange(30.0)
    rate = ((np.random.default_rng(3).random(30) - 0.5) + days / 30) / 4 + 0.3
    buckets = buckets_over(0, int(30 * DAY * 1e6) - 1, BucketSpan.DAY)
    falls = Series(rate, rising_is_better=True)
    never = Series(np.zeros(30), rising_is_better=False)
    (alone,) = trend_tests([falls], buckets)
    beside, still = trend_tests([falls, never], buckets)
    assert beside == alone
    assert alone.trend is Trend.IMPROVING
    assert (still.trend, still.q_value, still.points) == (Trend.STABLE, 1.0, 30)
