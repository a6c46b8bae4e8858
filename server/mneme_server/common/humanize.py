"""Times as people say them."""

from __future__ import annotations

from datetime import UTC, datetime

from mneme_server.common.clock import MICROSECONDS

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_UNITS = ((365 * _DAY, "year"), (30 * _DAY, "month"), (7 * _DAY, "week"), (_DAY, "day"),
          (_HOUR, "hour"), (_MINUTE, "minute"))  # fmt: skip


def day(time_us: int) -> str:
    """Return the day of a time, UTC; years that no calendar holds are shown as seconds."""
    try:
        return datetime.fromtimestamp(time_us / MICROSECONDS, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return f"{time_us // MICROSECONDS} s"


def ago(time_us: int, now_us: int) -> str:
    """Return how long ago a time was: "just now", "3 days ago", "1 week ago"."""
    seconds = (now_us - time_us) // MICROSECONDS
    if seconds < -_MINUTE:
        return "in the future"
    said = _in_units(seconds)
    return f"{said} ago" if said else "just now"


def lasting(seconds: int) -> str:
    """Return a duration: "45 seconds", "12 minutes", "1 hour 20 minutes"."""
    if seconds < _MINUTE:
        return _counted(max(seconds, 0), "second")
    if _HOUR <= seconds < _DAY:
        hours, rest = divmod(seconds, _HOUR)
        minutes = rest // _MINUTE
        said = _counted(hours, "hour")
        return f"{said} {_counted(minutes, 'minute')}" if minutes else said
    return _in_units(seconds)


def span(seconds: int) -> str:
    """Return how long a span is, to be said after "the last": "hour", "90 minutes", "week"; whole
    minutes, in the largest unit that says it exactly."""
    units = ((7 * _DAY, "week"), (_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute"))
    size, unit = next((one for one in units if seconds % one[0] == 0), units[-1])
    number = seconds // size
    return unit if number == 1 else _counted(number, unit)


def _in_units(seconds: int) -> str:
    for size, unit in _UNITS:
        if seconds >= size:
            return _counted(seconds // size, unit)
    return ""


def _counted(number: int, unit: str) -> str:
    return f"{number} {unit}{'' if number == 1 else 's'}"
