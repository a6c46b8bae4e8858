"""`mneme remember`."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mneme._generated.choices import ImportanceChoice
from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.fields import Fields, choice, flag, option, text, texts
from mneme.cli.options import free_json
from mneme.cli.times import HELP, parse_start
from mneme.cli.values import text_of

if TYPE_CHECKING:
    from mneme.types import CreateMemoryResponse

_SHOWN = 80

ABOUT = Fields(
    user_id=text("The user it is about.", "--user", metavar="ID"),
    agent_id=text("The agent that remembers it; default all.", "--agent", metavar="ID"),
    project=text("The project it is about.", metavar="NAME"),
)
DETAILS = Fields(
    metadata=free_json("Free JSON, to filter by."),
    importance=choice(ImportanceChoice, "How much it matters."),
    since=option(
        datetime | None, f"When it began to hold: {HELP}.", parser=parse_start, metavar="TIME"
    ),
)


def register(app: App) -> None:
    """Add the command to the root."""
    app.command("remember")(remember)


def remember(
    cli: Cli,
    *,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="What to remember; - reads standard input.")
    ],
    memory: Annotated[
        Any,
        Fields(
            **ABOUT,
            tags=texts("A label; repeatable.", "--tag", metavar="TAG"),
            **DETAILS,
            supersedes=texts("A memory that it replaces; repeatable.", metavar="ID"),
            memory_id=text("Its id; made if left out.", "--id", metavar="ID"),
            pinned=flag("Bring it first in its user's profile.", "--pin"),
            keep_copy=flag("Store it even if another says the same.", "--keep-copy"),
        ),
    ],
) -> None:
    """Remember something, and print the memory's id.

    A text that says the same is not stored twice. Older memories that are close to it are shown: if
    this replaces one of them, say so with --supersedes.
    """
    with cli.connect() as client:
        answer = client.remember(text_of(text), **memory)
    cli.out.done(answer.memory.id, answer)
    if not cli.out.as_json:
        _remark(cli, answer)


def _remark(cli: Cli, answer: CreateMemoryResponse) -> None:
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
