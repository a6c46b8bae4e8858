"""`mneme memories`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from mneme.cli import cells, remember
from mneme.cli.app import App, Cli
from mneme.cli.exits import InputError
from mneme.cli.files import written
from mneme.cli.options import Limit, Project, Tags, User, Yes, listed, page_size
from mneme.cli.output import Column
from mneme.cli.times import HELP, From, To, parse_start
from mneme.cli.values import json_object

if TYPE_CHECKING:
    from mneme.types import Memory, MemoryFilterFields

app = App(help="What is remembered of users and projects; `mneme remember` stores it.")

MemoryId = Annotated[str, typer.Argument(metavar="MEMORY", help="The memory's id.")]
Agent = Annotated[str | None, typer.Option(metavar="ID", help="Remembered by this agent.")]
AnyTags = Annotated[
    list[str] | None,
    typer.Option("--any-tag", metavar="TAG", help="With one of these labels; repeatable."),
]
Metadata = Annotated[
    Any, typer.Option(parser=json_object, metavar="JSON", help="With these values in its metadata.")
]
Superseded = Annotated[bool, typer.Option("--superseded", help="Superseded ones too.")]

_COLUMNS = (
    Column("Memory", style="cyan"),
    Column("Since", style="dim"),
    Column("User", optional=1),
    Column("Project", optional=2),
    Column("Tags", optional=3),
    Column("Text", below=True, lines=3),
)
_FOUND_COLUMNS = (Column("Similarity", style="cyan"), *_COLUMNS)


@app.command("list")
def list_(
    cli: Cli,
    *,
    user: User = None,
    agent: Agent = None,
    project: Project = None,
    tag: Tags = None,
    any_tag: AnyTags = None,
    metadata: Metadata = None,
    start: From = None,
    end: To = None,
    superseded: Superseded = False,
    limit: Limit = 50,
) -> None:
    """List memories, latest first, by when they began to hold."""
    with cli.connect() as client:
        walk = client.iter_memories(
            filter=_filter(
                user=user,
                agent=agent,
                project=project,
                tag=tag,
                any_tag=any_tag,
                metadata=metadata,
                start=start,
                end=end,
            ),
            include_superseded=superseded,
            page_size=page_size(limit),
        )
        listed(cli.out, walk, limit, _COLUMNS, _row)


@app.command()
def get(cli: Cli, memory_id: MemoryId) -> None:
    """Show one memory."""
    with cli.connect() as client:
        memory = client.get_memory(memory_id).memory
    if cli.out.as_json:
        cli.out.message(memory)
    else:
        cli.out.facts(_facts(memory))


@app.command()
def update(
    cli: Cli,
    *,
    memory_id: MemoryId,
    text: Annotated[
        str | None, typer.Option(help="What it says; - reads it from standard input.")
    ] = None,
    user: remember.User = None,
    agent: remember.Agent = None,
    project: remember.Project = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="Its labels from now on; repeatable.")
    ] = None,
    metadata: remember.Metadata = None,
    importance: remember.Importance = None,
    since: remember.Since = None,
    supersedes: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="All that it replaces; repeatable."),
    ] = None,
    etag: Annotated[
        str | None,
        typer.Option(
            metavar="ETAG", help="Its etag as `get` shows it: refuse if it has changed since."
        ),
    ] = None,
) -> None:
    """Change the given fields of a memory; "" empties a field.

    To keep what was true before, use `mneme remember` with --supersedes.
    """
    with cli.connect() as client:
        answer = client.update_memory(
            memory_id,
            text=None if text is None else remember.text_of(text),
            user_id=user,
            agent_id=agent,
            project=project,
            tags=_without_empty(tag),
            metadata=metadata,
            importance=importance,
            since=since,
            supersedes=_without_empty(supersedes),
            etag=etag,
        )
    cli.out.done(f"updated {memory_id}", answer.memory)
    if answer.already_known:
        other = cells.preview(answer.known_memory_id)
        cli.out.remark(f"Known already: memory {other} says the same; both are kept.")


@app.command()
def search(
    cli: Cli,
    *,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to look for, in words.")],
    user: User = None,
    agent: Agent = None,
    project: Project = None,
    tag: Tags = None,
    any_tag: AnyTags = None,
    metadata: Metadata = None,
    start: From = None,
    end: To = None,
    superseded: Superseded = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100)] = 10,
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
            filter=_filter(
                user=user,
                agent=agent,
                project=project,
                tag=tag,
                any_tag=any_tag,
                metadata=metadata,
                start=start,
                end=end,
            ),
            include_superseded=superseded,
            limit=limit,
            min_similarity=min_similarity,
            rerank=rerank,
        )
    if cli.out.as_json:
        cli.out.message(answer)
        return
    rows = [[f"{one.similarity:.2f}", *_row(one.memory)] for one in answer.results]
    cli.out.table(_FOUND_COLUMNS, rows)
    if not rows:
        searched = cells.plural(answer.searched_count, "memory", "memories")
        cli.out.remark(f"None of {searched} fits.")


@app.command()
def delete(
    cli: Cli,
    *,
    memory_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[MEMORY]...", help="The memories' ids.")
    ] = None,
    user: User = None,
    agent: Agent = None,
    project: Project = None,
    tag: Tags = None,
    any_tag: AnyTags = None,
    metadata: Metadata = None,
    before: Annotated[
        datetime | None,
        typer.Option(parser=parse_start, metavar="TIME", help=f"Older than this: {HELP}."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be deleted.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete memories for good, superseded ones too: by their ids, or all that the options pick."""
    chosen = _filter(
        user=user, agent=agent, project=project, tag=tag, any_tag=any_tag, metadata=metadata,
        end=before,
    )  # fmt: skip
    if not memory_ids and all(value is None for value in chosen.values()):
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
def export(
    cli: Cli,
    *,
    file: Annotated[
        Path | None, typer.Argument(help="Output file; default standard output.")
    ] = None,
    user: User = None,
    agent: Agent = None,
    project: Project = None,
    tag: Tags = None,
    any_tag: AnyTags = None,
    metadata: Metadata = None,
) -> None:
    """Write memories, superseded ones too, as JSON Lines, which `mneme memories import` reads."""
    from mneme.plain import to_json

    chosen = _filter(
        user=user, agent=agent, project=project, tag=tag, any_tag=any_tag, metadata=metadata
    )
    count = 0
    with cli.connect() as client, written(file) as target:
        walk = client.iter_memories(filter=chosen, include_superseded=True, page_size=1000)
        for memory in walk:
            target.write(to_json(memory) + "\n")
            count += 1
    if file:
        cli.out.remark(f"{cells.plural(count, 'memory', 'memories')} written to {file}")


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

    try:
        with cli.connect(retries=4) as client:
            totals = import_memories(client, file)
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from error
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


