"""Forgetting of alerts."""

from __future__ import annotations

from mneme_server.engine.store.forgetting import Forgets, Rows, SqlForgetter
from mneme_server.features.alerts.store.tables import (
    alert_deliveries,
    alert_history,
    alert_rules,
    alert_secrets,
)


class AlertsForgetter(SqlForgetter):
    """Forgets the rules that watch an agent, and what they triggered."""

    rows = (
        Rows("alert_rule", alert_rules.c.id, agent=alert_rules.c.agent_id),
        Rows("alert", alert_history.c.id, agent=alert_history.c.agent_id),
    )


FORGETS = Forgets(
    AlertsForgetter,
    {
        alert_rules: "deleted with the agent that they watch, and when they are named",
        alert_history: "deleted with the agent that was watched, and when they are named",
        alert_deliveries: "deleted with what they tell of",
        alert_secrets: "stay: they are of nobody",
    },
)
