"""`mneme sleep`: leave a handover."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from mneme.cli import cells
from mneme.cli.app import App, Cli

_PRIORITY = re.compile(r"(.*\S)\s*!([1-5])", re.DOTALL)
_FIELDS = (
    "project", "progress", "completed_todos", "open_todos", "decisions", "locked_contexts", "files",
    "agent_id",
)  # fmt: skip

Texts = list[str] | None


def todo(text: str) -> dict[str, Any]:
    """A todo; "!1" (most urgent) to "!5" at its end is its priority."""
    match = _PRIORITY.fullmatch(text)
    return {"content": match[1], "priority": int(match[2])} if match else {"content": text}


def decision(text: str) -> dict[str, Any]:
    """A decision, "X because Y" or X alone; its reason stays whole, "because Y"."""
    what, because, why = text.partition(" because ")
    return {"decision": what, "rationale": f"because {why}"} if because else {"decision": text}


def pinned(text: str) -> dict[str, Any]:
    """A context, "label@version" or a label alone."""
    label, _, version = text.rpartition("@") if "@" in text else (text, "", "")
    return {"label": label, "version": version}


def read_handover(source: str) -> dict[str, Any]:
    """The fields of a handover in a JSON file; "-" reads standard input.

    Raises:
        typer.BadParameter: it cannot be read, or is no handover.
    """
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text()
        given = json.loads(text)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"{source}: {error}") from error
    if not isinstance(given, dict):
        raise typer.BadParameter(f"{source}: not a JSON object")
    unknown = [name for name in given if name not in _FIELDS]
    if unknown:
        names = ", ".join(_FIELDS)
        raise typer.BadParameter(f"{source}: {', '.join(unknown)} is none of {names}")
    return given


def register(app: App) -> None:
    """Add the command to the root."""
    app.command("sleep")(sleep)


def sleep(
    cli: Cli,
    *,
    session_id: Annotated[
        str | None,
        typer.Argument(
            metavar="[SESSION]",
            help="The session's id; default the --project's most recently active session.",
            show_default=False,
        ),
    ] = None,
    progress: Annotated[
        Texts, typer.Option("--progress", metavar="TEXT", help="What was done; repeatable.")
    ] = None,
    done: Annotated[
        Texts, typer.Option("--done", metavar="TEXT", help="A todo that is done; repeatable.")
    ] = None,
    todo_: Annotated[
        Texts,
        typer.Option(
            "--todo",
            metavar="TEXT",
            help="What is still to do; !1 (most urgent) to !5 at the end ranks it; repeatable.",
        ),
    ] = None,
    decided: Annotated[
        Texts,
        typer.Option("--decision", metavar="TEXT", help='"X because Y", or X alone; repeatable.'),
    ] = None,
    context: Annotated[
        Texts,
        typer.Option(
            "--context", metavar="LABEL@VERSION", help="A context that was pinned; repeatable."
        ),
    ] = None,
    file: Annotated[
        Texts, typer.Option("--file", metavar="PATH", help="A file that was touched; repeatable.")
    ] = None,
    project: Annotated[str | None, typer.Option(metavar="NAME", help="The project.")] = None,
    agent: Annotated[str | None, typer.Option(metavar="ID", help="The agent.")] = None,
    from_json: Annotated[
        str | None,
        typer.Option(
            "--from-json", metavar="FILE", help="Read the handover from JSON; - is standard input."
        ),
    ] = None,
) -> None:
    """Leave a handover for the next session, and end this one.

    What you leave out is collected from what the session recorded.
    """
    given = read_handover(from_json) if from_json else {}
    fields = {
        "progress": progress,
        "completed_todos": done,
        "open_todos": [todo(text) for text in todo_ or ()],
        "decisions": [decision(text) for text in decided or ()],
        "locked_contexts": [pinned(text) for text in context or ()],
        "files": file,
    }
    for name, items in fields.items():
        if items:
            given[name] = [*given.get(name, ()), *items]
    for name, value in (("project", project), ("agent_id", agent)):
        if value is not None:
            given[name] = value
    if session_id is None and not given.get("project"):
        raise typer.BadParameter("name the session, or the --project whose latest session it is")
    with cli.connect() as client:
        answer = client.sleep(session_id, **given)
    handover = answer.handover
    if not answer.stored:
        said = f"nothing to hand over from {handover.session_id}: nothing given, nothing found"
        cli.out.done(said, handover)
        return
    words = cells.preview(handover.summary, 200)
    said = f"handed over {handover.session_id}" + (f": {words}" if words else "")
    left = cells.plural(len(handover.open_todos), "open todo")
    cli.out.done(f"{said} ({left})" if handover.open_todos else said, handover)
