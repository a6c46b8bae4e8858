"""`mneme memories`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mneme.cli import cells, files
from mneme.cli.app import App, Cli
from mneme.cli.exits import InputError
from mneme.cli.fields import Fields, flag, option, text, texts
from mneme.cli.files import OutputFile
from mneme.cli.options import BestOf, Etag, Project, Query, Tags, User, Yes, free_json
from mneme.cli.output import Column
from mneme.cli.remember import ABOUT, DETAILS
from mneme.cli.resources import Resource, found, inside
from mneme.cli.times import HELP, From, To, parse_start
from mneme.cli.values import text_of, without_empty

if TYPE_CHECKING:
    from mneme.types import Memory

app = App(help="What is remembered of users and projects; `mneme remember` stores it.")

_WHOSE = Fields(
    user_id=User,
    agent_id=text("Remembered by this agent.", "--agent", metavar="ID"),
    project=Project,
    tags=Tags,
    any_tags=texts("With one of these labels; repeatable.", "--any-tag", metavar="TAG"),
    metadata=free_json("With these values in its metadata."),
)
_FILTER = Fields(**_WHOSE, start_time=From, end_time=To)
_BEFORE = option(
    datetime | None, f"Older than this: {HELP}.", "--before", parser=parse_start, metavar="TIME"
)
Superseded = Annotated[bool, typer.Option("--superseded", help="Superseded ones too.")]
MemoryId = Annotated[str, typer.Argument(metavar="MEMORY", help="The memory's id.")]


def _text(memory: Memory) -> str:
    until = f" (until {cells.when(memory.until)})" if memory.superseded_by else ""
    return cells.preview(memory.text) + until


_COLUMNS = (
    Column("Memory", "id", style="cyan"),
    Column("Since", "since", style="dim"),
    Column("User", "user_id", optional=1),
    Column("Project", "project", optional=2),
    Column("Tags", "tags", optional=3),
    Column("Text", _text, below=True, lines=3),
)
_FOUND_COLUMNS = (
    Column("Similarity", "similarity:.2f", style="cyan"),
    *inside("memory", _COLUMNS),
)

_memories = Resource(
    app,
    "memory",
    key=Fields(memory_id=MemoryId),
    columns=_COLUMNS,
    facts={
        "Memory": "id",
        "Text": "text",
        "User": "user_id",
        "Agent": "agent_id",
        "Project": "project",
        "Tags": "tags",
        "Metadata": "metadata",
        "Importance": "importance",
        "Since": "since",
        "Pinned": lambda it: "yes" if it.pinned else "",
        "Confirmed on": lambda it: (
            cells.plural(it.confirmed_count, "further day") if it.confirmed_count else ""
        ),
        "Last said": lambda it: cells.when(it.last_said) if it.confirmed_count else "",
        "Supersedes": lambda it: cells.preview(" ".join(it.supersedes)),
        "Superseded by": "superseded_by",
        "Until": "until",
        "Stored": "created_at",
        "Updated": "updated_at",
        "Etag": "etag",
    },
)
_memories.list(
    "iter_memories",
    "List memories, latest first, by when they began to hold.",
    Fields(
        filter=_FILTER,
        include_superseded=Superseded,
        only_pinned=flag("Only pinned ones.", "--pinned"),
    ),
)
_memories.get("get_memory", "Show one memory.")


@app.command()
def update(
    cli: Cli,
    *,
    memory_id: MemoryId,
    changed: Annotated[
        Any,
        Fields(
            text=text("What it says; - reads it from standard input.", sent=text_of),
            **ABOUT,
            tags=texts("Its labels from now on; repeatable.", "--tag", sent=without_empty),
            **DETAILS,
            supersedes=texts("All that it replaces; repeatable.", metavar="ID", sent=without_empty),
            pinned=option(
                bool | None, "Bring it first in its user's profile, or not.", "--pin/--unpin"
            ),
            etag=Etag,
        ),
    ],
) -> None:
    """Change the given fields of a memory; "" empties a field.

    To keep what was true before, use `mneme remember` with --supersedes.
    """
    with cli.connect() as client:
        answer = client.update_memory(memory_id, **changed)
    cli.out.done(f"updated {memory_id}", answer.memory)
    if answer.already_known:
        other = cells.preview(answer.known_memory_id)
        cli.out.remark(f"Known already: memory {other} says the same; both are kept.")


@app.command()
def search(
    cli: Cli,
    *,
    query: Query,
    chosen: Annotated[Any, _FILTER],
    superseded: Superseded = False,
    limit: BestOf = 10,
    min_similarity: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    rerank: Annotated[
        bool, typer.Option("--rerank", help="Rank by what causal edges say about them, too.")
    ] = False,
) -> None:
    """Search memories by meaning, closest first.

    `mneme recall` looks everywhere, and weighs words and dates, too.
    """
    with cli.connect() as client:
        answer = client.search_memories(
            query,
            filter=chosen,
            include_superseded=superseded,
            limit=limit,
            min_similarity=min_similarity,
            rerank=rerank,
        )
    found(cli.out, answer, _FOUND_COLUMNS, "memory", "memories")


@app.command()
def delete(
    cli: Cli,
    *,
    memory_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[MEMORY]...", help="The memories' ids.")
    ] = None,
    chosen: Annotated[Any, Fields(**_WHOSE, end_time=_BEFORE)],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be deleted.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete memories for good, superseded ones too: by their ids, or all that the options pick."""
    if not (memory_ids or chosen):
        raise InputError("give the memories' ids, or an option that picks some")
    with cli.connect() as client:
        answer = client.delete_memories(memory_ids=memory_ids, filter=chosen, dry_run=True)
        if not dry_run and answer.deleted_count:
            if not yes:
                what = cells.plural(answer.deleted_count, "memory", "memories")
                typer.confirm(f"Delete {what} for good?", abort=True, err=True)
            answer = client.delete_memories(memory_ids=memory_ids, filter=chosen)
    if cli.out.as_json:
        cli.out.message(answer)
        return
    for memory_id in answer.memory_ids if dry_run else ():
        cli.out.line(memory_id)
    what = cells.plural(answer.deleted_count, "memory", "memories")
    held = f"; {cells.count(len(answer.restored_ids))} hold again" if answer.restored_ids else ""
    cli.out.remark(f"{what} would be deleted{held}") if dry_run else cli.out.line(
        f"{what} deleted{held}"
    )


