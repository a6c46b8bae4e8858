"""Next steps that the evidence points to. None is made up: each names what it follows from."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from mneme_server.context.model import Evidence, PastSession, Suggestion, WorkPattern
from mneme_server.context.words import cut

MAX_SUGGESTIONS = 8
_TODOS = 5
_ADDRESSED = 2
"""Recurring errors that lessons and reflections are looked up for; each costs an embedding."""

_SUFFIXES = (
    "py pyi js jsx ts tsx mjs go rs java kt scala c cc cpp cxx h hpp cs rb php swift "
    "m sql sh lua ex exs erl clj hs ml dart vue svelte "
)
_CODE = frozenset(_SUFFIXES.split())
_TEST = re.compile(r"(^|[/\\_.-])(tests?|specs?|__tests__|testing)([/\\_.-]|$)|Tests?\.\w+$")


@dataclass(frozen=True, slots=True)
class Advice:
    """What was learned that bears on an error."""

    text: str
    lesson_id: str = ""
    reflection_id: str = ""


def suggestions_of(
    last: PastSession | None,
    patterns: Sequence[WorkPattern],
    advice_on: Callable[[str], Advice | None],
) -> list[Suggestion]:
    """Return next steps, the most pressing first; empty when nothing points to one."""
    if last is None:
        return []
    found = [*_open_todos(last), *_unresolved(last), *_repeated(patterns, advice_on)]
    return [*found, *_untested(last)][:MAX_SUGGESTIONS]


def _open_todos(last: PastSession) -> list[Suggestion]:
    todos = last.handover.open_todos[:_TODOS] if last.handover else ()
    evidence = Evidence((last.session.id,))
    return [
        Suggestion(
            "open_todo",
            cut(todo.content, 200) + (f" (priority {todo.priority})" if todo.priority else ""),
            evidence,
        )
        for todo in todos
    ]


def _unresolved(last: PastSession) -> list[Suggestion]:
    errors = [e for e in (last.summary.errors if last.summary else ()) if not e.resolved]
    return [
        Suggestion(
            "unresolved_error",
            f"Resolve what {error.tool or 'the session'} failed with: {cut(error.example, 160)}",
            Evidence((last.session.id,), error.event_ids),
        )
        for error in errors[:3]
    ]


def _repeated(
    patterns: Sequence[WorkPattern], advice_on: Callable[[str], Advice | None]
) -> list[Suggestion]:
    found = []
    errors = [pattern for pattern in patterns if pattern.type == "recurring_error"]
    for pattern in errors[:_ADDRESSED]:
        advice = advice_on(pattern.description.partition(": ")[2])
        if advice is not None:
            kind = "a lesson" if advice.lesson_id else "a reflection"
            evidence = Evidence(
                pattern.evidence.session_ids,
                pattern.evidence.event_ids,
                tuple(filter(None, [advice.lesson_id])),
                tuple(filter(None, [advice.reflection_id])),
            )
            what = f"{pattern.description[0].upper()}{pattern.description[1:]}"
            said = f"{what.rstrip('. ')}; {kind} says: {cut(advice.text, 200)}"
            found.append(Suggestion("repeated_failure", said, evidence))
    return found


def _untested(last: PastSession) -> list[Suggestion]:
    """Code that was changed in a session that touched no test."""
    files = last.files
    if any(_TEST.search(path) for path in files):
        return []
    events = {f.path: f for f in last.summary.files} if last.summary else {}
    handed_over = set(last.handover.given_files) if last.handover else set()
    changed = [
        path for path in files if _is_code(path) and (path in handed_over or events[path].changed)
    ]
    if not changed:
        return []
    more = f" and {len(changed) - 2} more" if len(changed) > 2 else ""
    said = f"Test {', '.join(changed[:2])}{more}, changed without touching a test"
    seen = tuple(events[path].event_id for path in changed if path in events)
    return [Suggestion("untested_change", said, Evidence((last.session.id,), seen[:20]))]


def _is_code(path: str) -> bool:
    suffix = PurePosixPath(path.replace("\\", "/")).suffix
    return suffix.removeprefix(".").lower() in _CODE
