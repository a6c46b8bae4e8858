"""Plain-text charts: a bar, and a line of bars."""

from __future__ import annotations

import math
from collections.abc import Sequence

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HEIGHTS = "▁▂▃▄▅▆▇█"
_NO_DATA = "·"


def bar(share: float, width: int = 10) -> str:
    """A share from 0 to 1 as a bar of at most `width` cells."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def sparkline(values: Sequence[float | None], width: int = 40) -> str:
    """A series as one line, its least value lowest; "·" where there is no data.

    A longer series is drawn by the means of its neighbouring values.
    """
    shown = _shortened(values, width)
    known = [value for value in shown if value is not None]
    if not known:
        return _NO_DATA * len(shown)
    low, span = min(known), max(known) - min(known)
    top = len(_HEIGHTS) - 1

    def mark(value: float | None) -> str:
        if value is None:
            return _NO_DATA
        return _HEIGHTS[round((value - low) / span * top) if span else top // 2]

    return "".join(map(mark, shown))


def _shortened(values: Sequence[float | None], width: int) -> list[float | None]:
    if len(values) <= width:
        return list(values)
    means: list[float | None] = []
    for i in range(width):
        part = values[i * len(values) // width : (i + 1) * len(values) // width]
        known = [value for value in part if value is not None]
        means.append(math.fsum(known) / len(known) if known else None)
    return means
