"""The `mneme` command: puts the groups together, and turns errors into exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import NoReturn, cast

import typer
from typer.main import get_command

from mneme.cli import exits
from mneme.cli.app import App, settings_callback
from mneme.cli.commands import COMMANDS, Commands


def build() -> Commands:
    """The command line; a command is imported when a line names it."""
    app = App(
        name="mneme",
        cls=Commands,
        help="The memory of AI agents: record, recall, and keep lessons.",
        epilog=exits.HELP,
        add_completion=True,
        pretty_exceptions_enable=False,
    )
    app.callback()(settings_callback)
    return cast(Commands, get_command(app))


def build_whole() -> Commands:
    """The command line with all of its commands, for who looks through it."""
    root = build()
    for name in COMMANDS:
        root.load(name)
    return root


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Whatever the locale says, stored texts hold every character.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    # What a connection failed of is in our own message; gRPC would write its words beside it.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        code = build().main(args=given, prog_name="mneme", standalone_mode=False)
    except typer.Abort:
        print("mneme: stopped; nothing was done", file=sys.stderr)
        sys.exit(exits.FAILED)
    except Exception as error:
        code = _report(error, as_json="--json" in given)
        # A host takes 2 from a hook for a veto: it would not compact, or not end the turn.
        vetoes = code == exits.USAGE and ("hooks", "run") in pairwise(given)
        sys.exit(exits.FAILED if vetoes else code)
    sys.exit(code or exits.OK)


def _report(error: Exception, *, as_json: bool) -> int:
    code = exits.code_of(error)
    if code is None or os.environ.get("MNEME_DEBUG"):
        raise error
    print(
        exits.as_json(error, code) if as_json else f"mneme: {exits.explain(error)}", file=sys.stderr
    )
    return code
