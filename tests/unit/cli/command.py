"""Runs the command line in this process, and keeps what it wrote."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any
from unittest import mock

from mneme.cli.main import run


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def documents(self) -> list[Any]:
        return [json.loads(line) for line in self.lines]


class _Stream(io.TextIOWrapper):
    """A text stream over bytes, as sys.stdout is, on a terminal or not."""

    def __init__(self, data: bytes = b"", *, terminal: bool = False) -> None:
        self._terminal = terminal
        super().__init__(io.BytesIO(data), encoding="utf-8", write_through=True)

    def isatty(self) -> bool:
        return self._terminal

    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode()  # type: ignore[attr-defined]


def mneme(*arguments: str, stdin: str | bytes = "", terminal: bool = False) -> Result:
    """Run `mneme` with these arguments; `terminal` says that a person looks on."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    out, err = _Stream(terminal=terminal), _Stream(terminal=terminal)
    with redirect_stdout(out), redirect_stderr(err), mock.patch("sys.stdin", _Stream(data)):
        try:
            run(list(arguments))
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    return Result(code, out.text(), err.text())
