"""Evaluation of rules: soon after something is recorded, and when time alone changes what they
say. That a rule triggers or resolves is written with its messages."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from mneme_server.common.clock import MICROSECONDS, now_us
from mneme_server.common.errors import ResourceExhausted
from mneme_server.common.identity import new_id
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.alerts.due import Due, DueWorker
from mneme_server.features.alerts.measurement import RuleReading, Trends, read, scope_of
from mneme_server.features.alerts.metrics import AlertCounts
from mneme_server.features.alerts.model import (
    MAX_ENTRIES,
    RECORDED,
    RESOLVED,
    TRIGGERED,
    AlertCondition,
    AlertEntry,
    Delivery,
    Resolution,
    Rule,
)
from mneme_server.features.alerts.notice import AlertNotice, happened
from mneme_server.features.alerts.store.history import SqlAlertDeliveries, SqlAlertHistory
from mneme_server.features.alerts.store.rules import SqlAlertRules
from mneme_server.features.events.store.history import SqlRecordMeasures

WATCH_JOB = "alerts"
"""The job that evaluates rules."""
SOON_US = MICROSECONDS
"""How long after something is recorded rules are evaluated: more may come."""
_PAUSE_US = 2 * MICROSECONDS
_LONGEST_PAUSE_US = 20 * MICROSECONDS
"""Between two evaluations of a tenant's rules; what was recorded is at most a minute old then."""
_WORTH = 20
"""The pause is so many times what the evaluation took."""

_log = structlog.get_logger(__name__)


class AlertWorker(DueWorker):
    """Evaluates the rules of all tenants. Implements `TenantListener`.

    What it finds depends on what is stored alone, so that nothing is missed when the process dies:
    a tenant that was open is evaluated again when it is opened.

    Args:
        open_tenant: lends a tenant's memory.
        due: when closed tenants are due.
        trends: looks for trends.
        changed: told the tenant when there are messages to send.
        standing: told how a tenant's rules stand.
    """

    def __init__(
        self,
        open_tenant: Callable[[str], AbstractContextManager[OpenTenant]],
        due: Due,
        trends: Trends,
        changed: Callable[[str], object],
        standing: AlertCounts | None = None,
    ) -> None:
        super().__init__(WATCH_JOB, due)
        self._standing = standing or AlertCounts()
        self._open_tenant = open_tenant
        self._trends = trends
        self._told = changed
        self._not_before: dict[str, int] = {}
        self._without: set[str] = set()  # Tenants that have no rules.

    def committed(self, tenant_id: str) -> None:
        """Evaluate the rules soon, if there are some."""
        if tenant_id not in self._without:
            self.wake(tenant_id, now_us() + SOON_US)

    def changed(self, tenant_id: str) -> None:
        """Evaluate the rules, which were made or changed."""
        self._without.discard(tenant_id)
        self.wake(tenant_id)

    def removed(self, tenant_id: str, *, replaced: bool) -> None:
        """See `DueWorker`."""
        self._without.discard(tenant_id)
        self._not_before.pop(tenant_id, None)
        self._trends.keep(tenant_id, ())  # Of one that is called the same, they say nothing.
        self._standing.gone(tenant_id)
        super().removed(tenant_id, replaced=replaced)

    def step(self, tenant_id: str) -> int | None:
        """Evaluate the tenant's rules."""
        now = now_us()
        not_before = self._not_before.get(tenant_id, 0)
        if now < not_before <= now + _LONGEST_PAUSE_US:
            return not_before
        self._without.add(tenant_id)  # Before it is looked: what is made meanwhile takes it off.
        started = time.monotonic()
        with self._open_tenant(tenant_id) as tenant:
            with tenant.read() as unit:
                rules = unit.get(SqlAlertRules).enabled()
                readings = [(rule, _read(unit, rule, now, tenant.pending)) for rule in rules]
            self._trends.keep(tenant_id, rules)
            if not rules:
                self._standing.evaluated(tenant_id, 0, 0)
                self._not_before.pop(tenant_id, None)
                return None
            self._without.discard(tenant_id)
            found = [
                (rule, reading or self._trend(tenant, rule, now)) for rule, reading in readings
            ]
            self._write(tenant, found, now)
        triggered = sum(bool(rule.open_entry) != changes(rule, one) for rule, one in found)
        self._standing.evaluated(tenant_id, len(rules), triggered)
        took_us = int((time.monotonic() - started) * MICROSECONDS)
        pause_us = min(max(_PAUSE_US, _WORTH * took_us), _LONGEST_PAUSE_US)
        self._not_before[tenant_id] = not_before = now_us() + pause_us
        times = [reading.next_us for _, reading in found if reading.next_us is not None]
        return max(min(times), not_before) if times else None

    def _trend(self, tenant: OpenTenant, rule: Rule, now: int) -> RuleReading:
        try:
            return self._trends.read(
                tenant.tenant_id, rule, now, partial(_any_recorded, tenant, rule, now)
            )
        except ResourceExhausted:  # Other analyses run.
            return RuleReading(math.nan, next_us=now + _LONGEST_PAUSE_US)  # Which changes nothing.

    def _write(
        self,
        tenant: OpenTenant,
        found: Sequence[tuple[Rule, RuleReading]],
        now: int,
    ) -> None:
        changing = [(rule, reading) for rule, reading in found if changes(rule, reading)]
        if not changing:
            return
        with tenant.write() as unit:
            for rule, reading in changing:
                if write(unit, tenant.tenant_id, rule, reading, now):
                    _log.info(
                        "alert resolved" if rule.open_entry else "alert triggered",
                        tenant=tenant.tenant_id, rule=rule.id, value=reading.value,
                    )  # fmt: skip
        self._told(tenant.tenant_id)


