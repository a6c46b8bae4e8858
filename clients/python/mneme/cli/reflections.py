"""`mneme reflections`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mneme._generated.choices import OutcomeChoice
from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.fields import Fields, argument, choice, number, option, text, texts
from mneme.cli.options import Agent, BestOf, Etag, Project, Session, Tags, Task, User
from mneme.cli.output import Column
from mneme.cli.resources import Resource, inside
from mneme.cli.values import without_empty

app = App(help="What agents concluded from their attempts.")

_COLUMNS = (
    Column("When", "created_at", style="dim"),
    Column("Outcome", "outcome"),
    Column("Attempt", "attempt_number:d", right=True),
    Column("Task", "task_description", flexible=True),
    Column("Next strategy", "next_strategy", flexible=True),
    Column("Session", "session_id", optional=3, style="dim"),
)
_FOUND_COLUMNS = (
    Column("Score", lambda one: cells.score(one.score), style="cyan"),
    *inside("reflection", _COLUMNS),
)
_THEMES = (
    Column("Count", "count", right=True, style="cyan"),
    Column("What", "text", flexible=True),
)
_FILTER = Fields(
    session_id=Session,
    project=Project,
    agent_id=Agent,
    user_id=User,
    outcomes=choice(OutcomeChoice, "How it ended.", "--outcome", sent=lambda one: [one]),
    tags=Tags,
)
Prompt = Annotated[bool, typer.Option("--prompt", help="Print the text for a prompt.")]

_reflections = Resource(
    app,
    "reflection",
    key=Fields(reflection_id=argument("REFLECTION", "The reflection's id.")),
    columns=_COLUMNS,
    facts={
        "Reflection": "id",
        "Task": "task_description",
        "Outcome": "outcome",
        "Attempt": "attempt_number:d",
        "Worked": lambda it: "\n".join(it.what_worked),
        "Did not work": lambda it: "\n".join(it.what_did_not_work),
        "Next strategy": "next_strategy",
        "Tags": "tags",
        "About": "related_entity_ids",
        "Applied": "applied_reflection_ids",
        "Session": "session_id",
        "Agent": "agent_id",
        "Project": "project",
        "Created": "created_at",
        "Etag": "etag",
    },
)
_reflections.list(
    "iter_reflections", "List reflections, newest first.", Fields(filter=_FILTER), limit=20
)
_reflections.get("get_reflection", "Show one reflection.")
_reflections.change(
    "update",
    "update_reflection",
    'Change what a reflection concludes; "" empties a field.',
    Fields(
        what_worked=texts("What worked; repeatable.", "--worked", sent=without_empty),
        what_did_not_work=texts("What did not work; repeatable.", "--failed", sent=without_empty),
        next_strategy=text("What to do next time.", "--next"),
        tags=texts("Its labels from now on; repeatable.", "--tag", sent=without_empty),
        related_entity_ids=texts(
            "What it is about; repeatable.", "--about", metavar="ID", sent=without_empty
        ),
        etag=Etag,
    ),
    said="updated {reflection_id}",
)
_reflections.change(
    "delete",
    "delete_reflection",
    "Delete a reflection.",
    Fields(etag=Etag),
    said="deleted {reflection_id}",
    confirm="Delete the reflection {reflection_id} for good?",
)


@app.command()
def search(
    cli: Cli,
    *,
    task: Task,
    chosen: Annotated[Any, _FILTER],
    limit: BestOf = 5,
    prompt: Prompt = False,
) -> None:
    """Search reflections that bear on a task."""
    with cli.connect() as client:
        answer = client.search_reflections(task, filter=chosen, limit=limit)
    if cli.out.as_json:
        cli.out.message(answer)
    elif prompt:
        cli.out.line(answer.text.rstrip())
    else:
        cli.out.things(_FOUND_COLUMNS, answer.results)
        if not answer.results:
            cli.out.remark("No reflection bears on that.")


@app.command()
def store(
    cli: Cli,
    *,
    task: Annotated[str, typer.Argument(metavar="TASK", help="What was attempted.")],
    concluded: Annotated[
        Any,
        Fields(
            session_id=option(str, "The session of the attempt.", "--session", metavar="ID"),
            outcome=option(OutcomeChoice, "How it ended.", "--outcome", case_sensitive=False),
            project=text("The project.", metavar="NAME"),
            agent_id=text("The agent.", "--agent", metavar="ID"),
            what_worked=texts("What worked; repeatable.", "--worked"),
            what_did_not_work=texts("What did not work; repeatable.", "--failed"),
            next_strategy=text("What to do next time.", "--next"),
            attempt_number=number(
                "Which attempt it was; counted if left out.", "--attempt", kind=int, min=1
            ),
            tags=texts("A label; repeatable.", "--tag"),
        ),
    ],
) -> None:
    """Store what was concluded from an attempt."""
    with cli.connect() as client:
        reflection = client.create_reflection(task_description=task, **concluded).reflection
    cli.out.done(reflection.id, reflection)


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
            cli.out.things(_THEMES, themes)
