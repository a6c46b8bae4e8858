"""Ending a session: what it has learned is saved, and exported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mneme_server.common.clock import later_us
from mneme_server.corpus.tenant import OpenTenants
from mneme_server.learning.encoding import encoded
from mneme_server.learning.measuring import Measure, Metrics
from mneme_server.learning.model import Session, Status
from mneme_server.learning.open_sessions import LiveSession, OpenSessions, Tenant, telling
from mneme_server.learning.ports import LearningUnit, ModelFiles
from mneme_server.learning.space_json import space_to_json
from mneme_server.learning.tally import WINDOW

SKILL_EPISODES = 3
"""Episodes without which what was learned is no skill, whatever they brought."""


@dataclass(frozen=True, slots=True)
class EndedSession:
    """A session that ended. `path` is that of its exported model in the data folder; empty without
    one."""

    session: Session
    metrics: Metrics
    path: str
    size: int

    def is_worth(self, least: float) -> bool:
        """Tell whether its episodes brought at least so much on average, and were enough."""
        counts = self.session.counts
        enough = counts.episodes >= SKILL_EPISODES
        return enough and counts.ended_reward / counts.episodes >= least


class EndSession:
    """The use case: end a session.

    Args:
        tenants: where tenants are.
        sessions: those in memory.
        measure: tells how it did.
        files: where its model is exported to.
    """

    def __init__(
        self,
        tenants: OpenTenants[LearningUnit],
        sessions: OpenSessions,
        measure: Measure,
        files: ModelFiles,
    ) -> None:
        self._tenants = tenants
        self._sessions = sessions
        self._measure = measure
        self._files = files

    def __call__(self, tenant_id: str, session_id: str, *, export: bool) -> EndedSession:
        """End a session; ending it again exports it again.

        Raises:
            NotFound: there is none.
        """
        with self._tenants.open(tenant_id) as tenant:
            with self._sessions.use(tenant, session_id) as live, telling(live):
                live.catch_up(tenant)
                live.save(tenant)
                data = encoded(_model(live)) if export else b""
                self._end(tenant, live)
                path = self._files.write(tenant_id, live.session, data) if export else ""
            metrics = self._measure(tenant_id, session_id, WINDOW, 0)
        return EndedSession(metrics.session, metrics, path, len(data))

    def _end(self, tenant: Tenant, live: LiveSession) -> None:
        if live.session.status is Status.ENDED:
            return
        now = later_us(live.session.updated_us)
        live.session = replace(live.session, status=Status.ENDED, updated_us=now, ended_us=now)
        with tenant.write() as unit:
            unit.learning_sessions.update(live.current())


def _model(live: LiveSession) -> Mapping[str, Any]:
    """Return what makes sense of a model without Mneme."""
    session = live.current()
    definition = session.definition
    with live.thinking:
        return {
            "session": session.id,
            "algorithm": definition.algorithm,
            "version": session.version,
            "config": definition.config,
            "state_space": space_to_json(definition.states),
            "action_space": space_to_json(definition.actions),
            "actions": list(live.policy.known),
            "transitions": live.policy.progress.learned,
            "learned": live.policy.learner.dump(),
        }
