"""Answers for people (tables) and for machines (JSON lines).

On a terminal a table fits its width. In a pipe it has no colours and no borders, a row is one
line, and nothing is wrapped, so that `grep` and `cut` work; ids are never shortened.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mneme.cli.cells import cut

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from rich.console import Console

# What a pipe shows of a long text; whoever wants all of it asks for JSON.
_PIPED_PREVIEW = 200
_GAP = "  "


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Args:
        title: its heading.
        flexible: it gives way when the terminal is narrow, and its text is cut.
        right: its values are numbers, and stand to the right.
        needs_width: the terminal's least width at which it is shown at all.
        style: rich's style of its values.
    """

    title: str
    flexible: bool = False
    right: bool = False
    needs_width: int = 0
    style: str | None = None


class Output:
    """Writes answers to standard output, and remarks to standard error.

    Args:
        as_json: answer in JSON.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def message(self, message: Message) -> None:
        """Write a message as one line of JSON, with all its fields."""
        from mneme.messages import to_json

        self.line(to_json(message))

    def line(self, text: str) -> None:
        """Write a line as it is."""
        sys.stdout.write(f"{text}\n")

    def flush(self) -> None:
        """Show at once what was written: others may wait for it."""
        sys.stdout.flush()

    def remark(self, text: str) -> None:
        """Tell people something beside the answer."""
        print(text, file=sys.stderr)

    def done(self, text: str, message: Message) -> None:
        """Say that something was done: in words, or with what the server answered."""
        if self.as_json:
            self.message(message)
        else:
            self.line(text)

    def facts(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Write names and values, aligned; empty values are left out."""
        shown = [(name, value) for name, value in pairs if value]
        width = max((len(name) for name, _ in shown), default=0)
        for name, value in shown:
            first, *more = value.split("\n")
            self.line(f"{name:<{width}}{_GAP}{first}".rstrip())
            for line in more:
                self.line(f"{'':<{width}}{_GAP}{line}".rstrip())

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        """Write a table; nothing when there are no rows."""
        if not rows:
            return
        if sys.stdout.isatty():
            _terminal_table(columns, rows)
        else:
            for line in _plain_table(columns, rows):
                self.line(line)


def _plain_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Iterable[str]:
    from rich.cells import cell_len

    table = [[c.title.upper() for c in columns]]
    table += [[cut(cell, _PIPED_PREVIEW) for cell in row] for row in rows]
    widths = [max(cell_len(row[i]) for row in table) for i in range(len(columns))]
    for row in table:
        cells = []
        for column, cell, width in zip(columns, row, widths, strict=True):
            padding = " " * (width - cell_len(cell))
            cells.append(padding + cell if column.right else cell + padding)
        yield _GAP.join(cells).rstrip()


def _terminal_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console = terminal()
    shown = [i for i, column in enumerate(columns) if column.needs_width <= console.width]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in (columns[i] for i in shown):
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            style=column.style,
            no_wrap=True,
            overflow="ellipsis" if column.flexible else "fold",
            ratio=1 if column.flexible else None,
        )
    for row in rows:
        table.add_row(*(Text(row[i]) for i in shown))
    console.print(table)


def terminal(*, stderr: bool = False) -> Console:
    """A rich console, which knows the width, and NO_COLOR."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)
