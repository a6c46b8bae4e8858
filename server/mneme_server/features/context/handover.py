"""Handovers: in words, and as the caller gave them joined with what the session's events tell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mneme_server.features.context.model import Collected, Decision, Handover, Todo
from mneme_server.features.context.words import compared_words, cut

MAX_SUMMARY = 1_020
"""Characters of a handover's summary: what an embedding model reads."""
_ITEMS = 5
_DECISIONS = 3
_REASONED = re.compile(r"(?:because|since|so that|in order to|due to|as|to|for)\b", re.IGNORECASE)
_COMPARED_CHARS = 500
"""What is collected of a todo is no longer."""
_DIGIT = re.compile(r"\d")
_SAME_TODO = 0.75
"""Share of words in common (Jaccard) from which two todos are the same."""
_JOINED = ("completed_todos", "open_todos", "decisions", "files", "unresolved_errors")
LISTS = ("progress", "locked_contexts", *_JOINED)
"""The lists of a handover."""


def decided(decision: Decision, limit: int = 0) -> str:
    """Return a decision with its reason, each whole, or cut to `limit` characters."""
    what, why = decision.decision.rstrip(". "), decision.rationale.rstrip(". ")
    if limit:
        what, why = cut(what, limit), cut(why, limit)
    if not why:
        return what
    return f"{what}, {why}" if _REASONED.match(why) else f"{what}, because: {why}"


def handover_text(handover: Handover) -> str:
    """Return a handover in words: what it was about, not how it is laid out.

    The first five items of each kind and the first three decisions, at most `MAX_SUMMARY`
    characters.
    """
    parts = []
    if handover.progress:
        parts.append(f"Progress: {', '.join(handover.progress[:_ITEMS])}")
    if handover.completed_todos:
        parts.append(f"Completed: {', '.join(handover.completed_todos[:_ITEMS])}")
    parts += [f"Decision: {decided(one)}" for one in handover.decisions[:_DECISIONS]]
    if handover.locked_contexts:
        labels = (locked.label for locked in handover.locked_contexts[:_ITEMS])
        parts.append(f"Contexts: {', '.join(labels)}")
    if handover.files:
        parts.append(f"Files: {', '.join(handover.files[:_ITEMS])}")
    if handover.unresolved_errors:
        parts.append(f"Unresolved: {'; '.join(handover.unresolved_errors[:_DECISIONS])}")
    text = ". ".join(part.rstrip(". ") for part in parts)
    return text if len(text) <= MAX_SUMMARY else f"{text[: MAX_SUMMARY - 3]}..."


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
    todos = [todo_key(text) for text in given.completed_todos]
    todos += [todo_key(todo.content) for todo in given.open_todos]
    decisions = [todo_key(one.decision) for one in given.decisions]
    told = {"completed_todos": todos, "open_todos": todos, "decisions": decisions}
    lists: dict[str, Any] = {}
    collected: list[Collected] = []
    for kind in ("progress", *_JOINED):
        own: Sequence[Any] = getattr(given, kind)
        others: Sequence[Any] = getattr(found, kind)
        entries = list(own)
        for index, entry in enumerate(others):
            if kind == "progress" and own:
                continue
            # What is done by now is not open, either.
            if entry in own or _is_among(_text(entry), told.get(kind, ())):
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


def _is_among(text: str, keys: Sequence[frozenset[str]]) -> bool:
    """Tell whether one of the keys is that of a todo which says the same."""
    if not keys:
        return False
    mine = todo_key(text)
    return any(alike(mine, key) for key in keys)


def _text(entry: Todo | Decision | str) -> str:
    if isinstance(entry, str):
        return entry
    return entry.content if isinstance(entry, Todo) else entry.decision


def todo_key(text: str) -> frozenset[str]:
    """Return the words by which todos are compared: those they begin with, if they are long."""
    text = text[:_COMPARED_CHARS]
    return compared_words(text) or frozenset(text.lower().split())


def alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Tell whether two todos say the same, by their keys: three quarters of their words are in
    both, and all with digits: chapter 3 is not chapter 4, whatever else is said of them."""
    fewer, more = sorted((len(one), len(other)))
    if fewer < _SAME_TODO * more:
        return False
    union = one | other
    return (
        bool(union)
        and len(one & other) >= _SAME_TODO * len(union)
        and not any(_DIGIT.search(word) for word in one ^ other)
    )
