"""`mneme remember`."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mneme._generated.choices import ImportanceChoice
from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.times import HELP, parse_start
from mneme.cli.values import json_object, text_of

if TYPE_CHECKING:
    from mneme.types import InsertMemoryResponse

_SHOWN = 80

User = Annotated[str | None, typer.Option("--user", metavar="ID", help="The user it is about.")]
Agent = Annotated[
    str | None,
    typer.Option("--agent", metavar="ID", help="The agent that remembers it; default all."),
]
Project = Annotated[str | None, typer.Option(metavar="NAME", help="The project it is about.")]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="A label; repeatable.")
]
Metadata = Annotated[
    Any, typer.Option(parser=json_object, metavar="JSON", help="Free JSON, to filter by.")
]
Importance = Annotated[
    ImportanceChoice | None, typer.Option(case_sensitive=False, help="How much it matters.")
]
Since = Annotated[
    datetime | None,
    typer.Option(parser=parse_start, metavar="TIME", help=f"When it began to hold: {HELP}."),
]
Supersedes = Annotated[
    list[str] | None,
    typer.Option(metavar="ID", help="A memory that it replaces; repeatable."),
]


def register(app: App) -> None:
    """Add the command to the root."""
    app.command("remember")(remember)


def remember(
    cli: Cli,
    *,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="What to remember; - reads standard input.")
    ],
    user: User = None,
    agent: Agent = None,
    project: Project = None,
    tag: Tags = None,
    metadata: Metadata = None,
    importance: Importance = None,
    since: Since = None,
    supersedes: Supersedes = None,
    memory_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Its id; made if left out.")
    ] = None,
    keep_copy: Annotated[
        bool, typer.Option("--keep-copy", help="Store it even if another says the same.")
    ] = False,
) -> None:
    """Remember something, and print the memory's id.

    A text that says the same is not stored twice. Older memories that are close to it are shown: if
    this replaces one of them, say so with --supersedes.
    """
    with cli.connect() as client:
        answer = client.remember(
            text_of(text),
            user_id=user,
            agent_id=agent,
            project=project,
            tags=tag,
            metadata=metadata,
            importance=importance,
            since=since,
            supersedes=supersedes,
            memory_id=memory_id,
            keep_copy=keep_copy,
        )
    cli.out.done(answer.memory.id, answer)
    if not cli.out.as_json:
        _remark(cli, answer)


def _remark(cli: Cli, answer: InsertMemoryResponse) -> None:
    if answer.already_known:
        since = cells.when(answer.memory.since)
        cli.out.remark(f"Known already, since {since}; it is not stored twice.")
    if answer.differing:
        cli.out.remark(f"It has other {', '.join(answer.differing)}, which were not changed.")
    for old in answer.superseded:
        cli.out.remark(f"Supersedes {cells.preview(old.id)}: {cells.preview(old.text, _SHOWN)}")
    if answer.similar:
        cli.out.remark("Close to it; if it replaces one, say --supersedes ID:")
    for one in answer.similar:
        memory = one.memory
        cli.out.remark(
            f"  {one.similarity:.2f}  {cells.preview(memory.id)}  since"
            f" {cells.when(memory.since)}: {cells.preview(memory.text, _SHOWN)}"
        )
    if answer.similar_unknown:
        cli.out.remark("Older ones were not compared: the embedding backend is not answering.")
