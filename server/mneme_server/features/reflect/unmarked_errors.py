"""Answers of tools that nothing marks as errors, and whose text holds a stack trace."""

from __future__ import annotations

import numpy as np

from mneme_server.features.events.history import Column, HistoryReader
from mneme_server.features.reflect.history import History
from mneme_server.features.reflect.model import EVIDENCE, Insight
from mneme_server.features.reflect.wording import called, plural

UNMARKED_ERROR = "unmarked_error"
_FEW = 3
"""Sessions that a finding is of at the least."""


def unmarked_errors(history: History, reader: HistoryReader) -> list[Insight]:
    """Return of each tool that some of its answers may be errors, those in the most sessions first:
    a guess by their text, since a tool may also print what a log holds."""
    rows = np.flatnonzero(history[Column.TRACE])
    names = history[Column.NAME][rows]
    found = []
    for name in np.unique(names).tolist():
        mine = rows[names == name]
        sessions = np.unique(history.session[mine])
        if len(sessions) < _FEW:
            continue
        newest = [int(cursor) for cursor in history[Column.CURSOR][mine][::-1][:EVIDENCE]]
        facts = reader.facts(newest)
        tool = history.names[name]
        found.append(
            Insight(
                type=UNMARKED_ERROR,
                summary=(
                    f"{plural(len(mine), 'answer')} of {called(tool)} in"
                    f" {plural(len(sessions), 'session')} may"
                    f" be errors that nothing marks as such: their text holds a Python traceback."
                    " That is a guess, and they count as no errors."
                ),
                data={"tool_name": tool, "count": len(mine), "sessions_affected": len(sessions)},
                session_ids=history.sessions.newest(sessions),
                event_ids=tuple(facts[cursor].id for cursor in newest),
                strength=float(len(sessions)),
            )
        )
    return sorted(found, key=lambda insight: -insight.strength)
