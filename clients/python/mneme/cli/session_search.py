"""`mneme sessions search`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mneme.cli import cells
from mneme.cli.app import Cli
from mneme.cli.context import outcome_name
from mneme.cli.options import Agent, Project, User
from mneme.cli.output import Column
from mneme.cli.times import From, To

if TYPE_CHECKING:
    from mneme.types import FoundSession

_COLUMNS = (
    Column("Score", style="cyan"),
    Column("When", style="dim"),
    Column("Outcome"),
    Column("Session"),
    Column("Project", flexible=True, optional=2),
    Column("Summary", flexible=True),
)


def search(
    cli: Cli,
    *,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to look for, in words.")],
    user: User = None,
    agent: Agent = None,
    project: Project = None,
    start: From = None,
    end: To = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100)] = 10,
    min_score: Annotated[
        float | None, typer.Option(min=0, max=1, help="Leave out results that score less.")
    ] = None,
) -> None:
    """Search sessions by their summaries, handovers and events, best first."""
    with cli.connect() as client:
        answer = client.search_sessions(
            query,
            user_id=user,
            agent_id=agent,
            project=project,
            start_time=start,
            end_time=end,
            limit=limit,
            min_score=min_score,
        )
    if cli.out.as_json:
        cli.out.message(answer)
        return
    cli.out.table(_COLUMNS, [_row(found) for found in answer.results])
    if not answer.results:
        searched = cells.plural(answer.searched_count, "session")
        cli.out.remark(f"Nothing found; {searched} searched.")


def _row(found: FoundSession) -> list[str]:
    session = found.session
    return [
        cells.score(found.score),
        cells.when(session.ended_at) or cells.when(session.started_at),
        outcome_name(found.summary.outcome),
        cells.preview(session.id),
        cells.preview(session.project),
        cells.preview(found.summary.summary),
    ]
