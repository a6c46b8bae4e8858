"""Answers for people (tables) and for machines (JSON lines).

On a terminal a table fits its width. In a pipe it has no colours and no borders, a row is one
line, and nothing is wrapped, so that `grep` and `cut` work; ids are never shortened.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mneme.cli.cells import Shown, cell_of, cut, facts_of

if TYPE_CHECKING:
    from rich.console import Console

    from mneme._core.answers import Answer

# What a pipe shows of a long text; whoever wants all of it asks for JSON.
_PIPED_PREVIEW = 200
_GAP = "  "
_NARROWEST = 8


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Args:
        title: its heading.
        shown: what it shows of a thing, where its table is one of things.
        flexible: on a terminal its text is cut to the room that the others leave.
        least: the cells that a flexible column needs to be of use.
        lines: the lines over which a flexible column's text may run on a terminal.
        optional: on a terminal without room for all, columns are left out, the largest number
            first; 0 stays.
        below: on a terminal its text stands on lines of its own, below the row.
        right: its values are numbers, and stand to the right.
        style: rich's style of its values.
    """

    title: str
    shown: Shown = ""
    flexible: bool = False
    least: int = 12
    lines: int = 1
    optional: int = 0
    below: bool = False
    right: bool = False
    style: str = ""


def row_of(columns: Sequence[Column], thing: Any) -> list[str]:
    """The cells of a thing's row."""
    return [cell_of(thing, column.shown) for column in columns]


