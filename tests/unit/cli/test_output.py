"""Tables for terminals of every width."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme.cli.output import Column, Output, _wrapped
from rich.cells import cell_len
from unit.cli.command import _Stream

_WORDS = st.lists(
    st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12), max_size=30
)


@given(_WORDS, st.integers(4, 40), st.integers(1, 4))
def test_a_wrapped_text_keeps_its_width_and_its_beginning(
    words: list[str], width: int, lines: int
) -> None:
    text = " ".join(words)
    pieces = _wrapped(text, width, lines)
    assert len(pieces) <= lines
    assert all(cell_len(piece) <= width for piece in pieces)
    joined = "".join(pieces).replace(" ", "").removesuffix("…")
    assert text.replace(" ", "").startswith(joined.rstrip())
    if not pieces[-1].endswith("…"):
        assert joined == text.replace(" ", "")


def shown(
    monkeypatch: pytest.MonkeyPatch, width: int, columns: list[Column], rows: list[list[str]]
) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    stream = _Stream(terminal=True)
    monkeypatch.setattr("sys.stdout", stream)
    Output(as_json=False).table(columns, rows)
    return re.sub(r"\x1b\[\d*m", "", stream.text()).splitlines()


COLUMNS = [
    Column("Id"),
    Column("Note", flexible=True, optional=2),
    Column("Count", right=True, optional=1),
    Column("Text", flexible=True, least=20, lines=2),
]
ROWS = [["a" * 10, "note " * 10, "12", "word " * 40], ["b", "n", "3456", "short"]]


@pytest.mark.parametrize("width", [20, 34, 40, 60, 80, 120, 400])
def test_a_table_fits_its_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, width, COLUMNS, ROWS)
    assert all(cell_len(line) <= width for line in lines)
    assert lines[2].startswith("a" * 10)


def test_columns_are_left_out_in_the_order_of_their_use(monkeypatch: pytest.MonkeyPatch) -> None:
    heads = [shown(monkeypatch, width, COLUMNS, ROWS)[0].split() for width in (120, 42, 34)]
    assert heads == [["Id", "Note", "Count", "Text"], ["Id", "Count", "Text"], ["Id", "Text"]]


def test_wide_characters_take_the_cells_that_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, 30, [Column("A"), Column("B")], [["日本", "x"], ["a", "y"]])
    assert lines[2].index("x") == 4
    assert lines[3].index("y") == 6


def test_numbers_stand_to_the_right(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, 80, COLUMNS, [["a", "n", "5", "t"], ["b", "n", "500", "t"]])
    assert lines[2].index("5") == lines[3].index("500") + 2


def test_in_a_pipe_a_row_is_a_line_and_nothing_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    stream = _Stream()
    monkeypatch.setattr("sys.stdout", stream)
    Output(as_json=False).table(COLUMNS, ROWS)
    lines = stream.text().splitlines()
    assert lines[0].split() == ["ID", "NOTE", "COUNT", "TEXT"]
    assert len(lines) == 3
    assert "\x1b" not in stream.text()
    assert all(line == line.rstrip() for line in lines)
