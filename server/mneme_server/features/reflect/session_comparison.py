"""SESSION_COMPARISON: recent sessions against the earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from mneme._core.amounts import dollars
from numpy.typing import NDArray

from mneme_server.common.clock import DAY_US
from mneme_server.features.events.event_types import EventPart, playing
from mneme_server.features.events.history import Column, HistoryReader
from mneme_server.features.events.model import Outcome
from mneme_server.features.reflect import calls as tool_calls
from mneme_server.features.reflect.calls import find_calls
from mneme_server.features.reflect.circumstances import Circumstances, circumstances
from mneme_server.features.reflect.clocks import in_time
from mneme_server.features.reflect.history import NONE, History, Ints, kind_is
from mneme_server.features.reflect.mix import Mix, said
from mneme_server.features.reflect.model import (
    SIGNIFICANT,
    AnalysisFindings,
    BucketSpan,
    ErrorChange,
    Insight,
    MeasureComparison,
    MixVerdict,
    OutcomeBy,
    OutcomeGroup,
    SessionComparison,
    SessionComparisonParams,
    Trend,
)
from mneme_server.features.reflect.outcomes import outcomes_by, untold
from mneme_server.features.reflect.time_series import buckets_over, ranks, scores_by
from mneme_server.features.reflect.wording import (
    figure,
    of,
    outcomes,
    percent,
    plural,
    points,
    split_data,
    sure,
)
from mneme_server.statistics.association import Associations, Traits
from mneme_server.statistics.drift import difference_p
from mneme_server.statistics.inference import (
    NO_INTERVAL,
    Floats,
    benjamini_hochberg,
    compare,
    fisher_exact,
)

NEEDED = (
    *tool_calls.NEEDED, Column.COST, Column.INPUT_TOKENS, Column.OUTPUT_TOKENS, Column.DURATION,
    Column.MESSAGE, Column.MODEL,
)  # fmt: skip
MIN_SIDE = 5
"""Sessions that either side needs: with four against four a p-value cannot fall much below 0.05."""
_DEFAULT_DAYS = 7.0
NEGLIGIBLE = 0.147
"""Up to this Cliff's delta a difference is negligible (Romano et al. 2006)."""
_LEAST_POINTS = 0.02
"""Shares that are closer than this are alike; Cliff's delta of shares is their difference."""
_LEAST_CHANGE = 0.01
"""Means that are closer than this share of the larger would be shown as the same figure."""
_AT_ONCE_S = 60.0
_MAYBE = 0.15
"""Where a test that takes sessions for independent says more, the dearer ones are not needed."""
_MIN_TASKS = 3
_MIN_SPANS = 8
_BEATS = 4
_TASK = "task"
_WORDS = {
    "success_rate": "success rate",
    "errors_per_session": "errors a session",
    "cost_per_session": "cost of a session",
    "tokens_per_session": "tokens a session",
    "mean_latency_ms": "mean latency (ms)",
    "seconds_per_session": "length of a session (s)",
    "tool_calls_per_session": "tool calls a session",
    "events_per_session": "events a session",
}
_AMOUNTS: dict[str, tuple[Callable[[float], str], Callable[[float], str]]] = {
    "success_rate": (percent, points),
    "cost_per_session": (dollars, dollars),
}
"""How values of a measure are said, and differences of them; the others as plain figures."""


class _SessionMeasure(NamedTuple):
    """A measure of each session (s,), NaN where it has none. `rising_is_better` is None for what is
    neither good nor bad."""

    name: str
    values: Floats
    rising_is_better: bool | None


