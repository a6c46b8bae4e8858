"""A server of which only the memory is there, for imports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mneme.importing.rehearsal import Rehearsal
from mneme.messages import NewEvent, RecordEventsResponse


class Kept(Rehearsal):
    """Takes what a server takes, and shows it, in the order in which it came."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[NewEvent] = []
        self.started: dict[str, dict[str, Any]] = {}
        self.ended: dict[str, Any] = {}

    @property
    def texts(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for event in self.events:
            found.setdefault(event.session_id, []).append(event.text)
        return found

    def of(self, kind: str) -> list[NewEvent]:
        return [event for event in self.events if event.event_type == kind]

    def start_session(self, **fields: Any) -> None:
        self.started.setdefault(fields["session_id"], fields)

    def end_session(self, **fields: Any) -> None:
        self.ended[fields["session_id"]] = fields.get("status")

    def record_events(
        self, events: Iterable[NewEvent], *, observed: bool = False
    ) -> RecordEventsResponse:
        given = list(events)
        answer = super().record_events(given, observed=observed)
        for event, receipt in zip(given, answer.receipts, strict=True):
            if not receipt.duplicate:
                self.events.append(event)
        return answer
