"""One call at a time begins to work in Python; the others wait for their turn, once.

All threads share the interpreter's lock, and every query and every answer sent gives it up for some
microseconds. Where another thread waits for it just then, that one is woken on another processor,
and the first must be woken again afterwards. With 30 calls in flight on two processors, reading one
session took two to three times the processor time that it takes alone, and fewer calls were
answered a second than with two in flight.

A turn is a courtesy and protects nothing. Who waits for something, or works in a library, leaves it
and goes on without it afterwards; and who does not get it within some milliseconds goes on, too, so
that nothing ever stands still for it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """Hands out the turn. Thread-safe.

    Args:
        patience_s: the longest wait for each call that is ahead, in seconds.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._turn = threading.Lock()
        self._counting = threading.Lock()  # Guards the one below.
        self._waiting = 0
        self._mine = threading.local()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Do the block when it is this thread's turn, or when it has waited for long enough."""
        self._mine.held = self._turn.acquire(blocking=False) or self._wait()
        try:
            yield
        finally:
            self.leave()

    def leave(self) -> None:
        """Let the next one begin; for whoever is about to wait. Does nothing without the turn."""
        if getattr(self._mine, "held", False):
            self._mine.held = False
            self._turn.release()

    def _wait(self) -> bool:
        with self._counting:
            self._waiting += 1
            ahead = self._waiting
        try:
            return self._turn.acquire(timeout=self._patience_s * ahead)
        finally:
            with self._counting:
                self._waiting -= 1


turns = Turns(sys.getswitchinterval())
"""Of this process, which has one interpreter. Its own threads give way after as long."""
