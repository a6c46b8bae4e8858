"""A person's words for what an agent should know when it wakes up."""

from __future__ import annotations

from collections.abc import Sequence

from mneme.visible import visible, visible_line

from mneme_server.common.humanize import ago, lasting
from mneme_server.features.context.handover import decided
from mneme_server.features.context.model import (
    Awakening,
    Handover,
    PastSession,
    Related,
    Suggestion,
    WorkPattern,
)
from mneme_server.features.context.words import cut, ended
from mneme_server.features.events.history import active_us
from mneme_server.features.events.model import Outcome

NOTHING = "There is nothing to pick up: no session has been handed over or summarised yet."
NOT_COMPARED = "Related sessions could not be looked for: the embedding backend does not answer."
_SAID = 220
_DECIDED = 300
_DONE = 400
_RELATED = 5
_LATER = 3
_PATTERNS = 4
_STEPS = 5


def narrate(woken: Awakening, now_us: int) -> str:
    """Weave the last session, related work, patterns and next steps into one text.

    What is stored stays on the line that says what it is: it cannot pass for another one.
    """
    if woken.last is None:
        return NOTHING
    parts = [_last(woken.last, now_us)]
    if woken.later:
        parts.append(_later(woken.later, now_us, more=woken.more_later))
    if woken.related:
        parts.append("\n".join(_related(woken.related[:_RELATED], now_us)))
    if woken.not_compared:
        parts.append(NOT_COMPARED)
    if woken.patterns:
        parts.append("\n".join(_pattern(pattern) for pattern in woken.patterns[:_PATTERNS]))
    if woken.suggestions:
        parts.append(_steps(woken.suggestions))
    return visible("\n\n".join(parts))


def gist(past: PastSession) -> str:
    """Return in a few words what a session did."""
    if past.handover is not None and not past.handover.all_collected:
        done = [*past.handover.progress, *past.handover.completed_todos]
        if done:
            return cut("; ".join(item.rstrip(". ") for item in done[:3]), _SAID)
    if past.summary is not None:
        return cut(past.summary.text.split("\n", 1)[0].rstrip("."), _SAID)
    return "no summary yet"


def _last(last: PastSession, now_us: int) -> str:
    when = ago(last.at_us, now_us)
    handover = last.handover
    took = f", after {lasting(handover.duration_s)}" if handover and handover.duration_s else ""
    project = last.session.project or (handover.project if handover else "")
    on = f" on {visible_line(project)}" if project else ""
    lines = [f"Last session{on}, {when}{took}: {ended(gist(last))}"]
    if handover is not None:
        if handover.all_collected:
            lines += _collected(handover)
        lines += _decided(handover)
        if handover.locked_contexts:
            labels = ", ".join(
                visible_line(f"{c.label} {c.version}") for c in handover.locked_contexts[:5]
            )
            lines.append(f"Pinned context: {labels}.")
    elif last.summary is not None:
        lines.append("It left no handover; this is what its events tell.")
    if last.summary is not None and last.summary.outcome == Outcome.FAILURE:
        lines.append("It ended in failure.")
    return "\n".join(lines)


def _collected(handover: Handover) -> list[str]:
    lines = ["Nobody wrote this handover: it is what the session's events tell."]
    done = [*handover.progress, *handover.completed_todos]
    if done:
        told = cut("; ".join(item.rstrip(". ") for item in done[:3]), _DONE)
        lines.append(f"What came of it: {ended(told)}")
    return lines


def _decided(handover: Handover) -> list[str]:
    return [f"Decided: {ended(decided(one, _DECIDED))}" for one in handover.decisions[:3]]


def _later(later: Sequence[PastSession], now_us: int, *, more: bool) -> str:
    told = [
        f"{ago(active_us(past.session), now_us)}: {ended(gist(past))}" for past in later[:_LATER]
    ]
    count = len(later)
    sessions = "one session was" if count == 1 else f"{count} sessions were"
    return (
        f"Since then {'at least ' if more else ''}{sessions} at work and left no handover. "
        + " ".join(told)
    )


def _related(related: Sequence[Related], now_us: int) -> list[str]:
    """Return a line for each thing that was done, however many sessions did it."""
    times: dict[str, list[int]] = {}
    for one in related:
        times.setdefault(ended(gist(one.past)), []).append(one.past.at_us)
    return [f"Related work {_when(at_us, now_us)}: {did}" for did, at_us in times.items()]


def _when(at_us: Sequence[int], now_us: int) -> str:
    latest = f"from {ago(max(at_us), now_us)}"
    return latest if len(at_us) == 1 else f"in {len(at_us)} sessions, the latest {latest}"


def _pattern(pattern: WorkPattern) -> str:
    name = "Context" if pattern.type == "topic" else "Pattern"
    return f"{name}: {ended(cut(pattern.description, _SAID))}"


def _steps(suggestions: Sequence[Suggestion]) -> str:
    if len(suggestions) == 1:
        return f"Suggested next step: {visible_line(suggestions[0].description).rstrip('. ')}."
    steps = [
        f"{n}. {visible_line(step.description)}" for n, step in enumerate(suggestions[:_STEPS], 1)
    ]
    return "Suggested next steps:\n" + "\n".join(steps)
