"""ERROR_PATTERNS: which errors recur, where, and what comes before them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mneme_server.common import deadline
from mneme_server.features.events.history import Column, HistoryReader
from mneme_server.features.reflect import calls as tool_calls
from mneme_server.features.reflect.calls import Calls, Grams, find_calls, grams_of
from mneme_server.features.reflect.compared import SIGNIFICANT, OutcomeSplit, SequenceEffect
from mneme_server.features.reflect.effects import Effects, Moments, adjusted, after_sequences
from mneme_server.features.reflect.error_insights import error_insights
from mneme_server.features.reflect.history import NONE, History, Ints
from mneme_server.features.reflect.model import (
    ErrorExample,
    ErrorPattern,
    ErrorPatterns,
    Findings,
)
from mneme_server.features.reflect.outcomes import adjusted_splits, split, untold
from mneme_server.features.reflect.params import Baseline, ErrorPatternsParams
from mneme_server.features.reflect.recoveries import Recoveries
from mneme_server.features.reflect.wording import plural
from mneme_server.statistics.inference import Floats, rate_ratio

NEEDED = (*tool_calls.NEEDED, Column.MESSAGE)
_MAX_PRECEDING = 5


@dataclass(slots=True)
class _Pattern:
    """Errors of one template and tool: `rows` (k,) are places among the events, in order of time;
    `befores` (k,) the call that failed so, or came last before an error outside tools; `calls` and
    `after` (j,) are the same, each once."""

    template: int
    tool: int
    rows: Ints
    befores: Ints
    calls: Ints
    after: Ints

    @property
    def is_of_tool(self) -> bool:
        return self.tool != NONE


def error_patterns(
    history: History, reader: HistoryReader, params: ErrorPatternsParams, limit: int
) -> Findings:
    """Group the errors and find what comes before the most frequent ones."""
    calls = find_calls(history)
    found = [p for p in _patterns(history, calls) if _is_asked(p, history, params)]
    found.sort(key=lambda p: (-len(p.rows), history.templates[p.template], p.tool))
    shown = found[:limit]
    grams = grams_of(calls, range(1, params.window + 1))
    by_length = [list(_families(shown, calls, gram, params)) for gram in grams]
    families = [family for of_pattern in zip(*by_length, strict=True) for family in of_pattern]
    q_values = adjusted(families)
    any_error, *splits = adjusted_splits(_outcomes(history, calls, shown))
    followed = Recoveries(history, reader, calls)
    patterns = []
    for number, (pattern, outcome) in enumerate(zip(shown, splits, strict=True)):
        mine = slice(number * len(grams), (number + 1) * len(grams))
        preceding = _preceding(pattern, families[mine], q_values[mine], calls, history)
        described = _described(
            pattern, preceding, calls=calls, history=history, reader=reader, params=params
        )
        resolved, kinds = followed.after(pattern.rows, pattern.befores, of_tool=pattern.is_of_tool)
        patterns.append(replace(described, outcome=outcome, recoveries=resolved, recovered=kinds))
    result = ErrorPatterns(
        patterns=tuple(patterns),
        pattern_count=len(found),
        error_count=sum(len(p.rows) for p in found),
        outcome=any_error,
    )
    findings = Findings(result, error_insights(result), list(history.notes), list(history.caps))
    if result.error_count and all(pattern.count == 1 for pattern in patterns):
        findings.notes.append(f"{plural(result.error_count, 'error')}, no two of them alike")
    tests = sum(family.tests for family in families)
    if tests:
        findings.notes.append(
            f"{plural(tests, 'pair')} of an error and a sequence of tools before it"
            f" {'was' if tests == 1 else 'were'} tested"
        )
    if result.error_count:
        findings.notes += untold(history.sessions)
    return findings


def _outcomes(history: History, calls: Calls, shown: list[_Pattern]) -> list[OutcomeSplit]:
    """Compare the sessions with any error, and with each of the errors, with the others."""

    def having(rows: Ints) -> OutcomeSplit:
        chosen = np.zeros(len(history.sessions), bool)
        chosen[history.session[rows]] = True
        return split(history.sessions, chosen)

    every = having(np.union1d(calls.failures, calls.outside))
    return [every, *(having(pattern.rows) for pattern in shown)]


def _is_asked(pattern: _Pattern, history: History, params: ErrorPatternsParams) -> bool:
    if len(pattern.rows) < params.min_count:
        return False
    return not params.tool or (pattern.is_of_tool and history.names[pattern.tool] == params.tool)


def _patterns(history: History, calls: Calls) -> list[_Pattern]:
    templates = history[Column.MESSAGE].astype(np.int64)
    found = []
    groups = (
        (calls.failures, calls.failing_tools(history.names), calls.failed, True),
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
                    template, tool, rows[by_time], linked,
                    calls=np.unique(linked) if is_of_tool else np.empty(0, np.int64),
                    after=np.unique(linked[linked != NONE]) if not is_of_tool
                    else np.empty(0, np.int64),
                )
            )  # fmt: skip
    return found


def _families(
    shown: list[_Pattern], calls: Calls, gram: Grams, params: ErrorPatternsParams
) -> Iterator[Effects]:
    """Yield for each error how much likelier it is after the sequences of one length: at every
    call for an error of a tool, after every call for one outside tools."""
    every: dict[bool, Moments] = {}
    for pattern in shown:
        deadline.check()  # A hundred errors of a million calls take a while.
        of_tool = pattern.is_of_tool
        if of_tool not in every:
            before = gram.before_call(calls) if of_tool else gram.up_to_call()
            every[of_tool] = Moments(gram, calls.session, before)
        moments, hit = every[of_tool], np.zeros(len(calls), bool)
        hit[pattern.calls if of_tool else pattern.after] = True
        if of_tool and params.baseline == Baseline.SAME_TOOL:
            same = calls.tool == pattern.tool
            moments, hit = Moments(gram, calls.session[same], moments.before[same]), hit[same]
        yield after_sequences(
            moments, "call_fails" if of_tool else "error_follows", hit, followed_only=True
        )


def _preceding(
    pattern: _Pattern,
    families: list[Effects],
    q_values: list[Floats],
    calls: Calls,
    history: History,
) -> tuple[SequenceEffect, ...]:
    """Return the sequences worth showing: sure ones that make the error likelier, then frequent
    ones. A sequence is left out when a longer one before it says the same of as many errors."""
    ranked = sorted(
        (
            not _is_sure(family, q, i),
            -int(family.hits[i]),
            -family.grams.length,
            -float(family.low[i]),
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
            if pattern.is_of_tool and item.is_sure and item.is_likelier:
                code = int(families[number].code[i])
                leads_only = _leads_only(pattern, families[number].grams, code, calls)
                item = replace(item, leads_only=leads_only)
            chosen.append(item)
        if len(chosen) == _MAX_PRECEDING:
            break
    return tuple(chosen)


def _leads_only(pattern: _Pattern, gram: Grams, code: int, calls: Calls) -> bool:
    """Tell whether a tool's own calls do not show that its error is likelier after a sequence:
    then it is so elsewhere because the tool is called there."""
    own, failed = calls.tool == pattern.tool, np.zeros(len(calls), bool)
    failed[pattern.calls] = own[pattern.calls] = True  # Also those that only their errors name.
    after = gram.before_call(calls) == code
    counts = (failed & after, own & after, failed & ~after, own & ~after)
    ratio = rate_ratio(*(np.array([float(some.sum())]) for some in counts))
    return not ratio.low[0] > 1


def _is_sure(family: Effects, q_values: Floats, i: int) -> bool:
    """Tell whether the error is surely likelier after a sequence."""
    return bool(family.tested[i] and q_values[i] <= SIGNIFICANT and family.low[i] > 1)


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
    params: ErrorPatternsParams,
) -> ErrorPattern:
    rows = pattern.rows
    times, cursors = history[Column.TIME][rows], history[Column.CURSOR][rows]
    newest = [int(cursor) for cursor in cursors[::-1][: params.examples]]
    facts = reader.facts(newest)
    of_tool = calls.tool == pattern.tool
    of_tool[pattern.calls] = True  # Also those that only their errors name.
    tool_count = int(of_tool.sum())
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
