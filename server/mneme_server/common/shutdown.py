"""The end of the process, which is told to stop at whatever moment, once or again.

A handler in Python runs between any two steps of the main thread, also of one that holds the lock
it would take, and while the process ends there are no handlers any more. So no handler is set:
the signals are blocked, in every thread, for as long as the process lives. They wait in the kernel
until one thread, which does nothing else, asks for them.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Set
from contextlib import suppress
from typing import NoReturn

_START_S = 2.0
"""How long a start may go on after the signal. It may hang, on an embedder behind HTTP for one."""

_CLOSE_S = 10.0
"""How long closing may take beyond the drain. What may hang has shorter limits of its own."""


def hold_signals() -> Set[signal.Signals]:
    """Block the signals that stop a server, in this thread and those it starts; return them.

    What the process starts inherits it, too: have a child unblock them. SIGHUP is left alone where
    it is ignored, as `nohup` has it.
    """
    held = {signal.SIGTERM, signal.SIGINT}
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        held.add(signal.SIGHUP)
    signal.pthread_sigmask(signal.SIG_BLOCK, held)
    return held


class Stopping:
    """Waits for a signal, and sees to it that the process ends soon after the first one.

    Make it before threads are started. Everything that was acknowledged is durable, so that a
    process whose start, drain or closing hangs may be left as it is: it ends with exit code 0.

    Args:
        drain_s: how long calls in flight may take, in seconds.
    """

    def __init__(self, drain_s: float) -> None:
        self._drain_s = drain_s
        self._told = threading.Event()
        self._serving = threading.Event()
        held = hold_signals()
        threading.Thread(target=self._watch, args=(held,), name="signals", daemon=True).start()

    def wait(self) -> None:
        """Say that the start is over, and wait for the signal."""
        self._serving.set()
        self._told.wait()

    def _watch(self, held: Set[signal.Signals]) -> None:
        import structlog  # Not above: the process begins with this module.

        log = structlog.get_logger(__name__)
        number = signal.sigwait(held)
        log.info("shutting down", signal=signal.Signals(number).name, drain_seconds=self._drain_s)
        self._told.set()
        if not self._serving.wait(_START_S):
            log.warning("told to stop while starting; giving up")
            leave(0)
        threading.Event().wait(self._drain_s + _CLOSE_S)
        log.warning("not everything closed in time; leaving the rest as it is")
        leave(0)


def leave(code: int) -> NoReturn:
    """End the process now, whatever its threads are doing.

    For when everything is written and closed, or never will be: the interpreter would wait for
    threads without end, and tear down what others still use.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # The terminal is gone.
            stream.flush()
    os._exit(code)
