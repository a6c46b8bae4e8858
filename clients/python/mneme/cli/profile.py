"""`mneme profile`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.fields import Fields
from mneme.cli.options import Agent, Project
from mneme.cli.output import Column

if TYPE_CHECKING:
    from mneme.types import ProfileItem

_COLUMNS = (
    Column("Why"),
    Column("Last said", style="dim"),
    Column("Memory", style="cyan"),
    Column("Text", flexible=True),
)


def register(app: App) -> None:
    """Add the command to the root."""
    app.command("profile")(profile)


def profile(
    cli: Cli,
    *,
    user_id: Annotated[str, typer.Argument(metavar="USER", help="The user's id.")],
    chosen: Annotated[Any, Fields(agent_id=Agent, project=Project)],
    token_budget: Annotated[
        int, typer.Option("--token-budget", min=1, max=100_000, help="Most tokens of the text.")
    ] = 1_000,
    prompt: Annotated[
        bool, typer.Option("--prompt", help="Print only the text for an agent's prompt.")
    ] = False,
) -> None:
    """Show what is known of a user: what is pinned, stable, recent."""
    with cli.connect() as client:
        answer = client.get_profile(user_id, **chosen, token_budget=token_budget)
    if cli.out.as_json:
        cli.out.message(answer)
        return
    if prompt:
        cli.out.line(cells.clean(answer.text))
        return
    cli.out.table(_COLUMNS, [_row(item) for item in answer.items])
    if answer.left_out_count:
        cli.out.remark(f"{cells.count(answer.left_out_count)} more; raise --token-budget.")
    elif not answer.items:
        cli.out.remark("Nothing is known of this user.")


def _row(item: ProfileItem) -> list[str]:
    days = f", said on {item.confirmed_count + 1} days" if item.confirmed_count else ""
    return [
        f"{cells.name(item.reason)}{days}",
        cells.when(item.last_said),
        cells.preview(item.memory_id, 40),
        cells.preview(item.text),
    ]
