"""Plain-text charts: a bar, and a line of bars."""

from __future__ import annotations

import math
from collections.abc import Sequence

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HEIGHTS = "▁▂▃▄▅▆▇█"
_NO_DATA = "·"
_EIGHTHS_HIGH = f" {_HEIGHTS}"


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


def column_chart(values: Sequence[float], width: int = 60, height: int = 6) -> list[str]:
    """A series as columns that stand on its least value; the top line first.

    The first and the last line begin with the values that they stand for. A longer series is drawn
    by the means of its neighbouring values.
    """
    shown = [value for value in _shortened(values, width) if value is not None]
    if not shown:
        return []
    low, high = min(shown), max(shown)
    span = high - low
    if not span:
        return [f"{low:.4g} ┤{_HEIGHTS[len(_HEIGHTS) // 2] * len(shown)}"]
    # Each has at least an eighth: nothing to see would look like nothing known.
    most = height * 8 - 1
    eighths = [1 + round((value - low) / span * most) for value in shown]
    names = [f"{high:.4g}", *[""] * (height - 2), f"{low:.4g}"]
    room = max(map(len, names))
    lines = []
    for row, name in zip(range(height - 1, -1, -1), names, strict=True):
        cells = (_EIGHTHS_HIGH[max(0, min(8, column - row * 8))] for column in eighths)
        lines.append(f"{name:>{room}} ┤{''.join(cells)}".rstrip())
    return lines


def _shortened(values: Sequence[float | None], width: int) -> list[float | None]:
    if len(values) <= width:
        return list(values)
    means: list[float | None] = []
    for i in range(width):
        part = values[i * len(values) // width : (i + 1) * len(values) // width]
        known = [value for value in part if value is not None]
        means.append(math.fsum(known) / len(known) if known else None)
    return means
