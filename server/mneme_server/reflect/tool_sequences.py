"""TOOL_SEQUENCES: which sequences of tools are common, and what they precede."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from mneme_server.common.canonical import canonical_json
from mneme_server.events.outcome import Outcome
from mneme_server.reflect import calls as tool_calls
from mneme_server.reflect.calls import Calls, Grams, find_calls, grams_of, runs_of
from mneme_server.reflect.effects import (
    MAX_TESTED,
    Effects,
    Moments,
    adjusted,
    after_sequences,
    in_sessions,
)
from mneme_server.reflect.history import NONE, History
from mneme_server.reflect.model import (
    Findings,
    Insight,
    SequenceCount,
    SequenceEffect,
    ToolLoop,
    ToolSequences,
)
from mneme_server.reflect.params import SequenceParams
from mneme_server.reflect.ports import Column, HistoryReader
from mneme_server.reflect.stats import Floats
from mneme_server.reflect.wording import lifted, percent, plural, sequence

NEEDED = tool_calls.NEEDED
LOOP = 3
"""The same call so often in a row is a loop."""
_MAX_ARGUMENTS = 300
_ARGUMENT_KEYS = ("arguments", "args", "input", "parameters", "kwargs")
_NOT_ARGUMENTS = frozenset(
    {"call_id", "callId", "tool_call_id", "id", "timestamp", "duration_ms", "durationMs", "usage"}
)


def tool_sequences(
    history: History, reader: HistoryReader, params: SequenceParams, limit: int
) -> Findings:
    """Count the sequences, test what they precede, and find loops."""
    calls = find_calls(history)
    grams = grams_of(calls, range(params.min_length, params.max_length + 1))
    before = {
        "errors": _before_errors(grams, calls, params),
        "success": _before_outcome(grams, Outcome.SUCCESS, calls, history, params),
        "failure": _before_outcome(grams, Outcome.FAILURE, calls, history, params),
    }
    families = [family for some in before.values() for family in some]
    q_values = adjusted(families)
    ranked: dict[str, tuple[SequenceEffect, ...]] = {}
    for name, some in before.items():
        mine, q_values = q_values[: len(some)], q_values[len(some) :]
        ranked[name] = _surest(some, mine, calls, history, limit)
    common = _common(grams, calls, history, limit)
    loops = _loops(calls, history, reader, limit)
    sessions_with_calls = len(np.unique(calls.session))
    result = ToolSequences(
        common=common,
        before_errors=ranked["errors"],
        before_success=ranked["success"],
        before_failure=ranked["failure"],
        average_length=len(calls) / sessions_with_calls if sessions_with_calls else 0.0,
        loops=loops,
        sequence_count=sum(map(len, grams)),
    )
    return Findings(
        result,
        _insights(result),
        notes=_notes(families, calls, history, params),
        caps=[
            f"only the {MAX_TESTED:,} sequences of a length that occur in the most sessions were"
            " tested"
        ]
        if any(family.capped for family in families)
        else [],
    )


def _before_errors(grams: list[Grams], calls: Calls, params: SequenceParams) -> list[Effects]:
    fails = np.zeros(len(calls), bool)
    fails[calls.failed] = True
    follows = np.zeros(len(calls), bool)
    follows[calls.after[calls.after != NONE]] = True
    found = []
    for gram in grams:
        if fails.any():
            moments = Moments(calls.session, gram.before_call(calls), fails)
            found.append(
                after_sequences(gram, "call_fails", moments, min_sessions=params.min_support)
            )
        if follows.any():
            moments = Moments(calls.session, gram.up_to_call(), follows)
            found.append(
                after_sequences(gram, "error_follows", moments, min_sessions=params.min_support)
            )
    return found


def _before_outcome(
    grams: list[Grams], outcome: Outcome, calls: Calls, history: History, params: SequenceParams
) -> list[Effects]:
    known = history.sessions.outcome != Outcome.UNKNOWN
    has = history.sessions.outcome == outcome
    if not (known & has).any() or not (known & ~has).any():
        return []  # Where all sessions end alike, nothing can be told from the end.
    return [
        in_sessions(
            gram,
            outcome.name.lower(),
            calls,
            known=known,
            has=has,
            min_sessions=params.min_support,
        )
        for gram in grams
    ]


def _surest(
    families: list[Effects], q_values: list[Floats], calls: Calls, history: History, limit: int
) -> tuple[SequenceEffect, ...]:
    """Return the surest effects; of equally sure ones the strongest and most frequent."""
    ranked = sorted(
        (q[i], -abs(np.log(max(family.lift[i], 1e-12))), -family.count[i], number, int(i))
        for number, (family, q) in enumerate(zip(families, q_values, strict=True))
        for i in np.lexsort((-family.count, -np.abs(np.log(np.maximum(family.lift, 1e-12))), q))[
            :limit
        ]
    )
    return tuple(
        families[number].item(i, float(q), calls, history.names, history.sessions)
        for q, _, _, number, i in ranked[:limit]
    )


def _common(
    grams: list[Grams], calls: Calls, history: History, limit: int
) -> tuple[SequenceCount, ...]:
    span = max(len(history.sessions), 1)
    total = max(len(np.unique(calls.session)), 1)
    best: list[tuple[int, int, int, int, int]] = []
    for number, gram in enumerate(grams):
        starts = np.flatnonzero(gram.code != NONE)
        pairs = np.unique(gram.code[starts] * span + calls.session[starts])
        count = np.bincount(gram.code[starts], minlength=len(gram))
        sessions = np.bincount(pairs // span, minlength=len(gram))
        top = np.lexsort((np.arange(len(gram)), -sessions, -count))[:limit]
        best += [(-int(count[c]), -int(sessions[c]), gram.length, number, int(c)) for c in top]
    found = []
    for count_, sessions_, _, number, code in sorted(best)[:limit]:
        gram = grams[number]
        found.append(
            SequenceCount(
                tools=gram.tools(calls, history.names, code),
                count=-count_,
                sessions=-sessions_,
                support=-sessions_ / total,
                session_ids=history.sessions.newest(calls.session[gram.code == code]),
            )
        )
    return tuple(found)


@dataclass(slots=True)
class _Loop:
    longest: int = 0
    runs: int = 0
    sessions: list[int] = field(default_factory=list)


def _loops(
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
    cursors = history[Column.CURSOR][calls.event[candidates]]
    # Arguments are compared by their hash, so that a million long ones need no memory.
    hashes = np.zeros(len(calls), np.int64)
    order = np.argsort(cursors)
    place = dict(zip(cursors[order].tolist(), candidates[order].tolist(), strict=True))
    for cursor, payload in reader.payloads(cursors[order].tolist()):
        hashes[place[cursor]] = hash(arguments_of(payload))
    same = same_tool & np.r_[False, hashes[1:] == hashes[:-1]] & in_run
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


def arguments_of(payload: str) -> str:
    """Return what a call was made with, as canonical JSON: its payload's arguments, or all of the
    payload but what tells one call from the next."""
    if payload == "{}":
        return ""
    value = json.loads(payload)
    for key in _ARGUMENT_KEYS:
        if key in value:
            return canonical_json(value[key])
    rest = {key: item for key, item in value.items() if key not in _NOT_ARGUMENTS}
    return canonical_json(rest) if rest else ""


def _notes(
    families: list[Effects], calls: Calls, history: History, params: SequenceParams
) -> list[str]:
    if not len(calls):
        return ["there are no tool calls in range"]
    notes = []
    tests = sum(family.tests for family in families)
    if tests:
        notes.append(
            f"{plural(tests, 'effect')} of sequences seen in at least {params.min_support} sessions"
            f" {'was' if tests == 1 else 'were'} tested"
        )
    unknown = int((history.sessions.outcome == Outcome.UNKNOWN).sum())
    if unknown:
        notes.append(
            f"{plural(unknown, 'session')} without a known outcome"
            f" {'does' if unknown == 1 else 'do'} not count for success and failure"
        )
    return notes


def _insights(result: ToolSequences) -> list[Insight]:
    insights = []
    told: set[tuple[str, ...]] = set()
    effects = [
        *((e, "error_after_sequence") for e in result.before_errors),
        *((e, "sequence_before_failure") for e in result.before_failure if e.lift > 1),
        *((e, "sequence_before_success") for e in result.before_success if e.lift > 1),
    ]
    for effect, kind in sorted(effects, key=lambda found: found[0].q_value):
        if effect.is_sure and (kind, *effect.tools) not in told:
            told.add((kind, *effect.tools))
            insights.append(_effect(effect, kind))
    insights += [_loop(loop) for loop in result.loops]
    insights += [_frequent(found) for found in result.common[:3]]
    return insights


_WHAT = {
    "call_fails": "the next call fails",
    "error_follows": "an error outside tools follows",
    "success": "succeed",
    "failure": "fail",
}


def _effect(effect: SequenceEffect, kind: str) -> Insight:
    if effect.effect in ("success", "failure"):
        summary = (
            f"Sessions with {sequence(effect.tools)} {_WHAT[effect.effect]} {lifted(effect)} as"
            f" often as others: {effect.effect_count:,} of {effect.count:,} against"
            f" {percent(effect.base_rate)}."
        )
    else:
        summary = (
            f"After {sequence(effect.tools)}, {_WHAT[effect.effect]} {lifted(effect)} as often as"
            f" elsewhere: {effect.effect_count:,} of {plural(effect.count, 'time')} against"
            f" {percent(effect.base_rate)}."
        )
    return Insight(
        type=kind,
        summary=summary,
        data={
            "tools": effect.tools,
            "effect": effect.effect,
            "count": effect.count,
            "effect_count": effect.effect_count,
            "base_rate": effect.base_rate,
            "lift": effect.lift,
            "lift_low": effect.lift_interval.low,
            "lift_high": effect.lift_interval.high,
            "q_value": effect.q_value,
        },
        confidence=1 - effect.q_value,
        session_ids=effect.session_ids,
    )


def _loop(loop: ToolLoop) -> Insight:
    return Insight(
        type="tool_loop",
        summary=(
            f"{loop.tool or '(unnamed)'} was called up to {loop.longest_run} times in a row with"
            f" the same arguments, in {plural(loop.runs, 'run')}."
        ),
        data={
            "tool": loop.tool,
            "arguments": loop.arguments,
            "longest_run": loop.longest_run,
            "runs": loop.runs,
        },
        session_ids=loop.session_ids,
    )


def _frequent(found: SequenceCount) -> Insight:
    return Insight(
        type="common_sequence",
        summary=(
            f"{sequence(found.tools)} occurs {plural(found.count, 'time')}, in"
            f" {percent(found.support)} of the sessions with tool calls."
        ),
        data={
            "tools": found.tools,
            "count": found.count,
            "sessions": found.sessions,
            "support": found.support,
        },
        session_ids=found.session_ids,
    )
