"""`mneme context` and `mneme timeline`: what bears on a topic, and how a project went."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.fields import Fields
from mneme.cli.options import Agent, Project, User, WithoutExperience
from mneme.cli.output import Column
from mneme.cli.times import From, To

if TYPE_CHECKING:
    from mneme.types import (
        ContextEpisode,
        ContextSession,
        ContextSkill,
        FoundReflection,
        TimelineEntry,
    )

NOTHING = "No relevant past context found."
_PREVIEW = 300
_LISTED = ("session", "lesson", "reflection", "episode", "skill")
"""The kinds that have tables of their own."""
_ITEMS = (
    Column("Worth", style="cyan"),
    Column("Date", style="dim"),
    Column("What"),
    Column("Text", flexible=True),
)
_LESSONS = (
    Column("Score", style="cyan"),
    Column("Lesson", style="bold"),
    Column("Content", flexible=True),
)
_REFLECTIONS = (
    Column("Score", style="cyan"),
    Column("Outcome"),
    Column("Task", flexible=True),
    Column("Next strategy", flexible=True),
)
_EPISODES = (
    Column("Score", style="cyan"),
    Column("Outcome"),
    Column("Attempt", flexible=True),
    Column("Critique", flexible=True),
)
_SKILLS = (
    Column("Score", style="cyan"),
    Column("Skill", style="bold"),
    Column("Worked"),
    Column("Description", flexible=True),
)
_TIMELINE = (
    Column("Started", style="dim"),
    Column("Events"),
    Column("Outcome"),
    Column("Session", style="cyan"),
    Column("Builds on", optional=1),
    Column("Summary", flexible=True),
)
_BAR = 10
_PAGE = 200


def register(app: App) -> None:
    """Add the commands to the root."""
    app.command("context")(context)
    app.command("timeline")(timeline)


def context(
    cli: Cli,
    *,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="What it is about, in words.")],
    chosen: Annotated[
        Any,
        Fields(user_id=User, agent_id=Agent, project=Project, start_time=From, end_time=To),
    ],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=50)] = 5,
    without_experience: WithoutExperience = False,
    token_budget: Annotated[
        int, typer.Option("--token-budget", min=1, max=100_000, help="Most tokens of the text.")
    ] = 2_000,
    only_own: Annotated[
        bool, typer.Option("--only-own", help="Leave out what is of no user, agent or project.")
    ] = False,
    prompt: Annotated[
        bool, typer.Option("--prompt", help="Print only the text for an agent's prompt.")
    ] = False,
) -> None:
    """Show what bears on a topic, best first: memories, sessions, lessons, attempts and skills."""
    with cli.connect() as client:
        answer = client.get_context(
            topic,
            **chosen,
            limit=limit,
            without_experience=without_experience,
            token_budget=token_budget,
            only_own=only_own,
        )
    if cli.out.as_json:
        cli.out.message(answer)
        return
    learned = (answer.lessons, answer.reflections, answer.episodes, answer.skills)
    if not (answer.text or answer.sessions or any(learned)):
        searched = cells.plural(answer.total_sessions, "session")
        cli.out.remark(f"{NOTHING} {searched} searched.")
        return
    if prompt:
        cli.out.line(cells.clean(answer.text))
        return
    remembered = [
        [
            cells.score(item.worth),
            cells.when(item.timestamp),
            cells.preview(f"{item.kind} {item.source_id}", 40),
            cells.preview(item.text),
        ]
        for item in answer.items
        if item.kind not in _LISTED
    ]
    cli.out.table(_ITEMS, remembered)
    for session in answer.sessions:
        _show(cli, session)
    lessons = [
        [
            cells.score(found.score),
            cells.preview(found.lesson.title, 60),
            cells.preview(found.lesson.content),
        ]
        for found in answer.lessons
    ]
    cli.out.table(_LESSONS, lessons)
    _reflections(cli, answer.reflections)
    cli.out.table(_EPISODES, [_episode(one) for one in answer.episodes])
    cli.out.table(_SKILLS, [_skill(one) for one in answer.skills])


def timeline(
    cli: Cli,
    *,
    chosen: Annotated[Any, Fields(project=Project, agent_id=Agent, start_time=From, end_time=To)],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, metavar="N")] = 20,
) -> None:
    """Show sessions by time, latest first, with the earlier ones each builds on."""
    with cli.connect() as client:
        walk = client.iter_get_timeline(**chosen, page_size=min(limit, _PAGE))
        entries = list(islice(walk, limit))
    if cli.out.as_json:
        for entry in entries:
            cli.out.message(entry)
        return
    if not entries:
        cli.out.remark("There are no sessions.")
        return
    most = max(entry.session.event_count for entry in entries)
    cli.out.table(_TIMELINE, [_row(entry, most) for entry in entries])


def bar(value: float, most: float, width: int = _BAR) -> str:
    """A number as a bar, the largest `width` cells long, and as such."""
    length = round(width * value / most) if most else 0
    return f"{'▇' * (length or int(value > 0)):<{width}} {value:,.0f}"


def outcome_name(outcome: str | None) -> str:
    """An outcome as people write it; "unknown" where nobody said how a session turned out."""
    return cells.name(outcome) or "unknown"


def _show(cli: Cli, session: ContextSession) -> None:
    about = [
        cells.score(session.relevance_score).rstrip(),
        cells.when(session.ended_at) or cells.when(session.started_at),
        outcome_name(session.outcome),
        cells.preview(session.agent_id, 40),
    ]
    cli.out.line(f"{cells.preview(session.session_id)}  {'  '.join(filter(None, about))}")
    for line in session.summary.split("\n"):
        cli.out.line(f"  {cells.preview(line, _PREVIEW)}")
    for event in session.key_events:
        cli.out.line(f"  - {cells.preview(event.summary, _PREVIEW)}")
    cli.out.line("")


def _reflections(cli: Cli, found: Iterable[FoundReflection]) -> None:
    rows = [
        [
            cells.score(one.score),
            outcome_name(one.reflection.outcome),
            cells.preview(one.reflection.task_description),
            cells.preview(one.reflection.next_strategy),
        ]
        for one in found
    ]
    cli.out.table(_REFLECTIONS, rows)


def _episode(one: ContextEpisode) -> list[str]:
    return [
        cells.score(one.score),
        "success" if one.success else "failure",
        cells.preview(one.task),
        cells.preview(one.critique),
    ]


def _skill(one: ContextSkill) -> list[str]:
    return [
        cells.score(one.score),
        cells.preview(one.name, 60),
        f"{one.success_count} of {one.use_count}",
        cells.preview(one.description),
    ]


def _row(entry: TimelineEntry, most: int) -> list[str]:
    links = ", ".join(
        f"{cells.preview(link.session_id)} {link.similarity:.2f}" for link in entry.related
    )
    return [
        cells.when(entry.session.started_at),
        bar(entry.session.event_count, most),
        outcome_name(entry.summary.outcome) if "summary" in entry else "open",
        cells.preview(entry.session.id),
        links,
        cells.preview(entry.summary.summary),
    ]
