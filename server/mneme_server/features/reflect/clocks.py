"""Sessions whose clocks are far off: what is told over time is told without them.

A machine that lost its clock dates two of three hundred sessions fifty years back. Spans of time
that cover those, too, hold all others in one of them, so that nothing that changes is seen.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.clock import DAY_US
from mneme_server.common.humanize import day
from mneme_server.features.reflect.history import NONE, History, Ints
from mneme_server.features.reflect.wording import plural

_APART_US = 365 * DAY_US
"""Between the sessions that are set aside and the others there is at least that much time, and more
than all of the others take together."""
_MOST = 0.05
"""Of all sessions, the share that is set aside at most: more are a part of the record."""


def far_off(starts: Ints) -> NDArray[np.bool_]:
    """Tell which of the times (n,), in microseconds, are of clocks that are far off."""
    found = np.zeros(len(starts), bool)
    if len(starts) < 2:
        return found
    order = np.argsort(starts, kind="stable")
    ordered = starts[order]
    gaps = np.diff(ordered)
    group = np.r_[0, np.cumsum(gaps >= _APART_US)]
    largest = int(np.bincount(group).argmax())
    first, last = np.searchsorted(group, [largest, largest + 1])
    others = len(starts) - (last - first)
    lasts = ordered[last - 1] - ordered[first]
    beside = [gaps[i] for i in (first - 1, last - 1) if 0 <= i < len(gaps)]
    if 0 < others <= _MOST * len(starts) and min(beside) > lasts:
        found[order] = group != largest
    return found


def in_time(history: History) -> tuple[History, list[str]]:
    """Return the record without the sessions whose clocks are far off, and a note that names their
    days; the record itself where there are none."""
    off = far_off(history.sessions.start_us)
    if not off.any():
        return history, []
    kept = np.flatnonzero(~off)
    renumbered = np.full(len(off), NONE, np.int32)
    renumbered[kept] = np.arange(len(kept), dtype=np.int32)
    rows = renumbered[history.session] != NONE
    sessions = history.sessions
    left = replace(
        history,
        sessions=replace(
            sessions,
            ids=[sessions.ids[i] for i in kept.tolist()],
            outcome=sessions.outcome[kept],
            start_us=sessions.start_us[kept],
            tags=[sessions.tags[i] for i in kept.tolist()],
            traits=[sessions.traits[i] for i in kept.tolist()],
            has_events=sessions.has_events[kept],
        ),
        session=renumbered[history.session[rows]],
        columns={column: values[rows] for column, values in history.columns.items()},
    )
    return left, [_note(sessions.start_us[off], left.sessions.start_us)]


def _note(off: Ints, others: Ints) -> str:
    first, last = day(int(off.min())), day(int(off.max()))
    dated = f"on {first}" if first == last else f"between {first} and {last}"
    return (
        f"{plural(len(off), 'session')} dated {dated} left out of what is told over time: the"
        f" others began between {day(int(others.min()))} and {day(int(others.max()))}, so that"
        f" {'its' if len(off) == 1 else 'their'} clock must be far off"
    )
