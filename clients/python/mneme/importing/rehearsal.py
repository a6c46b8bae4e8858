"""Stands for a server in a dry run: takes what a server takes, and keeps nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mneme.errors import AlreadyExistsError
from mneme.messages import (
    EventReceipt,
    ImportLessonsResponse,
    ListEventsResponse,
    NewEvent,
    NewGrade,
    RecordEventsResponse,
    RecordGradesResponse,
)


@dataclass(frozen=True, slots=True)
class _Taken:
    session_id: str
    content: bytes
    time: int | None

    def says_the_same_as(self, later: _Taken) -> bool:
        """Whether another event under its id repeats it; a time that is not given may be any."""
        return self.content == later.content and later.time in (None, self.time)


class Rehearsal:
    """Remembers the ids that it was sent and a hash of each event, as long as the dry run lasts.

    It knows nothing of what the real server holds, so what had been imported before counts as new.
    """

    def __init__(self) -> None:
        self._events: dict[str, _Taken] = {}

    def start_session(self, **fields: Any) -> None:
        """Start a session: nothing to do."""

    def end_session(self, **fields: Any) -> None:
        """End a session: nothing to do."""

    def record_grades(self, grades: Iterable[NewGrade]) -> RecordGradesResponse:
        """Take grades."""
        return RecordGradesResponse(recorded_count=len(list(grades)))

    def record_events(
        self, events: Iterable[NewEvent], *, observed: bool = False
    ) -> RecordEventsResponse:
        """Take a batch, all or none.

        Raises:
            AlreadyExistsError: an id was taken by another event.
        """
        fresh: dict[str, _Taken] = {}
        answer = RecordEventsResponse()
        for event in events:
            taken = _taken(event)
            known = fresh.get(event.id) or self._events.get(event.id)
            if known is not None and not known.says_the_same_as(taken):
                raise AlreadyExistsError(
                    f"event {event.id} is recorded with other content", reason="ALREADY_EXISTS"
                )
            fresh[event.id] = known or taken
            duplicate = known is not None
            answer.receipts.append(EventReceipt(id=event.id, duplicate=duplicate))
            answer.duplicate_count += duplicate
            answer.recorded_count += not duplicate
        self._events |= fresh
        return answer

    def list_events(
        self, *, session_id: str, page_size: int, page_token: str | None
    ) -> ListEventsResponse:
        """The ids of a session's events, on one page."""
        answer = ListEventsResponse()
        for event_id, taken in self._events.items():
            if taken.session_id == session_id:
                answer.events.add(id=event_id)
        return answer

    def import_lessons(
        self, lessons: Iterable[Any], *, on_conflict: str | None = None
    ) -> ImportLessonsResponse:
        """Take lessons."""
        return ImportLessonsResponse(created_count=len(list(lessons)))


def _taken(event: NewEvent) -> _Taken:
    timeless = NewEvent()
    timeless.CopyFrom(event)
    timeless.ClearField("timestamp")
    content = hashlib.sha256(timeless.SerializeToString(deterministic=True)).digest()
    time = event.timestamp.ToNanoseconds() if event.HasField("timestamp") else None
    return _Taken(event.session_id, content, time)
