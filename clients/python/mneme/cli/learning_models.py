"""`mneme learning download`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mneme.cli import cells
from mneme.cli.app import Cli
from mneme.cli.exits import InputError


def download(
    cli: Cli,
    *,
    session_id: Annotated[
        str, typer.Argument(metavar="SESSION", help="The session that was ended.")
    ],
    to: Annotated[
        Path,
        typer.Argument(
            metavar="[FILE]",
            help="Where to; in a folder it gets the name that the server gives it.",
        ),
    ] = Path(),
) -> None:
    """Write what a session exported when it ended to a file, which numpy.load reads."""
    from mneme import models

    try:
        with cli.connect() as client:
            done = models.download(client, session_id, to)
    except OSError as error:
        raise InputError(f"cannot write {to}: {error.strerror}") from error
    if cli.out.as_json:
        cli.out.message(done.model)
        return
    cli.out.line(str(done.path))
    size = cells.size(done.model.size_bytes)
    cli.out.remark(f"{size}, SHA-256 {done.model.sha256}")
