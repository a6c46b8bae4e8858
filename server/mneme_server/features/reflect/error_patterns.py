"""ERROR_PATTERNS: recurring errors, the calls before them, how sessions with them ended, and what
followed them in sessions that succeeded all the same, which may have resolved them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mneme_server.common import deadline
from mneme_server.common.humanize import day
from mneme_server.features.events.history import Column, HistoryReader
from mneme_server.features.events.model import Outcome
from mneme_server.features.reflect import calls as tool_calls
from mneme_server.features.reflect.calls import Calls, Grams, find_calls, grams_of
from mneme_server.features.reflect.circumstances import (
    CallPlaces,
    Circumstances,
    circumstances,
)
from mneme_server.features.reflect.effects import (
    MIN_SESSIONS,
    Effects,
    Moments,
    adjusted,
    after_sequences,
)
from mneme_server.features.reflect.history import NONE, History, Ints
from mneme_server.features.reflect.model import (
    EVIDENCE,
    SIGNIFICANT,
    AnalysisFindings,
    ErrorExample,
    ErrorPattern,
    ErrorPatterns,
    ErrorPatternsParams,
    Insight,
    OutcomeSplit,
    Recovery,
    SequenceEffect,
)
from mneme_server.features.reflect.outcomes import adjusted_splits, splits, untold
from mneme_server.features.reflect.tool_sequences import argument_hashes
from mneme_server.features.reflect.unmarked_errors import unmarked_errors
from mneme_server.features.reflect.wording import (
    against,
    called,
    effect_data,
    outcomes,
    percent,
    plural,
    sequence,
    split_data,
    sure,
)
from mneme_server.statistics.inference import Floats, rate_ratio

NEEDED = (*tool_calls.NEEDED, Column.MESSAGE, Column.TRACE)
_MAX_PRECEDING = 5
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
_RECURRING = 2
_KINDS_OF_TESTS = 2
_FEW = 3
"""Sessions that a finding is of at the least: one or two are no pattern."""
_LAST_EVENTS = 2
_NEARLY_ALL = 0.9
_NAMED_BEFORE = 2
_KINDS = {
    OTHER_ARGUMENTS: "{tool} went through with other arguments",
    SAME_CALL: "{tool} went through with the same arguments",
    SAME_TOOL: "{tool} went through",
    OTHER_TOOL: "another call went through",
    NO_CALL: "no further call went through",
}


@dataclass(slots=True)
class _ErrorGroup:
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
) -> AnalysisFindings:
    """Group the errors and find what comes before the most frequent ones."""
    calls = find_calls(history)
    found = [p for p in _patterns(history, calls) if _is_asked(p, history, params)]
    failed = history.sessions.outcome == Outcome.FAILURE
    found.sort(
        key=lambda p: (
            *(-cost for cost in _cost(p, history, failed)), history.templates[p.template], p.tool,
        )
    )  # fmt: skip
    shown = found[:limit]
    grams = grams_of(calls, range(1, params.window + 1))
    known = circumstances(history, reader)
    by_length = [list(_families(shown, calls, gram, known)) for gram in grams]
    families = [family for of_pattern in zip(*by_length, strict=True) for family in of_pattern]
    # What precedes errors and how sessions with them end share the rate of false findings.
    q_values = [np.minimum(1.0, _KINDS_OF_TESTS * q) for q in adjusted(families)]
    any_error, *splits = adjusted_splits(_outcomes(known, calls, shown), _KINDS_OF_TESTS)
    followed = Recoveries(history, reader, calls)
    patterns = []
    for number, (pattern, outcome) in enumerate(zip(shown, splits, strict=True)):
        mine = slice(number * len(grams), (number + 1) * len(grams))
        preceding = _preceding(pattern, families[mine], q_values[mine], calls, history)
        described = _described(
            pattern, preceding, calls=calls, history=history, reader=reader, params=params
        )
        resolved, kinds = followed.after(pattern.rows, pattern.befores, of_tool=pattern.is_of_tool)
        patterns.append(
            replace(
                described,
                outcome=outcome,
                recoveries=resolved,
                recovered=kinds,
                failed_sessions=_cost(pattern, history, failed)[0],
                ends_sessions=_ends_sessions(pattern, history, failed),
            )
        )
    result = ErrorPatterns(
        patterns=tuple(patterns),
        pattern_count=len(found),
        error_count=sum(len(p.rows) for p in found),
        outcome=any_error,
    )
    findings = AnalysisFindings(
        result,
        [*error_insights(result), *unmarked_errors(history, reader)],
        list(history.notes),
        list(history.caps),
    )
    if all(pattern.sessions_affected < _FEW for pattern in patterns):
        findings.notes += _too_few(result)
    tests = sum(family.tests for family in families)
    if tests:
        findings.notes.append(
            f"{plural(tests, 'pair')} of an error and a sequence of tools before it"
            f" {'was' if tests == 1 else 'were'} tested"
        )
    if result.error_count:
        findings.notes += untold(history.sessions) + known.untested()
    return findings


def _too_few(result: ErrorPatterns) -> list[str]:
    """Return what is said of errors that are in too few sessions to be findings."""
    if not result.error_count:
        return []
    again = next((p for p in result.patterns if p.count >= _RECURRING), None)
    if again is None:
        return [f"{plural(result.error_count, 'error')}, no two of them alike"]
    return [  # Notes quote nothing that was recorded.
        f"an error came {plural(again.count, 'time')} in"
        f" {plural(again.sessions_affected, 'session')}; a finding is of {_FEW} at the least"
    ]


def _cost(
    pattern: _ErrorGroup, history: History, failed: NDArray[np.bool_]
) -> tuple[int, int, int]:
    """Return what an error cost: how many sessions with it failed, and had it, and how often."""
    sessions = np.unique(history.session[pattern.rows])
    return int(failed[sessions].sum()), len(sessions), len(pattern.rows)


def _ends_sessions(pattern: _ErrorGroup, history: History, failed: NDArray[np.bool_]) -> bool:
    """Tell whether an error outside tools is the text of how sessions failed: the last thing in
    nearly all of its sessions, which all failed."""
    if pattern.is_of_tool:
        return False
    sessions, last = np.unique(history.session[pattern.rows][::-1], return_index=True)
    ends = np.searchsorted(history.session, sessions, side="right") - 1
    near = ends - pattern.rows[::-1][last] <= _LAST_EVENTS
    return bool(failed[sessions].mean() >= _NEARLY_ALL and near.mean() >= _NEARLY_ALL)


def _outcomes(known: Circumstances, calls: Calls, shown: list[_ErrorGroup]) -> list[OutcomeSplit]:
    """Compare the sessions with any error, and with each of the errors, with the others."""
    session = known.history.session
    every = np.union1d(calls.failures, calls.outside)
    having = [np.unique(session[rows]) for rows in (every, *(one.rows for one in shown))]
    return splits(known, having)


def _is_asked(pattern: _ErrorGroup, history: History, params: ErrorPatternsParams) -> bool:
    if len(pattern.rows) < params.min_count:
        return False
    return not params.tool or (pattern.is_of_tool and history.names[pattern.tool] == params.tool)


def _patterns(history: History, calls: Calls) -> list[_ErrorGroup]:
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
                _ErrorGroup(
                    template, tool, rows[by_time], linked,
                    calls=np.unique(linked) if is_of_tool else np.empty(0, np.int64),
                    after=np.unique(linked[linked != NONE]) if not is_of_tool
                    else np.empty(0, np.int64),
                )
            )  # fmt: skip
    return found


def _families(
    shown: list[_ErrorGroup],
    calls: Calls,
    gram: Grams,
    known: Circumstances,
) -> Iterator[Effects]:
    """Yield for each error how much likelier it is after the sequences of one length: at the
    tool's calls for an error of a tool, after every call for one outside tools."""
    every: dict[tuple[bool, int], tuple[Moments, Ints]] = {}
    places = CallPlaces(calls)
    for pattern in shown:
        deadline.check()  # A hundred errors of a million calls take a while.
        of_tool = pattern.is_of_tool
        key = of_tool, pattern.tool
        if key not in every:
            before = gram.before_call(calls) if of_tool else gram.up_to_call()
            rows = np.flatnonzero((calls.tool == pattern.tool) | (not of_tool))
            moments = Moments(
                gram, known, calls.session[rows], before[rows],
                design=places.design(rows, by_tool=False), min_sessions=MIN_SESSIONS, all_=True,
            )  # fmt: skip
            every[key] = moments, rows
        moments, rows = every[key]
        hit = np.zeros(len(calls), bool)
        hit[pattern.calls if of_tool else pattern.after] = True
        yield after_sequences(
            moments, "call_fails" if of_tool else "error_follows", hit[rows], followed_only=True
        )


