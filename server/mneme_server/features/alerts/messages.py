"""The messages of alerts, from and to the domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mneme.v1 import alert_service_pb2 as pb

from mneme_server.common.stored import reads
from mneme_server.edge.grpc.conversions import to_timestamp
from mneme_server.edge.grpc.records import MessageReader, message_writer
from mneme_server.features.alerts.model import (
    AlertEntry,
    AlertState,
    Delivery,
    EntryFilter,
    Rule,
    Scope,
)
from mneme_server.features.alerts.trial import TrialResult, TriedAlert


def _scope(message: pb.AlertRule | pb.CreateAlertRuleRequest, _path: str) -> Scope:
    scope = message.scope
    return Scope(scope.agent_id, scope.project, tuple(sorted(set(scope.tags))))


_SPELLED = {"channels": "notify_channels"}
_new_rule = MessageReader(
    pb.CreateAlertRuleRequest,
    Rule,
    spelled=_SPELLED | {"id": "rule_id"},
    made={
        "scope": _scope,
        "enabled": lambda message, _path: message.enabled if message.HasField("enabled") else True,
    },
)
_SERVERS = (
    "notify_key_id", "notify_held_reason", "state", "last_triggered_at", "created_at", "updated_at",
    "etag",
)  # fmt: skip
"""What the server adds to a rule."""
read_rule = MessageReader(
    pb.AlertRule,
    Rule,
    spelled=_SPELLED | {"created_us": "", "updated_us": ""},
    made={"scope": _scope},
    unread=_SERVERS,
)
"""Return the rule of a message, without what the server adds to it."""


def new_rule(request: pb.CreateAlertRuleRequest, key_id: str) -> Rule:
    """Return the rule that a request creates, which that key let in."""
    return replace(_new_rule(request), key_id=key_id)


def rule_to_try(message: pb.AlertRule) -> Rule:
    """Return the rule of a message that is tried: it is on, and nobody is told."""
    return replace(read_rule(message), enabled=True, channels=())


def rule(stored: Rule, held: Mapping[str, str]) -> pb.AlertRule:
    """Return the message of a rule. `held` says why nothing is sent to channels, by the keys that
    set them."""
    message = _rule(stored)
    if stored.channels:
        message.notify_held_reason = held.get(stored.key_id, "")
    return message


_rule = reads("alert rule")(
    message_writer(
        Rule,
        pb.AlertRule,
        spelled=_SPELLED | {"key_id": "notify_key_id", "triggered_us": "last_triggered_at"},
        made={"notify_held_reason": lambda _rule: ""},
        unshown=["open_entry"],
    )
)


def named(given: pb.AlertRule) -> pb.AlertRule:
    """Return a rule to validate, which has a name at any rate."""
    message = pb.AlertRule(name="-")
    message.MergeFrom(given)
    return message


def state_of(number: int) -> AlertState | None:
    """Return the state that a filter names."""
    return AlertState(number) if number else None


entry_filter = MessageReader(
    pb.ListAlertHistoryRequest, EntryFilter, unread=["page_size", "page_token"]
)
"""Return which entries a request asks for."""


def entry(found: tuple[AlertEntry, Sequence[Delivery]]) -> pb.AlertHistoryEntry:
    """Return the message of an entry with its deliveries."""
    stored, sent = found
    message = _entry(stored)
    message.deliveries.extend(map(delivery, sent))
    return message


_entry = message_writer(
    AlertEntry, pb.AlertHistoryEntry, made={"deliveries": lambda _entry: ()}, unshown=["agent_id"]
)
delivery = reads("delivery")(
    message_writer(
        Delivery,
        pb.AlertDelivery,
        spelled={"kind": "type", "next_us": "next_attempt_at"},
        unshown=["entry_id", "position", "body_json", "created_us", "key_id"],
    )
)
"""Return the message of a delivery."""


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
