"""For how long a tenant's sessions may learn in a day."""

from __future__ import annotations

from mneme_server.common.clock import MICROSECONDS, now_us
from mneme_server.common.errors import Reason, ResourceExhausted
from mneme_server.features.learning.live_session import Tenant, day_of
from mneme_server.features.learning.open_sessions import OpenSessions

_DAY_S = 86_400


class TrainingQuota:
    """Checks that a tenant's sessions may go on learning.

    Args:
        sessions: those in memory, which know what is not saved yet.
        most_s: seconds of a day (UTC) that the sessions of a tenant may learn, all together.
    """

    def __init__(self, sessions: OpenSessions, most_s: int) -> None:
        self._sessions = sessions
        self._most_s = most_s

    def wait_s(self, tenant: Tenant) -> float:
        """Return in how many seconds they may learn: 0 if there is time left today."""
        now = now_us()
        with tenant.read() as unit:
            saved_us = unit.learning_sessions.trained_us(day_of(now))
        unsaved_us = sum(live.unsaved_us for live in self._sessions.all_of(tenant.tenant_id))
        if saved_us + unsaved_us < self._most_s * MICROSECONDS:
            return 0.0
        return _DAY_S - now / MICROSECONDS % _DAY_S

    def require(self, tenant: Tenant) -> None:
        """Check that there is time left.

        Raises:
            ResourceExhausted: there is none today.
        """
        wait_s = self.wait_s(tenant)
        if wait_s:
            raise ResourceExhausted(
                f"the tenant's sessions have learned for {self._most_s:,} seconds today (UTC), as"
                " long as they may (MNEME_LEARNING_SECONDS); nothing was recorded or learned. They"
                " still predict",
                reason=Reason.QUOTA_EXCEEDED,
                retry_after_s=wait_s,
            )