def _preceding(
    pattern: _ErrorGroup,
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


def _leads_only(pattern: _ErrorGroup, gram: Grams, code: int, calls: Calls) -> bool:
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
    pattern: _ErrorGroup,
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


class _RecoveryPath(NamedTuple):
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
        found: dict[tuple[str, tuple[str, ...]], list[_RecoveryPath]] = defaultdict(list)
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

    def _way(self, row: int, before: int, of_tool: bool) -> _RecoveryPath:
        calls, good = self._calls, self._good
        session = int(self._history.session[row])
        if before != NONE:
            first = int(np.searchsorted(good, before + 1))
        else:  # Nothing was called before it in its session: what comes after it counts.
            first = int(np.searchsorted(self._good_event, row))
        end = int(np.searchsorted(self._good_session, session, side="right"))
        after = good[first:end]
        if not len(after):
            return _RecoveryPath(session, row, before, NONE, False)
        same = after[calls.tool[after] == calls.tool[before]] if of_tool else after[:0]
        call = int(same[0] if len(same) else after[0])
        return _RecoveryPath(session, row, before, call, bool(len(same)))

    def _described(
        self, way: _RecoveryPath, arguments: dict[int, int]
    ) -> tuple[str, tuple[str, ...]]:
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

    def _shown(self, kind: str, tools: tuple[str, ...], alike: list[_RecoveryPath]) -> Recovery:
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


def error_insights(result: ErrorPatterns) -> list[Insight]:
    """Return the findings, the strongest first: those that bear on the most errors or sessions."""
    insights = [_recurring(p) for p in result.patterns if p.sessions_affected >= _FEW]
    for pattern in result.patterns:
        insights += [
            _after(effect, pattern)
            for effect in pattern.preceding
            if effect.is_sure and effect.is_likelier and not effect.leads_only
        ]
        if pattern.outcome and pattern.outcome.is_sure and not pattern.ends_sessions:
            insights.append(_ended(pattern, pattern.outcome))
        if sum(pattern.recovered.values()) >= _FEW:
            insights.append(_recovered(pattern))
    # Where all errors are of one kind, that has been said.
    told = {p.outcome.sessions for p in result.patterns if p.outcome is not None}
    any_error = result.outcome
    if any_error is not None and any_error.is_sure and any_error.sessions not in told:
        insights.append(_with_errors(any_error))
    # Stable: of equally strong ones those of the more frequent error come first.
    return sorted(insights, key=lambda insight: -insight.strength)


def _recurring(pattern: ErrorPattern) -> Insight:
    where = f"{called(pattern.tool_name)} fails with" if pattern.tool_name else "There is the error"
    of_calls = f", in {percent(pattern.rate)} of its calls" if pattern.tool_name else ""
    first, last = day(pattern.first_seen_us), day(pattern.last_seen_us)
    seen = f"seen on {first}" if first == last else f"first seen {first}, last {last}"
    before = [
        f"{sequence(effect.tools)} ({effect.effect_count:,})"
        for effect in pattern.preceding
        if effect.effect_count >= _RECURRING and len(effect.tools) == 1
    ][:_NAMED_BEFORE]
    after = f"; called just before: {', '.join(before)}" if before else ""
    failed = f", {pattern.failed_sessions:,} of which failed" if pattern.failed_sessions else ""
    return Insight(
        type="recurring_error",
        summary=(
            f"{where} “{pattern.template}” {plural(pattern.count, 'time')} in"
            f" {plural(pattern.sessions_affected, 'session')}{failed}{of_calls}; {seen}{after}."
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
        strength=float(pattern.failed_sessions or pattern.sessions_affected),
    )


def _after(effect: SequenceEffect, pattern: ErrorPattern) -> Insight:
    return Insight(
        type="error_after_sequence",
        summary=(
            f"{_name(pattern)} is likelier after {sequence(effect.tools)} than elsewhere:"
            f" {against(effect)}; {sure(effect.q_value)}."
        ),
        data={
            "template": pattern.template,
            "tool_name": pattern.tool_name,
            **effect_data(effect),
        },
        q_value=effect.q_value,
        session_ids=effect.session_ids,
        strength=effect.strength,
    )


def _ended(pattern: ErrorPattern, split: OutcomeSplit) -> Insight:
    return Insight(
        type="outcome_with_error",
        summary=(
            f"Of the sessions with {_name(pattern)}, {outcomes(split)}; {sure(split.q_value)}."
        ),
        data={
            "template": pattern.template,
            "tool_name": pattern.tool_name,
            **split_data(split),
        },
        q_value=split.q_value,
        session_ids=pattern.session_ids,
        strength=split.strength,
    )


def _with_errors(split: OutcomeSplit) -> Insight:
    return Insight(
        type="outcome_with_any_error",
        summary=f"Of the sessions with an error, {outcomes(split)}; {sure(split.q_value)}.",
        data=split_data(split),
        q_value=split.q_value,
        strength=split.strength,
    )


def _recovered(pattern: ErrorPattern) -> Insight:
    count = sum(pattern.recovered.values())
    tool = called(pattern.tool_name) if pattern.tool_name else "it"
    said = "; ".join(
        f"{how.format(tool=tool)} in {pattern.recovered[kind]:,}"
        for kind, how in _KINDS.items()
        if pattern.recovered.get(kind)
    )
    best = pattern.recoveries[0]
    return Insight(
        type="error_recovery",
        summary=(
            f"Of {plural(count, 'session')} that succeeded in spite of {_name(pattern)}, after the"
            f" last such error {said}."
        ),
        data={
            "template": pattern.template,
            "tool_name": pattern.tool_name,
            "sessions": count,
            "by_kind": dict(pattern.recovered),
            "most_frequent": {"kind": best.kind, "tools": list(best.tools)},
        },
        session_ids=best.session_ids,
        event_ids=tuple(filter(None, (best.error_event_id, best.event_id))),
        strength=float(
            sum(pattern.recovered.get(kind, 0) for kind in (OTHER_ARGUMENTS, SAME_CALL, SAME_TOOL))
        ),
    )


def _name(pattern: ErrorPattern) -> str:
    return f"“{pattern.template}”{f' of {called(pattern.tool_name)}' if pattern.tool_name else ''}"
