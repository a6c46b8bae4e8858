"""Calls go before work in the background, and few of them compute at once.

All threads share one interpreter, and its lock lets one of them run Python at a time. Work in the
background that runs beside a call takes from it, whatever its threads' priorities; and of many
calls that compute at once each only takes the lock from the others, a hundred times a call.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from mneme_server.common.deadline import time_left
from mneme_server.common.errors import Unavailable

T = TypeVar("T")

_QUIET_S = 0.02
"""Without a call for so long the foreground is quiet: a client that sends one call after the other
pauses for less."""
_GIVE_WAY_S = 0.25
"""The longest that work in the background waits for quiet before each step: calls without a pause
slow it down and do not stop it."""


class Foreground:
    """What the calls of one process are doing. Thread-safe.

    Args:
        at_once: calls that may compute at once; some of what they do is done in libraries, without
            the interpreter's lock. With eight recalls in flight and no limit, a third fewer were
            answered a second, and each took half as much processor time again.
    """

    def __init__(self, at_once: int = 2) -> None:
        self._slots = threading.Semaphore(at_once)
        self._changing = threading.Lock()  # Guards the three below.
        self._active = 0
        self._hurrying = 0
        self._last_s = float("-inf")  # When a call was last at work.

    @contextmanager
    def active(self) -> Iterator[None]:
        """Say that a call is at work, so that work in the background gives way."""
        with self._changing:
            self._active += 1
        try:
            yield
        finally:
            with self._changing:
                self._active -= 1
                self._last_s = time.monotonic()

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Compute for a call, once there is a free slot.

        Nothing inside may wait for others, but through `wait_outside`.

        Raises:
            Unavailable: nobody waits for the call any more.
        """
        with self.active(), self._slots:
            if time_left() == 0:  # To go on would only prolong the jam.
                raise Unavailable("the time for the call was up before its turn came")
            yield

    def wait_outside(self, wait: Callable[[], T]) -> T:
        """Return what `wait` returns; inside `computing`, give the slot away meanwhile."""
        self._slots.release()
        try:
            return wait()
        finally:
            self._slots.acquire()

    @contextmanager
    def hurry(self) -> Iterator[None]:
        """Say that a call waits for work in the background, so that it gives way to nobody."""
        with self._changing:
            self._hurrying += 1
        try:
            yield
        finally:
            with self._changing:
                self._hurrying -= 1

    def give_way(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Wait until the foreground is quiet, a quarter of a second at most."""
        until = clock() + _GIVE_WAY_S
        while not self._hurrying:
            now = clock()
            quiet_at = now + _QUIET_S if self._active else self._last_s + _QUIET_S
            pause = min(quiet_at, until) - now
            if pause <= 0:
                return
            sleep(pause)
