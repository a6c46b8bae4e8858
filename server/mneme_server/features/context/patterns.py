"""Patterns that recur over sessions. Every one names the sessions and events that show it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mneme_server.features.context.handover import alike, todo_key
from mneme_server.features.context.model import Evidence, PastSession, WorkPattern
from mneme_server.features.context.notes import MAX_TOOL_SEQUENCE
from mneme_server.features.context.words import cut, error_topics, folded

FEW = 4
"""Of so many sessions or fewer, two show a pattern; of more, it takes three."""
_ABOUT = 1 / 3
"""Sessions are about a topic that so many of them have at least."""
_STANDS_OUT = 1.5
"""A topic tells of sessions that have it so many times as often as all sessions do."""
_PER_KIND = 3
_LONGEST_WORKFLOW = 4
_SHORTEST_WORKFLOW = 2
_MAX_EVENTS = 20


@dataclass(frozen=True, slots=True)
class Topics:
    """In how many sessions each topic occurs, of how many: the sessions among which those that are
    looked at stand out, or do not."""

    sessions: int
    counts: Mapping[str, int]

    def share(self, topic: str) -> float:
        """Return the share of the sessions that have a topic."""
        return self.counts.get(topic, 0) / self.sessions if self.sessions else 0.0


def patterns_of(sessions: Sequence[PastSession], among: Topics | None = None) -> list[WorkPattern]:
    """Return what recurs in the sessions, given the last one first; empty when nothing does.

    `among` tells what all sessions are about, these included; without it, these are all.
    """
    needed = 2 if len(sessions) <= FEW else 3
    if len(sessions) < needed:
        return []
    found: list[WorkPattern] = _topics(sessions, needed, among)
    for kind in (_files, _errors, _workflows, _todos):
        found += kind(sessions, needed)
    return found


def topic_key(topic: str) -> str:
    """Return by what a topic is counted: in lower case, without its plural's s."""
    return folded(topic.lower())


@dataclass(slots=True)
class _Counted:
    """A count with the sessions and events behind it."""

    count: int = 0
    session_ids: list[str] = field(default_factory=list)
    event_ids: list[str] = field(default_factory=list)


def _counted(
    sessions: Sequence[PastSession],
    needed: int,
    subjects: Callable[[PastSession], Iterable[tuple[str, Sequence[str]]]],
) -> list[tuple[str, _Counted]]:
    """Count in how many sessions each subject occurs; those that are enough, the most first."""
    counts: dict[str, _Counted] = {}
    for past in sessions:
        for subject, event_ids in subjects(past):
            counted = counts.setdefault(subject, _Counted())
            if past.session.id not in counted.session_ids:
                counted.session_ids.append(past.session.id)
                counted.count += 1
            counted.event_ids += event_ids
    enough = [item for item in counts.items() if item[1].count >= needed]
    return sorted(enough, key=lambda item: -item[1].count)


def _evidence(counted: _Counted) -> Evidence:
    events = tuple(dict.fromkeys(counted.event_ids))[:_MAX_EVENTS]
    return Evidence(tuple(counted.session_ids), events)


def _topics(
    sessions: Sequence[PastSession], needed: int, among: Topics | None
) -> list[WorkPattern]:
    """Find what these sessions are about and others are not: labels and words, other than tools
    and errors."""
    labels = {topic_key(tag) for past in sessions for tag in past.session.tags}

    def subjects(past: PastSession) -> Iterable[tuple[str, Sequence[str]]]:
        if past.summary is None:
            return
        left_out = {name for name, _ in past.summary.tools}
        for error in past.summary.errors:
            left_out.update(error_topics(error.template))
        for topic in past.summary.topics:
            if topic not in left_out:
                yield topic_key(topic), ()

    count = len(sessions)
    enough = max(needed, math.ceil(count * _ABOUT))
    found = _telling(_counted(sessions, enough, subjects), count, among)
    if not found:
        return []
    most, its = found[0]
    # Words that come in the same sessions tell of one subject.
    together = [
        topic
        for topic, counted in found
        if counted.session_ids == its.session_ids and (topic in labels) == (most in labels)
    ]
    names = ", ".join(together[:_PER_KIND])
    share = f"{its.count} of these {count} sessions"
    if its.count == count:
        share = "both of these sessions" if count == 2 else f"all {count} of these sessions"
    what = "label" if most in labels else "topic"
    said = f"{share} share the {what}{'s' if len(together) > 1 else ''} {names}"
    return [WorkPattern("topic", said, _evidence(its), names)]


