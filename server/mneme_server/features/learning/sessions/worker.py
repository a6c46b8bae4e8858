"""Background work on sessions: learning, and saving what was learned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import structlog

from mneme_server.common.clock import MICROSECONDS, now_us
from mneme_server.common.errors import MnemeError, NotFound, Unavailable
from mneme_server.engine.background.tenant_worker import TenantWorker, retry_delay_s
from mneme_server.features.learning.sessions.live_session import PART, LiveSession, Tenant
from mneme_server.features.learning.sessions.open_sessions import OpenSessions, TrainingQuota
from mneme_server.features.learning.store.sessions import SqlLearningSessions

LEARNING_JOB = "learning"

_log = structlog.get_logger(__name__)


class LearningWorker(TenantWorker):
    """Learns what sessions were told in the background, and saves what all have learned, where this
    server is the one that changes them.

    Args:
        open_tenant: lends a tenant.
        sessions: those in memory.
        quota: says whether a tenant's sessions may go on learning.
    """

    everywhere = inherits = True

    def __init__(
        self,
        open_tenant: Callable[[str], AbstractContextManager[Tenant]],
        sessions: OpenSessions,
        quota: TrainingQuota,
    ) -> None:
        super().__init__("learning", "learning")
        self._open_tenant = open_tenant
        self._sessions = sessions
        self._quota = quota
        # Sessions that failed to learn, by tenant: how often, and when to try again.
        self._failed: dict[str, dict[str, tuple[int, int]]] = {}

    def step(self, tenant_id: str) -> int | None:
        """Learn a part of what is left, and save what is due."""
        with self._open_tenant(tenant_id) as tenant:
            with tenant.read() as unit:
                behind = unit.get(SqlLearningSessions).behind()
            if not behind and not self._sessions.all_of(tenant_id):
                return None
            if not self._sessions.lease.trains(tenant_id):
                return None  # Another server does, and learns them.
            wait_s = self._quota.wait_s(tenant)
            left = False
            if behind and wait_s:
                behind = ()
            else:
                wait_s = 0.0
            for session_id in self._to_learn(tenant_id, behind):
                left = self._try(tenant, session_id) or left
            with self._sessions.leading(tenant_id):
                due = [self._save(tenant, live) for live in self._sessions.all_of(tenant_id)]
        now = now_us()
        if left:
            return now
        due.append(now + int(wait_s * MICROSECONDS) if wait_s else None)
        due += [again_us for _, again_us in self._failed.get(tenant_id, {}).values()]
        return min((at for at in due if at is not None), default=None)

    def _to_learn(self, tenant_id: str, behind: Sequence[str]) -> list[str]:
        """Return the sessions that are behind and need not wait because they failed."""
        known = self._failed.pop(tenant_id, {})
        failed = {one: known[one] for one in behind if one in known}
        if failed:
            self._failed[tenant_id] = failed
        now = now_us()
        return [one for one in behind if one not in failed or failed[one][1] <= now]

    def _try(self, tenant: Tenant, session_id: str) -> bool:
        """Have a session learn a part; tell whether there is more. One that cannot is tried again
        later, and the tenant's others do not wait for it."""
        failed = self._failed.get(tenant.tenant_id, {})
        try:
            with self._sessions.use(tenant, session_id) as live:
                left = self._learn(tenant, live)
        except Unavailable:
            raise  # None of them can be had now.
        except NotFound:
            left = False  # It was deleted meanwhile.
        except MnemeError as error:
            attempts = failed.get(session_id, (0, 0))[0] + 1
            delay_s = error.retry_after_s or retry_delay_s(attempts)
            failed[session_id] = (attempts, now_us() + int(delay_s * MICROSECONDS))
            self._failed[tenant.tenant_id] = failed
            _log.error(
                "a session could not learn, will be tried again", tenant=tenant.tenant_id,
                session=session_id, error=str(error),
            )  # fmt: skip
            return False
        failed.pop(session_id, None)
        return left

    def _learn(self, tenant: Tenant, live: LiveSession) -> bool:
        """Learn a part; tell whether there is more."""
        self.give_way()
        with live.telling:
            if live.gone:
                return False
            try:
                learned = live.catch_up(tenant, PART)
            except BaseException:
                # What it has learned may not be what it has noted: it must be read again.
                self._sessions.drop(tenant.tenant_id, live)
                raise
            if learned and not live.behind:
                live.save(tenant)  # Or it would seem to be behind still.
            return bool(live.behind)

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
