"""`mneme sessions search`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mneme.cli import cells
from mneme.cli.app import Cli
from mneme.cli.context import outcome_name
from mneme.cli.fields import Fields
from mneme.cli.options import Agent, BestOf, Project, Query, User
from mneme.cli.output import Column
from mneme.cli.times import From, To

if TYPE_CHECKING:
    from mneme.types import FoundSession


def _when(found: FoundSession) -> str:
    return cells.when(found.session.ended_at) or cells.when(found.session.started_at)


_COLUMNS = (
    Column("Score", lambda found: cells.score(found.score), style="cyan"),
    Column("When", _when, style="dim"),
    Column("Outcome", lambda found: outcome_name(found.summary.outcome)),
    Column("Session", "session.id"),
    Column("Project", "session.project", flexible=True, optional=2),
    Column("Summary", "summary.summary", flexible=True),
)
_FILTER = Fields(user_id=User, agent_id=Agent, project=Project, start_time=From, end_time=To)


def search(
    cli: Cli,
    *,
    query: Query,
    chosen: Annotated[Any, _FILTER],
    limit: BestOf = 10,
    min_score: Annotated[
        float | None, typer.Option(min=0, max=1, help="Leave out results that score less.")
    ] = None,
) -> None:
    """Search sessions by their summaries, handovers and events, best first."""
    with cli.connect() as client:
        answer = client.search_sessions(query, **chosen, limit=limit, min_score=min_score)
    if cli.out.as_json:
        cli.out.message(answer)
        return
    cli.out.things(_COLUMNS, answer.results)
    if not answer.results:
        searched = cells.plural(answer.searched_count, "session")
        cli.out.remark(f"Nothing found; {searched} searched.")