def session_comparison(
    history: History, reader: HistoryReader, params: SessionComparisonParams, limit: int
) -> AnalysisFindings:
    """Compare the recent sessions with the earlier ones, measure by measure."""
    whole = circumstances(history, reader)
    history, of_clocks = in_time(history)
    notes = history.notes + of_clocks
    known = circumstances(history, reader) if of_clocks else whole
    recent = _recent(history, params, notes)
    counts = int(recent.sum()), int((~recent).sum())
    sides = _Sides(known, recent)
    comparisons = [_compared(measure, recent, sides) for measure in _measures(history)]
    tested = [c for c in comparisons if _is_enough(c.recent_count, c.earlier_count)]
    changes, error_tests = _changes(known, recent)
    # Before they are adjusted, `q_value` holds the p-value.
    p_values = [c.q_value for c in tested] + [change.q_value for _, change in changes]
    q_values = benjamini_hochberg(np.array(p_values), len(tested) + error_tests).tolist()
    by_measure = dict(zip((c.measure for c in tested), q_values, strict=False))
    judged = [_judged(c, by_measure.get(c.measure)) for c in comparisons]
    judged.sort(key=lambda c: (c.q_value, -abs(c.effect_size), c.measure))
    adjusted = [
        (is_new, replace(change, q_value=q_value))
        for (is_new, change), q_value in zip(changes, q_values[len(tested) :], strict=True)
    ]
    result = SessionComparison(
        recent_count=counts[0],
        earlier_count=counts[1],
        split_us=int(history.sessions.start_us[recent].min()) if recent.any() else None,
        comparisons=tuple(judged),
        new_errors=_top([change for is_new, change in adjusted if is_new], limit),
        gone_errors=_top([change for is_new, change in adjusted if not is_new], limit),
        outcomes=outcomes_by(whole, limit),
    )
    if not _is_enough(*counts):
        notes.append(
            f"either side needs {MIN_SIDE} sessions to be compared; there are"
            f" {counts[0]:,} recent and {counts[1]:,} earlier ones"
        )
    elif np.ptp(history.sessions.start_us) < _AT_ONCE_S * 1e6:
        notes.append(
            "all sessions began within a minute, as imported ones do: recent and earlier mean no"
            " more than the order in which they were recorded"
        )
    notes += untold(whole.sessions)
    newest = history.sessions.newest(np.flatnonzero(recent))
    return AnalysisFindings(result, comparison_insights(result, newest), notes, list(history.caps))


def _is_enough(recent: int, earlier: int) -> bool:
    return min(recent, earlier) >= MIN_SIDE


def _recent(
    history: History, params: SessionComparisonParams, notes: list[str]
) -> NDArray[np.bool_]:
    """Return which sessions are recent (s,)."""
    starts = history.sessions.start_us
    count = len(starts)
    places = np.arange(count)
    if params.recent_sessions is not None:
        return places >= count - params.recent_sessions
    if not count:
        return np.zeros(0, bool)
    times = history[Column.TIME]
    last = max(int(starts.max()), int(times.max()) if len(times) else 0)
    days = _DEFAULT_DAYS if params.recent_days is None else params.recent_days
    recent = starts >= last - round(days * DAY_US)
    few = min(recent.sum(), (~recent).sum()) < MIN_SIDE
    if params.recent_days is None and few and count // 2 >= MIN_SIDE:
        which = "older than" if recent.sum() >= MIN_SIDE else "of the last"
        notes.append(
            f"fewer than {MIN_SIDE} sessions are {which} {_DEFAULT_DAYS:g} days, so the later"
            " half is compared with the earlier half; recent_days or recent_sessions choose"
        )
        return places >= count - count // 2
    return recent


def _measures(history: History) -> Iterator[_SessionMeasure]:
    sessions = history.sessions
    session, size = history.session, len(sessions)

    def total(rows: NDArray[np.bool_], weights: Floats | None = None) -> Floats:
        chosen = None if weights is None else weights[rows].astype(float)
        return np.bincount(session[rows], chosen, minlength=size).astype(float)

    every = np.ones(len(history), bool)
    events = total(every)
    known = sessions.outcome != Outcome.UNKNOWN
    yield _SessionMeasure(
        "success_rate", np.where(known, sessions.outcome == Outcome.SUCCESS, np.nan), True
    )

    def told(values: Floats) -> Floats:
        """What a session without events did is not known."""
        return np.where(sessions.has_events, values, np.nan)

    yield _SessionMeasure("errors_per_session", told(total(history.is_error)), False)
    cost = total(every, history[Column.COST])
    tokens = total(every, history[Column.INPUT_TOKENS] + history[Column.OUTPUT_TOKENS])
    # Nor is what one cost that carries no cost: sessions that record none are not the cheap ones.
    yield _SessionMeasure("cost_per_session", _recorded(cost), False)
    yield _SessionMeasure("tokens_per_session", _recorded(tokens), False)
    timed = history[Column.DURATION] != NONE
    timed_count = total(timed)
    with np.errstate(invalid="ignore", divide="ignore"):
        latency = total(timed, history[Column.DURATION]) / 1000.0 / timed_count
    yield _SessionMeasure("mean_latency_ms", np.where(timed_count > 0, latency, np.nan), False)
    yield _SessionMeasure("seconds_per_session", _lengths(history, events), None)
    called = total(kind_is(history, *playing(EventPart.CALL)))
    yield _SessionMeasure(
        "tool_calls_per_session", told(called) if called.any() else called * np.nan, None
    )
    yield _SessionMeasure("events_per_session", told(events), None)


def _recorded(amounts: Floats) -> Floats:
    return np.where(amounts > 0, amounts, np.nan)


