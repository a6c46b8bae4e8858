"""OpenHands' trajectories: a list of its events, or a line of an evaluation's `output.jsonl` that
holds one under `history`. Events say what they are by `action` and `observation`, those of its SDK
by `kind`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from mneme.importing.blocks import count_of, message_event, thought
from mneme.importing.messages import parse_time, raw, text_of, tool_answer, tool_call
from mneme.importing.outcomes import verdict_of
from mneme.importing.plan import (
    MAX_METADATA_BYTES,
    MAX_TAG,
    Planned,
    UnusableError,
    clean,
    clip,
    digest,
    fit,
    label,
    mapping_at,
    tidy,
)
from mneme.importing.readers.base import Reader
from mneme.importing.reading import Place, Record

_AGENT = "openhands"
_KINDS = (
    "ActionEvent", "AgentErrorEvent", "MessageEvent", "ObservationEvent", "SystemPromptEvent",
    "ConversationStateUpdateEvent", "Condensation", "PauseEvent",
)  # fmt: skip
_TALK = ("message", "system", "finish")
# What an agent's own state says to its interface, and to nobody else.
_STATES = ("agent_state_changed", "change_agent_state", "recall", "null", "")


class OpenHands(Reader):
    """Reads trajectories."""

    name = "openhands"
    title = "trajectories of OpenHands"
    by_line = True

    def __init__(self, source: Any, defaults: Any) -> None:
        super().__init__(source, defaults)
        self._events: _Events | None = None
        self._latest: datetime | None = None

    @classmethod
    def detects(cls, value: Any) -> int:
        """An event has a source, and is an action or an observation; an evaluation holds some."""
        if not isinstance(value, Mapping):
            return 0
        history = value.get("history")
        if isinstance(history, list) and history and "instance_id" in value:
            first = history[0][0] if isinstance(history[0], list) and history[0] else history[0]
            return 85 if _is_event(first) else 0
        return 85 if _is_event(value) else 0

    def read(self, record: Record) -> Iterator[Planned]:
        """Plan an evaluation's line as one session, or one event of the file's."""
        value = record.value
        if not isinstance(value, Mapping):
            raise UnusableError("an event of OpenHands is a JSON object")
        planned = Planned(record.place)
        if isinstance(value.get("history"), list):
            events = _Events(f"{_AGENT}-{_name(value)}{digest(record.unmasked)[:20]}")
            for event in _flat(value["history"]):
                events.add(event, planned)
            planned.start = self._start(events.session_id, value, planned)
            failed = bool(value.get("error"))
            status = "error" if failed else "completed"
            planned.end = {"session_id": events.session_id, "status": status}
        else:
            if self._events is None:
                self._events = _Events(f"{_AGENT}-{digest(record.unmasked)[:20]}")
                planned.start = self._start(self._events.session_id, {}, planned)
                planned.start["started_at"] = parse_time(value.get("timestamp"))
            self._latest = parse_time(value.get("timestamp")) or self._latest
            self._events.add(value, planned)
        yield planned

    def finish(self) -> Iterator[Planned]:
        """Plan the end of the file's session."""
        if self._events is not None and self.source.settled_since(self._latest):
            planned = Planned(Place(self.source.name, 0, 0))
            planned.end = {
                "session_id": self._events.session_id,
                "status": "error" if self._events.failed else "completed",
                "ended_at": self._latest,
            }
            yield planned

    def _start(self, session_id: str, whole: Mapping[str, Any], planned: Planned) -> dict[str, Any]:
        about = mapping_at(whole, "metadata")
        facts: dict[str, Any] = {
            "instance": whole.get("instance_id"),
            "agent_class": about.get("agent_class"),
            "model": mapping_at(about, "llm_config").get("model"),
        }
        report = mapping_at(mapping_at(whole, "test_result"), "report")
        facts |= verdict_of(whole) or verdict_of(report)
        told = {key: value for key, value in facts.items() if value is not None}
        task = [f"task:{whole['instance_id']}"] if whole.get("instance_id") else []
        tags = [label(tag, planned.notes, MAX_TAG) for tag in task]
        return {
            "session_id": session_id,
            "agent_id": self.defaults.agent_id or _AGENT,
            "user_id": self.defaults.user_id,
            "project": self.defaults.project,
            "tags": list(dict.fromkeys([*self.defaults.tags, *tags])),
            "metadata": fit(tidy(told, planned.notes), MAX_METADATA_BYTES, planned.notes) or None,
        }


