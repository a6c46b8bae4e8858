"""The deadline of the work at hand: how much time it has left.

The transport says for each call how to find out. Whatever works or waits on the call's behalf,
however deep below, asks here: before it begins, while it waits, and between the parts of what takes
long, so that nothing is done for a caller who has left, and no port needs a parameter for it. Work
of the server's own has no limit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from mneme_server.common import interpreter
from mneme_server.common.errors import Unavailable

LOOK_EVERY_S = 0.25
"""How often who waits looks whether its caller still does."""

TimeLeft = Callable[[], float | None]
"""Returns the seconds left, 0 when nobody waits any more, None without a limit."""


def _no_limit() -> None:
    return None


_current: ContextVar[TimeLeft] = ContextVar("mneme_time_left", default=_no_limit)


class Abandoned(Unavailable):
    """Nobody waits for the answer any more: the caller has left, or its deadline has passed."""

    def __init__(self) -> None:
        super().__init__("the time for the call was up before it was done")


def enter(left: TimeLeft) -> None:
    """Have this context ask `left` until it leaves. Threads that it starts do not inherit it."""
    _current.set(left)


def leave() -> None:
    """Forget what `enter` was given: the context may be part of it, and neither would be freed."""
    _current.set(_no_limit)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Have the block ask for this time at most, or less where less is left."""
    outer, until = _current.get(), time.monotonic() + seconds

    def left() -> float:
        mine, given = max(0.0, until - time.monotonic()), outer()
        return mine if given is None else min(mine, given)

    token = _current.set(left)
    try:
        yield
    finally:
        _current.reset(token)


def current() -> TimeLeft:
    """Return what tells the time left of the work at hand, for threads that work on its behalf."""
    return _current.get()


def time_left() -> float | None:
    """Return the seconds left, 0 when nobody waits any more, None without a limit."""
    return _current.get()()


def check() -> None:
    """Go on only while somebody waits.

    Raises:
        Abandoned: nobody does any more.
    """
    if time_left() == 0:
        raise Abandoned


def pause(seconds: float) -> float:
    """Return how long to wait before looking again: so many seconds, or the time that is left."""
    left = time_left()
    return seconds if left is None else min(seconds, left)


def taken(places: threading.Semaphore, seconds: float) -> bool:
    """Take a place, and wait for it so long at most; return whether one was free in time.

    Raises:
        Abandoned: nobody waits for the call any more.
    """
    if places.acquire(timeout=pause(seconds)):
        return True
    check()
    return False


@contextmanager
def holding(lock: threading.Lock) -> Iterator[None]:
    """Hold a lock for the block, and wait for it only while somebody waits for the call.

    Raises:
        Abandoned: nobody does any more.
    """
    if not lock.acquire(blocking=False):
        interpreter.leave_turn()
        while not lock.acquire(timeout=pause(LOOK_EVERY_S)):
            check()
    try:
        yield
    finally:
        lock.release()


def wait_for(changed: threading.Condition, holds: Callable[[], bool], seconds: float) -> bool:
    """Wait until something holds, so long at most; the caller has the condition's lock.

    Raises:
        Abandoned: nobody waits for the call any more.
    """
    until = time.monotonic() + seconds
    while not holds():
        check()
        left = until - time.monotonic()
        if left <= 0:
            return False
        interpreter.leave_turn()
        changed.wait(pause(min(left, LOOK_EVERY_S)))
    return True
