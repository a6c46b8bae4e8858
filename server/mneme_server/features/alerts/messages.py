"""The messages of alerts, from and to the domain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, cast

from mneme.v1 import alert_service_pb2 as pb

from mneme_server.common.stored import reads
from mneme_server.edge.grpc.conversions import time_range, to_timestamp
from mneme_server.features.alerts.model import (
    AlertCondition,
    AlertEntry,
    AlertState,
    Delivery,
    EntryFilter,
    Rule,
    Scope,
    WatchedMeasure,
)
from mneme_server.features.alerts.trial import TrialResult, TriedAlert


def new_rule(request: pb.CreateAlertRuleRequest, key_id: str) -> Rule:
    """Return the rule that a request creates, which that key let in."""
    return Rule(
        id=request.rule_id,
        name=request.name,
        condition=AlertCondition(request.condition),
        enabled=request.enabled if request.HasField("enabled") else True,
        threshold=request.threshold,
        resolve_threshold=_resolve_threshold(request),
        min_events=request.min_events,
        window_minutes=request.window_minutes,
        scope=_scope(request.scope),
        channels=tuple(request.notify_channels),
        key_id=key_id,
        pattern=request.pattern,
        trend=WatchedMeasure(request.trend),
    )


def rule_of(message: pb.AlertRule) -> Rule:
    """Return the rule of a message, without what the server adds to it."""
    return Rule(
        id=message.id,
        name=message.name,
        condition=AlertCondition(message.condition),
        threshold=message.threshold,
        resolve_threshold=_resolve_threshold(message),
        min_events=message.min_events,
        window_minutes=message.window_minutes,
        scope=_scope(message.scope),
        pattern=message.pattern,
        trend=WatchedMeasure(message.trend),
    )


def _resolve_threshold(message: pb.CreateAlertRuleRequest | pb.AlertRule) -> float | None:
    return message.resolve_threshold if message.HasField("resolve_threshold") else None


def _scope(message: pb.AlertScope) -> Scope:
    return Scope(message.agent_id, message.project, tuple(sorted(set(message.tags))))


def rule(stored: Rule, held: Mapping[str, str]) -> pb.AlertRule:
    """Return the message of a rule. `held` says why nothing is sent to channels, by the keys that
    set them."""
    message = _rule(stored)
    if stored.channels:
        message.notify_held_reason = held.get(stored.key_id, "")
    return message


@reads("alert rule")
def _rule(stored: Rule) -> pb.AlertRule:
    message = pb.AlertRule(
        id=stored.id,
        name=stored.name,
        enabled=stored.enabled,
        condition=cast("pb.AlertCondition", stored.condition),
        threshold=stored.threshold,
        resolve_threshold=stored.resolve_threshold,
        min_events=stored.min_events,
        window_minutes=stored.window_minutes,
        scope=pb.AlertScope(
            agent_id=stored.scope.agent_id, project=stored.scope.project, tags=stored.scope.tags
        ),
        notify_channels=stored.channels,
        pattern=stored.pattern,
        trend=cast("pb.AlertTrend", stored.trend),
        state=cast("pb.AlertState", stored.state),
        created_at=to_timestamp(stored.created_us),
        updated_at=to_timestamp(stored.updated_us),
        notify_key_id=stored.key_id,
    )
    if stored.triggered_us is not None:
        message.last_triggered_at.CopyFrom(to_timestamp(stored.triggered_us))
    return message


# Fields that the domain has under another name or in another form than the message.
_CONVERTED: dict[str, Callable[[pb.AlertRule], dict[str, Any]]] = {
    "condition": lambda message: {"condition": AlertCondition(message.condition)},
    "resolve_threshold": lambda message: {"resolve_threshold": _resolve_threshold(message)},
    "scope": lambda message: {"scope": _scope(message.scope)},
    "notify_channels": lambda message: {"channels": tuple(message.notify_channels)},
    "trend": lambda message: {"trend": WatchedMeasure(message.trend)},
}


def rule_changes(message: pb.AlertRule, named: Iterable[str]) -> dict[str, Any]:
    """Return the new values of the named fields, by domain field.

    They must have passed `named_fields` and their rules.
    """
    changes: dict[str, Any] = {}
    for path in named:
        convert = _CONVERTED.get(path)
        changes |= convert(message) if convert else {path: attrgetter(path)(message)}
    return changes


def changed_fields_only(given: pb.AlertRule, named: Iterable[str]) -> pb.AlertRule:
    """Return a rule to validate: the named fields as given, and others that are valid."""
    message = pb.AlertRule(id=given.id, name="-", condition=pb.ALERT_CONDITION_EVENT_COUNT_EXCEEDS)
    for path in named:
        if path == "scope":
            message.scope.CopyFrom(given.scope)
        elif path == "notify_channels":
            message.notify_channels.extend(given.notify_channels)
        elif path != "resolve_threshold" or given.HasField(path):
            setattr(message, path, getattr(given, path))
    return message


def named(given: pb.AlertRule) -> pb.AlertRule:
    """Return a rule to validate, which has a name at any rate."""
    message = pb.AlertRule(name="-")
    message.MergeFrom(given)
    return message


def state_of(number: int) -> AlertState | None:
    """Return the state that a filter names."""
    return AlertState(number) if number else None


def entry_filter(request: pb.ListAlertHistoryRequest) -> EntryFilter:
    """Return which entries a request asks for.

    Raises:
        InvalidArgument: its range of time ends before it starts.
    """
    start_us, end_us = time_range(request)
    return EntryFilter(request.rule_id, state_of(request.state), start_us, end_us)


def entry(found: tuple[AlertEntry, Sequence[Delivery]]) -> pb.AlertHistoryEntry:
    """Return the message of an entry with its deliveries."""
    stored, sent = found
    return _entry(stored, sent)


def _entry(stored: AlertEntry, sent: Sequence[Delivery]) -> pb.AlertHistoryEntry:
    message = pb.AlertHistoryEntry(
        id=stored.id,
        rule_id=stored.rule_id,
        rule_name=stored.rule_name,
        condition=cast("pb.AlertCondition", stored.condition),
        triggered_at=to_timestamp(stored.triggered_us),
        current_value=stored.current_value,
        resolved_value=stored.resolved_value,
        threshold=stored.threshold,
        message=stored.message,
        resolution=cast("pb.AlertResolution", stored.resolution),
        deliveries=map(delivery, sent),
    )
    if stored.resolved_us is not None:
        message.resolved_at.CopyFrom(to_timestamp(stored.resolved_us))
    return message


@reads("delivery")
def delivery(stored: Delivery) -> pb.AlertDelivery:
    """Return the message of a delivery."""
    message = pb.AlertDelivery(
        id=stored.id,
        channel=stored.channel,
        type=stored.kind,
        state=cast("pb.DeliveryState", stored.state),
        attempts=stored.attempts,
        error=stored.error,
    )
    if stored.next_us is not None:
        message.next_attempt_at.CopyFrom(to_timestamp(stored.next_us))
    if stored.delivered_us is not None:
        message.delivered_at.CopyFrom(to_timestamp(stored.delivered_us))
    return message


def tried(found: TrialResult) -> pb.TryAlertRuleResponse:
    """Return the message of what would have been."""
    return pb.TryAlertRuleResponse(
        alerts=map(_tried_alert, found.alerts),
        alert_count=found.count,
        summary=found.summary,
        points=[
            pb.TriedPoint(time=to_timestamp(max(time, 0)), value=value)
            for time, value in found.points
        ],
        current_value=found.current,
        highest_value=found.highest,
        searched_count=found.searched,
        truncated=found.truncated,
        start_time=to_timestamp(max(found.start_us, 0)),
        end_time=to_timestamp(found.end_us),
    )


def _tried_alert(alert: TriedAlert) -> pb.TriedAlert:
    message = pb.TriedAlert(
        triggered_at=to_timestamp(max(alert.triggered_us, 0)),
        current_value=alert.value,
        highest_value=alert.highest,
    )
    if alert.resolved_us is not None:
        message.resolved_at.CopyFrom(to_timestamp(max(alert.resolved_us, 0)))
    return message
