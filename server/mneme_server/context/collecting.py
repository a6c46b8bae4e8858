"""What a session's events tell of what was done, decided and left open: a handover that nobody had
to write."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mneme_server.context.model import Collected, Decision, EventDigest, Handover
from mneme_server.context.saying import telling
from mneme_server.context.summarizing import SessionNotes
from mneme_server.context.todos import TodoList, object_of
from mneme_server.context.words import cut
from mneme_server.events.model import EventType

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
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_COMMIT = re.compile(r"\bgit\b[^\n|;&]*\bcommit\b[^\n]*?-[a-z]*m\s*([\"'])(.{1,300}?)\1", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?…])\s+|\s*\n\s*")
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


@dataclass(slots=True)
class _Step:
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
    _steps: OrderedDict[str, _Step] = field(default_factory=OrderedDict)
    _asked: OrderedDict[str, _Step] = field(default_factory=OrderedDict)

    def add(self, events: Iterable[EventDigest]) -> None:
        """Read some more events."""
        for event in events:
            payload = object_of(event.payload_json)
            if event.event_type == EventType.TOOL_CALL:
                self.todos.called(event.name, payload, event.id)
                self._called(event, payload)
            elif event.event_type == EventType.TOOL_RESPONSE:
                self._answered(event)
            elif event.event_type in (EventType.TOOL_ERROR, EventType.ERROR):
                self._asked.pop(event.call_id or event.name, None)
            elif event.event_type == EventType.CUSTOM:
                self.todos.told(payload, event.id)
                if event.name.lower().startswith("decision"):
                    self._decide(event.text, event.id)
            elif event.event_type in (EventType.MESSAGE, EventType.LLM_RESPONSE):
                self._said(event, str(payload.get("role") or ""))

    def handover(self, notes: SessionNotes, session_id: str) -> Handover:
        """Return what was gathered, with the events that each entry comes from."""
        found = _Found(session_id)
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
        unresolved = [error for error in notes.errors() if not error.resolved]
        for error in unresolved[:MAX_ERRORS]:
            where = f"{error.tool}: " if error.tool else ""
            found.add("unresolved_errors", f"{where}{error.example}", *error.event_ids)
        return found.handover()

    def _called(self, event: EventDigest, payload: Mapping[str, object]) -> None:
        text = _step_of(event.name, _arguments(payload))
        if text:
            self._asked[event.call_id or event.name] = _Step(text, event.id)
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
        if role in ("system", "user", "human", "tool") or not event.text:
            return
        answer = telling(event.text, answers_only=True)
        if answer:
            self._final = (cut(answer, _FINAL_CHARS), event.id)
        for sentence in _SENTENCE.split(event.text):
            self._weigh(sentence.strip(), event.id)
        self.todos.listed(event.text, event.id)

    def _weigh(self, sentence: str, event_id: str) -> None:
        """Take a sentence as a decision when it says that it is one."""
        named = _NAMED.match(sentence)
        if named:
            self._decide(sentence[named.end() :], event_id)
        elif not sentence.endswith("?") and (
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
class _Found:
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
        commit = _COMMIT.search(command)
        return f"Committed: {cut(commit[2], _STEP_CHARS)}" if commit else ""
    verbs = {part.lower() for part in _PART.findall(name)[:2]}
    if not verbs & _DOES or verbs & {"todo", "todos", "task", "plan"}:
        return ""
    said = ", ".join(
        f"{key} {value}"
        for key, value in arguments.items()
        if isinstance(value, str | int | float)
        and not isinstance(value, bool)
        and len(str(value)) <= _VALUE_CHARS
    )
    return cut(f"{name}: {said}" if said else name, _STEP_CHARS)
