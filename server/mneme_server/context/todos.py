"""Lists of todos as agents keep them: in a tool's arguments, in an event's payload, as boxes in a
message. The last state counts."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mneme_server.context.model import Todo
from mneme_server.context.words import cut

MAX_TODOS = 50
_CHARS = 500
_LISTS = ("todos", "todo_list", "newTodos", "plan", "tasks", "items")
_TEXTS = ("content", "task", "step", "title", "subject", "text", "description", "name")
_KEEPS_TODOS = re.compile(r"todo|plan|task", re.IGNORECASE)
_DONE = frozenset(("completed", "complete", "done", "finished", "closed", "resolved"))
_DROPPED = frozenset(("cancelled", "canceled", "deleted", "dropped", "skipped"))
_PRIORITIES = {"urgent": 1, "critical": 1, "highest": 1, "high": 2, "medium": 3, "normal": 3,
               "low": 4, "lowest": 5}  # fmt: skip
_BOX = re.compile(r"^[ \t]*[-*+] \[([ xX])\] (\S[^\n]{0,600})", re.MULTILINE)
_MANY_BOXES = 20


@dataclass(slots=True)
class _Item:
    text: str
    event_id: str
    status: str = ""
    priority: int = 0


@dataclass(slots=True)
class TodoList:
    """The todos of a session, in the state in which it left them."""

    _items: OrderedDict[str, _Item] = field(default_factory=OrderedDict)
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
        arguments = next(
            (inside for key in ("arguments", "input", "args", "kwargs")
             if isinstance(inside := payload.get(key), Mapping)), payload,
        )  # fmt: skip
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
            self._put(_Item(cut(box[2], _CHARS), event_id, status))

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

    def _put(self, item: _Item | None, *, key: str = "") -> None:
        if item is None:
            return
        key = key or item.text.lower()
        if key in self._items or len(self._items) < 2 * MAX_TODOS:
            self._items[key] = item


def _item(entry: object, event_id: str, status: str = "") -> _Item | None:
    if isinstance(entry, str):
        return _Item(cut(entry, _CHARS), event_id, status) if entry.strip() else None
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
    return _Item(cut(str(text), _CHARS), event_id, said, ranked) if text else None


def object_of(payload_json: str) -> Mapping[str, object]:
    """Return a payload; empty where it is none, or was too large to be read."""
    found = _json(payload_json) if payload_json not in ("", "{}") else None
    return found if isinstance(found, Mapping) else {}


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None
