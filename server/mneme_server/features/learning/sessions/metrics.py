"""Metrics of a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.features.learning.model import LearningSession, MetricPoint
from mneme_server.features.learning.sessions.sessions import LearningSessions
from mneme_server.features.learning.store.sessions import SqlLearningSessions
from mneme_server.features.learning.tally import (
    ConvergenceStatus,
    LossTrend,
    convergence_score,
    convergence_status,
    loss_trend,
    mean_of,
)


@dataclass(frozen=True, slots=True)
class SessionMetrics:
    """How a session does. `history` is evenly chosen among its episodes, oldest first."""

    session: LearningSession
    moving_average: float
    convergence: float
    status: ConvergenceStatus
    trend: LossTrend
    exploration: float | None
    history: Sequence[MetricPoint]


class MeasureSession:
    """The use case: tell how a session does."""

    def __init__(self, tenants: OpenTenants, sessions: LearningSessions) -> None:
        self._tenants = tenants
        self._sessions = sessions

    def measure(self, tenant_id: str, session_id: str, window: int, points: int) -> SessionMetrics:
        """Return a session's metrics.

        Args:
            tenant_id: whose session it is.
            session_id: the session.
            window: episodes of a moving average.
            points: of the history, at most.

        Raises:
            NotFound: there is no such session.
        """
        session = self._sessions.get(tenant_id, session_id)
        counts = session.counts
        with self._tenants.open(tenant_id) as tenant, tenant.read() as unit:
            recent = unit.get(SqlLearningSessions).last_points(session.number, 2 * window)
            history = unit.get(SqlLearningSessions).points(
                session.number, _evenly(counts.episodes, points)
            )
        rewards = [point.reward for point in recent]
        score = convergence_score(rewards, window, counts.lowest, counts.highest)
        return SessionMetrics(
            session=session,
            moving_average=mean_of(rewards[-window:]),
            convergence=score,
            status=convergence_status(score),
            trend=loss_trend([p.loss for p in recent[-window:] if p.loss is not None]),
            exploration=recent[-1].exploration if recent else None,
            history=history,
        )


def _evenly(episodes: int, points: int) -> Sequence[int]:
    """Return the numbers of episodes to show, the last one always among them."""
    if not episodes or not points:
        return ()
    numbers = np.linspace(episodes, 1, min(episodes, points)).round().astype(int)
    return sorted({int(number) for number in numbers})