def _telling(
    found: Sequence[tuple[str, _Counted]], count: int, among: Topics | None
) -> list[tuple[str, _Counted]]:
    """Return the topics by which sessions stand out, the one that does so most first.

    What nearly all sessions have in common tells nothing of these.
    """
    if among is None or among.sessions <= count:
        return list(found) if count <= FEW else []
    lifts = {
        topic: (counted.count / count) - among.share(topic)
        for topic, counted in found
        if counted.count / count >= _STANDS_OUT * among.share(topic)
    }
    return sorted((item for item in found if item[0] in lifts), key=lambda item: -lifts[item[0]])


def _files(sessions: Sequence[PastSession], needed: int) -> list[WorkPattern]:
    def subjects(past: PastSession) -> Iterable[tuple[str, Sequence[str]]]:
        events = {f.path: f.event_id for f in past.summary.files} if past.summary else {}
        for path in past.files:
            yield path, [events[path]] if path in events else []

    return [
        WorkPattern(
            "recurring_file",
            f"{path} was touched in {counted.count} sessions",
            _evidence(counted),
            path,
        )
        for path, counted in _counted(sessions, needed, subjects)[:_PER_KIND]
    ]


def _errors(sessions: Sequence[PastSession], needed: int) -> list[WorkPattern]:
    """Errors need two sessions only, however many there are: each one is a failure."""
    examples: dict[str, tuple[str, str]] = {}

    def subjects(past: PastSession) -> Iterable[tuple[str, Sequence[str]]]:
        for error in past.summary.errors if past.summary else ():
            where = f"{error.tool}: " if error.tool else ""
            found = where + error.template
            examples.setdefault(found, (where + cut(error.example, 120), error.template))
            yield found, error.event_ids

    return [
        WorkPattern(
            "recurring_error",
            f"the same error in {counted.count} sessions: {examples[found][0]}",
            _evidence(counted),
            examples[found][1],
        )
        for found, counted in _counted(sessions, min(needed, 2), subjects)[:_PER_KIND]
    ]


def _workflows(sessions: Sequence[PastSession], needed: int) -> list[WorkPattern]:
    """Find tools that follow each other in session after session; the longest way of saying it."""
    times: Counter[str] = Counter()
    at_least: set[str] = set()  # Of long sessions only the beginning is known.

    def subjects(past: PastSession) -> Iterable[tuple[str, Sequence[str]]]:
        sequence = past.summary.tool_sequence if past.summary else ()
        for length in range(_LONGEST_WORKFLOW, _SHORTEST_WORKFLOW - 1, -1):
            for start in range(len(sequence) - length + 1):
                run = sequence[start : start + length]
                if len(set(run)) > 1:
                    times[" → ".join(run)] += 1
                    if len(sequence) == MAX_TOOL_SEQUENCE:
                        at_least.add(" → ".join(run))
                    yield " → ".join(run), ()

    found = _counted(sessions, needed, subjects)
    chosen: list[tuple[str, _Counted]] = []
    for run, counted in sorted(found, key=lambda item: (-item[1].count, -item[0].count("→"))):
        if not any(_within(run, other) for other, _ in chosen):
            chosen.append((run, counted))
    return [
        WorkPattern(
            "tool_workflow",
            f"{run} came {'at least ' if run in at_least else ''}{times[run]} times in"
            f" {counted.count} sessions",
            _evidence(counted),
            run,
        )
        for run, counted in chosen[:2]
    ]


def _within(run: str, other: str) -> bool:
    return f" → {run} → " in f" → {other} → " or f" → {other} → " in f" → {run} → "


def _todos(sessions: Sequence[PastSession], needed: int) -> list[WorkPattern]:
    """Find what the last handover leaves open and earlier ones left open, too."""
    left = {
        past.session.id: [todo_key(todo.content) for todo in past.handover.open_todos]
        for past in sessions
        if past.handover
    }
    last, found = sessions[0].handover, list[WorkPattern]()
    for todo in last.open_todos if last else ():
        wanted = todo_key(todo.content)
        same = [
            session_id
            for session_id, keys in left.items()
            if any(alike(wanted, key) for key in keys)
        ]
        if len(same) >= min(needed, 2):
            said = f"“{cut(todo.content, 120)}” has been left open in {len(same)} sessions"
            found.append(WorkPattern("open_todo", said, Evidence(tuple(same)), todo.content))
        if len(found) == _PER_KIND:
            break
    return found
