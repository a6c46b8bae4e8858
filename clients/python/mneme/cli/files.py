"""Files that commands write and read."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from mneme._files import replacing
from mneme.cli import cells
from mneme.cli.app import Cli
from mneme.cli.exits import InputError

if TYPE_CHECKING:
    from mneme.client import MnemeClient

OutputFile = Annotated[Path | None, typer.Argument(help="Output file; default standard output.")]


@contextmanager
def written(file: Path | None) -> Iterator[TextIO]:
    """The file, whole or not at all; without one, standard output.

    Raises:
        InputError: it cannot be written.
    """
    if file is None:
        yield sys.stdout
        return
    try:
        with replacing(file) as target:
            yield target
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror}") from error


def export(
    cli: Cli, file: Path | None, documents: Iterable[str], one: str, many: str | None = None
) -> None:
    """Write documents, one a line, and say how many of what they are if they went to a file."""
    count = 0
    with written(file) as target:
        for document in documents:
            target.write(f"{document}\n")
            count += 1
    if file:
        cli.out.remark(f"{cells.plural(count, one, many)} written to {file}")


@contextmanager
def importing(cli: Cli, file: Path) -> Iterator[MnemeClient]:
    """A client to which a file is sent.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        with cli.connect(retries=4) as client:
            yield client
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from error


def imported(cli: Cli, totals: Any, one: str) -> None:
    """Say how many things of a file were created, and what became of the others."""
    from mneme.plain import to_json

    if cli.out.as_json:
        cli.out.line(to_json(totals))
        return
    cli.out.line(
        f"{cells.plural(totals.created_count, one)} created, "
        f"{cells.count(totals.replaced_count)} replaced, "
        f"{cells.count(totals.unchanged_count)} unchanged, "
        f"{cells.count(totals.skipped_count)} skipped"
    )