@app.command("export")
def export(cli: Cli, *, file: OutputFile = None, chosen: Annotated[Any, Fields(**_WHOSE)]) -> None:
    """Write memories, superseded ones too, as JSON Lines, which `mneme memories import` reads."""
    from mneme.plain import to_json

    with cli.connect() as client:
        walk = client.iter_memories(filter=chosen, include_superseded=True, page_size=1000)
        files.export(cli, file, map(to_json, walk), "memory", "memories")


@app.command("import")
def import_(
    cli: Cli,
    *,
    file: Annotated[Path, typer.Argument(help="JSON Lines or a JSON list of memories.")],
) -> None:
    """Import memories as `mneme memories export` writes them; each needs a text.

    Those that have ids can be imported again, which changes nothing.
    """
    from mneme.importing.memories import import_memories
    from mneme.plain import to_json

    with files.importing(cli, file) as client:
        totals = import_memories(client, file)
    totals.ClearField("receipts")
    if cli.out.as_json:
        cli.out.line(to_json(totals))
        return
    rate = totals.figures.vectors_per_second
    cli.out.line(
        f"{cells.plural(totals.inserted_count, 'memory', 'memories')} stored, "
        f"{cells.count(totals.known_count)} known already"
        + (f"; {rate:,.0f} a second" if rate else "")
    )
