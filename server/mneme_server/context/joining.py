"""A handover as the caller gave it, joined with what the session's events tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from mneme_server.context.model import Collected, Handover, Todo
from mneme_server.context.patterns import same_todo

_JOINED = ("completed_todos", "open_todos", "decisions", "files", "unresolved_errors")
LISTS = ("progress", "locked_contexts", *_JOINED)
"""The lists of a handover."""


def given_part(handover: Handover) -> Handover:
    """Return what a caller gave of a handover."""
    collected = {(entry.kind, entry.index) for entry in handover.collected}
    kept: dict[str, Any] = {
        kind: tuple(
            entry
            for index, entry in enumerate(getattr(handover, kind))
            if (kind, index) not in collected
        )
        for kind in LISTS
    }
    return replace(handover, collected=(), **kept)


def joined(given: Handover, found: Handover) -> Handover:
    """Return the given handover with what was found besides.

    What is given comes first and wins: progress that is given leaves out the progress that was
    found, and what says the same as something given is left out.
    """
    events = {(entry.kind, entry.index): entry.event_ids for entry in found.collected}
    lists: dict[str, Any] = {}
    collected: list[Collected] = []
    for kind in ("progress", *_JOINED):
        own: Sequence[Any] = getattr(given, kind)
        entries = list(own)
        for index, entry in enumerate(getattr(found, kind)):
            if (kind == "progress" and own) or _is_said(kind, entry, given):
                continue
            collected.append(Collected(kind, len(entries), events.get((kind, index), ())))
            entries.append(entry)
        lists[kind] = tuple(entries)
    return replace(given, collected=tuple(collected), **lists)


def sorted_by_priority(handover: Handover, last: int) -> Handover:
    """Return the handover with its open todos by priority, the most urgent first; those of none
    count as `last`."""
    todos = handover.open_todos
    order = sorted(range(len(todos)), key=lambda place: todos[place].priority or last)
    places = {place: rank for rank, place in enumerate(order)}
    moved = tuple(
        replace(entry, index=places[entry.index]) if entry.kind == "open_todos" else entry
        for entry in handover.collected
    )
    return replace(handover, open_todos=tuple(todos[p] for p in order), collected=moved)


def _is_said(kind: str, entry: Any, given: Handover) -> bool:
    """Tell whether the caller has said the same, or that it is done by now."""
    if kind in ("open_todos", "completed_todos"):
        return _is_among(entry, [*given.completed_todos, *given.open_todos])
    if kind == "decisions":
        return _is_among(entry.decision, [decision.decision for decision in given.decisions])
    return entry in getattr(given, kind)


def _is_among(entry: Todo | str, others: Iterable[Todo | str]) -> bool:
    return any(same_todo(_text(entry), _text(other)) for other in others)


def _text(entry: Todo | str) -> str:
    return entry.content if isinstance(entry, Todo) else entry