class Output:
    """Writes answers to standard output, and remarks to standard error.

    Args:
        as_json: answer in JSON.
    """

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def message(self, message: Answer[Any]) -> None:
        """Write an answer as one line of JSON, with all its fields."""
        from mneme.plain import to_json

        self.line(to_json(message))

    def line(self, text: str) -> None:
        """Write a line as it is."""
        sys.stdout.write(f"{text}\n")

    def line_of(self, values: Mapping[str, object]) -> None:
        """Write plain values as one line of JSON."""
        self.line(json.dumps(values, ensure_ascii=False))

    def flush(self) -> None:
        """Show at once what was written: others may wait for it."""
        sys.stdout.flush()

    def remark(self, text: str) -> None:
        """Tell people something beside the answer."""
        print(text, file=sys.stderr)

    def done(self, text: str, message: Answer[Any]) -> None:
        """Say that something was done: in words, or with what the server answered."""
        if self.as_json:
            self.message(message)
        else:
            self.line(text)

    def thing(self, thing: Answer[Any], shown: Mapping[str, Shown]) -> None:
        """Write one thing: what is shown of it, by name, or all of it as JSON."""
        if self.as_json:
            self.message(thing)
        else:
            self.facts(facts_of(thing, shown))

    def facts(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Write names and values, aligned; empty values are left out."""
        shown = [(name, value) for name, value in pairs if value]
        width = max((len(name) for name, _ in shown), default=0)
        for name, value in shown:
            first, *more = value.split("\n")
            self.line(f"{name:<{width}}{_GAP}{first}".rstrip())
            for line in more:
                self.line(f"{'':<{width}}{_GAP}{line}".rstrip())

    def things(self, columns: Sequence[Column], things: Iterable[Any]) -> None:
        """Write a table with a row for each thing; nothing when there are none."""
        self.table(columns, [row_of(columns, one) for one in things])

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        """Write a table; nothing when there are no rows."""
        if not rows:
            return
        if sys.stdout.isatty():
            _terminal_table(columns, rows)
        else:
            _plain_table(columns, rows)


def _plain_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    table = [[column.title.upper() for column in columns]]
    table += [[cut(cell, _PIPED_PREVIEW) for cell in row] for row in rows]
    widths = _natural_widths(table)
    for row in table:
        cells = map(_padded, row, widths, (column.right for column in columns))
        sys.stdout.write(f"{_GAP.join(cells).rstrip()}\n")


def _terminal_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    console = terminal()
    inline = [i for i, column in enumerate(columns) if not column.below]
    below = [i for i, column in enumerate(columns) if column.below]
    table = [[columns[i].title for i in inline], *([row[i] for i in inline] for row in rows)]
    beside = [columns[i] for i in inline]
    shown = _shown(console.width, beside, _natural_widths(table))
    beside = [beside[i] for i in shown]
    table = [[row[i] for i in shown] for row in table]
    widths = _widths_within(console.width, beside, _natural_widths(table))
    _print_row(console, beside, table[0], widths, is_head=True)
    rule = "─" * (sum(widths) + len(_GAP) * (len(widths) - 1))
    console.print(rule, style="dim", crop=False, overflow="ignore", no_wrap=True)
    for row, whole in zip(table[1:], rows, strict=True):
        _print_row(console, beside, row, widths, is_head=False)
        for i in below:
            _print_below(console, columns[i], whole[i])


def _print_below(console: Console, column: Column, text: str) -> None:
    from rich.text import Text

    for line in _wrapped(text, console.width - len(_GAP), column.lines) if text else ():
        console.print(
            Text(f"{_GAP}{line}", column.style), crop=False, overflow="ignore", no_wrap=True
        )


def _print_row(
    console: Console,
    columns: Sequence[Column],
    row: Sequence[str],
    widths: Sequence[int],
    *,
    is_head: bool,
) -> None:
    from rich.text import Text

    cells = [_wrapped(cell, w, c.lines) for cell, w, c in zip(row, widths, columns, strict=True)]
    for number in range(max(map(len, cells))):
        line = Text()
        for column, cell, width in zip(columns, cells, widths, strict=True):
            piece = cell[number] if number < len(cell) else ""
            style = "bold" if is_head else column.style
            line.append(_padded(piece, width, column.right), style).append(_GAP)
        line.rstrip()
        console.print(line, crop=False, overflow="ignore", no_wrap=True)


def _natural_widths(table: Sequence[Sequence[str]]) -> list[int]:
    """How wide each column is when nothing is cut, in cells of a terminal."""
    from rich.cells import cell_len

    return [max(map(cell_len, cells)) for cells in zip(*table, strict=True)]


def _shown(total: int, columns: Sequence[Column], natural: Sequence[int]) -> list[int]:
    """Which columns a terminal has room for."""
    shown = list(range(len(columns)))

    def needed() -> int:
        least = (
            min(natural[i], columns[i].least) if columns[i].flexible else natural[i] for i in shown
        )
        return sum(least) + len(_GAP) * (len(shown) - 1)

    while needed() > total and any(columns[i].optional for i in shown):
        shown.remove(max(shown, key=lambda i: columns[i].optional))
    return shown


def _widths_within(total: int, columns: Sequence[Column], natural: Sequence[int]) -> list[int]:
    """Widths that fit a terminal: the flexible columns share what the others leave."""
    widths = list(natural)
    flexible = [i for i, column in enumerate(columns) if column.flexible]
    left = total - len(_GAP) * (len(widths) - 1)
    left -= sum(width for i, width in enumerate(widths) if i not in flexible)
    # The narrowest first: what one does not need, the next may have.
    for done, i in enumerate(sorted(flexible, key=lambda i: natural[i])):
        share = max(_NARROWEST, left // (len(flexible) - done))
        widths[i] = min(natural[i], share)
        left -= widths[i]
    return widths


def _wrapped(text: str, width: int, lines: int) -> list[str]:
    """A text in lines of so many cells; "…" ends one that does not fit."""
    from rich.cells import cell_len, set_cell_size

    found: list[str] = []
    rest = text
    while cell_len(rest) > width and len(found) < lines - 1:
        head = set_cell_size(rest, width)
        # Between words, unless the line would be half empty.
        space = head.rfind(" ")
        end = space if space > len(head) // 2 else len(head.rstrip())
        found.append(rest[:end])
        rest = rest[end:].lstrip()
    fits = cell_len(rest) <= width
    return [*found, rest if fits else set_cell_size(rest, max(0, width - 1)) + "…"]


def _padded(text: str, width: int, right: bool) -> str:
    """A text in exactly so many cells."""
    from rich.cells import cell_len

    padding = " " * (width - cell_len(text))
    return padding + text if right else text + padding


def terminal(*, stderr: bool = False) -> Console:
    """A rich console, which knows the width, and NO_COLOR."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)
