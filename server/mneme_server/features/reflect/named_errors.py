"""Errors of one template that end differently by whom they name: a database that times out is
fatal, a cache that does is not, and told together they would be neither."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mneme_server.statistics.inference import Ints, fisher_exact

MOST_NAMES = 30
"""Names in errors of one template that are compared: of more, none is likely to be a kind."""
_LEAST = 10
"""Sessions with a name, and with others, that are compared."""
_SURELY = 0.001
"""They are kept apart only where they surely differ: what is said of them is tested after that."""
_APART = 0.2
"""And by this share of their sessions."""


class SessionEnds(NamedTuple):
    """How sessions (s,) ended: whether that is known, and whether they failed."""

    known: NDArray[np.bool_]
    failed: NDArray[np.bool_]


def apart(ends: SessionEnds, session: Ints, name: Ints) -> list[int]:
    """Return the names whose errors are told apart from those of the others.

    Args:
        ends: how sessions ended.
        session: that of each error of one template (k,).
        name: whom each names (k,), as a number.
    """
    counted = ends.known[session]
    every = np.unique(session[counted])
    names = np.unique(name)
    found = []
    for one in names.tolist():
        mine = np.unique(session[(name == one) & counted])
        others = np.setdiff1d(every, mine)
        if min(len(mine), len(others)) < _LEAST:
            continue
        counts = ends.failed[mine].sum(), len(mine), ends.failed[every].sum(), len(every)
        (p_value,) = fisher_exact(*(np.array([count], np.int64) for count in counts))
        differ = abs(ends.failed[mine].mean() - ends.failed[others].mean()) >= _APART
        if differ and p_value * len(names) <= _SURELY:
            found.append(one)
    # Where one is left, it is all that the others are: it is told by its name, too.
    return names.tolist() if found and len(names) - len(found) <= 1 else found


def renamed(
    groups: Mapping[int, str],
    texts: Sequence[str],
    ends: SessionEnds,
    session: Ints,
    message: Ints,
) -> dict[int, str]:
    """Return the groups of a tool's errors, with those told apart that end differently by whom
    they name.

    Args:
        groups: the group of each message, by its number.
        texts: the messages with the names in them, by their numbers.
        ends: how sessions ended.
        session: that of each error (k,).
        message: the number of its message (k,).
    """
    found = dict(groups)
    of_group: dict[str, list[int]] = {}
    for code, text in groups.items():
        of_group.setdefault(text, []).append(code)
    for members in of_group.values():
        if 1 < len(members) <= MOST_NAMES:
            mine = np.isin(message, members)
            found.update((one, texts[one]) for one in apart(ends, session[mine], message[mine]))
    return found
