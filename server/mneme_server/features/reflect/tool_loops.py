"""The same call made again and again."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from mneme_server.common.canonical import canonical_json
from mneme_server.features.events.event_types import Part, playing
from mneme_server.features.events.history import Column, HistoryReader
from mneme_server.features.reflect.calls import Calls, runs_of
from mneme_server.features.reflect.history import History, Ints, kind_is
from mneme_server.features.reflect.model import ToolLoop

LOOP = 3
"""The same call so often in a row is a loop."""
_MAX_ARGUMENTS = 300
_ARGUMENT_KEYS = ("arguments", "args", "input", "parameters", "kwargs")
_NOT_ARGUMENTS = frozenset(
    {"call_id", "callId", "tool_call_id", "id", "timestamp", "duration_ms", "durationMs", "usage"}
)


@dataclass(slots=True)
class _Loop:
    longest: int = 0
    runs: int = 0
    sessions: list[int] = field(default_factory=list)


def tool_loops(
    calls: Calls, history: History, reader: HistoryReader, limit: int
) -> tuple[ToolLoop, ...]:
    """Find runs of the same call; the arguments are read only where the tool repeats."""
    found: dict[tuple[int, str], _Loop] = defaultdict(_Loop)
    for session, tool, arguments, length in _repeated(calls, history, reader):
        loop = found[(tool, arguments)]
        loop.longest = max(loop.longest, length)
        loop.runs += 1
        loop.sessions.append(session)
    ranked = sorted(found.items(), key=lambda item: (-item[1].longest, -item[1].runs, item[0]))
    return tuple(
        ToolLoop(
            tool=history.names[tool],
            arguments=arguments[:_MAX_ARGUMENTS],
            longest_run=loop.longest,
            runs=loop.runs,
            session_ids=history.sessions.newest(np.array(loop.sessions)),
        )
        for (tool, arguments), loop in ranked[:limit]
    )


def _repeated(
    calls: Calls, history: History, reader: HistoryReader
) -> Iterator[tuple[int, int, str, int]]:
    """Yield session, tool, arguments and length of each run of at least `LOOP` equal calls."""
    if not len(calls):
        return
    same_tool = np.r_[
        False,
        (calls.tool[1:] == calls.tool[:-1]) & (calls.session[1:] == calls.session[:-1]),
    ]
    starts, lengths = runs_of(same_tool)
    in_run = np.repeat(lengths >= LOOP, lengths)
    candidates = np.flatnonzero(in_run)
    known = np.zeros(len(calls), bool)
    hashes = np.zeros(len(calls), np.int64)
    for call, of_call in argument_hashes(history, reader, calls, candidates).items():
        known[call], hashes[call] = True, of_call
    same = same_tool & known & np.r_[False, known[:-1] & (hashes[1:] == hashes[:-1])] & in_run
    starts, lengths = runs_of(same)
    looping = np.flatnonzero((lengths >= LOOP) & in_run[starts])
    at = {int(history[Column.CURSOR][calls.event[starts[i]]]): int(i) for i in looping}
    for cursor, payload in reader.payloads(sorted(at)):
        run = at[cursor]
        call = starts[run]
        yield (
            int(calls.session[call]), int(calls.tool[call]), arguments_of(payload),
            int(lengths[run]),
        )  # fmt: skip


def argument_hashes(
    history: History, reader: HistoryReader, calls: Calls, chosen: Ints
) -> dict[int, int]:
    """Return the hash of the arguments of the chosen calls (k,), where they are known: a million
    long ones need no memory.

    That two calls were recorded without arguments does not say that they were made with the same.
    What stands for a call that was not recorded is its error, which says nothing of them.
    """
    chosen = chosen[kind_is(history, *playing(Part.CALL))[calls.event[chosen]]]
    cursors = history[Column.CURSOR][calls.event[chosen]]
    order = np.argsort(cursors)
    place = dict(zip(cursors[order].tolist(), chosen[order].tolist(), strict=True))
    return {
        place[cursor]: hash(arguments)
        for cursor, payload in reader.payloads(cursors[order].tolist())
        if (arguments := arguments_of(payload))
    }


def arguments_of(payload: str) -> str:
    """Return what a call was made with, as canonical JSON: its payload's arguments, or all of the
    payload but what tells one call from the next; empty where neither says anything."""
    if payload == "{}":
        return ""
    value = json.loads(payload)
    for key in _ARGUMENT_KEYS:
        if key in value:
            return canonical_json(value[key])
    rest = {key: item for key, item in value.items() if key not in _NOT_ARGUMENTS}
    return canonical_json(rest) if rest else ""