def _lengths(history: History, events: Floats) -> Floats:
    """Return the seconds from each session's first event to its last; NaN for fewer than two."""
    times = history[Column.TIME]
    last = np.zeros(len(history.sessions), np.int64)
    first = np.full(len(history.sessions), np.iinfo(np.int64).max)
    np.maximum.at(last, history.session, times)
    np.minimum.at(first, history.session, times)
    lengths = np.where(events > 1, (last - first) / 1e6, np.nan)
    # Events that carry the time of their import say nothing of how long anything took.
    return lengths if np.nansum(lengths) > 0 else lengths * np.nan


def _compared(
    measure: _SessionMeasure, recent: NDArray[np.bool_], sides: _Sides
) -> MeasureComparison:
    """Compare one measure; `q_value` holds the p-value, `trend` what a larger value means."""
    values = measure.values.astype(float)
    has = ~np.isnan(values)
    mine, other = values[recent & has], values[~recent & has]
    means = [float(side.mean()) if len(side) else 0.0 for side in (mine, other)]
    if _is_enough(len(mine), len(other)):
        found = compare(mine, other)
        delta, interval = found.delta, found.interval
        p_value = sides.surely(found.p_value, values)
    else:
        p_value, delta, interval = 1.0, 0.0, NO_INTERVAL
    larger_is = {True: Trend.IMPROVING, False: Trend.DEGRADING, None: Trend.UNKNOWN}
    return MeasureComparison(
        measure=measure.name,
        recent_mean=means[0],
        earlier_mean=means[1],
        difference=means[0] - means[1] if len(mine) and len(other) else 0.0,
        difference_interval=interval,
        effect_size=delta,
        q_value=p_value,
        trend=larger_is[measure.rising_is_better],
        recent_count=len(mine),
        earlier_count=len(other),
        mix=sides.mix.effect(values, recent.astype(float)) if p_value <= _MAYBE else None,
    )


class _Sides:
    """What tells recent sessions (s,) from earlier ones beside what is compared.

    Args:
        known: what is known of the sessions.
        recent: which are recent.
    """

    def __init__(self, known: Circumstances, recent: NDArray[np.bool_]) -> None:
        self._known = known
        self._recent = recent
        starts = known.sessions.start_us
        self._buckets = (
            buckets_over(int(starts.min()), int(starts.max()), BucketSpan.BY_RANGE)
            if len(starts)
            else None
        )
        self.mix = Mix(known)

    def surely(self, p_value: float, values: Floats) -> float:
        """Return the p-value of values (s,), NaN where there are none, being different, for that
        sessions of one task are alike, and days are like the days before them."""
        if p_value > _MAYBE:
            return p_value
        rows = np.flatnonzero(~np.isnan(values))
        scores = ranks(values[rows])
        return max(p_value, self._by_task(rows, scores), self._by_day(rows, scores))

    def _by_task(self, rows: Ints, scores: Floats) -> float:
        if not self._known.repeats:
            return 0.0
        mine = np.flatnonzero(self._recent[rows])
        traits = Traits(mine, np.zeros(len(mine), np.int64), 1)
        likenesses = self._known.likenesses(rows, MIN_SIDE)
        found = Associations(traits, np.ones((len(rows), 1)), likenesses).of(scores)
        return float(found.p_value[0])

    def _by_day(self, rows: Ints, scores: Floats) -> float:
        if self._buckets is None:
            return 0.0
        place = self._buckets.place(self._known.sessions.start_us[rows])
        means, counts, spread = scores_by(place, scores, self._buckets.count)
        spans = np.flatnonzero(counts)
        if len(spans) < _MIN_SPANS:
            return 0.0
        share, *_ = scores_by(place, self._recent[rows].astype(float), self._buckets.count)
        rhythm = self._buckets.rhythm(spans)
        if len(spans) < _BEATS * rhythm.shape[1]:
            rhythm = rhythm[:, :1]
        return difference_p(spans, (means[spans], counts[spans], spread), rhythm, share[spans])


def _judged(comparison: MeasureComparison, q_value: float | None) -> MeasureComparison:
    """Return it with its q-value (None: it was not tested) and what that says."""
    trend = comparison.trend
    if q_value is None:
        return replace(comparison, q_value=1.0, trend=Trend.UNKNOWN)
    judged = replace(comparison, q_value=q_value)
    differs = _is_difference(judged)
    if differs and comparison.mix and comparison.mix.verdict is not MixVerdict.WORK:
        return replace(judged, trend=Trend.UNKNOWN, differs=True)
    if trend is not Trend.UNKNOWN:
        if not differs:
            trend = Trend.STABLE
        elif comparison.effect_size < 0:
            opposite = {Trend.IMPROVING: Trend.DEGRADING, Trend.DEGRADING: Trend.IMPROVING}
            trend = opposite[trend]
    return replace(judged, trend=trend, differs=differs)


