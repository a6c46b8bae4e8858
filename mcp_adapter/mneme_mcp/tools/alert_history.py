"""`alert_history`: which rules triggered, and when that was resolved."""

from __future__ import annotations

from typing import Annotated, Literal

from mneme import to_dict
from pydantic import Field

from mneme_mcp.arguments import EndTime, SnakeArguments, Time, Word
from mneme_mcp.outputs import Name, SnakeOutput
from mneme_mcp.text import STRUCTURED_HAS_ALL, Item, listing
from mneme_mcp.tool import Call, Reply, ToolSpec

_TEXT_TOKENS = 800


class HistoryArguments(SnakeArguments):
    """Which alerts."""

    rule_id: Annotated[str, Field(description="Only of this rule.")] = ""
    state: Annotated[
        Literal["", "ok", "triggered"],
        Word,
        Field(description="triggered: only alerts that still are; ok: only resolved ones."),
    ] = ""
    from_: Annotated[Time | None, Field(alias="from", description="At or after.")] = None
    to: Annotated[EndTime | None, Field(description="To; a day is included.")] = None
    limit: Annotated[int, Field(ge=1, le=200, description="Maximum alerts.")] = 20


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
    answer = to_dict(
        await call.client.list_alert_history(
            rule_id=given.rule_id,
            state=given.state or None,
            start_time=given.from_,
            end_time=given.to,
            page_size=given.limit,
        )
    )
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
