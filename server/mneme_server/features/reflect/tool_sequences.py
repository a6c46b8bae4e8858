"""TOOL_SEQUENCES: which sequences of tools are common, and what they precede."""

from __future__ import annotations

import numpy as np

from mneme_server.features.events.history import HistoryReader
from mneme_server.features.events.outcome import Outcome
from mneme_server.features.reflect import calls as tool_calls
from mneme_server.features.reflect.calls import Calls, Grams, find_calls, grams_of
from mneme_server.features.reflect.compared import SIGNIFICANT, SequenceEffect
from mneme_server.features.reflect.effects import (
    MAX_TESTED,
    Effects,
    Moments,
    adjusted,
    after_sequences,
    in_sessions,
)
from mneme_server.features.reflect.history import NONE, History
from mneme_server.features.reflect.model import Findings, SequenceCount, ToolSequences, ToolUse
from mneme_server.features.reflect.params import ToolSequencesParams
from mneme_server.features.reflect.sequence_insights import sequence_insights
from mneme_server.features.reflect.tool_loops import tool_loops
from mneme_server.features.reflect.wording import plural
from mneme_server.statistics.inference import Floats

NEEDED = tool_calls.NEEDED


def tool_sequences(
    history: History, reader: HistoryReader, params: ToolSequencesParams, limit: int
) -> Findings:
    """Count the sequences, test what they precede, and find loops."""
    calls = find_calls(history)
    grams = grams_of(calls, params.lengths)
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
        ranked[name] = _strongest(some, mine, calls, history, limit)
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
    return Findings(
        result,
        sequence_insights(result),
        notes=history.notes + _notes(families, calls, history, params),
        caps=[
            f"only the {MAX_TESTED:,} sequences of a length that occur in the most sessions were"
            " tested"
        ]
        if any(family.capped for family in families)
        else [],
    )


def _before_errors(grams: list[Grams], calls: Calls, params: ToolSequencesParams) -> list[Effects]:
    fails = np.zeros(len(calls), bool)
    fails[calls.failed] = True
    follows = np.zeros(len(calls), bool)
    follows[calls.after[calls.after != NONE]] = True
    found = []
    for gram in grams:
        if fails.any():
            moments = Moments(gram, calls.session, gram.before_call(calls))
            found.append(
                after_sequences(moments, "call_fails", fails, min_sessions=params.min_support)
            )
        if follows.any():
            moments = Moments(gram, calls.session, gram.up_to_call())
            found.append(
                after_sequences(moments, "error_follows", follows, min_sessions=params.min_support)
            )
    return found


def _before_outcome(
    grams: list[Grams],
    outcome: Outcome,
    calls: Calls,
    history: History,
    params: ToolSequencesParams,
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
