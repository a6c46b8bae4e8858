"""Handovers: what the events of a session tell of what was done, decided and left open, joined
with what the caller gave, and in words.

Todos are read from the lists that agents keep: in the arguments of a tool, in the payload of an
event, as boxes in a message. The last state counts.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mneme_server.common.canonical import JsonObject
from mneme_server.engine.index.words.languages import QUESTION_MARKS
from mneme_server.features.context.model import Collected, Decision, Handover, Todo
from mneme_server.features.context.notes import SessionNotes
from mneme_server.features.context.words import (
    compared_words,
    cut,
    looks,
    own_name,
    sentences_of,
    telling,
    verbs_of,
    without_plans,
)
from mneme_server.features.events.event_types import EventPart, role_of, traits_of
from mneme_server.features.events.history import EventDigest

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
MAX_STEPS = 10
MAX_DECISIONS = 10
MAX_FILES = 50
MAX_ERRORS = 5
_MAX_PENDING = 1_000
_FINAL_CHARS = 500
_STEP_CHARS = 160
_VALUE_CHARS = 60
_DECISION_CHARS = 500
_DOES = frozenset(
    (
        "add", "book", "cancel", "commit", "create", "delete", "deploy", "install", "issue",
        "merge", "migrate", "modify", "order", "pay", "post", "publish", "push", "refund",
        "release", "remove", "rename", "schedule", "send", "submit", "transfer", "update",
        "upgrade", "upload",
    )
)  # fmt: skip
"""Verbs of tools that change something: the call is a step that was taken, not a look."""
_COMMAND = re.compile(r"[^\n|;&]+")
_GIT, _COMMIT = re.compile(r"\bgit\b"), re.compile(r"\bcommit\b")
_MESSAGE = re.compile(r"-[a-z]*m\s*([\"'])(.{1,300}?)\1", re.DOTALL)
_MOST_MESSAGE = 310
"""Characters by which an option with its message may go beyond the line it begins in."""
_NAMED = re.compile(r"(?:[-*] )?\**decision\**\s*[:–—-]\s*(?=\S)", re.IGNORECASE)
_DECIDED = re.compile(
    r"(?<!\bas )\b(?:(?:we|i)(?:['’]ve| have)? (?:decided|chose|chosen|agreed|opted|settled)"
    r"|it was (?:decided|agreed)|the decision (?:is|was))\b",
    re.IGNORECASE,
)
_INTENDS = re.compile(
    r"\b(?:(?:we|i)(?:['’]ll| will|['’]re going to|['’]m going to| are going to| am going to)"
    r"|let['’]s|(?:we|i)['’]?(?:re|m| are| am)? (?:going|went) with) ?"
    r"(?:use|go with|keep|stick|switch|adopt|drop|move|avoid|with)?\b",
    re.IGNORECASE,
)
_REASON = re.compile(r"[,;:]?\s+(?=(?:because|since|so that|in order to|due to)\b)", re.IGNORECASE)
MAX_TODOS = 50
_TODO_CHARS = 500
_LISTS = ("todos", "todo_list", "newTodos", "plan", "tasks", "items")
_TEXTS = ("content", "task", "step", "title", "subject", "text", "description", "name")
_KEEPS_TODOS = re.compile(r"todo|plan|task", re.IGNORECASE)
_DONE = frozenset(("completed", "complete", "done", "finished", "closed", "resolved"))
_DROPPED = frozenset(("cancelled", "canceled", "deleted", "dropped", "skipped"))
_PRIORITIES = {"urgent": 1, "critical": 1, "highest": 1, "high": 2, "medium": 3, "normal": 3,
               "low": 4, "lowest": 5}  # fmt: skip
_BOX = re.compile(r"^[ \t]*[-*+] \[([ xX])\] (\S[^\n]{0,600})", re.MULTILINE)
_MANY_BOXES = 20


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


@dataclass(slots=True)
class _ListedTodo:
    text: str
    event_id: str
    status: str = ""
    priority: int = 0


@dataclass(slots=True)
class TodoList:
    """The todos of a session, in the state in which it left them."""

    _items: OrderedDict[str, _ListedTodo] = field(default_factory=OrderedDict)
    _created: int = 0

    def completed(self) -> Iterator[tuple[str, str]]:
        """Yield what is done, with the event that says so."""
        for item in self._items.values():
            if item.status in _DONE:
                yield item.text, item.event_id

    def open(self) -> Iterator[tuple[Todo, str]]:
        """Yield what is still to do, with the event that says so."""
        for item in self._items.values():
            if item.status not in _DONE | _DROPPED:
                yield Todo(item.text, item.priority), item.event_id

    def called(self, tool: str, payload: Mapping[str, object], event_id: str) -> None:
        """Read a tool's call: one with the whole list, or one that makes or changes a task."""
        if not _KEEPS_TODOS.search(tool):
            return
        arguments = _arguments(payload)
        for key in _LISTS:
            listed = arguments.get(key)
            if isinstance(listed, str):
                listed = _json(listed)
            if isinstance(listed, list):
                self._replace(listed, event_id)
                return
        self._one_task(tool.lower(), arguments, event_id)

    def told(self, payload: Mapping[str, object], event_id: str) -> None:
        """Read an event's payload that says what is open and what is done."""
        todos = payload.get("todos")
        if isinstance(todos, list):
            self._replace(todos, event_id)
        for key, status in (("open_todos", ""), ("completed_todos", "completed")):
            listed = payload.get(key)
            if isinstance(listed, list):
                for entry in listed[:MAX_TODOS]:
                    self._put(_item(entry, event_id, status))

    def listed(self, message: str, event_id: str) -> None:
        """Read the boxes of a message: "- [ ] to do", "- [x] done"."""
        for box in list(_BOX.finditer(message))[:_MANY_BOXES]:
            status = "completed" if box[1] in "xX" else ""
            self._put(_ListedTodo(cut(box[2], _TODO_CHARS), event_id, status))

    def _replace(self, listed: list[object], event_id: str) -> None:
        # What a list no longer holds is neither open nor done, unless it was done before.
        self._items = OrderedDict(
            (key, item) for key, item in self._items.items() if item.status in _DONE
        )
        for entry in listed[:MAX_TODOS]:
            self._put(_item(entry, event_id))

    def _one_task(self, tool: str, arguments: Mapping[str, object], event_id: str) -> None:
        number = str(arguments.get("taskId", arguments.get("task_id", "")))
        if "create" in tool:
            made = _item(arguments, event_id)
            if made is not None:
                self._created += 1
                self._put(made, key=f"#{self._created}")
        elif "update" in tool and f"#{number}" in self._items:
            item = self._items[f"#{number}"]
            item.status = str(arguments.get("status") or item.status).lower()
            item.event_id = event_id

    def _put(self, item: _ListedTodo | None, *, key: str = "") -> None:
        if item is None:
            return
        key = key or item.text.lower()
        if key in self._items or len(self._items) < 2 * MAX_TODOS:
            self._items[key] = item


