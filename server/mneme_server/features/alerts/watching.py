"""Evaluating rules: soon after something is recorded, and when time alone changes what they say."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial

import structlog

from mneme_server.common.clock import MICROSECONDS, now_us
from mneme_server.common.errors import ResourceExhausted
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.features.alerts import deciding
from mneme_server.features.alerts.due import Due, DueWorker
from mneme_server.features.alerts.measuring import Reading, Trends, read, scope_of
from mneme_server.features.alerts.model import Condition, Rule
from mneme_server.features.alerts.ports import AlertsUnit
from mneme_server.features.alerts.standing import Standing

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
        open_tenant: Callable[[str], AbstractContextManager[OpenTenant[AlertsUnit]]],
        due: Due,
        trends: Trends,
        changed: Callable[[str], object],
        standing: Standing | None = None,
    ) -> None:
        super().__init__(WATCH_JOB, due)
        self._standing = standing or Standing()
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
                rules = unit.alert_rules.enabled()
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
        triggered = sum(bool(rule.open_entry) != deciding.changes(rule, one) for rule, one in found)
        self._standing.evaluated(tenant_id, len(rules), triggered)
        took_us = int((time.monotonic() - started) * MICROSECONDS)
        pause_us = min(max(_PAUSE_US, _WORTH * took_us), _LONGEST_PAUSE_US)
        self._not_before[tenant_id] = not_before = now_us() + pause_us
        times = [reading.next_us for _, reading in found if reading.next_us is not None]
        return max(min(times), not_before) if times else None

    def _trend(self, tenant: OpenTenant[AlertsUnit], rule: Rule, now: int) -> Reading:
        try:
            return self._trends.read(
                tenant.tenant_id, rule, now, partial(_any_recorded, tenant, rule, now)
            )
        except ResourceExhausted:  # Other analyses run.
            return Reading(math.nan, next_us=now + _LONGEST_PAUSE_US)  # Which changes nothing.

    def _write(
        self,
        tenant: OpenTenant[AlertsUnit],
        found: Sequence[tuple[Rule, Reading]],
        now: int,
    ) -> None:
        changing = [(rule, reading) for rule, reading in found if deciding.changes(rule, reading)]
        if not changing:
            return
        with tenant.write() as unit:
            for rule, reading in changing:
                if deciding.write(unit, tenant.tenant_id, rule, reading, now):
                    _log.info(
                        "alert resolved" if rule.open_entry else "alert triggered",
                        tenant=tenant.tenant_id, rule=rule.id, value=reading.value,
                    )  # fmt: skip
        self._told(tenant.tenant_id)


def _read(unit: AlertsUnit, rule: Rule, now: int, pending: int) -> Reading | None:
    """Return a rule's reading; None of one that an analysis has to find."""
    if rule.condition is Condition.TREND_EXCEEDS:
        return None
    return read(unit.measures, rule, now, pending)


def _any_recorded(tenant: OpenTenant[AlertsUnit], rule: Rule, now: int) -> bool:
    with tenant.read() as unit:
        last = unit.measures.last_us(scope_of(rule), now)
    return last is not None and last > now - rule.window_us
