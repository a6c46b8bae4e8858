"""Pauses that double with each failure, up to the longest."""

from __future__ import annotations

_MOST_DOUBLINGS = 64
"""Enough for any pause; a thousand are more than a float holds."""


def doubled(first_s: float, times: int, longest_s: float) -> float:
    """Return the pause, in seconds, after so many failures beyond the first."""
    return min(longest_s, first_s * 2.0 ** min(times, _MOST_DOUBLINGS))
