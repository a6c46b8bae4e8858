"""A process that outlives the one that started it, and everything that process belongs to."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

DIED = 75
"""The exit code when the server did not live to report: another try may succeed."""

_LOG_BYTES = 1_000_000
"""The log is begun anew beyond this size; the one before is kept beside it."""


class Report:
    """Tells the process that waits for the start how it went; only the first word counts."""

    def __init__(self, descriptor: int | None = None) -> None:
        self._descriptor = descriptor

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits for the word."""
        return self._descriptor is not None

    def __call__(self, code: int, words: str = "") -> None:
        """Say that it serves (0), or why it does not."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            try:
                os.write(descriptor, json.dumps({"code": code, "words": words}).encode())
            except BrokenPipeError:  # Nobody waits any more.
                pass
            finally:
                os.close(descriptor)


def detached(log: Path, serve: Callable[[Report], int], complain: Callable[[str, int], int]) -> int:
    """Have a process of its own run `serve`, and wait until it reports.

    It is nobody's child, in a session of its own, with the log in the place of its output, so that
    neither the end of whoever started it nor a signal to its terminal or its process group reaches
    it. Call this before there are threads.

    Args:
        log: where its output goes.
        serve: runs in the new process and reports once.
        complain: shows words on this process's stderr; returns the exit code it is given.

    Returns:
        In this process, the code that was reported; in the new one, what `serve` returns.
    """
    if not hasattr(os, "fork"):
        return complain(f"{sys.platform} has no way to detach a server; start it without", 2)
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        os.setsid()
        _print_to(log)
        return serve(Report(writing))
    os.close(writing)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # Only the server holds them back.
    with open(reading, "rb") as pipe:
        said = pipe.read()
    if not said:
        return complain(f"the server ended while it started; {log} may say why", DIED)
    report = json.loads(said)
    return complain(report["words"], report["code"])


def _print_to(log: Path) -> None:
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    sys.stdout.flush()
    sys.stderr.flush()
    with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)


def bound(log: Path) -> None:
    """Begin the log anew when it is long. For the process that prints to it."""
    try:
        is_long = log.stat().st_size > _LOG_BYTES
    except OSError:
        return
    if is_long:
        log.replace(log.with_suffix(".log.1"))
        _print_to(log)
