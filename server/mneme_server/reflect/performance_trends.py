"""PERFORMANCE_TRENDS: whether success rate, latency and throughput change over time."""

from __future__ import annotations

import numpy as np

from mneme_server.events.outcome import Outcome
from mneme_server.reflect.buckets import (
    HOUR_US,
    MIN_POINTS,
    Buckets,
    Series,
    buckets_over,
    mean_by,
    quantiles_by,
    trend_tests,
)
from mneme_server.reflect.history import NONE, History
from mneme_server.reflect.model import (
    Findings,
    Insight,
    PerformancePoint,
    PerformanceTrends,
    Trend,
    TrendTest,
)
from mneme_server.reflect.params import TrendParams
from mneme_server.reflect.ports import Column
from mneme_server.reflect.stats import Floats
from mneme_server.reflect.wording import plural

NEEDED = (Column.DURATION,)
_MIN_COVERED = 0.5
"""A span at either end counts for the tests from this share of it on, and its rates are of at least
this share."""


def performance_trends(history: History, params: TrendParams) -> Findings:
    """Follow the measures over spans of time and test each for a trend."""
    if not len(history.sessions):
        empty = trend_tests([Series(np.empty(0), np.empty(0), True)] * 5)
        return Findings(PerformanceTrends((), *_named(empty), bucket_seconds=0), [])
    starts = history.sessions.start_us
    times = history[Column.TIME]
    last = max(int(starts.max()), int(times.max()) if len(times) else 0)
    buckets = buckets_over(int(starts.min()), last, params.bucket)
    measured = _Measured(history, buckets)
    whole = buckets.covered >= _MIN_COVERED
    days = buckets.starts_days
    tests = trend_tests(
        [
            Series(days, np.where(whole, values, np.nan), rising)
            for values, rising in (
                (measured.success, True),
                (measured.p50, False),
                (measured.p95, False),
                (measured.per_hour, True),
                (measured.errors, False),
            )
        ]
    )
    result = PerformanceTrends(measured.points(), *_named(tests), bucket_seconds=buckets.seconds)
    notes = []
    if buckets.count < MIN_POINTS:
        notes.append(
            f"the range makes {plural(buckets.count, 'span')} of time; a trend needs {MIN_POINTS}"
        )
    if np.isnan(measured.p50).all():
        notes.append("no event says how long it took")
    unknown = int((history.sessions.outcome == Outcome.UNKNOWN).sum())
    if unknown:
        notes.append(f"{plural(unknown, 'session')} without a known outcome left out of the rates")
    return Findings(result, _insights(result, measured), notes=notes)


def _named(tests: list[TrendTest]) -> tuple[TrendTest, TrendTest, TrendTest, TrendTest, TrendTest]:
    success, p50, p95, throughput, errors = tests
    return success, p50, p95, throughput, errors


class _Measured:
    """The measures (b,) in each span; NaN where there is no data."""

    def __init__(self, history: History, buckets: Buckets) -> None:
        size = buckets.count
        self._buckets = buckets
        sessions = history.sessions
        place = buckets.place(sessions.start_us)
        self.sessions = np.bincount(place, minlength=size)
        known = sessions.outcome != Outcome.UNKNOWN
        succeeded = (sessions.outcome == Outcome.SUCCESS).astype(float)
        self.success = mean_by(place[known], succeeded[known], size)
        errors = np.bincount(history.session[history.is_error], minlength=len(sessions))
        self.errors = mean_by(place, errors.astype(float), size)
        timed = np.flatnonzero(history[Column.DURATION] != NONE)
        at = buckets.place(history[Column.TIME][timed])
        durations = history[Column.DURATION][timed] / 1000.0
        self.p50, self.p95 = quantiles_by(at, durations, size, (0.5, 0.95))
        self.mean = mean_by(at, durations, size)
        # Of the first and the last span only a part was seen; a single session in the first moment
        # of a span makes no thousand an hour.
        covered = np.maximum(buckets.covered, _MIN_COVERED)
        self.per_hour = self.sessions / (covered * buckets.span_us / HOUR_US)

    def points(self) -> tuple[PerformancePoint, ...]:
        """Return the points, empty spans included."""
        return tuple(
            PerformancePoint(
                start_us=self._buckets.start_us(i),
                session_count=int(self.sessions[i]),
                success_rate=_or_none(self.success, i),
                errors_per_session=_or_none(self.errors, i) or 0.0,
                latency_p50_ms=_or_none(self.p50, i),
                latency_p95_ms=_or_none(self.p95, i),
                latency_mean_ms=_or_none(self.mean, i),
                sessions_per_hour=float(self.per_hour[i]),
            )
            for i in range(self._buckets.count)
        )


def _or_none(values: Floats, i: int) -> float | None:
    value = float(values[i])
    return None if np.isnan(value) else value


_WORDS = {Trend.IMPROVING: "improving", Trend.STABLE: "stable", Trend.DEGRADING: "degrading"}


def _insights(result: PerformanceTrends, measured: _Measured) -> list[Insight]:
    found = []
    for name, word, test, form, values in (
        ("success_rate", "The success rate", result.success_rate, "{:.0%}", measured.success),
        ("latency", "The median latency", result.latency, "{:,.0f} ms", measured.p50),
        ("latency_p95", "The latency's 95th percentile", result.latency_p95, "{:,.0f} ms",
         measured.p95),
        ("throughput", "The throughput", result.throughput, "{:.2g} sessions an hour",
         measured.per_hour),
        ("error_rate", "The number of errors a session", result.error_rate, "{:.2g}",
         measured.errors),
    ):  # fmt: skip
        if test.trend is Trend.UNKNOWN:
            continue
        found.append(_insight(name, word, test, form, values))
    # What changes comes first, the surest change at the top.
    return sorted(found, key=lambda i: (i.data["trend"] == "stable", -i.confidence))


def _insight(name: str, word: str, test: TrendTest, form: str, values: Floats) -> Insight:
    trend = _WORDS[test.trend]
    low, high = test.slope_interval
    moves = (
        "shows no trend that can be told from chance"
        if test.trend is Trend.STABLE
        else f"is {trend}: it {'rises' if test.slope_per_day > 0 else 'falls'} by"
        f" {form.format(abs(test.slope_per_day)).replace('%', ' %')} a day"
    )
    median = form.format(float(np.nanmedian(values))).replace("%", " %")
    return Insight(
        type=f"{name}_trend",
        summary=f"{word} {moves}; over {test.points} spans its median is {median}.",
        data={
            "trend": trend,
            "slope_per_day": test.slope_per_day,
            "slope_low": low,
            "slope_high": high,
            "q_value": test.q_value,
            "points": test.points,
        },
        # That nothing changes is not shown by a test that finds no change.
        confidence=0.0 if test.trend is Trend.STABLE else 1 - test.q_value,
    )
