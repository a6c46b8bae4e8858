"""TOOL_SEQUENCES: common sequences of tools, what they precede, and loops of the same call."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from mneme_server.common.canonical import canonical_json
from mneme_server.features.events.event_types import EventPart, playing
from mneme_server.features.events.history import Column, HistoryReader
from mneme_server.features.events.model import Outcome
from mneme_server.features.reflect import calls as tool_calls
from mneme_server.features.reflect.calls import Calls, Grams, find_calls, grams_of, runs_of
from mneme_server.features.reflect.circumstances import (
    CallPlaces,
    Circumstances,
    circumstances,
)
from mneme_server.features.reflect.effects import (
    MAX_TESTED,
    Effects,
    Moments,
    adjusted,
    after_sequences,
    in_sessions,
)
from mneme_server.features.reflect.history import NONE, History, Ints, kind_is
from mneme_server.features.reflect.model import (
    EVIDENCE,
    SIGNIFICANT,
    AnalysisFindings,
    Insight,
    SequenceCount,
    SequenceEffect,
    ToolLoop,
    ToolSequences,
    ToolSequencesParams,
    ToolUse,
)
from mneme_server.features.reflect.wording import (
    against,
    called,
    effect_data,
    percent,
    plural,
    sequence,
    sure,
)
from mneme_server.statistics.inference import Floats, wilson

NEEDED = tool_calls.NEEDED
LOOP = 3
"""The same call so often in a row is a loop."""
_MAX_ARGUMENTS = 300
_ARGUMENT_KEYS = ("arguments", "args", "input", "parameters", "kwargs")
_NOT_ARGUMENTS = frozenset(
    {"call_id", "callId", "tool_call_id", "id", "timestamp", "duration_ms", "durationMs", "usage"}
)
_COMMON = 3
_SAME = 0.8
"""Sequences that share so many of their sessions tell of the same ones."""
_OUTCOMES = ("success", "failure")
_WHAT = {
    "call_fails": "the next call fails",
    "error_follows": "an error outside tools follows",
    "success": "succeed",
    "failure": "fail",
}


def tool_sequences(
    history: History, reader: HistoryReader, params: ToolSequencesParams, limit: int
) -> AnalysisFindings:
    """Count the sequences, test what they precede, and find loops."""
    calls = find_calls(history)
    grams = grams_of(calls, params.lengths)
    known = circumstances(history, reader)
    before = {
        "errors": _before_errors(grams, calls, known, params),
        "success": _before_outcome(grams, Outcome.SUCCESS, calls, known, params),
        "failure": _before_outcome(grams, Outcome.FAILURE, calls, known, params),
    }
    families = [*before["errors"], *before["failure"]]
    q_values = adjusted(families)
    # What goes with success goes with failure the other way round: it is not tested twice.
    likewise = adjusted([*before["errors"], *before["success"]])
    errors = len(before["errors"])
    ranked = {
        name: _strongest(before[name], mine, calls, history, limit)
        for name, mine in (
            ("errors", q_values[:errors]),
            ("failure", q_values[errors:]),
            ("success", likewise[errors:]),
        )
    }
    # What is common among single tools is told by `tools`.
    several = [gram for gram in grams if gram.length > 1] or grams
    common = _common(several, calls, history, limit)
    loops = tool_loops(calls, history, reader, limit)
    sessions_with_calls = len(np.unique(calls.session))
    result = ToolSequences(
        common=common,
        before_errors=ranked["errors"],
        before_success=ranked["success"],
        before_failure=ranked["failure"],
        average_length=len(calls) / sessions_with_calls if sessions_with_calls else 0.0,
        loops=loops,
        sequence_count=sum(map(len, grams)),
        tools=_tools(calls, history, limit),
    )
    return AnalysisFindings(
        result,
        sequence_insights(result),
        notes=history.notes + _notes(families, calls, history, params) + known.untested(),
        caps=[
            f"only the {MAX_TESTED:,} sequences of a length that occur in the most sessions were"
            " tested"
        ]
        if any(family.capped for family in families)
        else [],
    )


def _before_errors(
    grams: list[Grams], calls: Calls, known: Circumstances, params: ToolSequencesParams
) -> list[Effects]:
    fails = np.zeros(len(calls), bool)
    fails[calls.failed] = True
    follows = np.zeros(len(calls), bool)
    follows[calls.after[calls.after != NONE]] = True
    found = []
    places, every = CallPlaces(calls), np.arange(len(calls))
    for effect, hit, by_tool in (("call_fails", fails, True), ("error_follows", follows, False)):
        if not hit.any():
            continue
        design = places.design(every, by_tool=by_tool)
        for gram in grams:
            before = gram.before_call(calls) if by_tool else gram.up_to_call()
            moments = Moments(
                gram, known, calls.session, before,
                design=design, min_sessions=params.min_support,
            )  # fmt: skip
            found.append(after_sequences(moments, effect, hit))
    return found


def _before_outcome(
    grams: list[Grams],
    outcome: Outcome,
    calls: Calls,
    known: Circumstances,
    params: ToolSequencesParams,
) -> list[Effects]:
    counted = known.sessions.outcome != Outcome.UNKNOWN
    has = known.sessions.outcome == outcome
    if not (counted & has).any() or not (counted & ~has).any():
        return []  # Where all sessions end alike, nothing can be told from the end.
    return [
        in_sessions(
            gram,
            outcome.name.lower(),
            calls,
            known,
            counted=counted,
            has=has,
            min_sessions=params.min_support,
        )
        for gram in grams
    ]


def _strongest(
    families: list[Effects], q_values: list[Floats], calls: Calls, history: History, limit: int
) -> tuple[SequenceEffect, ...]:
    """Return the effects that are sure, the strongest first, then the surest of the rest. Of each
    family only those are made that could be among them."""
    made = [
        family.item(i, float(q[i]), calls, history.names, history.sessions)
        for family, q in zip(families, q_values, strict=True)
        for i in _candidates(family, q, limit)
    ]
    made.sort(
        key=lambda e: (not e.is_sure, -e.strength if e.is_sure else e.q_value, -e.count, e.tools)
    )
    return tuple(made[:limit])


def _candidates(family: Effects, q_values: Floats, limit: int) -> list[int]:
    strength = np.where(q_values <= SIGNIFICANT, family.strength(), -1.0)
    strongest = np.lexsort((-family.count, -strength))[:limit]
    surest = np.lexsort((-family.count, q_values))[:limit]
    return [int(i) for i in np.union1d(strongest, surest)]


def _tools(calls: Calls, history: History, limit: int) -> tuple[ToolUse, ...]:
    """Return the tools that were called most, and how often their calls failed."""
    size = len(history.names)
    count = np.bincount(calls.tool, minlength=size)
    failed = np.bincount(calls.tool[np.unique(calls.failed)], minlength=size)
    span = max(len(history.sessions), 1)
    sessions = np.bincount(np.unique(calls.tool * span + calls.session) // span, minlength=size)
    order = sorted(np.flatnonzero(count).tolist(), key=lambda i: (-count[i], history.names[i]))
    return tuple(
        ToolUse(history.names[i], int(count[i]), int(sessions[i]), int(failed[i]))
        for i in order[:limit]
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


def _notes(
    families: list[Effects], calls: Calls, history: History, params: ToolSequencesParams
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
    chosen = chosen[kind_is(history, *playing(EventPart.CALL))[calls.event[chosen]]]
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


def sequence_insights(result: ToolSequences) -> list[Insight]:
    """Return the findings, the strongest first, loops among them; then what is merely common."""
    looping = {loop.tool for loop in result.loops}

    def is_loop(effect: SequenceEffect) -> bool:
        """That a tool follows itself is told by its loops."""
        return len(effect.tools) > 1 and len(set(effect.tools)) == 1 and effect.tools[0] in looping

    effects = [
        *(
            _effect(e, "error_after_sequence")
            for e in _telling(result.before_errors)
            if not is_loop(e)
        ),
        *(
            _effect(e, "sequence_before_failure")
            for e in _telling(result.before_failure)
            if e.is_likelier and not is_loop(e)
        ),
        *(
            _effect(e, "sequence_before_success")
            for e in _telling(result.before_success)
            if e.is_likelier and not is_loop(e)
        ),
    ]
    found = effects + [_loop(loop) for loop in _by_tool(result.loops)]
    found.sort(key=lambda insight: -insight.strength)
    return found + [_frequent(common) for common in _apart(result.common)[:_COMMON]]


def _by_tool(loops: tuple[ToolLoop, ...]) -> list[ToolLoop]:
    """Return one loop for each tool: with which arguments is in the table."""
    found: dict[str, ToolLoop] = {}
    for loop in loops:
        longest = found.get(loop.tool)
        found[loop.tool] = (
            loop
            if longest is None
            else replace(
                longest,
                runs=longest.runs + loop.runs,
                session_ids=tuple(dict.fromkeys(longest.session_ids + loop.session_ids))[:EVIDENCE],
            )
        )
    return list(found.values())


def _apart(common: tuple[SequenceCount, ...]) -> list[SequenceCount]:
    """Leave out what is part of a more common sequence, or extends one."""
    told: list[SequenceCount] = []
    for one in common:
        if not any(_is_part(one.tools, other.tools) for other in told):
            told.append(one)
    return told


def _telling(effects: tuple[SequenceEffect, ...]) -> list[SequenceEffect]:
    """Leave out what says nothing new: a sequence of nearly the same sessions as one already told;
    and one that is part of such a one, or has one as a part, and whose rate goes no further than
    that one's, as far as can be told."""
    told: list[SequenceEffect] = []
    # Of what says the same of the same sessions, the shortest is told.
    for effect in effects:
        if not effect.is_sure:
            continue
        place = next((i for i, one in enumerate(told) if _says_the_same(effect, one)), None)
        if place is None:
            told.append(effect)
        elif len(effect.tools) < len(told[place].tools) and effect.effect in _OUTCOMES:
            told[place] = effect
    return told


