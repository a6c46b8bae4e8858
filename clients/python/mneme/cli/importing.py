"""`mneme import`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

import typer

from mneme.cli import cells, exits
from mneme.cli.app import App, Cli
from mneme.cli.exits import InputError
from mneme.cli.progress import Progress

if TYPE_CHECKING:
    from mneme.importing.recording import Totals

_SHOWN_BROKEN = 20


def register(app: App) -> None:
    """Add the command to the root."""
    app.command("import")(import_)


def import_(
    cli: Cli,
    *,
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Files; - is standard input.")
    ],
    form: Annotated[
        Literal["auto", "openai", "events"],
        typer.Option("--format", help="Chat transcripts, or Mneme's own events as JSON Lines."),
    ] = "auto",
    agent: Annotated[str | None, typer.Option(metavar="ID", help="The agent they are of.")] = None,
    project: Annotated[str | None, typer.Option(help="The project they are about.")] = None,
    user: Annotated[str | None, typer.Option(metavar="ID", help="The user they served.")] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="A label for every session; repeatable.")
    ] = None,
) -> None:
    """Import chat transcripts with tool calls, or events that Mneme wrote.

    A transcript is a list of OpenAI-style messages, or a record that holds one under messages,
    traj, conversation and the like. Each becomes a session whose id is made of its content:
    importing twice changes nothing. Broken records are reported, and the rest goes in; the exit
    code is then 1.
    """
    from mneme.importing.plan import Defaults
    from mneme.importing.recording import Recorder, Totals
    from mneme.importing.run import import_stream

    defaults = Defaults(agent_id=agent, project=project, user_id=user, tags=tuple(tag or ()))
    totals = Totals()
    sources = [_open(name) for name in files]
    with cli.connect(retries=2) as client, Progress(sources, shown=not cli.out.as_json) as progress:
        recorder = Recorder(client, totals, progress.wait)
        for name, stream in sources:
            with stream:
                import_stream(
                    stream,
                    name,
                    recorder,
                    totals,
                    defaults=defaults,
                    form=form,
                    on_record=lambda: progress.update(totals.records),
                )
    _report(cli, totals)
    if totals.broken:
        raise typer.Exit(exits.FAILED)


def _open(name: str) -> tuple[str, BinaryIO]:
    if name == "-":
        return "standard input", sys.stdin.buffer
    try:
        return name, Path(name).open("rb")
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}") from error


def _report(cli: Cli, totals: Totals) -> None:
    if cli.out.as_json:
        cli.out.line(json.dumps(_document(totals), ensure_ascii=False))
        return
    for broken in totals.broken[:_SHOWN_BROKEN]:
        cli.out.remark(f"{broken.place}: {cells.clean(broken.reason)}")
    hidden = len(totals.broken) - _SHOWN_BROKEN
    if hidden > 0:
        cli.out.remark(f"and {cells.plural(hidden, 'more broken record')}; --json lists all")
    for note, times in totals.notes.items():
        cli.out.remark(f"{cells.count(times)} {note}")
    cli.out.line(
        f"{cells.plural(totals.records, 'record')} read: "
        f"{cells.plural(totals.sessions, 'session')}, "
        f"{cells.plural(totals.events, 'new event')}, "
        f"{cells.count(totals.duplicates)} already there, "
        f"{cells.count(len(totals.broken))} broken"
    )


def _document(totals: Totals) -> dict[str, Any]:
    return {
        "records": totals.records,
        "sessions": totals.sessions,
        "events": totals.events,
        "duplicates": totals.duplicates,
        "broken": [
            {
                "file": broken.place.file,
                "record": broken.place.record,
                "line": broken.place.line,
                "reason": broken.reason,
            }
            for broken in totals.broken
        ],
        "notes": dict(totals.notes),
    }
