"""Short ways to make sessions, events and handovers."""

from __future__ import annotations

import json
from typing import Any

from mneme_server.features.context.handover import handover_text
from mneme_server.features.context.model import Handover, PastSession, SessionSummary, Todo
from mneme_server.features.context.notes import SessionNotes
from mneme_server.features.context.summaries import summarize
from mneme_server.features.events.event_types import EventType
from mneme_server.features.events.history import EventDigest
from mneme_server.features.events.model import Session, SessionStatus, Severity
from mneme_server.features.events.outcomes import judged

SECOND = 1_000_000
DAY = 86_400 * SECOND
NOW = 1_800_000_000 * SECOND


class Log:
    """Events of one session, in the order in which they are added, a second apart."""

    def __init__(self) -> None:
        self.events: list[EventDigest] = []

    def add(self, kind: EventType, text: str = "", **fields: Any) -> Log:
        number = len(self.events) + 1
        is_error = kind in (EventType.TOOL_ERROR, EventType.ERROR)
        payload = fields.pop("payload", None)
        values: dict[str, Any] = {
            "id": f"e{number}",
            "sequence": number,
            "event_type": kind,
            "severity": Severity.ERROR if is_error else Severity.INFO,
            "timestamp_us": NOW - DAY + number * SECOND,
            "text": text,
            "name": "",
            "call_id": "",
            "error": "",
            "model": "",
            "payload_json": json.dumps(payload) if payload else "{}",
        }
        self.events.append(EventDigest(**(values | fields)))
        return self

    def call(self, name: str, **arguments: Any) -> Log:
        payload = {"arguments": arguments} if arguments else None
        return self.add(EventType.TOOL_CALL, name=name, payload=payload)

    def worked(self, name: str) -> Log:
        return self.add(EventType.TOOL_RESPONSE, name=name)

    def failed(self, name: str, error: str) -> Log:
        return self.add(EventType.TOOL_ERROR, name=name, error=error)

    def said(self, role: str, text: str) -> Log:
        return self.add(EventType.MESSAGE, text, payload={"role": role})


def session(session_id: str = "s", **fields: Any) -> Session:
    values: dict[str, Any] = {
        "status": SessionStatus.COMPLETED,
        "started_us": NOW - DAY,
        "ended_us": NOW - DAY + 3_600 * SECOND,
    }
    return Session(id=session_id, **(values | fields))


def summary_of(log: Log, handover: Handover | None = None, **fields: Any) -> SessionSummary:
    notes = SessionNotes()
    notes.add(log.events)
    described = judged(session(event_count=len(log.events), **fields))
    return summarize(described, notes, handover, NOW)


def handover(session_id: str = "s", *, todos: tuple[Todo, ...] = (), **fields: Any) -> Handover:
    from dataclasses import replace

    made = Handover(session_id, open_todos=todos, created_us=NOW - DAY, **fields)
    return replace(made, summary=handover_text(made))


def past(
    session_id: str, log: Log | None = None, left: Handover | None = None, **fields: Any
) -> PastSession:
    notes = SessionNotes()
    notes.add(log.events if log else ())
    count = len(log.events) if log else 0
    described = judged(session(session_id, event_count=count, **fields))
    return PastSession(described, summarize(described, notes, left, NOW), left)
