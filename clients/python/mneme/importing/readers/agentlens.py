"""AgentLens' exports: a session with its events, or lists of events, sessions and lessons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf import json_format

from mneme.importing.messages import own_type, parse_time, raw
from mneme.importing.plan import (
    MAX_TAG,
    Planned,
    UnusableError,
    clean,
    clip,
    digest,
    label,
    tidy,
)
from mneme.importing.readers.base import Reader, attempted
from mneme.importing.reading import Broken, Record
from mneme.importing.wording import tool_text
from mneme.messages import Lesson

_TYPES = frozenset(
    [
        "session_started",
        "session_ended",
        "tool_call",
        "tool_response",
        "tool_error",
        "approval_requested",
        "approval_granted",
        "approval_denied",
        "approval_expired",
        "form_submitted",
        "form_completed",
        "form_expired",
        "cost_tracked",
        "llm_call",
        "llm_response",
        "alert_triggered",
        "alert_resolved",
        "custom",
        "error",
    ]
)
_SEVERITIES = frozenset(("debug", "info", "warn", "error", "critical"))
_ENDED = ("completed", "error")
# What only a server of AgentLens says; Mneme's events have other fields of their own.
_OURS = ("sequence", "recordedAt", "recorded_at", "session_id", "event_type")
_LESSON = {
    "id": "id",
    "title": "title",
    "content": "content",
    "category": "category",
    "agentId": "agent_id",
    "sourceSessionId": "source_session_id",
    "sourceEventId": "source_event_id",
    "context": "context",
    "tags": "tags",
    "createdAt": "created_at",
    "updatedAt": "updated_at",
    "archivedAt": "archived_at",
}
_IMPORTANCE = ("low", "normal", "high", "critical")


class AgentLens(Reader):
    """Reads what AgentLens' dashboard, API and command line export."""

    name = "agentlens"
    title = "AgentLens' exports"

    @classmethod
    def detects(cls, value: Any) -> int:
        """Its events are camelCase and carry the hash before them; its lessons an importance."""
        return 85 if any(_shape(part) for part in _parts(value)[:5]) else 0

    def read(self, record: Record) -> Iterator[Planned | Broken]:
        """Plan a record's sessions, events and lessons."""
        parts = _parts(record.value)
        if not parts:
            raise UnusableError("holds no session, event or lesson")
        ends: list[dict[str, Any]] = []
        for part in parts:
            yield from attempted(record.place, self._part(record, part, ends))
        for end in ends:
            yield Planned(record.place, end=end)

    def _part(self, record: Record, part: Any, ends: list[dict[str, Any]]) -> Iterator[Planned]:
        """Plan a part of an export; a session's end is added to `ends`, it follows the events."""
        shape = _shape(part)
        planned = Planned(record.place)
        if shape == "session":
            planned = self._session(record, part)
            if planned.end is not None:
                ends.append(planned.end)
                planned.end = None
        elif shape == "event":
            self._event(planned, part)
        elif shape == "lesson":
            planned.lessons.append(self._lesson(part))
        else:
            self._unknown(planned, part)
        yield planned

    def _session(self, record: Record, session: Mapping[str, Any]) -> Planned:
        planned = Planned(record.place)
        session_id = label(session["id"], planned.notes)
        known = ("id", "agentId", "agentName", "startedAt", "endedAt", "status", "tags")
        rest = {key: value for key, value in session.items() if key not in known}
        tags = [label(tag, planned.notes, MAX_TAG) for tag in session.get("tags") or [] if tag]
        planned.start = {
            "session_id": session_id,
            "agent_id": self.defaults.agent_id or label(session["agentId"], planned.notes),
            "agent_name": label(session.get("agentName") or "", planned.notes) or None,
            "user_id": self.defaults.user_id,
            "project": self.defaults.project,
            "tags": list(dict.fromkeys([*tags, *self.defaults.tags])),
            "metadata": {"agentlens": tidy(rest, planned.notes)} if rest else None,
            "started_at": parse_time(session.get("startedAt")),
        }
        if session.get("status") in _ENDED:
            planned.end = {
                "session_id": session_id,
                "status": session["status"],
                "ended_at": parse_time(session.get("endedAt")),
            }
        return planned

    def _event(self, planned: Planned, event: Mapping[str, Any]) -> None:
        given = event.get("payload")
        payload: Mapping[str, Any] = given if isinstance(given, Mapping) else {"value": given}
        kind = event["eventType"]
        metadata = event.get("metadata")
        fields: dict[str, Any] = {
            "agent_id": self.defaults.agent_id or label(event.get("agentId") or "", planned.notes),
            "timestamp": parse_time(event.get("timestamp")),
            "metadata": tidy(metadata, planned.notes) if isinstance(metadata, Mapping) else None,
            "payload": tidy(payload, planned.notes),
            "event_type": kind if kind in _TYPES else own_type(str(kind)),
            "name": label(payload.get("toolName") or payload.get("type") or "", planned.notes),
            "call_id": label(payload.get("callId") or "", planned.notes),
        }
        if event.get("severity") in _SEVERITIES:
            fields["severity"] = event["severity"]
        if kind not in _TYPES:
            planned.kept[f"event type {kind!r}"] += 1
            fields |= {"name": label(kind, planned.notes), "searchable": False}
        elif payload.get("error"):
            words = payload["error"]
            text = words if isinstance(words, str) else str(words)
            fields["error"] = clip(clean(text, planned.notes), planned.notes)
        fields["text"] = clip(clean(_words(kind, payload), planned.notes), planned.notes)
        planned.add(str(event["sessionId"]), str(event["id"]), fields)

    def _lesson(self, given: Mapping[str, Any]) -> Lesson:
        fields = {name: given[key] for key, name in _LESSON.items() if given.get(key) is not None}
        if not isinstance(fields.get("context"), Mapping | None):
            fields["context"] = {"context": fields["context"]}
        importance = str(given.get("importance", "")).lower()
        if importance in _IMPORTANCE:
            fields["importance"] = f"IMPORTANCE_{importance.upper()}"
        if self.defaults.agent_id:
            fields["agent_id"] = self.defaults.agent_id
        if self.defaults.project:
            fields["project"] = self.defaults.project
        try:
            return json_format.ParseDict(fields, Lesson())
        except (json_format.ParseError, ValueError) as error:
            raise UnusableError(f"a lesson cannot be read: {error}") from error

    def _unknown(self, planned: Planned, part: Any) -> None:
        event = raw("agentlens", part, "part of an export", planned.notes, planned.kept)
        session = part.get("sessionId") if isinstance(part, Mapping) else None
        made = f"agentlens-{digest(part)[:20]}"
        planned.add(str(session or "agentlens"), made, event)


