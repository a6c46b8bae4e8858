"""`mneme agents`."""

from __future__ import annotations

from mneme.cli.app import App
from mneme.cli.output import Column
from mneme.cli.resources import Resource

_COLUMNS = (
    Column("Agent", "id", style="cyan"),
    Column("Name", "name", flexible=True),
    Column("Last seen", "last_seen_at", optional=1),
    Column("Sessions", "session_count", right=True),
    Column("Events", "event_count", right=True),
    Column("Tool calls", "tool_call_count", right=True, optional=2),
    Column("Errors", "error_count", right=True),
    Column("Cost USD", "total_cost_usd:.4f", right=True, optional=3),
)


def register(app: App) -> None:
    """Add the command to the root."""
    agents = Resource(app, columns=_COLUMNS)
    agents.list("iter_agents", "List the agents seen so far.", name="agents")
