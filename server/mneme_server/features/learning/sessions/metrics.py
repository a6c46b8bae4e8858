"""Metrics of a session."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mneme_server.common.errors import DataLoss, FailedPrecondition
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.features.learning.algorithms.algorithm import (
    BestPolicy,
    KeepsBest,
    SeesChanges,
)
from mneme_server.features.learning.model import LearningSession, MetricPoint
from mneme_server.features.learning.sessions.session_copies import SessionCopies
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

_SIZELESS = {"linucb", "thompson"}
"""Algorithms that find the size of rewards by themselves."""
_SMALL, _LARGE = 0.01, 100.0
_FEW = 10
"""Of fewer episodes the size of rewards is not told."""


@dataclass(frozen=True, slots=True)
class SessionMetrics:
    """How a session does. `history` is evenly chosen among its episodes, oldest first; `best` is
    its best policy so far, where one is kept; `notes` are sentences on what should be known."""

    session: LearningSession
    moving_average: float
    convergence: float
    status: ConvergenceStatus
    trend: LossTrend
    exploration: float | None
    history: Sequence[MetricPoint]
    best: BestPolicy | None = None
    notes: Sequence[str] = ()


class MeasureSession:
    """The use case: tell how a session does.

    Args:
        tenants: where tenants are.
        sessions: finds what is stored of them.
        asked: lends those that are asked.
    """

    def __init__(
        self, tenants: OpenTenants, sessions: LearningSessions, asked: SessionCopies
    ) -> None:
        self._tenants = tenants
        self._sessions = sessions
        self._asked = asked

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
            early = min(window, counts.episodes // 4)
            first = unit.get(SqlLearningSessions).points(session.number, range(1, early + 1))
        rewards = [point.reward for point in recent]
        score = convergence_score(rewards, window, counts.lowest, counts.highest)
        status = convergence_status(score, [one.reward for one in first], rewards[-window:])
        best, changes = self._known(tenant_id, session_id)
        notes = [*_of_changes(changes), *_of_best(best), *_of_status(status), *_of_size(session)]
        return SessionMetrics(
            session=session,
            moving_average=mean_of(rewards[-window:]),
            convergence=score,
            status=status,
            trend=loss_trend([p.loss for p in recent[-window:] if p.loss is not None]),
            exploration=recent[-1].exploration if recent else None,
            history=history,
            best=best,
            notes=notes,
        )

    def _known(self, tenant_id: str, session_id: str) -> tuple[BestPolicy | None, Sequence[int]]:
        """Return the best policy so far, and after how many steps the world changed, where the
        session knows that."""
        try:
            with (
                self._tenants.open(tenant_id) as tenant,
                self._asked.use(tenant, session_id) as live,
            ):
                learner = live.policy.learner  # Not held: it may be learning for long.
                return (
                    learner.best if isinstance(learner, KeepsBest) else None,
                    learner.changes if isinstance(learner, SeesChanges) else (),
                )
        except (FailedPrecondition, DataLoss):
            return None, ()  # What it learned cannot be used; what was counted is there.


def _of_changes(changes: Sequence[int]) -> Iterator[str]:
    if changes:
        yield (
            f"After {changes[-1]} steps rewards kept falling short of what was expected: the world"
            " seems to have changed, and nearly all that was learned before was forgotten."
        )


def _of_best(best: BestPolicy | None) -> Iterator[str]:
    if best is not None and best.chooses:
        yield (
            f"The latest episodes brought {best.now:.4g} on average and the best ones, up to"
            f" episode {best.episode}, {best.mean:.4g}: where nothing is explored, the policy of"
            " then chooses."
        )


def _of_status(status: ConvergenceStatus) -> Iterator[str]:
    if status is ConvergenceStatus.SETTLED:
        yield (
            "Rewards have settled, but not surely above where they began, or at about 0, which is"
            " what doing nothing brings: this does not say that anything was learned."
        )


def _of_size(session: LearningSession) -> Iterator[str]:
    """Say if rewards are far from the size that the session's algorithm learns from best."""
    counts, definition = session.counts, session.definition
    largest = max(abs(counts.lowest), abs(counts.highest))
    steps = max(1.0, counts.transitions / counts.episodes) if counts.episodes else 1.0
    scale = float(definition.config.get("reward_scale", 1.0))
    size = largest / (steps if "discount_factor" in definition.config else 1.0) * scale
    if definition.algorithm in _SIZELESS or counts.episodes < _FEW or not size > 0:
        return
    if not _SMALL <= size <= _LARGE:
        wanted = 10.0 ** round(math.log10(scale / size))
        yield (
            f"Rewards are of the size of {size / scale:.2g} a step, and {definition.algorithm}"
            f" learns best from rewards of about 1: a session with reward_scale {wanted:g} would."
        )


def _evenly(episodes: int, points: int) -> Sequence[int]:
    """Return the numbers of episodes to show, the last one always among them."""
    if not episodes or not points:
        return ()
    numbers = np.linspace(episodes, 1, min(episodes, points)).round().astype(int)
    return sorted({int(number) for number in numbers})
