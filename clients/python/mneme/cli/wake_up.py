"""`mneme wake-up`: pick up where the last session left off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.fields import Fields
from mneme.cli.options import Agent, Project, User, WithoutExperience
from mneme.cli.output import Column

if TYPE_CHECKING:
    from mneme.types import RelatedSession, Suggestion, WakeUpResponse, WorkPattern

_RELATED = (
    Column("Score", style="cyan"),
    Column("Similar", right=True),
    Column("When", style="dim"),
    Column("Session"),
    Column("Summary", flexible=True),
)
_STATEMENTS = (
    Column("Kind", style="cyan"),
    Column("Statement", flexible=True),
    Column("Evidence", flexible=True, style="dim"),
)
_EVIDENCE = 3


def register(app: App) -> None:
    """Add the command to the root."""
    app.command("wake-up")(wake_up)


def wake_up(
    cli: Cli,
    *,
    whose: Annotated[Any, Fields(project=Project, agent_id=Agent, user_id=User)],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=50)] = 5,
    min_similarity: Annotated[
        float | None,
        typer.Option(min=-1, max=1, help="Leave out less similar sessions; default 0.35."),
    ] = None,
    without_experience: WithoutExperience = False,
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Show scores, and the evidence for each statement.")
    ] = False,
) -> None:
    """Show what the last session left, what bears on it, and what to do next."""
    with cli.connect() as client:
        answer = client.wake_up(
            **whose,
            limit=limit,
            min_similarity=min_similarity,
            without_experience=without_experience,
        )
    if cli.out.as_json:
        cli.out.message(answer)
        return
    cli.out.line(cells.clean(answer.text))
    if evidence:
        _evidence(cli, answer)


def _evidence(cli: Cli, answer: WakeUpResponse) -> None:
    if answer.related:
        cli.out.line("")
        cli.out.table(_RELATED, [_related(one) for one in answer.related])
    statements: list[WorkPattern | Suggestion] = [*answer.patterns, *answer.suggestions]
    if statements:
        cli.out.line("")
        cli.out.table(_STATEMENTS, [_statement(one) for one in statements])
    cli.out.remark(f"{cells.plural(answer.sessions_considered, 'session')} compared.")


def _related(one: RelatedSession) -> list[str]:
    return [
        cells.score(one.score),
        f"{one.similarity:.2f}",
        cells.when(one.created_at),
        cells.preview(one.session_id),
        cells.preview(one.summary),
    ]


def _statement(one: WorkPattern | Suggestion) -> list[str]:
    ids = [*one.session_ids, *one.event_ids]
    shown = ", ".join(ids[:_EVIDENCE])
    more = f" and {len(ids) - _EVIDENCE} more" if len(ids) > _EVIDENCE else ""
    return [one.type, cells.preview(one.description), cells.preview(shown + more)]