def _item(entry: object, event_id: str, status: str = "") -> _ListedTodo | None:
    if isinstance(entry, str):
        return _ListedTodo(cut(entry, _TODO_CHARS), event_id, status) if entry.strip() else None
    if not isinstance(entry, Mapping):
        return None
    text = next((entry[k] for k in _TEXTS if isinstance(entry.get(k), str) and entry[k]), "")
    if entry.get("completed") is True or entry.get("done") is True:
        status = "completed"
    said = str(entry.get("status") or entry.get("state") or status).lower()
    priority = entry.get("priority")
    if isinstance(priority, str):
        ranked = _PRIORITIES.get(priority.lower(), 0)
    else:
        ranked = int(priority) if isinstance(priority, int | float) and 1 <= priority <= 5 else 0
    return _ListedTodo(cut(str(text), _TODO_CHARS), event_id, said, ranked) if text else None


@dataclass(slots=True)
class _TakenStep:
    text: str
    event_id: str
    done: bool = False


@dataclass(slots=True)
class Collector:
    """Gathers from a session's events what they tell for its handover, in bounded space.

    `add` takes the events in the order of their sequence.
    """

    todos: TodoList = field(default_factory=TodoList)
    _final: tuple[str, str] = ("", "")
    _decisions: OrderedDict[str, tuple[Decision, str]] = field(default_factory=OrderedDict)
    _steps: OrderedDict[str, _TakenStep] = field(default_factory=OrderedDict)
    _asked: OrderedDict[str, _TakenStep] = field(default_factory=OrderedDict)

    def add(self, events: Iterable[EventDigest]) -> None:
        """Read some more events."""
        for event in events:
            payload = _object(event.payload_json)
            part = traits_of(event.event_type).part
            if part is EventPart.CALL:
                self.todos.called(event.name, payload, event.id)
                self._called(event, payload)
            elif part is EventPart.ANSWER:
                self._answered(event)
            elif part is EventPart.FAILURE:
                self._asked.pop(event.call_id or event.name, None)
            elif part is EventPart.NOTE:
                self.todos.told(payload, event.id)
                if event.name.lower().startswith("decision"):
                    self._decide(event.text, event.id)
            elif part in (EventPart.TALK, EventPart.REPLY):
                self._said(event, role_of(event.event_type, payload, event.text))

    def handover(
        self, notes: SessionNotes, session_id: str, *, succeeded: bool = False
    ) -> Handover:
        """Return what was gathered, with the events that each entry comes from; of a session that
        `succeeded`, as others say, no failure is left."""
        found = _CollectedEntries(session_id)
        if self._final[0]:
            found.add("progress", *self._final)
        for step in list(self._steps.values())[-MAX_STEPS:]:
            found.add("progress", step.text, step.event_id)
        for text, event_id in self.todos.completed():
            found.add("completed_todos", text, event_id)
        for todo, event_id in self.todos.open():
            found.add("open_todos", todo, event_id)
        for decision, event_id in self._decisions.values():
            found.add("decisions", decision, event_id)
        touched = sorted(notes.files.values(), key=lambda file: not file.changed)
        for file in touched[:MAX_FILES]:
            found.add("files", file.path, file.event_id)
        unresolved = [e for e in notes.errors(succeeded=succeeded) if not e.resolved]
        for error in unresolved[:MAX_ERRORS]:
            where = f"{error.tool}: " if error.tool else ""
            found.add("unresolved_errors", f"{where}{error.example}", *error.event_ids)
        return found.handover()

    def _called(self, event: EventDigest, payload: Mapping[str, object]) -> None:
        text = _step_of(event.name, _arguments(payload))
        if text:
            self._asked[event.call_id or event.name] = _TakenStep(text, event.id)
            if len(self._asked) > _MAX_PENDING:
                self._asked.popitem(last=False)

    def _answered(self, event: EventDigest) -> None:
        step = self._asked.pop(event.call_id, None) or self._asked.pop(event.name, None)
        if step is not None:
            self._steps[step.text] = step
            self._steps.move_to_end(step.text)
            if len(self._steps) > MAX_STEPS:
                self._steps.popitem(last=False)

    def _said(self, event: EventDigest, role: str) -> None:
        if role in ("system", "user", "tool") or not event.text:
            return
        answer = telling(event.text, answers_only=True)
        if answer:
            done = without_plans(answer)
            self._final = (cut(done, _FINAL_CHARS), event.id) if done else ("", "")
        for sentence in sentences_of(event.text):
            self._weigh(" ".join(sentence.split()), event.id)
        self.todos.listed(event.text, event.id)

    def _weigh(self, sentence: str, event_id: str) -> None:
        """Take a sentence as a decision when it says that it is one."""
        named = _NAMED.match(sentence)
        if named:
            self._decide(sentence[named.end() :], event_id)
        elif not sentence.endswith(QUESTION_MARKS) and (
            _DECIDED.search(sentence) or (_INTENDS.search(sentence) and _REASON.search(sentence))
        ):
            self._decide(sentence, event_id)

    def _decide(self, text: str, event_id: str) -> None:
        text = " ".join(text.split())
        if not text:
            return
        parts = _REASON.split(text, maxsplit=1)
        what, why = parts[0], parts[1] if len(parts) > 1 else ""
        made = Decision(cut(what.rstrip(",;: "), _DECISION_CHARS), cut(why, _DECISION_CHARS))
        if made.decision:
            self._decisions[text.lower()] = (made, event_id)
            if len(self._decisions) > MAX_DECISIONS:
                self._decisions.popitem(last=False)


