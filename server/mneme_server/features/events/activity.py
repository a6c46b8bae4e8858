"""What sessions held, and when they were active: for those who sum them up."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mneme_server.features.events.model import Event, Session


def active_us(session: Session) -> int:
    """Return when a session ended, else when it was last active."""
    if session.ended_us is not None:
        return session.ended_us
    return session.started_us if session.last_event_us is None else session.last_event_us


@dataclass(frozen=True, slots=True)
class EventDigest:
    """An event as far as a summary of its session needs it.

    `payload_json` is empty where it was too large.
    """

    id: str
    sequence: int
    event_type: str
    severity: int
    timestamp_us: int
    text: str
    name: str
    call_id: str
    error: str
    model: str
    payload_json: str


@dataclass(frozen=True, slots=True)
class ActivityFilter:
    """Which sessions that agents ran. Empty fields do not filter; given ones must all match.

    A session lies in the range from `start_us` (inclusive) to `end_us` (exclusive) by when it
    ended, or was last active.
    """

    user_id: str = ""
    agent_id: str = ""
    project: str = ""
    start_us: int | None = None
    end_us: int | None = None

    def lets_through(self, session: Session) -> bool:
        """Tell whether the session is one of those."""
        at_us = active_us(session)
        return (
            not session.system
            and self.user_id in ("", session.user_id)
            and self.agent_id in ("", session.agent_id)
            and self.project in ("", session.project)
            and (self.start_us is None or at_us >= self.start_us)
            and (self.end_us is None or at_us < self.end_us)
        )


class ActivityReader(Protocol):
    """The tenant's sessions, and their events one after another."""

    def digests(self, session_id: str, after: int, limit: int) -> Sequence[EventDigest]:
        """Return a session's events in the order of their sequence, after that one."""
        ...

    def recorded_us(self, session_id: str) -> int | None:
        """Return when the session's last event was recorded; None without events."""
        ...

    def errors_of(self, session_ids: Collection[str], limit: int) -> Mapping[str, Sequence[Event]]:
        """Return the latest errors of each session, up to `limit`, the latest first."""
        ...

    def latest(self, filter_: ActivityFilter) -> Session | None:
        """Return the session that was active last."""
        ...

    def count(self, filter_: ActivityFilter) -> int:
        """Return how many sessions there are."""
        ...

    def ids(self, filter_: ActivityFilter, limit: int) -> Sequence[str]:
        """Return up to `limit` of the sessions, in no particular order."""
        ...

    def page(
        self, filter_: ActivityFilter, after: tuple[int, str] | None, limit: int
    ) -> Sequence[Session]:
        """Return sessions, latest start first, that come after the key (started_us, id)."""
        ...
