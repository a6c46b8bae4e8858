"""Learning in the background, and saving what was learned."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from mneme_server.common.clock import MICROSECONDS, now_us
from mneme_server.learning.live_session import PART, LiveSession, Tenant
from mneme_server.learning.open_sessions import OpenSessions
from mneme_server.learning.quota import TrainingQuota
from mneme_server.runtime.foreground import Foreground, Shift
from mneme_server.runtime.turns import TenantWorker

LEARNING_JOB = "learning"


class LearningWorker(TenantWorker):
    """Learns what sessions were told in the background, and saves what all have learned, where this
    server is the one that changes them.

    Args:
        open_tenant: lends a tenant.
        sessions: those in memory.
        quota: says whether a tenant's sessions may go on learning.
        foreground: the calls, which go first.
    """

    everywhere = inherits = True

    def __init__(
        self,
        open_tenant: Callable[[str], AbstractContextManager[Tenant]],
        sessions: OpenSessions,
        quota: TrainingQuota,
        foreground: Foreground,
    ) -> None:
        super().__init__("learning", "learning")
        self._open_tenant = open_tenant
        self._sessions = sessions
        self._quota = quota
        self._shift = Shift(foreground.give_way)

    def step(self, tenant_id: str) -> int | None:
        """Learn a part of what is left, and save what is due."""
        with self._open_tenant(tenant_id) as tenant:
            with tenant.read() as unit:
                behind = unit.learning_sessions.behind()
            if not behind and not self._sessions.all_of(tenant_id):
                return None
            if not self._sessions.trainer.trains(tenant_id):
                return None  # Another server does, and learns them.
            wait_s = self._quota.wait_s(tenant)
            left = False
            if behind and wait_s:
                behind = ()
            else:
                wait_s = 0.0
            for session_id in behind:
                with self._sessions.use(tenant, session_id) as live:
                    left = self._learn(tenant, live) or left
            with self._sessions.leading(tenant_id):
                due = [self._save(tenant, live) for live in self._sessions.all_of(tenant_id)]
        now = now_us()
        if left:
            return now
        due.append(now + int(wait_s * MICROSECONDS) if wait_s else None)
        return min((at for at in due if at is not None), default=None)

    def _learn(self, tenant: Tenant, live: LiveSession) -> bool:
        """Learn a part; tell whether there is more."""
        self._shift.step()
        with live.telling:
            if not live.gone and live.catch_up(tenant, PART) and not live.behind:
                live.save(tenant)  # Or it would seem to be behind still.
            return bool(live.behind) and not live.gone

    def _save(self, tenant: Tenant, live: LiveSession) -> int | None:
        """Save a session if that is due; else return when it is, in microseconds."""
        if not live.unsaved:
            return None
        due_us = live.save_due_us
        if due_us > now_us():
            return due_us
        with live.telling:
            if not live.gone:
                live.save(tenant)
        return None