class _Events:
    """The events of one session, in their order."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.failed = False
        self._count = 0
        self._names: dict[str, str] = {}
        self._answers: set[str] = set()

    def add(self, event: Any, planned: Planned) -> None:
        """Plan one of OpenHands' events."""
        number, self._count = self._count, self._count + 1
        time = parse_time(event.get("timestamp")) if isinstance(event, Mapping) else None
        common = {"timestamp": time} if time is not None else {}
        for place, fields in enumerate(self._fields(event, number, planned)):
            planned.add(self.session_id, f"{self.session_id}:{number}:{place}", common | fields)

    def _fields(self, event: Any, number: int, planned: Planned) -> Iterator[dict[str, Any]]:
        if not _is_event(event):
            yield raw("event", event, "event of an unknown kind", planned.notes, planned.kept)
        elif "kind" in event:
            yield from self._of_kind(event, number, planned)
        elif "action" in event:
            yield from self._action(event, number, planned)
        else:
            yield from self._observation(event, planned)

    def _action(
        self, event: Mapping[str, Any], number: int, planned: Planned
    ) -> Iterator[dict[str, Any]]:
        action, given = str(event["action"]), mapping_at(event, "args")
        self.failed = False
        if action in _STATES:
            return
        if action in _TALK:
            text = text_of(given.get("content") or given.get("final_thought")) or _said(event)
            role = "system" if action == "system" else _role(event)
            if text:
                yield message_event(role, text, planned)
        elif action == "think":
            yield thought(text_of(given.get("thought")), planned, {})
        else:
            if given.get("thought"):
                yield message_event(_role(event), text_of(given["thought"]), planned)
            told = mapping_at(event, "tool_call_metadata")
            name = label(told.get("function_name") or action, planned.notes)
            call_id = label(told.get("tool_call_id") or event.get("id", number), planned.notes)
            self._names[str(event.get("id", number))] = call_id
            self._names[call_id] = name
            arguments = {k: v for k, v in given.items() if k != "thought" and v not in (None, "")}
            yield tool_call(name, call_id, arguments, planned.notes)
        yield from self._usage(mapping_at(event, "tool_call_metadata"), planned)

    def _observation(self, event: Mapping[str, Any], planned: Planned) -> Iterator[dict[str, Any]]:
        kind, extras = str(event["observation"]), mapping_at(event, "extras")
        if kind in _STATES:
            return
        text, told = text_of(event.get("content")), mapping_at(event, "tool_call_metadata")
        call_id = str(told.get("tool_call_id") or self._names.get(str(event.get("cause")), ""))
        code = mapping_at(extras, "metadata").get("exit_code", extras.get("exit_code"))
        failed = kind == "error" or event.get("success") is False or code not in (None, 0, -1)
        if not call_id:
            self.failed = failed
            if failed:
                yield _error(kind, text or _said(event), planned)
            elif text:
                yield raw(kind, event, None, planned.notes, planned.kept)
            return
        name = self._names.get(call_id) or label(told.get("function_name") or kind, planned.notes)
        error = (text or _said(event) or kind) if failed else None
        more = {"exit_code": code} if code is not None else None
        yield tool_answer(name, call_id, text, error, notes=planned.notes, more=more)

    def _of_kind(
        self, event: Mapping[str, Any], number: int, planned: Planned
    ) -> Iterator[dict[str, Any]]:
        kind = event["kind"]
        call_id = label(event.get("tool_call_id") or "", planned.notes)
        name = label(event.get("tool_name") or "", planned.notes)
        self.failed = False
        if kind == "SystemPromptEvent":
            yield message_event("system", text_of([event.get("system_prompt")]), planned)
        elif kind == "MessageEvent":
            said = mapping_at(event, "llm_message")
            text = text_of(said.get("content"))
            if text:
                yield message_event(str(said.get("role") or _role(event)), text, planned)
        elif kind == "ActionEvent":
            if event.get("reasoning_content"):
                yield thought(text_of(event["reasoning_content"]), planned, {})
            if text_of(event.get("thought")):
                yield message_event("assistant", text_of(event["thought"]), planned)
            action = mapping_at(event, "action")
            given = {k: v for k, v in action.items() if k != "kind" and v is not None}
            yield tool_call(name, call_id, given, planned.notes)
        elif kind == "ObservationEvent":
            told = mapping_at(event, "observation")
            text = text_of(told.get("content") or told.get("output"))
            failed = told.get("is_error") is True or told.get("exit_code") not in (None, 0, -1)
            error = (text or "the tool failed without a word") if failed else None
            yield tool_answer(name, call_id, text, error, notes=planned.notes)
        elif kind == "AgentErrorEvent":
            self.failed = True
            text = str(event.get("error") or "")
            if call_id:
                yield tool_answer(name, call_id, text, text, notes=planned.notes)
            else:
                yield _error("agent", text, planned)

    def _usage(self, told: Mapping[str, Any], planned: Planned) -> Iterator[dict[str, Any]]:
        """What an answer of the model took; several actions may come of one."""
        answer = mapping_at(told, "model_response")
        usage, own = mapping_at(answer, "usage"), str(answer.get("id") or "")
        if not usage or (own and own in self._answers):
            return
        self._answers.add(own)
        yield {
            "event_type": "llm_response",
            "model": label(answer.get("model") or "", planned.notes),
            "input_tokens": count_of(usage, "prompt_tokens"),
            "output_tokens": count_of(usage, "completion_tokens"),
            "payload": {"usage": tidy(dict(usage), planned.notes)},
        }


def _error(name: str, text: str, planned: Planned) -> dict[str, Any]:
    words = clip(clean(text, planned.notes), planned.notes)
    return {"event_type": "error", "name": label(name, planned.notes), "error": words}


def _is_event(value: Any) -> bool:
    if not isinstance(value, Mapping) or "source" not in value:
        return False
    return "action" in value or "observation" in value or value.get("kind") in _KINDS


def _flat(history: list[Any]) -> Iterator[Any]:
    """The events of a history, which in old files stand in pairs."""
    for entry in history:
        yield from entry if isinstance(entry, list) else [entry]


def _role(event: Mapping[str, Any]) -> str:
    return "user" if event.get("source") == "user" else "assistant"


def _said(event: Mapping[str, Any]) -> str:
    return text_of(event.get("message"))


def _name(whole: Mapping[str, Any]) -> str:
    found = re.sub(r"[^A-Za-z0-9._-]+", "-", str(whole.get("instance_id") or "")).strip("-")[:100]
    return f"{found}-" if found else ""
