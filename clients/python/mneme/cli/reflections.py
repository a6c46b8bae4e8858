"""`mneme reflections`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from mneme._generated.choices import OutcomeChoice
from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.options import Agent, Limit, Project, Session, Tags, listed, page_size
from mneme.cli.output import Column

if TYPE_CHECKING:
    from mneme.types import Reflection, ReflectionFilterFields, Theme

app = App(help="What agents concluded from their attempts.")

_COLUMNS = (
    Column("When", style="dim"),
    Column("Outcome"),
    Column("Attempt", right=True),
    Column("Task", flexible=True),
    Column("Next strategy", flexible=True),
    Column("Session", optional=3, style="dim"),
)
_THEMES = (Column("Count", right=True, style="cyan"), Column("What", flexible=True))

Outcomes = Annotated[
    OutcomeChoice | None, typer.Option("--outcome", case_sensitive=False, help="How it ended.")
]
Prompt = Annotated[bool, typer.Option("--prompt", help="Print the text for a prompt.")]


@app.command("list")
def list_(
    cli: Cli,
    *,
    session: Session = None,
    project: Project = None,
    agent: Agent = None,
    outcome: Outcomes = None,
    tag: Tags = None,
    limit: Limit = 20,
) -> None:
    """List reflections, newest first."""
    with cli.connect() as client:
        walk = client.iter_reflections(
            filter=_filter(session, project, agent, outcome, tag), page_size=page_size(limit)
        )
        listed(cli.out, walk, limit, _COLUMNS, _row)


@app.command()
def search(
    cli: Cli,
    *,
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task at hand, in words.")],
    session: Session = None,
    project: Project = None,
    agent: Agent = None,
    outcome: Outcomes = None,
    tag: Tags = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100)] = 5,
    prompt: Prompt = False,
) -> None:
    """Search reflections that bear on a task."""
    with cli.connect() as client:
        answer = client.search_reflections(
            task, filter=_filter(session, project, agent, outcome, tag), limit=limit
        )
    if cli.out.as_json:
        cli.out.message(answer)
    elif prompt:
        cli.out.line(answer.prompt.rstrip())
    else:
        rows = [(cells.score(f.score), *_row(f.reflection)) for f in answer.results]
        cli.out.table((Column("Score", style="cyan"), *_COLUMNS), rows)
        if not rows:
            cli.out.remark("No reflection bears on that.")


@app.command()
def store(
    cli: Cli,
    *,
    task: Annotated[str, typer.Argument(metavar="TASK", help="What was attempted.")],
    session: Annotated[str, typer.Option(metavar="ID", help="The session of the attempt.")],
    outcome: Annotated[
        OutcomeChoice, typer.Option("--outcome", case_sensitive=False, help="How it ended.")
    ],
    project: Annotated[str | None, typer.Option(metavar="NAME", help="The project.")] = None,
    agent: Annotated[str | None, typer.Option(metavar="ID", help="The agent.")] = None,
    worked: Annotated[list[str] | None, typer.Option(help="What worked; repeatable.")] = None,
    failed: Annotated[list[str] | None, typer.Option(help="What did not work; repeatable.")] = None,
    next_: Annotated[str | None, typer.Option("--next", help="What to do next time.")] = None,
    attempt: Annotated[
        int | None, typer.Option(min=1, help="Which attempt it was; counted if left out.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A label; repeatable.")] = None,
) -> None:
    """Store what was concluded from an attempt."""
    with cli.connect() as client:
        answer = client.store_reflection(
            session,
            task,
            project=project,
            agent_id=agent,
            attempt_number=attempt,
            outcome=outcome,
            what_worked=worked,
            what_did_not_work=failed,
            next_strategy=next_,
            tags=tag,
        )
    cli.out.done(answer.reflection.id, answer.reflection)


@app.command()
def summary(
    cli: Cli,
    *,
    project: Project = None,
    session: Session = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=50)] = 5,
) -> None:
    """Show how often attempts succeed, what fails again and again, and what works."""
    with cli.connect() as client:
        answer = client.summarize_reflections(project=project, session_id=session, limit=limit)
    if cli.out.as_json:
        cli.out.message(answer)
        return
    metrics = answer.metrics
    cli.out.facts(
        [
            ("reflections", cells.count(answer.total_reflections)),
            ("success", cells.score(answer.success_rate)),
            ("searches", cells.count(metrics.search_count)),
            ("hit rate", f"{metrics.hit_rate:.0%}" if metrics.hit_rate is not None else ""),
            (
                "improvement",
                f"{metrics.outcome_improvement_rate:+.0%}"
                if metrics.outcome_improvement_rate is not None
                else "",
            ),
            ("reused", cells.plural(metrics.cross_session_reuse, "attempt")),
        ]
    )
    for title, themes in (
        ("Common failures", answer.common_failures),
        ("Effective strategies", answer.effective_strategies),
    ):
        if themes:
            cli.out.line(f"\n{title}")
            cli.out.table(_THEMES, [_theme(theme) for theme in themes])


def _filter(
    session: str | None, project: str | None, agent: str | None, outcome: str | None,
    tags: list[str] | None,
) -> ReflectionFilterFields:  # fmt: skip
    given: dict[str, Any] = {
        "session_id": session,
        "project": project,
        "agent_id": agent,
        "tags": tags,
    }
    if outcome:
        given["outcomes"] = [outcome]
    chosen = {name: value for name, value in given.items() if value is not None}
    return cast("ReflectionFilterFields", chosen)


def _row(reflection: Reflection) -> tuple[str, ...]:

    return (
        cells.when(reflection.created_at),
        cells.name(reflection.outcome),
        str(reflection.attempt_number),
        cells.preview(reflection.task_description),
        cells.preview(reflection.next_strategy),
        reflection.session_id,
    )


def _theme(theme: Theme) -> tuple[str, str]:
    return cells.count(theme.count), cells.preview(theme.text)