@dataclass(slots=True)
class _CollectedEntries:
    session_id: str
    entries: dict[str, list[object]] = field(default_factory=dict)
    collected: list[Collected] = field(default_factory=list)

    def add(self, kind: str, entry: object, *event_ids: str) -> None:
        entries = self.entries.setdefault(kind, [])
        if entry not in entries:
            self.collected.append(Collected(kind, len(entries), tuple(event_ids)))
            entries.append(entry)

    def handover(self) -> Handover:
        lists = {kind: tuple(entries) for kind, entries in self.entries.items()}
        return Handover(self.session_id, collected=tuple(self.collected), **lists)  # type: ignore[arg-type]


def _arguments(payload: Mapping[str, object]) -> Mapping[str, object]:
    for key in ("arguments", "input", "args", "kwargs"):
        inside = payload.get(key)
        if isinstance(inside, Mapping):
            return inside
    return payload


def _step_of(name: str, arguments: Mapping[str, object]) -> str:
    """Return what a call did, in words; empty for one that only looked, or changed a file."""
    command = arguments.get("command", arguments.get("cmd"))
    if isinstance(command, str):
        message = _committed(command)
        return f"Committed: {cut(message, _STEP_CHARS)}" if message else ""
    name = own_name(name)
    verbs = verbs_of(name)
    if not verbs & _DOES or looks(name) or verbs & {"todo", "todos", "task", "plan"}:
        return ""
    said = ", ".join(
        f"{key} {value}"
        for key, value in arguments.items()
        if isinstance(value, str | int | float)
        and not isinstance(value, bool)
        and len(str(value)) <= _VALUE_CHARS
    )
    return cut(f"{name}: {said}" if said else name, _STEP_CHARS)


def _committed(command: str) -> str:
    """Return the message of the first `git commit -m` on a command line; empty without one.

    Part by part: one pattern for all of it took a time that grew with the cube of the length.
    """
    end = -1
    for line in command.split("\n"):
        start, end = end + 1, end + 1 + len(line)
        for part in _COMMAND.finditer(command, start, end):
            git = _GIT.search(command, *part.span())
            commit = _COMMIT.search(command, git.end(), part.end()) if git else None
            if commit is not None:
                found = _MESSAGE.search(command, commit.end(), end + _MOST_MESSAGE)
                if found is not None and found.start() < end:
                    return found[2]
                break  # What is not behind this one is not behind the next on the line either.
    return ""


def _object(payload_json: str) -> JsonObject:
    """Return a payload; empty where it is none, or was too large to be read."""
    found = _json(payload_json) if payload_json not in ("", "{}") else None
    return found if isinstance(found, Mapping) else {}


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None
