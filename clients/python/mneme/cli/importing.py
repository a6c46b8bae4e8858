"""`mneme import`."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mneme.cli import cells, exits
from mneme.cli.app import App, Cli
from mneme.cli.databases import import_databases
from mneme.cli.exits import InputError
from mneme.cli.progress import Progress

if TYPE_CHECKING:
    from mneme.importing.recording import FileReport, Totals
    from mneme.importing.run import Importer

_SHOWN_BROKEN = 20
_SHOWN_FILES = 200
_STANDARD_INPUT = "-"


def register(app: App) -> None:
    """Add the command to the root."""
    app.command("import")(import_)


def import_(
    cli: Cli,
    *,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH...]", help="Files, or folders with files; - is standard input."
        ),
    ] = None,
    claude_code: Annotated[
        bool, typer.Option("--claude-code", help="All of Claude Code's sessions on this machine.")
    ] = False,
    codex: Annotated[
        bool, typer.Option("--codex", help="All of Codex's sessions on this machine.")
    ] = False,
    agentdb: Annotated[
        bool, typer.Option("--agentdb", help="The database that AGENTDB_PATH names.")
    ] = False,
    form: Annotated[
        str,
        typer.Option("--format", metavar="NAME", help="The format, if it is not recognised."),
    ] = "auto",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Send nothing; show what each file would become.")
    ] = False,
    complete: Annotated[
        bool,
        typer.Option("--complete", help="The files are finished, however new they are."),
    ] = False,
    redact: Annotated[
        bool, typer.Option("--redact", help="Mask what looks like a key, a token or a password.")
    ] = False,
    agent: Annotated[
        str | None, typer.Option(metavar="ID", help="The agent that ran them.")
    ] = None,
    project: Annotated[str | None, typer.Option(help="The project they are about.")] = None,
    user: Annotated[str | None, typer.Option(metavar="ID", help="The user they served.")] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="A label for every session; repeatable.")
    ] = None,
) -> None:
    """Import what agents did elsewhere: transcripts, session files, exports, an AgentDB.

    It reads OpenAI and Anthropic chats, session files of Claude Code and Codex, trajectories of
    SWE-agent, mini-SWE-agent and OpenHands, results of tau2-bench, Inspect and Terminal-Bench,
    exports of mem0 and AgentLens, and Mneme's own output, and recognises them by their content.
    Importing twice changes nothing, and a file that grew adds only what is new. Broken records are
    reported and the rest goes in; the exit code is then 1.

    A database of AgentDB is brought over whole: memories, patterns, episodes, skills with their
    links, causal edges. --agentdb takes the one that AGENTDB_PATH names, else ./agentdb.db.
    """
    from mneme.importing.plan import Defaults
    from mneme.importing.run import Importer

    databases, paths = _databases(paths or [], agentdb=agentdb)
    whole = import_databases(cli, databases, dry_run=dry_run)
    if databases and not (paths or claude_code or codex):
        raise typer.Exit(0 if whole else exits.FAILED)
    _check_format(form)
    files = _files(paths or [], claude_code=claude_code, codex=codex)
    defaults = Defaults(agent_id=agent, project=project, user_id=user, tags=tuple(tag or ()))
    with ExitStack() as stack:
        client = None if dry_run else stack.enter_context(cli.connect(retries=2))
        progress = stack.enter_context(
            Progress([name for name, _ in files], shown=not cli.out.as_json)
        )
        importer = Importer(
            client,
            defaults=defaults,
            form=form,
            redact=redact,
            complete=True if complete else None,
            on_record=lambda: progress.update(importer.totals.records, importer.position),
            on_wait=progress.wait,
        )
        for name, found in files:
            _add(importer, name, found=found)
    _report(cli, importer.totals, dry_run=dry_run)
    if importer.totals.broken or not whole:
        raise typer.Exit(exits.FAILED)


def _databases(paths: list[str], *, agentdb: bool) -> tuple[list[Path], list[str]]:
    """The databases of AgentDB among what is named, and the rest."""
    from mneme.importing.agentdb import is_database

    named = [os.environ.get("AGENTDB_PATH") or "agentdb.db"] if agentdb else []
    for name in named:
        _check_readable(name)
    found = [name for name in paths if name != _STANDARD_INPUT and is_database(Path(name))]
    return [Path(name) for name in (*named, *found)], [name for name in paths if name not in found]


def _check_format(form: str) -> None:
    from mneme.importing.readers import readers

    if form != "auto" and form not in readers():
        raise InputError(f"--format {form}: unknown format; known formats: {', '.join(readers())}")


def _files(paths: list[str], *, claude_code: bool, codex: bool) -> list[tuple[str, bool]]:
    """The files to read, and whether each was found in a folder rather than named."""
    folders = []
    if claude_code:
        home = os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude"
        folders.append(Path(home) / "projects")
    if codex:
        home = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
        folders += [
            folder for name in ("sessions", "archived_sessions") if (folder := home / name).is_dir()
        ] or [home / "sessions"]
    if not paths and not folders:
        raise InputError("nothing to import: name files or folders, --claude-code or --codex")
    files: list[tuple[str, bool]] = []
    for name in [*paths, *map(str, folders)]:
        if name == _STANDARD_INPUT or not Path(name).is_dir():
            files.append((name, False))
        else:
            files += [(str(path), True) for path in _below(Path(name))]
    for name, _ in files:
        _check_readable(name)
    return files


def _below(folder: Path) -> list[Path]:
    from mneme.importing.run import files_below

    return files_below(folder)


def _check_readable(name: str) -> None:
    """Nothing is sent before all files are known to be there."""
    if name == _STANDARD_INPUT:
        return
    with _reported(name):
        if not Path(name).is_fifo():  # Who writes to a pipe ends with its first reader.
            Path(name).open("rb").close()


def _add(importer: Importer, name: str, *, found: bool) -> None:
    if name == _STANDARD_INPUT:
        importer.add_stream(sys.stdin.buffer, name)
        return
    with _reported(name):
        importer.add_path(Path(name), found=found)


@contextmanager
def _reported(name: str) -> Iterator[None]:
    """An error of the operating system as one that names the file."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}") from error


