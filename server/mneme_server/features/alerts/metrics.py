"""Counts of alerts over all tenants, for metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class AlertCounts:
    """What the workers last saw of each tenant: no tenant is opened to be counted.

    So it knows of those that were open since the server started. Rules that are triggered are
    looked at when they are due, and messages when they are to be sent: both open their tenant.
    """

    _rules: dict[str, tuple[int, int]] = field(default_factory=dict)
    _waiting: dict[str, int] = field(default_factory=dict)
    _held: int = 0

    def evaluated(self, tenant_id: str, rules: int, triggered: int) -> None:
        """Note how many rules of a tenant are watched, and how many of them are triggered."""
        self._rules[tenant_id] = (rules, triggered)

    def sending(self, tenant_id: str, waiting: int) -> None:
        """Note how many messages of a tenant are still to be sent."""
        self._waiting[tenant_id] = waiting

    def holds(self, messages: int) -> None:
        """Note that messages were held back, for good."""
        self._held += messages

    def gone(self, tenant_id: str) -> None:
        """Forget a tenant."""
        self._rules.pop(tenant_id, None)
        self._waiting.pop(tenant_id, None)

    def gauges(self) -> Iterator[tuple[str, str, Callable[[], float]]]:
        """Yield the gauges: name, meaning, value."""
        seen = "of tenants that were open since the server started."
        yield (
            "mneme_alert_rules",
            f"Alert rules that are enabled, {seen}",
            lambda: sum(rules for rules, _ in list(self._rules.values())),
        )
        yield (
            "mneme_alerts_triggered",
            f"Alert rules that are triggered, {seen}",
            lambda: sum(triggered for _, triggered in list(self._rules.values())),
        )
        yield (
            "mneme_alert_deliveries_waiting",
            f"Messages about alerts that are still to be sent, {seen}",
            lambda: sum(list(self._waiting.values())),
        )
        yield (
            "mneme_alert_deliveries_held",
            "Messages about alerts that were held back since the server started: the key that set"
            " their rules' channels was revoked, and the rules say what to do.",
            lambda: self._held,
        )
