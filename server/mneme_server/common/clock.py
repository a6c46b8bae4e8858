"""Time as Mneme keeps it: whole microseconds since 1970, UTC."""

from __future__ import annotations

import time

MICROSECONDS = 1_000_000
END_US = 253_402_300_800 * MICROSECONDS
"""The year 10000, which is beyond what is kept."""


def now_us() -> int:
    """Return the current time in microseconds since 1970, UTC."""
    return time.time_ns() // 1_000


def later_us(than_us: int) -> int:
    """Return the current time, or the moment after `than_us` if that is later; never beyond what is
    kept."""
    return min(max(now_us(), than_us + 1), END_US - 1)
