"""`mneme log` and `mneme knowledge`."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mneme._generated.choices import KnowledgeTypeChoice
from mneme.cli import cells
from mneme.cli.app import App, Cli
from mneme.cli.exits import FAILED, InputError
from mneme.cli.fields import Fields, argument, choice, text, texts
from mneme.cli.options import BestOf, Etag, Query, Tags
from mneme.cli.output import Column
from mneme.cli.resources import Resource
from mneme.cli.values import without_empty

if TYPE_CHECKING:
    from mneme.client import MnemeClient
    from mneme.knowledge_log import LogLine
    from mneme.types import KnowledgeEntry

app = App(help="The knowledge log: what was learned, by project.")

_FOLLOW_S = 1.0


def _rate_of(entry: KnowledgeEntry) -> str:
    from mneme.knowledge_log import rate_text

    return rate_text(entry.success_rate)


_COLUMNS = (
    Column("Score", lambda found: cells.score(found.score), style="cyan"),
    Column("When", lambda found: cells.when(found.entry.timestamp)[:10], style="dim"),
    Column("Project", "entry.project"),
    Column("Success", lambda found: _rate_of(found.entry), right=True),
    Column("Lesson", "entry.lesson", flexible=True),
    Column("Context", "entry.context", flexible=True, style="dim"),
)

_FILTER = Fields(
    project=text("Of this project.", "--project", "--repo", metavar="NAME"),
    type=choice(KnowledgeTypeChoice, "Of this kind."),
    tags=Tags,
)

_entries = Resource(
    app,
    "entry",
    key=Fields(entry_id=argument("ENTRY", "The entry's id.")),
    columns=(
        Column("Entry", "id", optional=2, style="cyan"),
        Column("When", lambda entry: cells.when(entry.timestamp)[:10], style="dim"),
        Column("Project", "project"),
        Column("Type", "type", optional=3),
        Column("Lesson", "lesson", flexible=True),
        Column("Context", "context", flexible=True, optional=1, style="dim"),
    ),
    facts={
        "Entry": "id",
        "Type": "type",
        "Context": "context",
        "Command": "command",
        "Lesson": "lesson",
        "Success": _rate_of,
        "Tags": "tags",
        "Agent": "agent_id",
        "Project": "project",
        "When": "timestamp",
        "Etag": "etag",
    },
)
_entries.list("iter_knowledge", "List entries, newest first.", Fields(filter=_FILTER))
_entries.get("get_knowledge", "Show one entry.")
_entries.change(
    "update",
    "update_knowledge",
    'Change the given fields of an entry; "" empties a field.',
    Fields(
        project=text("The project.", "--project", "--repo", metavar="NAME"),
        agent_id=text("Who learned it.", "--agent", metavar="ID"),
        type=choice(KnowledgeTypeChoice, "What it is."),
        context=text("What was being attempted."),
        command=text("The exact command, if one applies."),
        lesson=text("What was learned."),
        tags=texts("Its labels from now on; repeatable.", "--tag", sent=without_empty),
        etag=Etag,
    ),
    said="updated {entry_id}",
)
_entries.change(
    "delete",
    "delete_knowledge",
    "Delete an entry.",
    Fields(etag=Etag),
    said="deleted {entry_id}",
    confirm="Delete the entry {entry_id} for good?",
)

Folder = Annotated[
    Path,
    typer.Option(
        envvar="MNEME_KNOWLEDGE_DIR",
        metavar="PATH",
        help="Folder with logs/PROJECT.jsonl; default MNEME_KNOWLEDGE_DIR.",
    ),
]


def register(root: App) -> None:
    """Add the command to the root."""
    root.command("log")(log)


def log(
    cli: Cli,
    *,
    project: Annotated[
        str,
        typer.Option(
            "--project", "--repo", metavar="NAME", help="The project, a repository's name."
        ),
    ],
    type_: Annotated[
        KnowledgeTypeChoice, typer.Option("--type", case_sensitive=False, help="What it is.")
    ],
    context: Annotated[str, typer.Option(help="What was being attempted.")],
    lesson: Annotated[str, typer.Option(help="What was learned.")],
    command: Annotated[str, typer.Option(help="The exact command, if one applies.")] = "",
    success_rate: Annotated[str, typer.Option(metavar="X/Y", help="How often it worked.")] = "",
    tags: Annotated[str, typer.Option(metavar="A,B", help="Labels, separated by commas.")] = "",
    agent: Annotated[str, typer.Option(metavar="ID", help="Who learned it.")] = "",
    folder: Folder = Path("agent-knowledge"),
) -> None:
    """Append what was learned to the project's log. Needs no server.

    `mneme knowledge sync` brings the logs to a server.
    """
    from mneme.knowledge_log import append, entry_of

    try:
        entry = entry_of(
            project=project,
            event_type=type_,
            context=context,
            lesson=lesson,
            command=command,
            success_rate=success_rate,
            tags=[tag.strip() for tag in tags.split(",") if tag.strip()],
            agent_id=agent,
        )
    except ValueError as error:
        raise InputError(f"{error}; nothing was logged") from error
    path = append(folder, entry)
    cli.out.line_of(entry) if cli.out.as_json else cli.out.line(f"logged to {path}")


@app.command()
def query(
    cli: Cli,
    *,
    text: Query,
    chosen: Annotated[
        Any,
        _FILTER,
    ],
    limit: BestOf = 5,
    tokens: Annotated[
        int, typer.Option(min=1, max=100_000, help="Maximum number of tokens of the text.")
    ] = 500,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the text for a context window.")
    ] = False,
) -> None:
    """Ask the knowledge log."""
    with cli.connect() as client:
        answer = client.search_knowledge(text, filter=chosen, limit=limit, token_budget=tokens)
    if cli.out.as_json:
        cli.out.message(answer)
    elif markdown:
        cli.out.line(answer.markdown)
    elif not answer.entries:
        cli.out.remark(answer.markdown)
    else:
        cli.out.things(_COLUMNS, answer.entries)


@app.command()
def sync(
    cli: Cli,
    *,
    folder: Folder = Path("agent-knowledge"),
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep sending what is added, until stopped.")
    ] = False,
) -> None:
    """Send a folder's logs to the server, each line once."""
    from mneme.knowledge_log import LogReader

    reader = LogReader(folder)
    counts: Counter[str] = Counter()
    with cli.connect() as client:
        while True:
            for line in reader.new_lines():
                counts[_bring(cli, client, line)] += 1
            if not follow:
                break
            time.sleep(_FOLLOW_S)
    done = {name: counts[name] for name in ("logged", "known", "broken")}
    if cli.out.as_json:
        cli.out.line_of(done)
    else:
        cli.out.line(
            f"{done['logged']} logged, {done['known']} already there, {done['broken']} broken"
        )
    if counts["broken"]:
        raise typer.Exit(FAILED)


def _bring(cli: Cli, client: MnemeClient, line: LogLine) -> str:
    from mneme.errors import ArgumentError, InvalidArgumentError
    from mneme.knowledge_log import request_of

    problem = line.problem
    if line.entry is not None:
        try:
            answer = client.create_knowledge(**request_of(line.entry))
        except (ArgumentError, InvalidArgumentError) as error:
            problem = str(error)
        else:
            return "known" if answer.duplicate else "logged"
    cli.out.remark(f"{line.path}:{line.number}: {problem}")
    return "broken"
