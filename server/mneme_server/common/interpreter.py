"""One call at a time begins to work in Python; the others wait for their turn, without a thread.

All threads share the interpreter's lock, and every query and every answer sent gives it up for some
microseconds. Where another thread waits for it just then, that one is woken on another processor,
and the first must be woken again afterwards. With 30 calls in flight on two processors, reading one
session took two to three times the processor time that it takes alone, and fewer calls were
answered a second than with two in flight.

A turn is a courtesy and protects nothing. Who waits for something, or works in a library, leaves it
and goes on without it afterwards. Who hands out turns (`edge.grpc.workers`) does not wait for one
longer than `PATIENCE_S`, so that nothing ever stands still for it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

PATIENCE_S = sys.getswitchinterval()
"""The interpreter's own threads give way after as long."""


class _Mine(threading.local):
    leave: Callable[[], None] | None = None


_mine = _Mine()


def begin_turn(leave: Callable[[], None]) -> None:
    """Begin this thread's turn; `leave` is called if it is left before its end."""
    _mine.leave = leave


def leave_turn() -> None:
    """Let the next one begin; for whoever is about to wait. Does nothing without the turn."""
    leave, _mine.leave = _mine.leave, None
    if leave is not None:
        leave()


def end_turn() -> bool:
    """End this thread's turn, and tell whether it still had it: `leave` is not called."""
    had, _mine.leave = _mine.leave is not None, None
    return had
