"""When a session needs a summary: what is recorded says so, in the same transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mneme_server.common.clock import MICROSECONDS
from mneme_server.events.model import Session, SessionStatus
from mneme_server.events.ports import EventsUnit

SUMMARY_JOB = "summaries"
"""The job that makes them."""

IDLE_US = 1_800 * MICROSECONDS
LATE_US = MICROSECONDS
"""Late events come in numbers: a summary is made again this long after the first of them."""


@dataclass(frozen=True, slots=True)
class SummarySchedule:
    """Queues sessions for their summaries.

    Args:
        idle_us: after so long without an event an active session gets one.
        wake: told the tenant and the time, in microseconds since 1970, once it is committed.
    """

    idle_us: int = IDLE_US
    wake: Callable[[str, int], None] = lambda _tenant, _due_us: None

    def session_changed(self, unit: EventsUnit, session: Session, now_us: int) -> int:
        """Queue a session that has just ended, or changed after it had; return when it is due."""
        due = now_us if session.status != SessionStatus.ACTIVE else now_us + self.idle_us
        unit.summary_queue.request({session.id: due})
        return due

    def recorded(
        self, unit: EventsUnit, sessions: Iterable[Session], ended_before: set[str], now_us: int
    ) -> int:
        """Queue the sessions of a batch of events; return when the first is due.

        `ended_before` names those that had ended before the batch.
        """
        due = {
            session.id: self._due(session, session.id in ended_before, now_us)
            for session in sessions
        }
        unit.summary_queue.request(due)
        return min(due.values())

    def _due(self, session: Session, late: bool, now_us: int) -> int:
        if session.status == SessionStatus.ACTIVE:
            return now_us + self.idle_us
        return now_us + LATE_US if late else now_us