def _is_difference(found: MeasureComparison) -> bool:
    """Tell whether two sides surely differ, by an amount that is worth telling, and in the means as
    in the ranks: a sentence that says "more" beside a smaller mean would puzzle anyone."""
    low, high = found.difference_interval
    least = _LEAST_POINTS if found.measure == "success_rate" else NEGLIGIBLE
    larger = max(abs(found.recent_mean), abs(found.earlier_mean))
    return (
        found.q_value <= SIGNIFICANT
        and abs(found.effect_size) >= least
        and found.difference * found.effect_size > 0
        and (low > 0 or high < 0)
        and abs(found.difference) >= _LEAST_CHANGE * larger
    )


def _changes(
    known: Circumstances, recent: NDArray[np.bool_]
) -> tuple[list[tuple[bool, ErrorChange]], int]:
    """Return the errors that only one side has, and whether it is the recent one; and how many
    errors there are in all, since each could have been one of them."""
    history = known.history
    rows, tools = _failed(history)
    triples = np.unique(
        np.stack([history[Column.MESSAGE][rows], tools, history.session[rows]]).astype(np.int64),
        axis=1,
    )
    kinds, where = np.unique(triples[:2], axis=1, return_inverse=True)
    where = where.ravel()
    size = kinds.shape[1]
    seen = np.bincount(where, minlength=size)
    seen_recently = np.bincount(where, recent[triples[2]], minlength=size).astype(np.int64)
    sides = int(recent.sum()), int((~recent).sum())
    of_tasks = _in_tasks(known, triples[2], where, size)
    one_sided = np.flatnonzero((seen_recently == 0) | (seen_recently == seen))
    if not all(sides) or not len(one_sided):
        return [], size
    every = np.ones(len(one_sided), np.int64)
    # An error of the one session that is recent is not told from chance by forty earlier ones.
    p_values = (
        fisher_exact(
            seen_recently[one_sided], every * sides[0], seen[one_sided], every * sum(sides)
        )
        if _is_enough(*sides)
        else np.ones(len(one_sided))
    )
    # Tries of one task have its errors in common.
    p_values = np.where(of_tasks[one_sided] >= _MIN_TASKS, p_values, 1.0)
    found = []
    for kind, p_value in zip(one_sided.tolist(), p_values.tolist(), strict=True):
        tool = kinds[1, kind]
        found.append(
            (
                bool(seen_recently[kind]),
                ErrorChange(
                    template=history.templates[kinds[0, kind]],
                    tool_name="" if tool == NONE else history.names[tool],
                    sessions=int(seen[kind]),
                    q_value=p_value,
                    session_ids=history.sessions.newest(triples[2][where == kind]),
                ),
            )
        )
    return found, size


