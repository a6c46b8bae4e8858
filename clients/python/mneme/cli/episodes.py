"""`mneme episodes`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from mneme._generated.choices import EpisodeConflictChoice
from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.exits import InputError
from mneme.cli.files import written
from mneme.cli.options import Agent, Limit, Project, Session, Tags, User, Yes, listed, page_size
from mneme.cli.output import Column
from mneme.cli.values import json_object

if TYPE_CHECKING:
    from mneme.types import Episode, EpisodeFilterFields

app = App(help="What was attempted, and what came of it.")

EpisodeId = Annotated[str, typer.Argument(metavar="EPISODE", help="The episode's id.")]
Failures = Annotated[bool, typer.Option("--failures", help="Only those that failed.")]
Successes = Annotated[bool, typer.Option("--successes", help="Only those that succeeded.")]
MinReward = Annotated[float | None, typer.Option(metavar="N", help="With at least this reward.")]

_COLUMNS = (
    Column("Episode", style="cyan"),
    Column("When", style="dim"),
    Column("Outcome"),
    Column("Reward"),
    Column("Project", optional=2),
    Column("Tags", optional=1),
    Column("Task", below=True, lines=3),
)
_FOUND_COLUMNS = (Column("Score", style="cyan"), *_COLUMNS)


@app.command("list")
def list_(
    cli: Cli,
    *,
    session: Session = None,
    agent: Agent = None,
    user: User = None,
    project: Project = None,
    tag: Tags = None,
    failures: Failures = False,
    successes: Successes = False,
    min_reward: MinReward = None,
    limit: Limit = 50,
) -> None:
    """List episodes, the latest first."""
    chosen = _filter(session, agent, user, project, tag, failures, successes, min_reward)
    with cli.connect() as client:
        walk = client.iter_episodes(filter=chosen, page_size=page_size(limit))
        listed(cli.out, walk, limit, _COLUMNS, _row)


@app.command()
def get(cli: Cli, episode_id: EpisodeId) -> None:
    """Show one episode."""
    with cli.connect() as client:
        episode = client.get_episode(episode_id).episode
    if cli.out.as_json:
        cli.out.message(episode)
    else:
        cli.out.facts(_facts(episode))


@app.command()
def store(
    cli: Cli,
    *,
    task: Annotated[
        str | None, typer.Argument(metavar="[TASK]", help="What was to be done.")
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Its session: what is left out is taken from its record."),
    ] = None,
    success: Annotated[
        bool | None, typer.Option("--success/--failure", help="How it ended.")
    ] = None,
    reward: Annotated[float | None, typer.Option(metavar="N", help="How good it was.")] = None,
    input_: Annotated[str | None, typer.Option("--input", help="What the agent was given.")] = None,
    output: Annotated[str | None, typer.Option(help="What it produced.")] = None,
    critique: Annotated[str | None, typer.Option(help="What it thinks of it.")] = None,
    agent: Annotated[str | None, typer.Option(metavar="ID", help="The agent.")] = None,
    user: Annotated[str | None, typer.Option(metavar="ID", help="The user.")] = None,
    project: Annotated[str | None, typer.Option(metavar="NAME", help="The project.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A label; repeatable.")] = None,
    memory: Annotated[
        list[str] | None,
        typer.Option("--memory", metavar="ID", help="A memory that it rests on; repeatable."),
    ] = None,
    metadata: Annotated[
        Any, typer.Option(parser=json_object, metavar="JSON", help="Free JSON.")
    ] = None,
) -> None:
    """Store an attempt, and print its id."""
    if not task and not session:
        raise InputError("say the task, or the session that it was done in (--session)")
    with cli.connect() as client:
        answer = client.store_episode(
            task=task, session_id=session, success=success, reward=reward, input=input_,
            output=output, critique=critique, agent_id=agent, user_id=user, project=project,
            tags=tag, memory_ids=memory, metadata=metadata,
        )  # fmt: skip
    cli.out.done(answer.episode.id, answer.episode)


@app.command()
def search(
    cli: Cli,
    *,
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task at hand, in words.")],
    session: Session = None,
    agent: Agent = None,
    user: User = None,
    project: Project = None,
    tag: Tags = None,
    failures: Failures = False,
    successes: Successes = False,
    min_reward: MinReward = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100)] = 5,
) -> None:
    """Find the episodes that bear on a task, and what their critiques say."""
    chosen = _filter(session, agent, user, project, tag, failures, successes, min_reward)
    with cli.connect() as client:
        answer = client.retrieve_episodes(task, filter=chosen, limit=limit)
    if cli.out.as_json:
        cli.out.message(answer)
        return
    rows = [[f"{one.score:.2f}", *_row(one.episode)] for one in answer.results]
    cli.out.table(_FOUND_COLUMNS, rows)
    if not rows:
        cli.out.remark(f"None of {cells.plural(answer.searched_count, 'episode')} fits.")
    elif answer.critiques.text:
        cli.out.remark(cells.clean(answer.critiques.text))


@app.command()
def delete(cli: Cli, episode_id: EpisodeId, *, yes: Yes = False) -> None:
    """Delete an episode for good."""
    if not yes:
        typer.confirm(f"Delete the episode {episode_id} for good?", abort=True, err=True)
    with cli.connect() as client:
        answer = client.delete_episode(episode_id)
    cli.out.done(f"deleted {episode_id}", answer.episode)


@app.command("export")
def export(
    cli: Cli,
    *,
    file: Annotated[
        Path | None, typer.Argument(help="Output file; default standard output.")
    ] = None,
    session: Session = None,
    agent: Agent = None,
    user: User = None,
    project: Project = None,
    tag: Tags = None,
) -> None:
    """Write episodes as JSON Lines, which `mneme episodes import` reads."""
    from mneme.plain import to_json

    chosen = _filter(session, agent, user, project, tag, False, False, None)
    count = 0
    with cli.connect() as client, written(file) as target:
        for answer in client.export_episodes(filter=chosen):
            target.write(to_json(answer.episode) + "\n")
            count += 1
    if file:
        cli.out.remark(f"{cells.plural(count, 'episode')} written to {file}")


@app.command("import")
def import_(
    cli: Cli,
    *,
    file: Annotated[Path, typer.Argument(help="JSON Lines or a JSON list of episodes.")],
    on_conflict: Annotated[
        EpisodeConflictChoice | None,
        typer.Option(
            case_sensitive=False, help="What to do if an id is taken by different content."
        ),
    ] = None,
) -> None:
    """Import episodes as `mneme episodes export` writes them."""
    from mneme.importing.experience import import_episodes
    from mneme.plain import to_json

    try:
        with cli.connect(retries=4) as client:
            totals = import_episodes(client, file, on_conflict=on_conflict)
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from error
    if cli.out.as_json:
        cli.out.line(to_json(totals))
        return
    cli.out.line(
        f"{cells.plural(totals.created_count, 'episode')} created, "
        f"{cells.count(totals.replaced_count)} replaced, "
        f"{cells.count(totals.unchanged_count)} unchanged, "
        f"{cells.count(totals.skipped_count)} skipped"
    )


def _filter(  # noqa: PLR0917 (the options that all of these commands have)
    session: str | None,
    agent: str | None,
    user: str | None,
    project: str | None,
    tag: list[str] | None,
    failures: bool,
    successes: bool,
    min_reward: float | None,
) -> EpisodeFilterFields:
    if failures and successes:
        raise InputError("--failures and --successes together leave nothing")
    chosen: dict[str, Any] = {
        "session_id": session,
        "agent_id": agent,
        "user_id": user,
        "project": project,
        "tags": tag,
        "only_failures": failures or None,
        "only_successes": successes or None,
        "min_reward": min_reward,
    }
    return cast("EpisodeFilterFields", chosen)


def _row(episode: Episode) -> list[str]:
    return [
        cells.preview(episode.id),
        cells.when(episode.occurred_at),
        "success" if episode.success else "failure",
        f"{episode.reward:g}",
        cells.preview(episode.project),
        cells.preview(", ".join(episode.tags)),
        cells.preview(episode.task),
    ]


def _facts(episode: Episode) -> list[tuple[str, str]]:
    return [
        ("Episode", cells.preview(episode.id)),
        ("Task", cells.clean(episode.task)),
        ("Outcome", "success" if episode.success else "failure"),
        ("Reward", f"{episode.reward:g}"),
        ("Critique", cells.clean(episode.critique)),
        ("Input", cells.clean(episode.input)),
        ("Output", cells.clean(episode.output)),
        ("Tools", cells.preview(", ".join(episode.tools))),
        ("Session", cells.preview(episode.session_id)),
        ("Agent", cells.preview(episode.agent_id)),
        ("User", cells.preview(episode.user_id)),
        ("Project", cells.preview(episode.project)),
        ("Tags", cells.preview(", ".join(episode.tags))),
        ("Memories", cells.preview(" ".join(episode.memory_ids))),
        ("Metadata", cells.preview(cells.json_text(episode.metadata))),
        ("When", cells.when(episode.occurred_at)),
    ]