def _parts(value: Any) -> list[Any]:
    """What an export holds, the sessions before their events."""
    if isinstance(value, list):
        return value
    if not isinstance(value, Mapping):
        return []
    if _shape(value):
        return [value]
    found = [value["session"]] if isinstance(value.get("session"), Mapping) else []
    for key in ("sessions", "events", "lessons"):
        inner = value.get(key)
        if isinstance(inner, list):
            found += inner
        elif isinstance(inner, Mapping):  # A page: {"lessons": {"lessons": […], "total": 1}}.
            found += _parts(inner)
    return found


def _shape(part: Any) -> str:
    """What a part of an export is; "" when it is none of AgentLens'."""
    if not isinstance(part, Mapping) or any(key in part for key in _OURS):
        return ""
    keys = part.keys()
    if {"id", "sessionId", "agentId", "eventType", "payload"} <= keys:
        # Mneme's own events in protobuf's JSON have no null and no hash without a sequence.
        return "event" if "prevHash" in keys or "hash" in keys else ""
    if {"id", "agentId", "startedAt", "status"} <= keys and part["status"] in ("active", *_ENDED):
        return "session"
    if {"id", "title", "content", "importance", "category"} <= keys:
        return "lesson" if "createdAt" in keys else ""
    return ""


def _words(kind: str, payload: Mapping[str, Any]) -> str:
    """What an event is remembered by."""
    name = str(payload.get("toolName") or "")
    if kind == "tool_call":
        return tool_text(kind, name, payload.get("arguments"))
    if kind in ("tool_response", "tool_error"):
        return tool_text(kind, name, payload.get("error", payload.get("result")))
    if kind == "llm_response":
        return str(payload.get("completion") or "")
    return ""