def _in_tasks(known: Circumstances, session: Ints, where: Ints, size: int) -> Ints:
    """Return in how many tasks each error occurred (e,): where tasks do not repeat, in how many
    sessions."""
    key = known.task if known.repeats else np.arange(len(known.sessions))
    span = int(key.max()) + 1 if len(key) else 1
    pairs = np.unique(where * span + key[session])
    return np.bincount(pairs // span, minlength=size)


def _failed(history: History) -> tuple[Ints, Ints]:
    """Return the errors (e,) as places among the events, and the tools that failed (e,), `NONE`
    outside tools and where nobody names them."""
    calls = find_calls(history)
    tools = calls.failing_tools(history.names)
    named = np.array([bool(name) for name in history.names], bool)
    of_tools = np.where(named[tools], tools, NONE)
    rows = np.concatenate([calls.failures, calls.outside])
    return rows, np.concatenate([of_tools, np.full(len(calls.outside), NONE)])


def _top(changes: list[ErrorChange], limit: int) -> tuple[ErrorChange, ...]:
    return tuple(sorted(changes, key=lambda c: (-c.sessions, c.template, c.tool_name))[:limit])


def comparison_insights(result: SessionComparison, newest: tuple[str, ...]) -> list[Insight]:
    """Return the findings, the strongest first: those that bear on the most sessions.

    Args:
        result: the result.
        newest: the newest of the recent sessions.
    """
    found = [
        _difference(comparison, newest) for comparison in result.comparisons if comparison.differs
    ]
    for kind, where, changes, others in (
        ("new_error", "recent", result.new_errors, result.recent_count),
        ("gone_error", "earlier", result.gone_errors, result.earlier_count),
    ):
        found += [_change(kind, where, c, others) for c in changes if c.q_value <= SIGNIFICANT]
    for by in result.outcomes:
        if by.is_sure:
            found.append(_spread(by))
        found += [_group(by.dimension, group) for group in _told_once(by)]
    return sorted(found, key=lambda insight: -insight.strength)


def _told_once(by: OutcomeBy) -> list[OutcomeGroup]:
    """Return the groups that surely differ from the others, without what is told already: that it
    differs by task, with the best and the worst, tells of every task; and where two groups share
    out the sessions, each is the others of the other."""
    if by.is_sure and (by.dimension == _TASK or _are_the_rest(by.best, by.worst)):
        return []
    told: list[OutcomeGroup] = []
    for group in by.groups:
        if group.split.is_sure and not any(_are_the_rest(group, other) for other in told):
            told.append(group)
    return told


def _are_the_rest(one: OutcomeGroup, other: OutcomeGroup) -> bool:
    mine, theirs = one.split, other.split
    return (mine.sessions, mine.successes) == (theirs.other_sessions, theirs.other_successes)


def _difference(comparison: MeasureComparison, newest: tuple[str, ...]) -> Insight:
    low, high = comparison.difference_interval
    word = {Trend.IMPROVING: "better", Trend.DEGRADING: "worse"}.get(
        comparison.trend, "higher" if comparison.difference > 0 else "lower"
    )
    mix = comparison.mix
    of_mix = mix is not None and mix.verdict is not MixVerdict.WORK
    level, by = _AMOUNTS.get(comparison.measure, (figure, figure))
    why = f": {said(mix, by)}" if mix is not None and of_mix else ""
    difference, least, most = (_signed(one, by) for one in (comparison.difference, low, high))
    return Insight(
        type=f"{comparison.measure}_change",
        summary=(
            f"Recent sessions: {_WORDS[comparison.measure]} {word}, on average"
            f" {level(comparison.recent_mean)} against {level(comparison.earlier_mean)}"
            f" (difference {difference}, 95 % between {least} and {most});"
            f" {sure(comparison.q_value)}{why}."
        ),
        data={
            "measure": comparison.measure,
            "recent_mean": comparison.recent_mean,
            "earlier_mean": comparison.earlier_mean,
            "difference": comparison.difference,
            "difference_low": low,
            "difference_high": high,
            "effect_size": comparison.effect_size,
            "q_value": comparison.q_value,
        },
        q_value=comparison.q_value,
        session_ids=newest,
        # Cliff's delta of the recent sessions are larger, or smaller, than they would be.
        strength=abs(comparison.effect_size) * comparison.recent_count,
    )


def _signed(value: float, amount: Callable[[float], str]) -> str:
    return f"{'+' if value >= 0 else '-'}{amount(abs(value))}"


def _change(kind: str, where: str, change: ErrorChange, sessions: int) -> Insight:
    of_tool = f" of {change.tool_name}" if change.tool_name else ""
    return Insight(
        type=kind,
        summary=(
            f"“{change.template}”{of_tool} occurs only in {where} sessions:"
            f" in {of(change.sessions, sessions)} of them; {sure(change.q_value)}."
        ),
        data={
            "template": change.template,
            "tool_name": change.tool_name,
            "sessions": change.sessions,
            "q_value": change.q_value,
        },
        q_value=change.q_value,
        session_ids=change.session_ids,
        strength=float(change.sessions),
    )


def _spread(by: OutcomeBy) -> Insight:
    """That the outcome differs by task (project, …) at all; the groups may each be too small."""
    best, worst = by.best, by.worst
    return Insight(
        type="outcome_differs",
        summary=(
            f"How sessions end differs by {by.dimension}"
            f" ({plural(by.group_count, by.dimension)} compared):"
            f" {of(best.split.successes, best.split.sessions)} succeeded with {by.dimension}"
            f" {best.key}, {of(worst.split.successes, worst.split.sessions)} with {worst.key};"
            f" {sure(by.q_value)}."
        ),
        data={"dimension": by.dimension, "groups": by.group_count, "q_value": by.q_value},
        q_value=by.q_value,
        session_ids=worst.session_ids,
        strength=by.excess,
    )


def _group(dimension: str, group: OutcomeGroup) -> Insight:
    return Insight(
        type=f"outcome_by_{dimension}",
        summary=(
            f"Of the sessions with {dimension} {group.key}, {outcomes(group.split)};"
            f" {sure(group.split.q_value)}."
        ),
        data={"dimension": dimension, "key": group.key, **split_data(group.split)},
        q_value=group.split.q_value,
        session_ids=group.session_ids,
        strength=group.split.strength,
    )
