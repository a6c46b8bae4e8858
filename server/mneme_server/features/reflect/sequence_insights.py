"""The findings of TOOL_SEQUENCES in words."""

from __future__ import annotations

import numpy as np

from mneme_server.features.reflect.compared import SequenceEffect
from mneme_server.features.reflect.error_insights import effect_data
from mneme_server.features.reflect.model import Insight, SequenceCount, ToolLoop, ToolSequences
from mneme_server.features.reflect.wording import against, percent, plural, sequence, sure
from mneme_server.statistics.inference import wilson

_COMMON = 3
_SAME = 0.8
"""Sequences that share so many of their sessions tell of the same ones."""


def sequence_insights(result: ToolSequences) -> list[Insight]:
    """Return the findings, the strongest first, loops among them; then what is merely common."""
    effects = [
        *(_effect(e, "error_after_sequence") for e in _telling(result.before_errors)),
        *(
            _effect(e, "sequence_before_failure")
            for e in _telling(result.before_failure)
            if e.is_likelier
        ),
        *(
            _effect(e, "sequence_before_success")
            for e in _telling(result.before_success)
            if e.is_likelier
        ),
    ]
    found = effects + [_loop(loop) for loop in result.loops]
    found.sort(key=lambda insight: -insight.strength)
    return found + [_frequent(common) for common in _apart(result.common)[:_COMMON]]


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
    for effect in effects:
        if effect.is_sure and not any(_says_the_same(effect, other) for other in told):
            told.append(effect)
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


_OUTCOMES = ("success", "failure")
_WHAT = {
    "call_fails": "the next call fails",
    "error_follows": "an error outside tools follows",
    "success": "succeed",
    "failure": "fail",
}


def _effect(effect: SequenceEffect, kind: str) -> Insight:
    often = "more often" if effect.is_likelier else "less often"
    what = _WHAT[effect.effect]
    if effect.effect in _OUTCOMES:
        summary = f"Sessions with {sequence(effect.tools)} {what} {often} than others"
    else:
        summary = f"After {sequence(effect.tools)}, {what} {often} than elsewhere"
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
            f"{loop.tool or '(unnamed)'} was called {loop.longest_run} times in a row with the same"
            " arguments."
            if loop.runs == 1
            else f"{loop.tool or '(unnamed)'} was called up to {loop.longest_run} times in a row"
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
