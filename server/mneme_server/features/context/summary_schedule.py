"""When a session needs a summary: what changes it says so, in the same transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from mneme_server.common.clock import MICROSECONDS
from mneme_server.features.context.ports import ContextUnit
from mneme_server.features.events.model import Session, SessionStatus
from mneme_server.features.events.recording import Committed

SUMMARY_JOB = "summaries"
"""The job that makes them."""

LATE_US = MICROSECONDS
"""Late events come in numbers: a summary is made again this long after the first of them."""


@dataclass(frozen=True, slots=True)
class SummarySchedule:
    """Queues sessions for their summaries. Implements `SessionListener`.

    Args:
        idle_us: after so long without an event an active session gets one.
        wake: told the tenant and the time, in microseconds since 1970, once it is committed.
    """

    idle_us: int
    wake: Callable[[str, int], object]

    def changed(
        self,
        unit: ContextUnit,
        sessions: Sequence[Session],
        ended_before: Collection[str],
        now_us: int,
    ) -> Committed:
        """Queue sessions that something was recorded in, or that ended, or changed after that.

        No agent ran those of the system: there is nothing to sum up.
        """
        due = {
            session.id: self._due(session, session.id in ended_before, now_us)
            for session in sessions
            if not session.system
        }
        if not due:
            return lambda _tenant_id: None
        unit.summary_queue.request(due)
        earliest = min(due.values())
        return lambda tenant_id: self.wake(tenant_id, earliest)

    def _due(self, session: Session, late: bool, now_us: int) -> int:
        if session.status == SessionStatus.ACTIVE:
            return now_us + self.idle_us
        return now_us + LATE_US if late else now_us
