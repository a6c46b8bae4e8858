"""A progress bar on a terminal's standard error."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Sequence
from types import TracebackType

from mneme.cli.output import terminal

_INTERVAL_S = 0.1


class Progress:
    """Shows how much of some files is read; shows nothing where no terminal is.

    Args:
        files: their names. Pipes have no size, and show no share.
        shown: False shows nothing at all.
    """

    def __init__(self, files: Sequence[str], *, shown: bool) -> None:
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        console = terminal(stderr=True)
        self._bar = RichProgress(
            TextColumn("importing"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[state]}"),
            console=console,
            disable=not (shown and console.is_terminal),
            transient=True,
        )
        sizes = [_size(name) for name in files]
        total = None if None in sizes else sum(size or 0 for size in sizes)
        self._task = self._bar.add_task("", total=total, state="")
        self._next = 0.0

    def update(self, records: int, read: int) -> None:
        """Tell how many records and bytes were read so far."""
        now = time.monotonic()
        if self._bar.disable or now < self._next:
            return
        self._next = now + _INTERVAL_S
        self._bar.update(self._task, completed=read, state=f"{records:,} records")

    def wait(self, seconds: float, why: str) -> None:
        """Tell that the server asked for a pause."""
        self._bar.update(self._task, state=f"waiting {seconds:.0f} s: {why}")

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()


def _size(name: str) -> int | None:
    try:
        status = os.stat(name)
    except OSError:  # It is standard input, or gone.
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