def _report(cli: Cli, totals: Totals, *, dry_run: bool) -> None:
    if cli.out.as_json:
        cli.out.line(json.dumps(_document(totals, dry_run=dry_run), ensure_ascii=False))
        return
    for broken in totals.broken[:_SHOWN_BROKEN]:
        cli.out.remark(f"{broken.place}: {cells.clean(broken.reason)}")
    hidden = len(totals.broken) - _SHOWN_BROKEN
    if hidden > 0:
        cli.out.remark(f"and {cells.plural(hidden, 'more broken record')}; --json lists all")
    for note, times in totals.notes.items():
        cli.out.remark(f"{cells.count(times)} {note}")
    if totals.skipped:
        skipped = cells.plural(len(totals.skipped), "file")
        cli.out.remark(f"{skipped} skipped: nothing in them is recognised; --json lists them")
    for what, counted in (("not known, kept as it is", totals.kept), ("masked", totals.masked)):
        if counted:
            cli.out.remark(f"{what}: {_listed(counted)}")
    if dry_run:
        for file in totals.files[:_SHOWN_FILES]:
            cli.out.line(_of_file(file))
        if len(totals.files) > _SHOWN_FILES:
            more = cells.plural(len(totals.files) - _SHOWN_FILES, "more file")
            cli.out.line(f"and {more}; --json lists all")
    cli.out.line(_summary(totals, dry_run=dry_run))


def _summary(totals: Totals, *, dry_run: bool) -> str:
    parts = [
        cells.plural(totals.sessions, "session"),
        cells.plural(totals.events, "new event"),
        *([cells.plural(totals.grades, "grade")] if totals.grades else []),
        *([cells.plural(totals.lessons, "lesson")] if totals.lessons else []),
        f"{cells.count(totals.duplicates)} already there",
        f"{cells.count(len(totals.broken))} broken",
    ]
    read = f"{cells.plural(totals.records, 'record')} read: {', '.join(parts)}"
    return f"dry run, nothing was sent. {read}" if dry_run else read


def _of_file(file: FileReport) -> str:
    """What a file would make, on one line."""
    parts = [
        " and ".join(file.formats) or "nothing recognised",
        cells.plural(len(file.sessions), "session"),
        f"{cells.plural(file.events.total(), 'event')}"
        + (f" ({_listed(file.events)})" if file.events else ""),
        *([cells.plural(file.lessons, "lesson")] if file.lessons else []),
        *([f"{cells.count(file.kept.total())} not known"] if file.kept else []),
        f"{cells.count(file.bytes)} bytes",
    ]
    return f"{file.file}: {', '.join(parts)}"


def _listed(counted: Counter[str]) -> str:
    return ", ".join(f"{cells.count(n)} {cells.clean(what)}" for what, n in counted.most_common())


def _document(totals: Totals, *, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "records": totals.records,
        "sessions": totals.sessions,
        "events": totals.events,
        "duplicates": totals.duplicates,
        "grades": totals.grades,
        "lessons": totals.lessons,
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
        "kept": dict(totals.kept),
        "masked": dict(totals.masked),
        "skipped": totals.skipped,
        "files": [
            {
                "file": file.file,
                "formats": dict(file.formats),
                "sessions": sorted(file.sessions),
                "events": dict(file.events),
                "lessons": file.lessons,
                "kept": dict(file.kept),
                "bytes": file.bytes,
            }
            for file in totals.files
        ],
    }
