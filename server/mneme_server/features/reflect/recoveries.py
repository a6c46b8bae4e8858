"""What followed an error in sessions that succeeded all the same: what may have resolved it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mneme_server.features.events.history import Column, HistoryReader
from mneme_server.features.events.outcome import Outcome
from mneme_server.features.reflect.calls import Calls
from mneme_server.features.reflect.history import NONE, History, Ints
from mneme_server.features.reflect.model import Recovery
from mneme_server.features.reflect.tool_loops import argument_hashes

MAX_SHOWN = 5
"""Ways of recovery that are shown for an error."""
MAX_PATH = 3
"""Calls of a way that tell it from others, the last ones; those that failed, and repeated ones, are
left out."""
SAME_CALL = "same_call"
OTHER_ARGUMENTS = "other_arguments"
SAME_TOOL = "same_tool"
"""Of one of the two calls the arguments were not recorded."""
OTHER_TOOL = "other_tool"
NO_CALL = "no_call"


class _Way(NamedTuple):
    """How one session went on: from its last such error, `before` (the call that failed or came
    last before it), to the call that did not fail, `NONE` without one."""

    session: int
    row: int
    before: int
    call: int
    is_same_tool: bool


class Recoveries:
    """Finds what followed errors.

    Args:
        history: the record.
        reader: where arguments and ids are read.
        calls: the calls.
    """

    def __init__(self, history: History, reader: HistoryReader, calls: Calls) -> None:
        self._history = history
        self._reader = reader
        self._calls = calls
        failed = np.zeros(len(calls), bool)
        failed[calls.failed] = True
        self._failed: NDArray[np.bool_] = failed
        self._good = np.flatnonzero(~failed)
        self._good_session = calls.session[self._good]
        self._good_event = calls.event[self._good]

    def after(
        self, rows: Ints, befores: Ints, *, of_tool: bool
    ) -> tuple[tuple[Recovery, ...], Mapping[str, int]]:
        """Return what followed an error in the sessions that succeeded, the most frequent ways
        first, and the sessions of each kind of way in all.

        Args:
            rows: the errors (k,) as places among the events.
            befores: for each (k,) the call that failed so, or the last call before it; `NONE`
                without.
            of_tool: whether the calls of `befores` failed so.
        """
        last = self._last_of_each_session(rows)
        ways = [self._way(int(rows[i]), int(befores[i]), of_tool) for i in last]
        compared = {call for way in ways if way.is_same_tool for call in (way.before, way.call)}
        arguments = argument_hashes(
            self._history, self._reader, self._calls, np.array(sorted(compared), np.int64)
        )
        found: dict[tuple[str, tuple[str, ...]], list[_Way]] = defaultdict(list)
        for way in ways:
            found[self._described(way, arguments)].append(way)
        ranked = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))[:MAX_SHOWN]
        kinds: Counter[str] = Counter()
        for (kind, _), alike in found.items():
            kinds[kind] += len(alike)
        return tuple(self._shown(kind, tools, alike) for (kind, tools), alike in ranked), kinds

    def _last_of_each_session(self, rows: Ints) -> Ints:
        """Return the places in `rows` of the last such error of each session that succeeded."""
        session = self._history.session[rows]
        won = np.flatnonzero(self._history.sessions.outcome[session] == Outcome.SUCCESS)
        order = won[np.lexsort((rows[won], session[won]))]
        ordered = session[order]
        ends = np.r_[ordered[1:] != ordered[:-1], True] if len(order) else np.zeros(0, bool)
        last: Ints = order[ends]
        return last

    def _way(self, row: int, before: int, of_tool: bool) -> _Way:
        calls, good = self._calls, self._good
        session = int(self._history.session[row])
        if before != NONE:
            first = int(np.searchsorted(good, before + 1))
        else:  # Nothing was called before it in its session: what comes after it counts.
            first = int(np.searchsorted(self._good_event, row))
        end = int(np.searchsorted(self._good_session, session, side="right"))
        after = good[first:end]
        if not len(after):
            return _Way(session, row, before, NONE, False)
        same = after[calls.tool[after] == calls.tool[before]] if of_tool else after[:0]
        call = int(same[0] if len(same) else after[0])
        return _Way(session, row, before, call, bool(len(same)))

    def _described(self, way: _Way, arguments: dict[int, int]) -> tuple[str, tuple[str, ...]]:
        if way.call == NONE:
            return NO_CALL, ()
        names, tool = self._history.names, self._calls.tool
        if not way.is_same_tool:
            return OTHER_TOOL, (names[tool[way.call]],)
        path = [tool[i] for i in range(way.before + 1, way.call + 1) if not self._failed[i]]
        path = [name for i, name in enumerate(path) if not i or name != path[i - 1]][-MAX_PATH:]
        before, then = arguments.get(way.before), arguments.get(way.call)
        if before is None or then is None:
            kind = SAME_TOOL
        else:
            kind = SAME_CALL if before == then else OTHER_ARGUMENTS
        return kind, tuple(names[i] for i in path)

    def _shown(self, kind: str, tools: tuple[str, ...], alike: list[_Way]) -> Recovery:
        newest = max(alike, key=lambda way: way.session)
        cursors = self._history[Column.CURSOR]
        error = int(cursors[newest.row])
        then = NONE if newest.call == NONE else int(cursors[self._calls.event[newest.call]])
        facts = self._reader.facts([error, then] if then != NONE else [error])
        return Recovery(
            kind=kind,
            tools=tools,
            sessions=len(alike),
            session_ids=self._history.sessions.newest(np.array([way.session for way in alike])),
            error_event_id=facts[error].id,
            event_id=facts[then].id if then != NONE else "",
        )
