"""Showing the trajectories of a session."""

from __future__ import annotations

from collections.abc import Sequence

from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.features.learning.live_session import unknown
from mneme_server.features.learning.model import Trajectory
from mneme_server.features.learning.ports import LearningUnit


class Trajectories:
    """The use case: show a session's trajectories.

    Args:
        tenants: where tenants are.
    """

    def __init__(self, tenants: OpenTenants[LearningUnit]) -> None:
        self._tenants = tenants

    def page(
        self, tenant_id: str, session_id: str, before: int | None, limit: int
    ) -> Sequence[Trajectory]:
        """Return trajectories, the last recorded first, whose first steps have numbers below
        `before`.

        Raises:
            NotFound: there is no such session.
        """
        with self._tenants.open(tenant_id) as tenant, tenant.read() as unit:
            session = unit.learning_sessions.get(session_id)
            if session is None:
                raise unknown(session_id)
            return unit.learning_steps.trajectories(session.number, before, limit)
