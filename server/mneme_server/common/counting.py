"""Counters that may be counted up for ever."""

from __future__ import annotations

MAX_COUNT = 2**53 - 1
"""Where counters stop: every client holds it exactly, and SQLite does not turn it into a float."""


def counted(value: float) -> int:
    """Return a counter's value; one that overflowed in the database is a float there."""
    return min(int(value), MAX_COUNT)
