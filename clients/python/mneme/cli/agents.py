"""`mneme agents`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.options import Limit, listed, page_size
from mneme.cli.output import Column

if TYPE_CHECKING:
    from mneme.types import Agent

_COLUMNS = (
    Column("Agent", style="cyan"),
    Column("Name", flexible=True),
    Column("Last seen", optional=1),
    Column("Sessions", right=True),
    Column("Events", right=True),
    Column("Tool calls", right=True, optional=2),
    Column("Errors", right=True),
    Column("Cost USD", right=True, optional=3),
)


def register(app: App) -> None:
    """Add the command to the root."""
    app.command("agents")(agents)


def agents(cli: Cli, limit: Limit = 50) -> None:
    """List the agents seen so far."""
    with cli.connect() as client:
        walk = client.iter_agents(page_size=page_size(limit))
        listed(cli.out, walk, limit, _COLUMNS, _row)


def _row(agent: Agent) -> list[str]:
    return [
        cells.preview(agent.id),
        cells.preview(agent.name),
        cells.when(agent.last_seen_at),
        cells.count(agent.session_count),
        cells.count(agent.event_count),
        cells.count(agent.tool_call_count),
        cells.count(agent.error_count),
        f"{agent.total_cost_usd:.4f}",
    ]
