"""Whether a rule triggers or resolves, and what is written then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mneme_server.common.identity import new_id
from mneme_server.features.alerts.measuring import Reading
from mneme_server.features.alerts.model import (
    MAX_ENTRIES,
    RECORDED,
    RESOLVED,
    TRIGGERED,
    Condition,
    Delivery,
    Entry,
    Resolution,
    Rule,
)
from mneme_server.features.alerts.ports import AlertsUnit
from mneme_server.features.alerts.wording import Told, happened


def triggers(rule: Rule, value: Any, count: Any) -> Any:
    """Tell whether a value triggers a rule that is not triggered; of arrays, which of them do."""
    if rule.condition is Condition.NO_EVENTS_FOR:
        return value >= rule.window_minutes
    return (value > rule.threshold) & (count >= rule.min_events)


def resolves(rule: Rule, value: Any) -> Any:
    """Tell whether a value resolves a rule that is triggered; of an array, which of them do."""
    if rule.condition is Condition.NO_EVENTS_FOR:
        return value < rule.window_minutes
    return value <= rule.resolves_at


def changes(rule: Rule, reading: Reading) -> bool:
    """Tell whether a rule triggers or resolves."""
    if rule.open_entry:
        return bool(resolves(rule, reading.value))
    return bool(triggers(rule, reading.value, reading.count))


def write(unit: AlertsUnit, tenant_id: str, rule: Rule, reading: Reading, now_us: int) -> bool:
    """Write what follows when a rule triggers or resolves: its state, the history, the messages.

    Returns False, and writes nothing, where the rule is no longer what was measured.
    """
    if unit.alert_rules.get(rule.id) != rule:
        return False
    if rule.open_entry:
        _resolve(unit, tenant_id, rule, reading, now_us)
    else:
        _trigger(unit, tenant_id, rule, reading, now_us)
    return True


def _trigger(unit: AlertsUnit, tenant_id: str, rule: Rule, reading: Reading, now_us: int) -> None:
    silence = rule.condition is Condition.NO_EVENTS_FOR
    entry = Entry(
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
    unit.alert_history.save(entry)
    unit.alert_history.keep(MAX_ENTRIES)
    unit.alert_rules.save(replace(rule, open_entry=entry.id, triggered_us=now_us))
    unit.alert_deliveries.add(_messages(Told(tenant_id, rule, entry, TRIGGERED, now_us), 0))


def _resolve(unit: AlertsUnit, tenant_id: str, rule: Rule, reading: Reading, now_us: int) -> None:
    unit.alert_rules.save(replace(rule, open_entry=""))
    entry = unit.alert_history.get(rule.open_entry)
    if entry is None:
        return  # It was forgotten.
    entry = replace(
        entry,
        resolved_us=max(now_us, entry.triggered_us),
        resolved_value=reading.value,
        resolution=Resolution.RECOVERED,
    )
    unit.alert_history.save(entry)
    told = Told(tenant_id, rule, entry, RESOLVED, now_us)
    unit.alert_deliveries.add(_messages(told, 1 + len(rule.channels)))


def _messages(told: Told, first: int) -> Sequence[Delivery]:
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
