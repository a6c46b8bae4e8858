"""Sessions and events as a server keeps them, behind a scripted server."""

from __future__ import annotations

from typing import Any

from mneme.messages import (
    EndSessionResponse,
    Event,
    EventReceipt,
    NewEvent,
    RecordEventsResponse,
    Session,
    StartSessionRequest,
    StartSessionResponse,
)
from unit.client.scripted import ScriptedServer, failure


class Memory:
    """Records what it is sent once, and refuses another content under a known id."""

    def __init__(self, server: ScriptedServer) -> None:
        self.sessions: dict[str, StartSessionRequest] = {}
        self.ended: dict[str, str] = {}
        self.events: dict[str, NewEvent] = {}
        self.batches: list[int] = []
        server.on("StartSession", self._start)
        server.on("RecordEvents", self._record)
        server.on("EndSession", self._end)

    def of_session(self, session_id: str) -> list[NewEvent]:
        return [event for event in self.events.values() if event.session_id == session_id]

    def _start(self, request: StartSessionRequest, context: Any) -> StartSessionResponse:
        known = self.sessions.setdefault(request.session_id, request)
        if known != request:
            failure(context, "ALREADY_EXISTS", "started otherwise", reason="ALREADY_EXISTS")
        return StartSessionResponse(session=Session(id=request.session_id))

    def _record(self, request: Any, context: Any) -> RecordEventsResponse:
        self.batches.append(len(request.events))
        for event in request.events:
            if self.events.get(event.id, event) != event:
                failure(context, "ALREADY_EXISTS", f"{event.id} is taken", reason="ALREADY_EXISTS")
            if event.text == "poison":
                failure(
                    context,
                    "INVALID_ARGUMENT",
                    "a field breaks its rules",
                    reason="INVALID_PARAMETER",
                    violations=[("events[0].text", "is poison", "INVALID_PARAMETER")],
                )
        answer = RecordEventsResponse()
        for event in request.events:
            duplicate = event.id in self.events
            self.events[event.id] = event
            answer.receipts.append(EventReceipt(id=event.id, duplicate=duplicate))
            answer.duplicate_count += duplicate
            answer.recorded_count += not duplicate
        return answer

    def _end(self, request: Any, context: Any) -> EndSessionResponse:
        from mneme.messages import SessionStatus

        status = SessionStatus.Name(request.status)
        if self.ended.setdefault(request.session_id, status) != status:
            failure(context, "FAILED_PRECONDITION", "ended", reason="CONSTRAINT_VIOLATION")
        return EndSessionResponse(session=Session(id=request.session_id))

    def recorded(self) -> list[Event]:
        """The events as a server lists them."""
        listed = []
        for number, event in enumerate(self.events.values(), start=1):
            copy = Event.FromString(event.SerializeToString())
            copy.sequence, copy.hash = number, f"h{number}"
            copy.recorded_at.FromSeconds(1_800_000_000)
            listed.append(copy)
        return listed
