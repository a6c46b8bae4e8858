"""Stands for a server in a dry run: takes what a server takes, and keeps nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from mneme.errors import AlreadyExistsError
from mneme.messages import (
    EventReceipt,
    ImportLessonsResponse,
    ListEventsResponse,
    NewEvent,
    RecordEventsResponse,
)


class Rehearsal:
    """Remembers the ids that it was sent and a hash of each event, as long as the dry run lasts.

    It knows nothing of what the real server holds, so what had been imported before counts as new.
    """

    def __init__(self) -> None:
        self._events: dict[str, tuple[str, bytes]] = {}

    def start_session(self, **fields: Any) -> None:
        """Start a session: nothing to do."""

    def end_session(self, **fields: Any) -> None:
        """End a session: nothing to do."""

    def record_events(self, events: Iterable[NewEvent]) -> RecordEventsResponse:
        """Take a batch, all or none.

        Raises:
            AlreadyExistsError: an id was taken by another event.
        """
        fresh: dict[str, tuple[str, bytes]] = {}
        answer = RecordEventsResponse()
        for event in events:
            content = hashlib.sha256(event.SerializeToString(deterministic=True)).digest()
            known = fresh.get(event.id) or self._events.get(event.id)
            if known is not None and known[1] != content:
                raise AlreadyExistsError(
                    f"event {event.id} is recorded with other content", reason="ALREADY_EXISTS"
                )
            fresh[event.id] = (event.session_id, content)
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
        for event_id, (owner, _) in self._events.items():
            if owner == session_id:
                answer.events.add(id=event_id)
        return answer

    def import_lessons(
        self, lessons: Iterable[Any], *, on_conflict: str | None = None
    ) -> ImportLessonsResponse:
        """Take lessons."""
        return ImportLessonsResponse(created_count=len(list(lessons)))
