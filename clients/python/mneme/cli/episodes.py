"""`mneme episodes`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mneme._generated.choices import EpisodeConflictChoice
from mneme.cli import cells, files
from mneme.cli.app import App, Cli
from mneme.cli.exits import InputError
from mneme.cli.fields import Fields, argument, flag, number, option, text, texts
from mneme.cli.files import OutputFile
from mneme.cli.options import Agent, BestOf, Etag, Project, Session, Tags, Task, User, free_json
from mneme.cli.output import Column
from mneme.cli.resources import Resource, found, inside
from mneme.cli.times import From, To
from mneme.cli.values import text_of, without_empty

if TYPE_CHECKING:
    from mneme.types import Episode

app = App(help="What was attempted, and what came of it.")

_WHOSE = Fields(session_id=Session, agent_id=Agent, user_id=User, project=Project, tags=Tags)


class _Filter(Fields):
    """Which episodes; refuses what fits none."""

    def take(self, given: dict[str, Any]) -> dict[str, Any]:
        chosen = super().take(given)
        if chosen["only_failures"] and chosen["only_successes"]:
            raise InputError("--failures and --successes together leave nothing")
        return chosen


_FILTER = _Filter(
    **_WHOSE,
    only_failures=flag("Only those that failed.", "--failures"),
    only_successes=flag("Only those that succeeded.", "--successes"),
    min_reward=number("With at least this reward.", metavar="N"),
    start_time=From,
    end_time=To,
)


def _outcome(episode: Episode) -> str:
    return "success" if episode.success else "failure"


_COLUMNS = (
    Column("Episode", "id", style="cyan"),
    Column("When", "occurred_at", style="dim"),
    Column("Outcome", _outcome),
    Column("Reward", "reward:g"),
    Column("Project", "project", optional=2),
    Column("Tags", "tags", optional=1),
    Column("Task", "task", below=True, lines=3),
)
_FOUND_COLUMNS = (Column("Score", "score:.2f", style="cyan"), *inside("episode", _COLUMNS))

_episodes = Resource(
    app,
    "episode",
    key=Fields(episode_id=argument("EPISODE", "The episode's id.")),
    columns=_COLUMNS,
    facts={
        "Episode": "id",
        "Task": "task",
        "Outcome": _outcome,
        "Reward": "reward:g",
        "Critique": "critique",
        "Input": "input",
        "Output": "output",
        "Tools": "tools",
        "Session": "session_id",
        "Agent": "agent_id",
        "User": "user_id",
        "Project": "project",
        "Tags": "tags",
        "Memories": lambda it: cells.preview(" ".join(it.memory_ids)),
        "Metadata": "metadata",
        "When": "occurred_at",
        "Etag": "etag",
    },
)
_episodes.list("iter_episodes", "List episodes, the latest first.", Fields(filter=_FILTER))
_episodes.get("get_episode", "Show one episode.")


@app.command()
def store(
    cli: Cli,
    *,
    attempt: Annotated[
        Any,
        Fields(
            task=argument("[TASK]", "What was to be done.", str | None),
            session_id=text(
                "Its session: what is left out is taken from its record.",
                "--session",
                metavar="ID",
            ),
            success=option(bool | None, "How it ended.", "--success/--failure"),
            reward=number("How good it was.", metavar="N"),
            input=text("What the agent was given."),
            output=text("What it produced."),
            critique=text("What it thinks of it."),
            agent_id=text("The agent.", "--agent", metavar="ID"),
            user_id=text("The user.", "--user", metavar="ID"),
            project=text("The project.", metavar="NAME"),
            tags=texts("A label; repeatable.", "--tag"),
            memory_ids=texts("A memory that it rests on; repeatable.", "--memory", metavar="ID"),
            metadata=free_json("Free JSON."),
        ),
    ],
) -> None:
    """Store an attempt, and print its id."""
    if not attempt.get("task") and not attempt.get("session_id"):
        raise InputError("say the task, or the session that it was done in (--session)")
    with cli.connect() as client:
        episode = client.create_episode(**attempt).episode
    cli.out.done(episode.id, episode)


@app.command()
def search(cli: Cli, *, task: Task, chosen: Annotated[Any, _FILTER], limit: BestOf = 5) -> None:
    """Find the episodes that bear on a task, and what their critiques say."""
    with cli.connect() as client:
        answer = client.search_episodes(task, filter=chosen, limit=limit)
    found(cli.out, answer, _FOUND_COLUMNS, "episode")
    if answer.results and answer.critiques.text and not cli.out.as_json:
        cli.out.remark(cells.clean(answer.critiques.text))


_episodes.change(
    "update",
    "update_episode",
    'Change the given fields of an episode; "" empties a field.',
    Fields(
        critique=text("What is thought of it; - reads it from standard input.", sent=text_of),
        success=option(bool | None, "How it ended.", "--success/--failure"),
        reward=number("How good it was.", metavar="N"),
        tags=texts("Its labels from now on; repeatable.", "--tag", sent=without_empty),
        metadata=free_json("Free JSON."),
        etag=Etag,
    ),
    said="updated {episode_id}",
)
_episodes.change(
    "delete",
    "delete_episode",
    "Delete an episode for good.",
    Fields(etag=Etag),
    said="deleted {episode_id}",
    confirm="Delete the episode {episode_id} for good?",
)


@app.command("export")
def export(cli: Cli, *, file: OutputFile = None, chosen: Annotated[Any, _WHOSE]) -> None:
    """Write episodes as JSON Lines, which `mneme episodes import` reads."""
    from mneme.plain import to_json

    with cli.connect() as client, client.export_episodes(filter=chosen) as stream:
        files.export(cli, file, (to_json(one.episode) for one in stream), "episode")


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

    with files.importing(cli, file) as client:
        totals = import_episodes(client, file, on_conflict=on_conflict)
    files.imported(cli, totals, "episode")
