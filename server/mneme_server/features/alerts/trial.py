"""A trial of a rule against the past: when it would have triggered and resolved."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mneme_server.common import deadline
from mneme_server.common.clock import DAY_US, MICROSECONDS, MINUTE_US, now_us
from mneme_server.common.errors import InvalidArgument
from mneme_server.common.humanize import lasting
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.alerts.evaluation import resolves, triggers
from mneme_server.features.alerts.measurement import like, scope_of
from mneme_server.features.alerts.model import AlertCondition, Rule
from mneme_server.features.alerts.rules import require_sense
from mneme_server.features.events.event_types import ALERT_TYPES, CALL_ANSWERS, ERROR_TYPES, REPLIES
from mneme_server.features.events.history import Column, HistoryFilter
from mneme_server.features.events.model import Severity
from mneme_server.features.events.store.history import SqlHistory, SqlRecordMeasures

MOST = 1_000_000
"""Events that are looked at."""
_POINTS = 240
_CALLS = 4
_SHOWN = 1_000
_LONGEST_US = 366 * DAY_US

_Times: TypeAlias = NDArray[np.int64]
_Values: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TriedAlert:
    """One time that a rule would have triggered."""

    triggered_us: int
    resolved_us: int | None
    value: float
    highest: float


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What would have been; the latest alerts first, `points` (time, value) the oldest first."""

    start_us: int
    end_us: int
    alerts: Sequence[TriedAlert]
    count: int
    points: Sequence[tuple[int, float]]
    current: float
    highest: float
    searched: int
    truncated: bool

    @property
    def summary(self) -> str:
        """The result in words."""
        span = lasting((self.end_us - self.start_us) // MICROSECONDS)
        if not self.count:
            return f"would not have triggered in {span}"
        often = "once" if self.count == 1 else f"{self.count:,} times"
        return f"would have triggered {often} in {span}"


@dataclass(frozen=True, slots=True)
class _WeightSeries:
    """What counts, by time: `weights` (n,) add up to the value, over `counts` (n,) where it is an
    average, or a share. They are what `min_events` asks for; of calls, what `_calls` returns
    (n, 4)."""

    times: _Times
    weights: _Values
    counts: _Values


@dataclass(frozen=True, slots=True)
class RuleTrial:
    """The use case. One is tried at a time: a million events take a second."""

    tenants: OpenTenants
    now: Callable[[], int] = now_us
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def run(
        self, tenant_id: str, rule: Rule, start_us: int | None, end_us: int | None
    ) -> TrialResult:
        """Try the rule, from a time on, up to another.

        Raises:
            InvalidArgument: it makes no sense, or cannot be tried.
        """
        if rule.condition in (AlertCondition.QUEUE_DEPTH_EXCEEDS, AlertCondition.TREND_EXCEEDS):
            raise InvalidArgument(
                f"{rule.condition.name.lower()} cannot be tried against the past",
                field="condition",
            )
        require_sense(rule)
        end = self.now() if end_us is None else max(1, min(end_us, self.now()))
        start = end - 7 * DAY_US if start_us is None else start_us
        start = min(max(start, end - _LONGEST_US), end - 1)
        with self.tenants.open(tenant_id) as tenant, deadline.holding(self._turn):
            with tenant.read() as unit:
                start, truncated, series = _loaded(unit, rule, start, end)
            return _replayed(rule, series, start, end, truncated=truncated)


def _loaded(unit: CorpusUnit, rule: Rule, start: int, end: int) -> tuple[int, bool, _WeightSeries]:
    """Return what counts in the range and the window before it, and where the range begins then."""
    measures = unit.get(SqlRecordMeasures)
    scope = replace(scope_of(rule), start_us=start - rule.window_us + 1, end_us=end + 1)
    if rule.condition is AlertCondition.SESSION_FAILURES_EXCEED:
        ended = measures.endings(scope)
        times = np.array([at for at, _ in ended], np.int64)
        weights = np.array([failed for _, failed in ended], np.float64)
        return start, False, _sorted(times, weights, np.ones(len(times)))
    first = measures.nth_latest_us(scope, MOST)
    if first is not None:
        scope = replace(scope, start_us=first + 1)
        start = min(max(start, first + rule.window_us), end - 1)
    series = _events(unit, rule, scope)
    if rule.condition is AlertCondition.NO_EVENTS_FOR:
        # Silence before the range began belongs to it; without any event it begins with the range.
        before = measures.last_us(scope_of(rule), (scope.start_us or 0) - 1)
        since = before if before is not None or len(series.times) else start
        if since is not None:
            series = replace(series, times=np.concatenate(([since], series.times)))
    return start, first is not None, series


def _events(unit: CorpusUnit, rule: Rule, scope: HistoryFilter) -> _WeightSeries:
    columns = (
        Column.TIME,
        Column.KIND,
        Column.SEVERITY,
        Column.COST,
        Column.DURATION,
        Column.CURSOR,
    )
    matching: Set[int] = frozenset()
    if (
        rule.condition is AlertCondition.ERROR_PATTERN_EXCEEDS
    ):  # By the store, as a rule is evaluated.
        matching = frozenset(unit.get(SqlRecordMeasures).matching(scope, like(rule.pattern)))
    nothing = np.empty(0)
    none = np.empty((0, _CALLS)) if rule.condition is AlertCondition.ERROR_RATE_EXCEEDS else nothing
    parts: list[tuple[_Times, _Values, _Values]] = [(np.empty(0, np.int64), nothing, none)]
    for rows in unit.get(SqlHistory).scan(scope, columns):
        deadline.check()
        parts.append(_weighed(rule, rows, matching))
    return _sorted(
        np.concatenate([times for times, _, _ in parts]),
        np.concatenate([weights for _, weights, _ in parts]),
        np.concatenate([counts for _, _, counts in parts]),
    )


def _weighed(
    rule: Rule, rows: Sequence[Sequence[Any]], matching: Set[int]
) -> tuple[_Times, _Values, _Values]:
    """Return times, weights and counts of rows, by columns; `matching` are cursors of those that a
    pattern matches."""
    kinds = rows[1]
    kept = np.array([kind not in ALERT_TYPES for kind in kinds], bool)
    times, ones = np.array(rows[0], np.int64), np.ones(len(kept))
    weights, counts = ones, ones
    match rule.condition:
        case AlertCondition.ERROR_RATE_EXCEEDS:
            weights = _errors(kinds, rows[2])
            counts = _calls(kinds, weights)
        case AlertCondition.COST_EXCEEDS:
            weights = np.array(rows[3], np.float64)
        case AlertCondition.LATENCY_EXCEEDS:
            took = np.array(rows[4], np.float64)
            counts = (took >= 0).astype(np.float64)
            weights = np.maximum(took, 0) / 1000
        case AlertCondition.ERROR_PATTERN_EXCEEDS:
            weights = np.array([cursor in matching for cursor in rows[5]], np.float64)
        case _:
            pass
    return times[kept], weights[kept], counts[kept]


def _errors(kinds: Sequence[str], severities: Sequence[int]) -> _Values:
    by_type = np.array([kind in ERROR_TYPES for kind in kinds], bool)
    return (by_type | (np.array(severities) >= int(Severity.ERROR))).astype(np.float64)


def _calls(kinds: Sequence[str], errors: _Values) -> _Values:
    """Return what the calls in a window are counted by (n, 4): answers of tools, those that are no
    errors, replies of models that are none, and events that are none."""
    answers = np.array([kind in CALL_ANSWERS for kind in kinds], bool)
    replies = np.array([kind in REPLIES for kind in kinds], bool)
    well = errors == 0
    columns = (answers, answers & well, replies & well, well)
    return np.column_stack(columns).astype(np.float64)


def _sorted(times: _Times, weights: _Values, counts: _Values) -> _WeightSeries:
    order = np.argsort(times, kind="stable")
    return _WeightSeries(times[order], weights[order], counts[order])


def _replayed(
    rule: Rule, series: _WeightSeries, start: int, end: int, *, truncated: bool
) -> TrialResult:
    """Evaluate the rule whenever its value changes."""
    edges = np.unique(np.linspace(start, end, _POINTS + 1).astype(np.int64))
    moments = np.concatenate((series.times, series.times + rule.window_us, edges))
    moments = np.unique(moments[(moments >= start) & (moments <= end)])
    values, counts = _values(rule, series, moments)
    alerts, count = _alerts(rule, moments, values, counts)
    at = np.searchsorted(moments, edges[:-1], side="right")
    highest = np.maximum.reduceat(values, at)
    return TrialResult(
        start_us=start,
        end_us=end,
        alerts=alerts,
        count=count,
        points=[(int(time), float(value)) for time, value in zip(edges[1:], highest, strict=True)],
        current=float(values[-1]),
        highest=float(values.max()),
        searched=len(series.weights),
        truncated=truncated,
    )


def _values(rule: Rule, series: _WeightSeries, moments: _Times) -> tuple[_Values, _Values]:
    """Return the value (m,) at each moment, and how many events it rests on (m,)."""
    until = np.searchsorted(series.times, moments, side="right")
    if rule.condition is AlertCondition.NO_EVENTS_FOR:
        last = series.times[np.maximum(until - 1, 0)]
        return np.maximum(moments - last, 0) / MINUTE_US, np.ones(len(moments))
    since = np.searchsorted(series.times, moments - rule.window_us, side="right")
    sums = _between(series.weights, since, until)
    counts = _between(series.counts, since, until)
    if rule.condition is AlertCondition.ERROR_RATE_EXCEEDS:
        answers, answered, replied, others = counts.T
        worked = np.where(answers > 0, answered, np.where(replied > 0, replied, others))
        counts = sums + worked
    if rule.condition in (AlertCondition.ERROR_RATE_EXCEEDS, AlertCondition.LATENCY_EXCEEDS):
        sums = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
    return sums, counts


def _between(amounts: _Values, since: Any, until: Any) -> _Values:
    nothing = np.zeros((1, *amounts.shape[1:]))
    added = np.concatenate((nothing, np.cumsum(amounts, axis=0)))
    found: _Values = added[until] - added[since]
    return np.round(found, 9)  # What adding and taking away again leaves is no amount.


def _alerts(
    rule: Rule, moments: _Times, values: _Values, counts: _Values
) -> tuple[Sequence[TriedAlert], int]:
    """Return the alerts, the latest first, and how many there were: each begins where the rule
    triggers, and lasts until it resolves."""
    turns = np.where(triggers(rule, values, counts), 1, np.where(resolves(rule, values), -1, 0))
    places = np.flatnonzero(turns)
    is_on = turns[places] > 0  # No value does both.
    was_on = np.concatenate(([False], is_on[:-1]))
    begins, ends = places[is_on & ~was_on], places[~is_on & was_on]
    found = [
        _alert(moments, values, int(begins[at]), int(ends[at]) if at < len(ends) else None)
        for at in range(len(begins) - 1, max(-1, len(begins) - 1 - _SHOWN), -1)
    ]
    return found, len(begins)


def _alert(moments: _Times, values: _Values, begin: int, end: int | None) -> TriedAlert:
    return TriedAlert(
        int(moments[begin]),
        None if end is None else int(moments[end]),
        float(values[begin]),
        float(values[begin:end].max()),
    )
