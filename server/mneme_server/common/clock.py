"""Time as Mneme keeps it, whole microseconds since 1970, UTC; and pauses after failures."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta

MICROSECONDS = 1_000_000
MINUTE_US = 60 * MICROSECONDS
HOUR_US = 60 * MINUTE_US
DAY_US = 24 * HOUR_US
END_US = 253_402_300_800 * MICROSECONDS
"""The year 10000, which is beyond what is kept."""

_MOST_DOUBLINGS = 64
"""Enough for any pause; a thousand are more than a float holds."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def now_us() -> int:
    """Return the current time in microseconds since 1970, UTC."""
    return time.time_ns() // 1_000


def today() -> date:
    """Return the day that it is in UTC."""
    return datetime.now(UTC).date()


def later_us(than_us: int) -> int:
    """Return the current time, or the moment after `than_us` if that is later; never beyond what is
    kept."""
    return min(max(now_us(), than_us + 1), END_US - 1)


def rfc3339(time_us: int) -> str:
    """Return a time as RFC 3339 writes it, in UTC, to the microsecond.

    Raises:
        OverflowError: it is beyond the years that are written so.
    """
    at = (_EPOCH + timedelta(microseconds=time_us)).replace(tzinfo=None)
    return f"{at.isoformat(timespec='microseconds')}Z"


def from_rfc3339(text: str) -> int:
    """Return a time in microseconds since 1970.

    Raises:
        ValueError: the text is no time, or does not say of which zone.
    """
    time_of = datetime.fromisoformat(text)
    if time_of.tzinfo is None:
        raise ValueError(f"{text!r} does not say of which zone it is")
    return (time_of - _EPOCH) // timedelta(microseconds=1)


def doubled(first_s: float, times: int, longest_s: float) -> float:
    """Return the pause, in seconds, after so many failures beyond the first.

    Each is twice as long as the one before, up to the longest.
    """
    return min(longest_s, first_s * 2.0 ** min(times, _MOST_DOUBLINGS))
