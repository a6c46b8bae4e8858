"""ERROR_PATTERNS: which errors recur, where, and what comes before them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mneme_server.reflect import calls as tool_calls
from mneme_server.reflect.calls import Calls, Grams, find_calls, grams_of
from mneme_server.reflect.effects import Effects, Moments, adjusted, after_sequences
from mneme_server.reflect.history import NONE, History, Ints
from mneme_server.reflect.model import (
    EVIDENCE,
    ErrorExample,
    ErrorPattern,
    ErrorPatterns,
    Findings,
    Insight,
    SequenceEffect,
)
from mneme_server.reflect.params import ErrorParams
from mneme_server.reflect.ports import Column, HistoryReader
from mneme_server.reflect.stats import Floats
from mneme_server.reflect.wording import day, lifted, percent, plural, sequence

NEEDED = (*tool_calls.NEEDED, Column.MESSAGE)
_MAX_PRECEDING = 5
_RECURRING = 2


@dataclass(slots=True)
class _Pattern:
    """Errors of one template and tool: `rows` (k,) are places among the events, in order of time;
    `calls` (j,) the calls that failed so; `after` the last call before each outside tools."""

    template: int
    tool: int
    rows: Ints
    calls: Ints
    after: Ints

    @property
    def is_of_tool(self) -> bool:
        return self.tool != NONE


def error_patterns(
    history: History, reader: HistoryReader, params: ErrorParams, limit: int
) -> Findings:
    """Group the errors and find what comes before the most frequent ones."""
    calls = find_calls(history)
    found = [p for p in _patterns(history, calls) if _is_asked(p, history, params)]
    found.sort(key=lambda p: (-len(p.rows), history.templates[p.template], p.tool))
    shown = found[:limit]
    grams = grams_of(calls, range(1, params.window + 1))
    families = [
        after_sequences(gram, _effect(p), _moments(p, calls, gram, params), followed_only=True)
        for p in shown
        for gram in grams
    ]
    q_values = adjusted(families)
    patterns = []
    for number, pattern in enumerate(shown):
        mine = slice(number * len(grams), (number + 1) * len(grams))
        preceding = _preceding(families[mine], q_values[mine], calls, history)
        patterns.append(
            _described(
                pattern, preceding, calls=calls, history=history, reader=reader, params=params
            )
        )
    result = ErrorPatterns(
        patterns=tuple(patterns),
        pattern_count=len(found),
        error_count=sum(len(p.rows) for p in found),
    )
    findings = Findings(result, _insights(patterns), caps=list(history.caps))
    tests = sum(family.tests for family in families)
    if tests:
        findings.notes.append(
            f"{tests:,} pairs of an error and a sequence of tools before it were tested"
        )
    return findings


def _is_asked(pattern: _Pattern, history: History, params: ErrorParams) -> bool:
    if len(pattern.rows) < params.min_count:
        return False
    return not params.tool or (pattern.is_of_tool and history.names[pattern.tool] == params.tool)


def _patterns(history: History, calls: Calls) -> list[_Pattern]:
    templates = history[Column.MESSAGE].astype(np.int64)
    found = []
    named = history[Column.NAME][calls.failures].astype(np.int64)
    # An answer may leave its tool's name out; its call knows it.
    of_call = calls.tool[calls.failed] if len(calls) else named
    own = np.array([bool(name) for name in history.names], bool)
    of_call = np.where(own[named], named, of_call) if len(named) else named
    groups = (
        (calls.failures, of_call, calls.failed, True),
        (calls.outside, np.full(len(calls.outside), NONE), calls.after, False),
    )
    for rows, tools, calls_of, is_of_tool in groups:
        if not len(rows):
            continue
        pairs, where = np.unique(np.stack([templates[rows], tools]), axis=1, return_inverse=True)
        order = np.argsort(where.ravel(), kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(where.ravel()))[:-1])
        for (template, tool), part in zip(pairs.T.tolist(), parts, strict=True):
            by_time = part[np.argsort(history[Column.TIME][rows[part]], kind="stable")]
            linked = calls_of[by_time]
            found.append(
                _Pattern(
                    template, tool, rows[by_time],
                    calls=np.unique(linked) if is_of_tool else np.empty(0, np.int64),
                    after=np.unique(linked[linked != NONE]) if not is_of_tool
                    else np.empty(0, np.int64),
                )
            )  # fmt: skip
    return found


def _effect(pattern: _Pattern) -> str:
    return "call_fails" if pattern.is_of_tool else "error_follows"


def _moments(pattern: _Pattern, calls: Calls, gram: Grams, params: ErrorParams) -> Moments:
    """Return where the error could have come: at every call for an error of a tool, after every
    call for one outside tools."""
    hit = np.zeros(len(calls), bool)
    if not pattern.is_of_tool:
        hit[pattern.after] = True
        return Moments(calls.session, gram.up_to_call(), hit)
    hit[pattern.calls] = True
    moments = Moments(calls.session, gram.before_call(calls), hit)
    if params.baseline == "same_tool":
        same = calls.tool == pattern.tool
        return Moments(*(values[same] for values in moments))
    return moments


def _preceding(
    families: list[Effects], q_values: list[Floats], calls: Calls, history: History
) -> tuple[SequenceEffect, ...]:
    """Return the sequences worth showing: sure ones that make the error likelier, then frequent
    ones. A sequence is left out when a longer one before it says the same of as many errors."""
    ranked = sorted(
        (
            not (family.tested[i] and q[i] <= 0.05 and family.lift[i] > 1),
            -int(family.hits[i]),
            -family.grams.length,
            -float(family.lift[i]),
            number,
            i,
        )
        for number, (family, q) in enumerate(zip(families, q_values, strict=True))
        for i in _most_frequent(family)
    )
    chosen: list[SequenceEffect] = []
    for *_, number, i in ranked:
        item = families[number].item(
            i, float(q_values[number][i]), calls, history.names, history.sessions
        )
        if not any(
            other.tools[-len(item.tools) :] == item.tools
            and other.effect_count == item.effect_count
            for other in chosen
        ):
            chosen.append(item)
        if len(chosen) == _MAX_PRECEDING:
            break
    return tuple(chosen)


def _most_frequent(family: Effects) -> list[int]:
    """Return the few that can be shown: those most often followed by the error, and the surest."""
    by_hits = np.lexsort((family.code, -family.hits))[: 4 * _MAX_PRECEDING]
    by_p = np.lexsort((family.code, -family.hits, family.p_value))[: 4 * _MAX_PRECEDING]
    return [int(i) for i in np.union1d(by_hits, by_p)]


def _described(
    pattern: _Pattern,
    preceding: tuple[SequenceEffect, ...],
    *,
    calls: Calls,
    history: History,
    reader: HistoryReader,
    params: ErrorParams,
) -> ErrorPattern:
    rows = pattern.rows
    times, cursors = history[Column.TIME][rows], history[Column.CURSOR][rows]
    newest = [int(cursor) for cursor in cursors[::-1][: params.examples]]
    facts = reader.facts(newest)
    tool_count = int((calls.tool == pattern.tool).sum()) if pattern.is_of_tool else 0
    return ErrorPattern(
        template=history.templates[pattern.template],
        tool_name=history.names[pattern.tool] if pattern.is_of_tool else "",
        count=len(rows),
        sessions_affected=len(np.unique(history.session[rows])),
        first_seen_us=int(times[0]),
        last_seen_us=int(times[-1]),
        rate=len(pattern.calls) / tool_count if tool_count else 0.0,
        preceding=preceding,
        examples=tuple(
            ErrorExample(fact.id, fact.session_id, fact.message, fact.timestamp_us)
            for fact in (facts[cursor] for cursor in newest)
        ),
        session_ids=history.sessions.newest(history.session[rows]),
    )


def _insights(patterns: list[ErrorPattern]) -> list[Insight]:
    insights = [_recurring(p) for p in patterns if p.count >= _RECURRING]
    sure = [
        (effect, pattern)
        for pattern in patterns
        for effect in pattern.preceding
        if effect.is_sure and effect.lift > 1
    ]
    sure.sort(key=lambda found: (found[0].q_value, -found[0].lift))
    return insights + [_after(effect, pattern) for effect, pattern in sure]


def _recurring(pattern: ErrorPattern) -> Insight:
    where = f"{pattern.tool_name} fails with" if pattern.tool_name else "There is the error"
    of_calls = f", in {percent(pattern.rate)} of its calls" if pattern.tool_name else ""
    return Insight(
        type="recurring_error",
        summary=(
            f"{where} “{pattern.template}” {plural(pattern.count, 'time')} in"
            f" {plural(pattern.sessions_affected, 'session')}{of_calls}; last seen"
            f" {day(pattern.last_seen_us)}."
        ),
        data={
            "template": pattern.template,
            "tool_name": pattern.tool_name,
            "count": pattern.count,
            "sessions_affected": pattern.sessions_affected,
            "rate": pattern.rate,
        },
        session_ids=pattern.session_ids,
        event_ids=tuple(example.event_id for example in pattern.examples[:EVIDENCE]),
    )


def _after(effect: SequenceEffect, pattern: ErrorPattern) -> Insight:
    return Insight(
        type="error_after_sequence",
        summary=(
            f"After {sequence(effect.tools)}, “{pattern.template}”"
            f"{f' of {pattern.tool_name}' if pattern.tool_name else ''} is {lifted(effect)} as"
            f" likely as elsewhere: {effect.effect_count:,} of {plural(effect.count, 'time')}"
            f" against {percent(effect.base_rate)}."
        ),
        data={
            "template": pattern.template,
            "tool_name": pattern.tool_name,
            "tools": effect.tools,
            "count": effect.count,
            "effect_count": effect.effect_count,
            "lift": effect.lift,
            "lift_low": effect.lift_interval.low,
            "lift_high": effect.lift_interval.high,
            "q_value": effect.q_value,
        },
        confidence=1 - effect.q_value,
        session_ids=effect.session_ids,
    )
