"""Measurements of what rules watch, as of a moment, and of when to look again though nothing is
recorded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

from mneme_server.common.clock import HOUR_US, MICROSECONDS, MINUTE_US
from mneme_server.features.alerts.model import AlertCondition, Rule, WatchedMeasure
from mneme_server.features.events.history import ESCAPE, HistoryFilter, Totals
from mneme_server.features.events.store.history import SqlRecordMeasures
from mneme_server.features.reflect.model import AnalysisReport, PerformanceTrendsParams

QUEUE_EVERY_US = 20 * MICROSECONDS
"""How often a queue is looked at while something waits in it."""
TREND_EVERY_US = HOUR_US
"""How often a trend is looked for at most."""
_INSIGHTS = {
    WatchedMeasure.SUCCESS_RATE: "success_rate_trend",
    WatchedMeasure.LATENCY: "latency_trend",
    WatchedMeasure.LATENCY_P95: "latency_p95_trend",
    WatchedMeasure.ERROR_RATE: "error_rate_trend",
}
_MANY = 1_000_000_000
"""More than a rule can ask for: what is not counted in events is never too few."""
_PLACEHOLDER = re.compile(r"<(?:url|email|id|date|str|path|num)>")


class AnalysisRunner(Protocol):
    """Runs analyses."""

    def run(
        self, tenant_id: str, params: PerformanceTrendsParams, filter_: HistoryFilter, limit: int
    ) -> AnalysisReport:
        """Run one."""
        ...


@dataclass(frozen=True, slots=True)
class RuleReading:
    """The value of what a rule watches, and how many events it rests on.

    `next_us`: when it may be another though nothing is recorded; None: never.
    """

    value: float
    count: int = _MANY
    next_us: int | None = None


def scope_of(rule: Rule) -> HistoryFilter:
    """Return what a rule looks at, at any time."""
    return HistoryFilter(
        agent_id=rule.scope.agent_id, project=rule.scope.project, tags=rule.scope.tags
    )


def window(rule: Rule, now_us: int) -> HistoryFilter:
    """Return what a rule looks at now: what is no older than its window, up to this moment."""
    return replace(scope_of(rule), start_us=now_us - rule.window_us + 1, end_us=now_us + 1)


def read(measures: SqlRecordMeasures, rule: Rule, now_us: int, pending: int) -> RuleReading:
    """Return what a rule's value is now; not for trends.

    Args:
        measures: of the tenant.
        rule: what is measured.
        now_us: the time.
        pending: texts that wait to be embedded.
    """
    match rule.condition:
        case AlertCondition.QUEUE_DEPTH_EXCEEDS:
            return RuleReading(pending, next_us=now_us + QUEUE_EVERY_US if pending else None)
        case AlertCondition.NO_EVENTS_FOR:
            reading = _silence(measures, rule, now_us)
        case AlertCondition.SESSION_FAILURES_EXCEED:
            reading = _failures(measures, rule, now_us)
        case _:
            reading = _of_events(measures, rule, now_us)
    ahead = measures.next_us(scope_of(rule), now_us)
    return RuleReading(reading.value, reading.count, _earliest(reading.next_us, ahead))


def _silence(measures: SqlRecordMeasures, rule: Rule, now_us: int) -> RuleReading:
    last = measures.last_us(scope_of(rule), now_us)
    since = rule.created_us if last is None else max(last, rule.created_us)
    due = since + rule.window_us
    # Once it is silent, only what is recorded ends that.
    return RuleReading((now_us - since) / MINUTE_US, next_us=due if due > now_us else None)


def _failures(measures: SqlRecordMeasures, rule: Rule, now_us: int) -> RuleReading:
    ended, failed = measures.ended(window(rule, now_us))
    first = measures.first_failure_us(window(rule, now_us)) if rule.open_entry else None
    return RuleReading(failed, ended, None if first is None else first + rule.window_us)


def _of_events(measures: SqlRecordMeasures, rule: Rule, now_us: int) -> RuleReading:
    pattern = like(rule.pattern) if rule.pattern else ""
    totals = measures.totals(window(rule, now_us), pattern)
    value, count, may_rise = _value(rule.condition, totals)
    # Sums only fall while nothing is recorded; shares and averages may rise, too.
    changes = rule.open_entry or may_rise
    oldest = totals.first_us if changes else None
    return RuleReading(value, count, None if oldest is None else oldest + rule.window_us)


def _value(condition: AlertCondition, totals: Totals) -> tuple[float, int, bool]:
    """Return the value, how many events it rests on, and whether it may rise by itself."""
    match condition:
        case AlertCondition.ERROR_RATE_EXCEEDS:
            rate = totals.errors / totals.calls if totals.calls else 0.0
            return rate, totals.calls, 0 < rate < 1
        case AlertCondition.LATENCY_EXCEEDS:
            mean = totals.duration_us / totals.timed / 1000 if totals.timed else 0.0
            return mean, totals.timed, totals.timed > 1
        case AlertCondition.COST_EXCEEDS:
            return totals.cost_usd, totals.count, False
        case AlertCondition.ERROR_PATTERN_EXCEEDS:
            return totals.matches, totals.count, False
        case _:
            return totals.count, totals.count, False


@dataclass(slots=True)
class Trends:
    """Looks for trends, each rule's once an hour at most.

    Args:
        analyses: runs the analysis.
    """

    analyses: AnalysisRunner
    _looked: dict[str, dict[str, tuple[int, Rule, RuleReading]]] = field(default_factory=dict)

    def read(
        self, tenant_id: str, rule: Rule, now_us: int, recorded: Callable[[], bool]
    ) -> RuleReading:
        """Return how much worse the measure got over the window, as a share of its average: 0 when
        no trend is found.

        Args:
            tenant_id: the tenant.
            rule: what is looked for.
            now_us: the time.
            recorded: tells whether the window holds anything.
        """
        looked = self._looked.setdefault(tenant_id, {})
        known = looked.get(rule.id)
        if (
            known is not None
            and known[1].differing(rule) == []
            and (now_us < known[0] + TREND_EVERY_US)
        ):
            # It is asked again because something was recorded, or because it is triggered.
            return replace(known[2], next_us=known[0] + TREND_EVERY_US)
        value = self._worse(tenant_id, rule, now_us) if recorded() else 0.0
        again = now_us + TREND_EVERY_US if value or rule.open_entry else None
        reading = RuleReading(value, next_us=again)
        looked[rule.id] = (now_us, rule, reading)
        return reading

    def keep(self, tenant_id: str, rules: Iterable[Rule]) -> None:
        """Forget what was found for other rules of a tenant's than these."""
        ids = {rule.id for rule in rules}
        kept = {
            rule_id: of for rule_id, of in self._looked.pop(tenant_id, {}).items() if rule_id in ids
        }
        if kept:
            self._looked[tenant_id] = kept

    def _worse(self, tenant_id: str, rule: Rule, now_us: int) -> float:
        report = self.analyses.run(tenant_id, PerformanceTrendsParams(), window(rule, now_us), 10)
        for insight in report.insights:
            if insight.type == _INSIGHTS[rule.trend] and insight.data["trend"] == "degrading":
                return insight.strength
        return 0.0


def _earliest(*times: int | None) -> int | None:
    return min((one for one in times if one is not None), default=None)


def like(pattern: str) -> str:
    """Return what `LIKE` takes for a pattern, with `ESCAPE`; placeholders stand for anything."""
    parts = _PLACEHOLDER.split(pattern.strip())
    escaped = [re.sub(r"[\\%_]", lambda found: ESCAPE + found[0], part) for part in parts]
    return f"%{'%'.join(escaped)}%"