def _read(unit: CorpusUnit, rule: Rule, now: int, pending: int) -> RuleReading | None:
    """Return a rule's reading; None of one that an analysis has to find."""
    if rule.condition is AlertCondition.TREND_EXCEEDS:
        return None
    return read(unit.get(SqlRecordMeasures), rule, now, pending)


def _any_recorded(tenant: OpenTenant, rule: Rule, now: int) -> bool:
    with tenant.read() as unit:
        last = unit.get(SqlRecordMeasures).last_us(scope_of(rule), now)
    return last is not None and last > now - rule.window_us


def triggers(rule: Rule, value: Any, count: Any) -> Any:
    """Tell whether a value triggers a rule that is not triggered; of arrays, which of them do."""
    if rule.condition is AlertCondition.NO_EVENTS_FOR:
        return value >= rule.window_minutes
    return (value > rule.threshold) & (count >= rule.min_events)


def resolves(rule: Rule, value: Any) -> Any:
    """Tell whether a value resolves a rule that is triggered; of an array, which of them do."""
    if rule.condition is AlertCondition.NO_EVENTS_FOR:
        return value < rule.window_minutes
    return value <= rule.resolves_at


def changes(rule: Rule, reading: RuleReading) -> bool:
    """Tell whether a rule triggers or resolves."""
    if rule.open_entry:
        return bool(resolves(rule, reading.value))
    return bool(triggers(rule, reading.value, reading.count))


def write(unit: CorpusUnit, tenant_id: str, rule: Rule, reading: RuleReading, now_us: int) -> bool:
    """Write what follows when a rule triggers or resolves: its state, the history, the messages.

    Returns False, and writes nothing, where the rule is no longer what was measured.
    """
    if unit.get(SqlAlertRules).get(rule.id) != rule:
        return False
    if rule.open_entry:
        _resolve(unit, tenant_id, rule, reading, now_us)
    else:
        _trigger(unit, tenant_id, rule, reading, now_us)
    return True


def _trigger(
    unit: CorpusUnit, tenant_id: str, rule: Rule, reading: RuleReading, now_us: int
) -> None:
    silence = rule.condition is AlertCondition.NO_EVENTS_FOR
    entry = AlertEntry(
        id=new_id(),
        rule_id=rule.id,
        rule_name=rule.name,
        condition=rule.condition,
        agent_id=rule.scope.agent_id,
        triggered_us=now_us,
        current_value=reading.value,
        threshold=float(rule.window_minutes) if silence else rule.threshold,
        message=happened(rule, reading.value),
    )
    unit.get(SqlAlertHistory).save(entry)
    unit.get(SqlAlertHistory).keep(MAX_ENTRIES)
    unit.get(SqlAlertRules).save(replace(rule, open_entry=entry.id, triggered_us=now_us))
    unit.get(SqlAlertDeliveries).add(
        _messages(AlertNotice(tenant_id, rule, entry, TRIGGERED, now_us), 0)
    )


def _resolve(
    unit: CorpusUnit, tenant_id: str, rule: Rule, reading: RuleReading, now_us: int
) -> None:
    unit.get(SqlAlertRules).save(replace(rule, open_entry=""))
    entry = unit.get(SqlAlertHistory).get(rule.open_entry)
    if entry is None:
        return  # It was forgotten.
    entry = replace(
        entry,
        resolved_us=max(now_us, entry.triggered_us),
        resolved_value=reading.value,
        resolution=Resolution.RECOVERED,
    )
    unit.get(SqlAlertHistory).save(entry)
    told = AlertNotice(tenant_id, rule, entry, RESOLVED, now_us)
    unit.get(SqlAlertDeliveries).add(_messages(told, 1 + len(rule.channels)))


def _messages(told: AlertNotice, first: int) -> Sequence[Delivery]:
    """Return the messages to the rule's channels, and the one that is recorded."""
    body = told.body
    return [
        Delivery(
            id=new_id(),
            entry_id=told.entry.id,
            position=first + at,
            channel=channel,
            kind=told.kind,
            body_json=body,
            created_us=told.at_us,
            key_id="" if channel == RECORDED else told.rule.key_id,
            next_us=told.at_us,
        )
        for at, channel in enumerate((RECORDED, *told.rule.channels))
    ]