def _filter(
    *,
    user: str | None,
    agent: str | None,
    project: str | None,
    tag: list[str] | None,
    any_tag: list[str] | None,
    metadata: Any,
    start: datetime | None = None,
    end: datetime | None = None,
) -> MemoryFilterFields:
    chosen: dict[str, Any] = {
        "user_id": user,
        "agent_id": agent,
        "project": project,
        "tags": tag,
        "any_tags": any_tag,
        "metadata": metadata,
        "start_time": start,
        "end_time": end,
    }
    return cast("MemoryFilterFields", chosen)


def _without_empty(values: list[str] | None) -> list[str] | None:
    """`--tag ""` takes all labels away."""
    return None if values is None else [value for value in values if value]


def _row(memory: Memory) -> list[str]:
    until = f" (until {cells.when(memory.until)})" if memory.superseded_by else ""
    return [
        cells.preview(memory.id),
        cells.when(memory.since),
        cells.preview(memory.user_id),
        cells.preview(memory.project),
        cells.preview(", ".join(memory.tags)),
        cells.preview(memory.text) + until,
    ]


def _facts(memory: Memory) -> list[tuple[str, str]]:
    return [
        ("Memory", cells.preview(memory.id)),
        ("Text", cells.clean(memory.text)),
        ("User", cells.preview(memory.user_id)),
        ("Agent", cells.preview(memory.agent_id)),
        ("Project", cells.preview(memory.project)),
        ("Tags", cells.preview(", ".join(memory.tags))),
        ("Metadata", cells.preview(cells.json_text(memory.metadata))),
        ("Importance", cells.name(memory.importance)),
        ("Since", cells.when(memory.since)),
        ("Supersedes", cells.preview(" ".join(memory.supersedes))),
        ("Superseded by", cells.preview(memory.superseded_by)),
        ("Until", cells.when(memory.until)),
        ("Stored", cells.when(memory.created_at)),
        ("Updated", cells.when(memory.updated_at)),
        ("Etag", cells.preview(memory.etag)),
    ]
