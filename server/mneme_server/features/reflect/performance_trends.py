"""PERFORMANCE_TRENDS: whether success rate, latency and throughput change over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mneme_server.common.clock import HOUR_US
from mneme_server.features.events.history import Column, HistoryReader
from mneme_server.features.events.model import Outcome
from mneme_server.features.reflect.circumstances import circumstances
from mneme_server.features.reflect.clocks import in_time
from mneme_server.features.reflect.history import NONE, History, Ints
from mneme_server.features.reflect.mix import Mix, said
from mneme_server.features.reflect.model import (
    AnalysisFindings,
    Insight,
    MixVerdict,
    PerformancePoint,
    PerformanceTrends,
    PerformanceTrendsParams,
    Trend,
    TrendTest,
)
from mneme_server.features.reflect.time_series import (
    MIN_POINTS,
    UNTESTED,
    Buckets,
    Scores,
    Series,
    ShareCounts,
    allowing_for_mix,
    buckets_over,
    counts_by,
    mean_by,
    quantiles_by,
    ranks,
    scores_by,
    trend_tests,
)
from mneme_server.features.reflect.wording import (
    figure,
    milliseconds,
    moves,
    percent,
    plural,
    points,
    step_figures,
    steps,
    sure,
)
from mneme_server.statistics.inference import Floats

NEEDED = (Column.DURATION, Column.MODEL)
_OF_SESSIONS = 3
_SLOWEST = 0.8
"""Of durations, the share below which they are not among the slow ones: the slowest twentieth are
too few in a span to be compared."""
_MIN_COVERED = 0.5
"""A span at either end counts for the tests from this share of it on, and its rates are of at least
this share."""


def performance_trends(
    history: History, reader: HistoryReader, params: PerformanceTrendsParams
) -> AnalysisFindings:
    """Follow the measures over spans of time and test each for a trend."""
    if not len(history.sessions):
        return AnalysisFindings(
            PerformanceTrends((), *_named([UNTESTED] * 5), bucket_seconds=0), []
        )
    history, of_clocks = in_time(history)
    starts = history.sessions.start_us
    times = history[Column.TIME]
    last = max(int(starts.max()), int(times.max()) if len(times) else 0)
    buckets = buckets_over(int(starts.min()), last, params.bucket)
    measured = _SpanMeasures(history, buckets)
    overall = _SpanMeasures(history, buckets.together)
    whole = buckets.covered >= _MIN_COVERED
    tests = trend_tests(
        [
            Series(np.where(whole, values, np.nan), rising, counts, scores)
            for values, rising, counts, scores in (
                (
                    measured.success,
                    True,
                    ShareCounts(measured.won, measured.known),
                    measured.success_scores,
                ),
                (measured.p50, False, None, measured.slowness),
                (measured.p95, False, None, measured.slowest),
                (measured.per_hour, True, None, measured.business),
                (measured.errors, False, None, measured.error_scores),
            )
        ],
        buckets,
    )
    mix = Mix(circumstances(history, reader))
    tests = [
        allowing_for_mix(test, mix, values, starts)
        for test, values in zip(tests, _of_sessions(history), strict=False)
    ] + tests[_OF_SESSIONS:]
    result = PerformanceTrends(
        measured.points(),
        *_named(tests),
        bucket_seconds=buckets.seconds,
        overall=overall.points()[0],
    )
    notes = history.notes + of_clocks
    if buckets.count < MIN_POINTS:
        notes.append(
            f"the range makes {plural(buckets.count, 'span')} of time; a trend needs {MIN_POINTS}"
        )
    if np.isnan(measured.p50).all():
        notes.append("no event says how long it took")
    unknown = int((history.sessions.outcome == Outcome.UNKNOWN).sum())
    if unknown:
        notes.append(f"{plural(unknown, 'session')} without a known outcome left out of the rates")
    return AnalysisFindings(result, _insights(result, measured), notes=notes)


def _of_sessions(history: History) -> list[Floats]:
    """Return the measures of each session (s,) that the mix of these explains, in the order of the
    tests: success, twice the latency; NaN where there is none."""
    sessions = history.sessions
    known = sessions.outcome != Outcome.UNKNOWN
    won = np.where(known, sessions.outcome == Outcome.SUCCESS, np.nan)
    timed = np.flatnonzero(history[Column.DURATION] != NONE)
    durations = history[Column.DURATION][timed] / 1000.0
    latency = mean_by(history.session[timed], durations, len(sessions))
    return [won, latency, latency]


def _named(tests: list[TrendTest]) -> tuple[TrendTest, TrendTest, TrendTest, TrendTest, TrendTest]:
    success, p50, p95, throughput, errors = tests
    return success, p50, p95, throughput, errors


class _SpanMeasures:
    """The measures (b,) in each span; NaN where there is no data."""

    def __init__(self, history: History, buckets: Buckets) -> None:
        size = buckets.count
        self._buckets = buckets
        sessions = history.sessions
        place = buckets.place(sessions.start_us)
        self.sessions = np.bincount(place, minlength=size)
        known = sessions.outcome != Outcome.UNKNOWN
        self.known = np.bincount(place[known], minlength=size)
        succeeded = sessions.outcome == Outcome.SUCCESS
        self.won = np.bincount(place[succeeded], minlength=size)
        self.success = mean_by(place[known], succeeded[known].astype(float), size)
        self.success_scores = scores_by(place[known], succeeded[known].astype(float), size)
        errors = np.bincount(history.session[history.is_error], minlength=len(sessions))
        # What a session without events did is not known, also not that nothing failed.
        told = sessions.has_events
        self.told = np.bincount(place[told], minlength=size)
        self.error_count = counts_by(place[told], errors[told], size)
        self.errors = mean_by(place[told], errors[told].astype(float), size)
        self.error_scores = scores_by(place[told], ranks(errors[told]), size)
        timed = np.flatnonzero(history[Column.DURATION] != NONE)
        at = buckets.place(history[Column.TIME][timed])
        self.timed = np.bincount(at, minlength=size)
        durations = history[Column.DURATION][timed] / 1000.0
        of_timed = _mean_of_pairs(
            at, history.session[timed], ranks(history[Column.DURATION][timed])
        )
        self.slowness = scores_by(*of_timed, size)
        slowest = ranks(history[Column.DURATION][timed]) > _SLOWEST
        of_timed = _mean_of_pairs(at, history.session[timed], slowest.astype(float))
        self.slowest = scores_by(*of_timed, size)
        self.p50, self.p95 = quantiles_by(at, durations, size, (0.5, 0.95))
        self.mean = mean_by(at, durations, size)
        # Of the first and the last span only a part was seen; a single session in the first moment
        # of a span makes no thousand an hour.
        # Sessions that all began within one span have no rate beyond their number.
        covered = np.maximum(buckets.covered, _MIN_COVERED if size > 1 else 1.0)
        self.per_hour = self.sessions / (covered * buckets.span_us / HOUR_US)
        # Of numbers that vary as chance has it, the roots vary alike (Anscombe, 1948).
        self.business = Scores(np.sqrt(self.per_hour), covered)

    def points(self) -> tuple[PerformancePoint, ...]:
        """Return the points, empty spans included."""
        return tuple(
            PerformancePoint(
                start_us=self._buckets.start_us(i),
                session_count=int(self.sessions[i]),
                known_count=int(self.known[i]),
                told_count=int(self.told[i]),
                timed_count=int(self.timed[i]),
                error_count=int(self.error_count[i]),
                success_rate=_or_none(self.success, i),
                errors_per_session=_or_none(self.errors, i),
                latency_p50_ms=_or_none(self.p50, i),
                latency_p95_ms=_or_none(self.p95, i),
                latency_mean_ms=_or_none(self.mean, i),
                sessions_per_hour=float(self.per_hour[i]),
            )
            for i in range(self._buckets.count)
        )


def _mean_of_pairs(place: Ints, session: Ints, values: Floats) -> tuple[Ints, Floats]:
    """Return the means of the values (k,) of each session in each place, and these places: events
    of one session are alike."""
    if not len(place):
        return place, values
    span = int(session.max()) + 1
    pairs, of = np.unique(place * span + session, return_inverse=True)
    return pairs // span, mean_by(of, values, len(pairs))


def _or_none(values: Floats, i: int) -> float | None:
    value = float(values[i])
    return None if np.isnan(value) else value


_WORDS = {Trend.IMPROVING: "improving", Trend.DEGRADING: "degrading"}


class _TrendWords(NamedTuple):
    """A measure in words; `amount` turns a value, or a difference of values, into words; values are
    told by `level` where they are told otherwise."""

    name: str
    word: str
    test: TrendTest
    amount: Callable[[float], str]
    values: Floats
    level: Callable[[float], str] | None = None


def _insights(result: PerformanceTrends, measured: _SpanMeasures) -> list[Insight]:
    """Return the trends and steps, the largest change for its measure's level first."""
    found = [
        _TrendWords(
            "success_rate", "The success rate", result.success_rate, points, measured.success,
            percent,
        ),
        _TrendWords("latency", "The median latency", result.latency, milliseconds, measured.p50),
        _TrendWords(
            "latency_p95", "The latency's 95th percentile", result.latency_p95, milliseconds,
            measured.p95,
        ),
        _TrendWords(
            "throughput", "The throughput", result.throughput,
            _rate(measured.per_hour), measured.per_hour,
        ),
        _TrendWords("error_rate", "The number of errors a session", result.error_rate, figure,
              measured.errors),
    ]  # fmt: skip
    insights = [
        _insight(told) for told in found if told.test.trend in _WORDS or _is_of_mix(told.test)
    ]
    return sorted(insights, key=lambda insight: -insight.strength)


