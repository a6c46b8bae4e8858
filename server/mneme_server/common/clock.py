"""Time as Mneme keeps it: whole microseconds since 1970, UTC."""

from __future__ import annotations

import time

MICROSECONDS = 1_000_000


def now_us() -> int:
    """Return the current time in microseconds since 1970, UTC."""
    return time.time_ns() // 1_000
