"""The findings of SESSION_COMPARISON in words."""

from __future__ import annotations

from mneme_server.features.reflect.compared import SIGNIFICANT, OutcomeBy, OutcomeGroup
from mneme_server.features.reflect.error_insights import split_data
from mneme_server.features.reflect.model import (
    Comparison,
    ErrorChange,
    Insight,
    SessionComparison,
    Trend,
)
from mneme_server.features.reflect.wording import figure, of, outcomes, plural, sure

_WORDS = {
    "success_rate": "success rate",
    "errors_per_session": "errors a session",
    "cost_per_session": "cost of a session (US dollars)",
    "tokens_per_session": "tokens a session",
    "mean_latency_ms": "mean latency (ms)",
    "seconds_per_session": "length of a session (s)",
    "tool_calls_per_session": "tool calls a session",
    "events_per_session": "events a session",
}


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
    """Return the groups that surely differ from the others, without what is told already: where two
    share out the sessions, each is the others of the other."""
    if by.is_sure and _are_the_rest(by.best, by.worst):
        return []
    told: list[OutcomeGroup] = []
    for group in by.groups:
        if group.split.is_sure and not any(_are_the_rest(group, other) for other in told):
            told.append(group)
    return told


def _are_the_rest(one: OutcomeGroup, other: OutcomeGroup) -> bool:
    mine, theirs = one.split, other.split
    return (mine.sessions, mine.successes) == (theirs.other_sessions, theirs.other_successes)


def _difference(comparison: Comparison, newest: tuple[str, ...]) -> Insight:
    low, high = comparison.difference_interval
    word = {Trend.IMPROVING: "better", Trend.DEGRADING: "worse"}.get(
        comparison.trend, "higher" if comparison.difference > 0 else "lower"
    )
    return Insight(
        type=f"{comparison.measure}_change",
        summary=(
            f"Recent sessions: {_WORDS[comparison.measure]} {word}, on average"
            f" {figure(comparison.recent_mean)} against {figure(comparison.earlier_mean)}"
            f" (difference {_signed(comparison.difference)}, {_signed(low)} to {_signed(high)});"
            f" {sure(comparison.q_value)}."
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


def _signed(value: float) -> str:
    return f"{'+' if value >= 0 else '-'}{figure(abs(value))}"


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