def _is_of_mix(test: TrendTest) -> bool:
    return test.mix is not None and test.mix.verdict is not MixVerdict.WORK


def _rate(per_hour: Floats) -> Callable[[float], str]:
    """Return how to say a number of sessions an hour: an hour, a day or a week, as suits them."""
    mean = float(np.nanmean(per_hour))
    hours, unit = (1, "hour") if mean >= 1 else (24, "day") if 24 * mean >= 1 else (168, "week")
    each = f"an {unit}" if unit == "hour" else f"a {unit}"

    def amount(value: float) -> str:
        number = figure(hours * value)
        return f"{number} {'session' if number == '1' else 'sessions'} {each}"

    return amount


def _insight(told: _TrendWords) -> Insight:
    test = told.test
    trend = _WORDS.get(test.trend, "unknown")
    # More sessions than before are more work, not better work.
    verdict = "" if told.name == "throughput" else f": {trend}"
    if test.mix and _is_of_mix(test):
        verdict = f": {said(test.mix, told.amount)}"
    level = max(float(np.nanmean(np.abs(told.values))), 1e-300)
    if test.step:
        return Insight(
            type=f"{told.name}_step",
            summary=(
                f"{told.word} {steps(test.step, told.amount)}"
                f" ({test.points} spans, {sure(test.step.q_value)}){verdict}."
            ),
            data={"trend": trend, **step_figures(test.step), "points": test.points},
            q_value=test.step.q_value,
            strength=abs(test.step.size) / level,
        )
    median = (told.level or told.amount)(float(np.nanmedian(told.values)))
    return Insight(
        type=f"{told.name}_trend",
        summary=(
            f"{told.word} {moves(test, told.amount)}, around a median of {median}"
            f" ({test.points} spans, {sure(test.q_value)}){verdict}."
        ),
        data={
            "trend": trend,
            "slope_per_day": test.slope_per_day,
            "slope_low": test.slope_interval.low,
            "slope_high": test.slope_interval.high,
            "change": test.change,
            "days": test.days,
            "q_value": test.q_value,
            "points": test.points,
        },
        q_value=test.q_value,
        strength=abs(test.change) / level,
    )
