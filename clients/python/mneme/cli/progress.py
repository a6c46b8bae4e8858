"""A progress bar on a terminal's standard error."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Sequence
from types import TracebackType
from typing import BinaryIO

from mneme.cli.output import terminal

_INTERVAL_S = 0.1


class Progress:
    """Shows how much of some files is read; shows nothing where no terminal is.

    Args:
        sources: the files, each with its name. Pipes have no size, and show no share.
        shown: False shows nothing at all.
    """

    def __init__(self, sources: Sequence[tuple[str, BinaryIO]], *, shown: bool) -> None:
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
        self._sizes = {stream: _size(stream) for _, stream in sources}
        sizes = list(self._sizes.values())
        total = None if None in sizes else sum(size or 0 for size in sizes)
        self._task = self._bar.add_task("", total=total, state="")
        self._next = 0.0

    def update(self, records: int) -> None:
        """Tell how many records were read so far."""
        now = time.monotonic()
        if self._bar.disable or now < self._next:
            return
        self._next = now + _INTERVAL_S
        read = sum(
            size if stream.closed else stream.tell()
            for stream, size in self._sizes.items()
            if size is not None
        )
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


def _size(stream: BinaryIO) -> int | None:
    try:
        status = os.fstat(stream.fileno())
    except OSError:  # It is no file of the operating system.
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
