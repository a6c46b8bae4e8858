"""`alert_history`: which rules triggered, and when that was resolved."""

from __future__ import annotations

from mneme import to_dict

from mneme_mcp.arguments import SnakeArguments
from mneme_mcp.offers import Offer, offers
from mneme_mcp.outputs import Name, SnakeOutput
from mneme_mcp.text import STRUCTURED_HAS_ALL, Item, listing
from mneme_mcp.tool import Call, Reply, ToolSpec

_TEXT_TOKENS = 800


@offers(
    "list_alert_history",
    rule_id="Only of this rule.",
    state="triggered: only alerts that still are; ok: only resolved ones.",
    from_="At or after.",
    to=...,
    limit=Offer("Maximum alerts.", default=20, most=200),
)
class HistoryArguments(SnakeArguments):
    """Which alerts."""


class AlertOutput(SnakeOutput):
    """One time that a rule triggered."""

    alert_id: str
    rule_id: str
    rule_name: str
    message: str
    triggered_at: str
    resolved_at: str = ""
    resolution: Name = ""
    current_value: float = 0
    threshold: float = 0

    api_names = {"id": "alert_id"}


class HistoryOutput(SnakeOutput):
    """Alerts, the latest first."""

    alerts: list[AlertOutput]
    total: int = 0
    omitted: int = 0


async def history(call: Call, given: HistoryArguments) -> Reply:
    """Answer `alert_history`."""
    answer = to_dict(await call.client.list_alert_history(**given.request()))
    alerts = [AlertOutput.model_validate(one) for one in answer["entries"]]
    found = HistoryOutput(alerts=alerts, total=answer["total_size"])
    if not alerts:
        return Reply("No rule triggered.", found)
    items = [Item(f"- {_when(one)} {one.rule_name}:", one.message) for one in alerts]
    shown = listing("", items, _TEXT_TOKENS, more=STRUCTURED_HAS_ALL)
    found.omitted = shown.omitted
    return Reply(shown.text, found, _TEXT_TOKENS)


def _when(alert: AlertOutput) -> str:
    until = f", resolved {alert.resolved_at[:19]}" if alert.resolved_at else ", still triggered"
    return f"{alert.triggered_at[:19]}{until}"


TOOLS = (
    ToolSpec(
        name="alert_history",
        title="List alerts",
        description=(
            "Lists which rules triggered, when and why, and when that was resolved.\n"
            "Use it to see what went wrong lately.\n"
            "Returns alerts, the latest first.\n"
            'Example: {"from": "2026-11-01", "limit": 5}.'
        ),
        arguments=HistoryArguments,
        output=HistoryOutput,
        handler=history,
        read_only=True,
    ),
)
