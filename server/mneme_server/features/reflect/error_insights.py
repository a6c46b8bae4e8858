"""The findings of ERROR_PATTERNS in words."""

from __future__ import annotations

from mneme_server.common.canonical import Json, JsonObject
from mneme_server.features.reflect.compared import OutcomeSplit, SequenceEffect
from mneme_server.features.reflect.model import EVIDENCE, ErrorPattern, ErrorPatterns, Insight
from mneme_server.features.reflect.recoveries import (
    NO_CALL,
    OTHER_ARGUMENTS,
    OTHER_TOOL,
    SAME_CALL,
    SAME_TOOL,
)
from mneme_server.features.reflect.wording import (
    against,
    day,
    outcomes,
    percent,
    plural,
    sequence,
    sure,
)

_RECURRING = 2
_NAMED_BEFORE = 2


def error_insights(result: ErrorPatterns) -> list[Insight]:
    """Return the findings, the strongest first: those that bear on the most errors or sessions."""
    insights = [_recurring(p) for p in result.patterns if p.count >= _RECURRING]
    for pattern in result.patterns:
        insights += [
            _after(effect, pattern)
            for effect in pattern.preceding
            if effect.is_sure and effect.is_likelier and not effect.leads_only
        ]
        if pattern.outcome is not None and pattern.outcome.is_sure:
            insights.append(_ended(pattern, pattern.outcome))
        if sum(pattern.recovered.values()) >= _RECURRING:
            insights.append(_recovered(pattern))
    # Where all errors are of one kind, that has been said.
    told = {p.outcome.sessions for p in result.patterns if p.outcome is not None}
    any_error = result.outcome
    if any_error is not None and any_error.is_sure and any_error.sessions not in told:
        insights.append(_with_errors(any_error))
    # Stable: of equally strong ones those of the more frequent error come first.
    return sorted(insights, key=lambda insight: -insight.strength)


def _name(pattern: ErrorPattern) -> str:
    return f"“{pattern.template}”{f' of {pattern.tool_name}' if pattern.tool_name else ''}"


def _recurring(pattern: ErrorPattern) -> Insight:
    where = f"{pattern.tool_name} fails with" if pattern.tool_name else "There is the error"
    of_calls = f", in {percent(pattern.rate)} of its calls" if pattern.tool_name else ""
    first, last = day(pattern.first_seen_us), day(pattern.last_seen_us)
    seen = f"seen on {first}" if first == last else f"first seen {first}, last {last}"
    before = [
        f"{sequence(effect.tools)} ({effect.effect_count:,})"
        for effect in pattern.preceding
        if effect.effect_count >= _RECURRING and len(effect.tools) == 1
    ][:_NAMED_BEFORE]
    called = f"; called just before: {', '.join(before)}" if before else ""
    return Insight(
        type="recurring_error",
        summary=(
            f"{where} “{pattern.template}” {plural(pattern.count, 'time')} in"
            f" {plural(pattern.sessions_affected, 'session')}{of_calls}; {seen}{called}."
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
        strength=float(pattern.count),
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


def effect_data(effect: SequenceEffect) -> dict[str, Json]:
    """Return the figures behind an effect; a ratio only where there is one."""
    data: dict[str, Json] = {
        "tools": list(effect.tools),
        "effect": effect.effect,
        "count": effect.count,
        "effect_count": effect.effect_count,
        "base_count": effect.base_count,
        "base_effect_count": effect.base_effect_count,
        "base_rate": effect.base_rate,
        "q_value": effect.q_value,
    }
    if effect.has_ratio:
        low, high = effect.lift_interval
        data.update(lift=effect.lift, lift_low=low, lift_high=high)
    return data


def split_data(split: OutcomeSplit) -> JsonObject:
    """Return the figures behind a comparison of outcomes."""
    return {
        "sessions": split.sessions,
        "successes": split.successes,
        "success_low": split.interval.low,
        "success_high": split.interval.high,
        "other_sessions": split.other_sessions,
        "other_successes": split.other_successes,
        "q_value": split.q_value,
    }


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
    said = "; ".join(
        f"{how.format(tool=pattern.tool_name or 'it')} in {pattern.recovered[kind]:,}"
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


_KINDS = {
    OTHER_ARGUMENTS: "{tool} went through with other arguments",
    SAME_CALL: "{tool} went through with the same arguments",
    SAME_TOOL: "{tool} went through",
    OTHER_TOOL: "another call went through",
    NO_CALL: "no further call went through",
}
