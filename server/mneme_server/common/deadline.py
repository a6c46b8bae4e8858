"""How much time the work at hand has left.

The transport says for each call how to find out. Whatever waits on the call's behalf, however deep
below, asks here before and while it waits, so that nothing is done for a caller who has left, and
no port needs a parameter for it. Work of the server's own has no limit.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

TimeLeft = Callable[[], float | None]
"""Returns the seconds left, 0 when nobody waits any more, None without a limit."""

_current: ContextVar[TimeLeft] = ContextVar("mneme_time_left", default=lambda: None)


def enter(left: TimeLeft) -> None:
    """Have the rest of this context ask `left`. Threads that it starts do not inherit it."""
    _current.set(left)


def time_left() -> float | None:
    """Return the seconds left, 0 when nobody waits any more, None without a limit."""
    return _current.get()()
