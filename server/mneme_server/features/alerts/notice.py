"""Notices: what happened, in a sentence, and as the messages to channels have it."""

from __future__ import annotations

from dataclasses import dataclass

from mneme_server.common.canonical import JsonObject, canonical_json
from mneme_server.common.clock import rfc3339
from mneme_server.common.humanize import lasting, span
from mneme_server.features.alerts.model import (
    RESOLVED,
    TRIGGERED,
    AlertCondition,
    AlertEntry,
    Rule,
    WatchedMeasure,
)

_TRENDS = {
    WatchedMeasure.SUCCESS_RATE: "The success rate falls",
    WatchedMeasure.LATENCY: "The median latency rises",
    WatchedMeasure.LATENCY_P95: "The latency's 95th percentile rises",
    WatchedMeasure.ERROR_RATE: "The number of errors a session rises",
}


def figure(condition: AlertCondition, value: float) -> str:
    """Return a value of what a condition watches, with its unit."""
    match condition:
        case AlertCondition.ERROR_RATE_EXCEEDS | AlertCondition.TREND_EXCEEDS:
            return f"{100 * value:.3g} %"
        case AlertCondition.COST_EXCEEDS:
            return f"{value:.4g} USD" if value < 1000 else f"{value:,.0f} USD"
        case AlertCondition.LATENCY_EXCEEDS:
            return f"{value:,.4g} ms" if value < 10_000 else f"{value:,.0f} ms"
        case AlertCondition.NO_EVENTS_FOR:
            return lasting(round(60 * value))
        case _:
            return f"{value:,.0f}"


_SENTENCES = {
    AlertCondition.ERROR_RATE_EXCEEDS: "{now} of the calls {window} failed, more than {most}.",
    AlertCondition.COST_EXCEEDS: "Events {window} cost {now}, more than {most}.",
    AlertCondition.LATENCY_EXCEEDS: "Events {window} took {now} on average, more than {most}.",
    AlertCondition.EVENT_COUNT_EXCEEDS: "Events {window}: {now}, more than {most}.",
    AlertCondition.NO_EVENTS_FOR: "Nothing was recorded for {now}{where}.",
    AlertCondition.SESSION_FAILURES_EXCEED: (
        "Sessions that ended in failure {window}: {now}, more than {most}."
    ),
    AlertCondition.ERROR_PATTERN_EXCEEDS: (
        "Errors {window} that match “{pattern}”: {now}, more than {most}."
    ),
    AlertCondition.QUEUE_DEPTH_EXCEEDS: "Texts that wait to be embedded: {now}, more than {most}.",
    AlertCondition.TREND_EXCEEDS: "{trend}: by {now} {window}, more than {most}.",
}


def happened(rule: Rule, value: float) -> str:
    """Return what a rule triggered by, in a sentence."""
    where = _where(rule)
    return _SENTENCES[rule.condition].format(
        now=figure(rule.condition, value),
        most=figure(rule.condition, rule.threshold),
        window=f"in the last {span(60 * rule.window_minutes)}{where}",
        where=where,
        pattern=rule.pattern,
        trend=_TRENDS.get(rule.trend, ""),
    )


def _where(rule: Rule) -> str:
    scope = rule.scope
    named = [
        f"agent {scope.agent_id}" if scope.agent_id else "",
        f"project {scope.project}" if scope.project else "",
        f"tag {', '.join(scope.tags)}" if scope.tags else "",
    ]
    said = ", ".join(one for one in named if one)
    return f" ({said})" if said else ""


@dataclass(frozen=True, slots=True)
class AlertNotice:
    """What a message tells: of which tenant, which rule, and what became of it."""

    tenant_id: str
    rule: Rule
    entry: AlertEntry
    kind: str
    at_us: int

    @property
    def body(self) -> str:
        """The message to a webhook: JSON."""
        data: JsonObject = {
            "tenantId": self.tenant_id,
            "historyId": self.entry.id,
            "alertRuleId": self.entry.rule_id,
            "alertName": self.entry.rule_name,
            "condition": self.entry.condition.name.lower(),
            "currentValue": self.entry.current_value,
            "resolvedValue": self.entry.resolved_value,
            "threshold": self.entry.threshold,
            "windowMinutes": self.rule.window_minutes,
            "scope": {
                "agentId": self.rule.scope.agent_id,
                "project": self.rule.scope.project,
                "tags": list(self.rule.scope.tags),
            },
            "message": self.entry.message,
            "triggeredAt": rfc3339(self.entry.triggered_us),
            "resolvedAt": (
                None if self.entry.resolved_us is None else rfc3339(self.entry.resolved_us)
            ),
        }
        return canonical_json({"type": self.kind, "timestamp": rfc3339(self.at_us), "data": data})


def title(kind: str, name: str) -> str:
    """Return the subject of an e-mail: one line, in which nothing is read as an encoded word, which
    may hold others."""
    word = {TRIGGERED: "Triggered", RESOLVED: "Resolved"}.get(kind, "Test")
    return " ".join(f"[Mneme] {word}: {name}".split()).replace("=?", "= ?")


def letter(body: JsonObject) -> str:
    """Return the text of an e-mail that says what a webhook's message says."""
    data = body["data"]
    if not isinstance(data, dict):
        raise TypeError("a message has its data as an object")
    lines = [str(data["message"]), ""]
    facts = (
        ("Rule", data["alertName"]),
        ("Tenant", data["tenantId"]),
        ("Triggered at", data["triggeredAt"]),
        ("Resolved at", data["resolvedAt"]),
    )
    lines += [f"{name}: {value}" for name, value in facts if value]
    return "\n".join(lines) + "\n"