def _says_the_same(effect: SequenceEffect, told: SequenceEffect) -> bool:
    if effect.effect != told.effect or effect.is_likelier != told.is_likelier:
        return False
    if effect.effect in _OUTCOMES and _are_nearly_the_same_sessions(effect, told):
        return True
    if not _is_part(effect.tools, told.tools):
        return False
    # The ratio would not do: a longer sequence is compared with moments after the shorter one, too.
    (low,), (high,) = wilson(np.array([effect.effect_count * 1.0]), np.array([effect.count * 1.0]))
    return bool(told.rate >= low if effect.is_likelier else told.rate <= high)


def _is_part(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Tell whether the shorter of two sequences is part of the longer one."""
    shorter, longer = sorted((one, other), key=len)
    return any(
        longer[i : i + len(shorter)] == shorter for i in range(len(longer) - len(shorter) + 1)
    )


def _are_nearly_the_same_sessions(one: SequenceEffect, other: SequenceEffect) -> bool:
    """Tell it by how many sessions there are and by the newest of them."""
    few, many = sorted((one.count, other.count))
    mine, its = set(one.session_ids), set(other.session_ids)
    return few >= _SAME * many and len(mine & its) >= _SAME * len(mine | its)


def _effect(effect: SequenceEffect, kind: str) -> Insight:
    often = "more often" if effect.is_likelier else "less often"
    what = _WHAT[effect.effect]
    if effect.effect in _OUTCOMES:
        summary = f"Sessions with {sequence(effect.tools)} {what} {often} than others"
    else:
        summary = f"After {sequence(effect.tools)}, {what} {often} than at such a place elsewhere"
    return Insight(
        type=kind,
        summary=f"{summary}: {against(effect)}; {sure(effect.q_value)}.",
        data=effect_data(effect),
        q_value=effect.q_value,
        session_ids=effect.session_ids,
        strength=effect.strength,
    )


def _loop(loop: ToolLoop) -> Insight:
    return Insight(
        type="tool_loop",
        summary=(
            f"{called(loop.tool)} was called {loop.longest_run} times in a row with the same"
            " arguments."
            if loop.runs == 1
            else f"{called(loop.tool)} was called up to {loop.longest_run} times in a row"
            f" with the same arguments, in {plural(loop.runs, 'run')}."
        ),
        data={
            "tool": loop.tool,
            "arguments": loop.arguments,
            "longest_run": loop.longest_run,
            "runs": loop.runs,
        },
        session_ids=loop.session_ids,
        # Of each run, the calls that could have been saved, as far as is known.
        strength=float(loop.longest_run - 1 + 2 * (loop.runs - 1)),
    )


def _frequent(found: SequenceCount) -> Insight:
    return Insight(
        type="common_sequence",
        summary=(
            f"{sequence(found.tools)} occurs {plural(found.count, 'time')}, in"
            f" {percent(found.support)} of the sessions with tool calls."
        ),
        data={
            "tools": list(found.tools),
            "count": found.count,
            "sessions": found.sessions,
            "support": found.support,
        },
        session_ids=found.session_ids,
    )
