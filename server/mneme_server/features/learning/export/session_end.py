"""The end of a session: what it has learned is saved, and exported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mneme_server.common.canonical import Json
from mneme_server.common.clock import later_us
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.features.learning.export.exports import KeepModel
from mneme_server.features.learning.export.learned_skills import SkillMaker, skill_of
from mneme_server.features.learning.model import LearningSession, LearningStatus, SessionCounts
from mneme_server.features.learning.sessions.evaluation import newest_steps
from mneme_server.features.learning.sessions.live_session import (
    LiveSession,
    Tenant,
    telling,
)
from mneme_server.features.learning.sessions.metrics import MeasureSession, SessionMetrics
from mneme_server.features.learning.sessions.open_sessions import OpenSessions
from mneme_server.features.learning.sessions.serialization import encoded
from mneme_server.features.learning.spaces import space_to_json
from mneme_server.features.learning.store.sessions import SqlLearningSessions
from mneme_server.features.learning.tally import WINDOW
from mneme_server.features.learning.transfer.similarity import features_of

_LOOKED_AT = 200
SKILL_EPISODES = 3
"""Episodes without which what was learned is no skill, whatever they brought."""


@dataclass(frozen=True, slots=True)
class EndedSession:
    """A session that ended.

    `size` is that of its exported model in bytes, 0 without one, and `path` that of the copy in the
    data folder, empty without one. `meets_bar` says whether it is worth a skill, and `skill_id` is
    that of the skill that it has become.
    """

    session: LearningSession
    metrics: SessionMetrics
    path: str
    size: int
    meets_bar: bool
    skill_id: str = ""
    skill_is_new: bool = False


class EndLearningSession:
    """The use case: end a session.

    Args:
        tenants: where tenants are.
        sessions: those in memory.
        measure: tells how it did.
        keep: keeps its exported model.
        skills: where what it learned is told as a skill.
    """

    def __init__(
        self,
        tenants: OpenTenants,
        sessions: OpenSessions,
        measure: MeasureSession,
        keep: KeepModel,
        skills: SkillMaker,
    ) -> None:
        self._tenants = tenants
        self._sessions = sessions
        self._measure = measure
        self._keep = keep
        self._skills = skills

    def end(
        self, tenant_id: str, session_id: str, *, export: bool, least: float, skill: bool
    ) -> EndedSession:
        """End a session; ending it again exports it again, and brings its skill up to date.

        Args:
            tenant_id: whose session it is.
            session_id: the session.
            export: whether to keep its model, to be downloaded.
            least: the mean reward of its episodes from which on it is worth a skill.
            skill: whether to make one then.

        Raises:
            NotFound: there is none.
            ResourceExhausted: the model would take the tenant beyond what it may have; the session
                goes on. Or the skill cannot be embedded soon, and too much waits; it has ended.
        """
        with self._tenants.open(tenant_id) as tenant:
            with self._sessions.use(tenant, session_id) as live, telling(live):
                live.catch_up(tenant)
                live.save(tenant)
                data = encoded(_model(live)) if export else b""
                self._end(tenant, live, data)
                path = self._keep.copy(tenant_id, live.session, data) if data else ""
                known, features = _told_of(tenant, live)
            metrics = self._measure.measure(tenant_id, session_id, WINDOW, 0)
        ended = EndedSession(
            metrics.session, metrics, path, len(data), _meets(metrics.session.counts, least)
        )
        if not (ended.meets_bar and skill):
            return ended
        made = skill_of(metrics.session, known, features, path, metrics.convergence)
        return replace(ended, skill_id=made.id, skill_is_new=self._skills.make(tenant_id, made))

    def _end(self, tenant: Tenant, live: LiveSession, data: bytes) -> None:
        """Note that a session has ended, and keep what it exports, at once or not at all."""
        ended = live.session
        if ended.status is not LearningStatus.ENDED:
            now = later_us(ended.updated_us)
            ended = replace(ended, status=LearningStatus.ENDED, updated_us=now, ended_us=now)
        elif not data:
            return
        with tenant.write() as unit:
            unit.get(SqlLearningSessions).update(
                replace(
                    live.current(),
                    status=ended.status,
                    updated_us=ended.updated_us,
                    ended_us=ended.ended_us,
                )
            )
            if data:
                self._keep.keep(unit, ended, data)
        live.session = ended


def _meets(counts: SessionCounts, least: float) -> bool:
    """Tell whether a session's episodes brought at least so much on average, and were enough."""
    enough = counts.episodes >= SKILL_EPISODES
    return enough and counts.ended_reward / counts.episodes >= least


def _told_of(tenant: Tenant, live: LiveSession) -> tuple[list[Json], list[str]]:
    """Return the actions of a session, and what it knows of states."""
    steps = newest_steps(tenant, live, live.policy.progress.learned, _LOOKED_AT)
    with live.thinking:
        known = list(live.policy.known)
        features = features_of(live.session.definition.states, live.policy.transitions(steps))
    return known, sorted(features)


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
