"""Training again from what was recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mneme_server.common import deadline
from mneme_server.common.errors import FailedPrecondition
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.features.learning.algorithms.algorithm import Replays, Trains, UpdateSummary
from mneme_server.features.learning.sessions.live_session import (
    LiveSession,
    Tenant,
    UpdateTotals,
    require_active,
    telling,
)
from mneme_server.features.learning.sessions.open_sessions import OpenSessions, TrainingQuota
from mneme_server.features.learning.store.steps import SqlLearningSteps

_PART_S = 0.2
"""How long is learned before it is told how far it is, and others have their turn."""
_MOST_AT_ONCE = 10
"""Steps that a learner with a process of its own is asked for at once."""


@dataclass(frozen=True, slots=True)
class TrainProgress:
    """How far it is.

    Args:
        done: steps taken.
        updates: how often something was corrected in all.
        since: what was learned since the one before.
        took_s: since the beginning, in seconds.
    """

    done: int
    updates: int
    since: UpdateSummary
    took_s: float


class Train:
    """The use case: learn again from what was recorded.

    Args:
        tenants: where tenants are.
        sessions: those in memory.
        quota: says whether a tenant's sessions may go on learning.
        wake: called with a tenant that has something to save in the background, and when that is
            due, in microseconds.
    """

    def __init__(
        self,
        tenants: OpenTenants,
        sessions: OpenSessions,
        quota: TrainingQuota,
        wake: Callable[[str, int], object],
    ) -> None:
        self._tenants = tenants
        self._sessions = sessions
        self._quota = quota
        self._wake = wake

    def train(
        self, tenant_id: str, session_id: str, steps: int, batch: int = 0
    ) -> Iterator[TrainProgress]:
        """Take steps; yield how far it is, at the end when all are taken and that is saved.

        Args:
            tenant_id: whose session it is.
            session_id: the session.
            steps: how many to take.
            batch: how many transitions each learns from; 0: as many as the config says.

        Raises:
            NotFound: there is no such session.
            FailedPrecondition: it has ended, or nothing was recorded.
            ResourceExhausted: the tenant's sessions have learned for as long as they may.
        """
        began, done, updates, learned = time.monotonic(), 0, 0, UpdateSummary()
        while done < steps:
            took, learned = self._part(tenant_id, session_id, steps - done, batch)
            done, updates = done + took, updates + learned.updates
            if done < steps:
                yield TrainProgress(done, updates, learned, time.monotonic() - began)
        self._save(tenant_id, session_id)
        yield TrainProgress(done, updates, learned, time.monotonic() - began)

    def _part(
        self, tenant_id: str, session_id: str, steps: int, batch: int
    ) -> tuple[int, UpdateSummary]:
        """Take some of the steps; return how many, and what was learned."""
        with (
            self._tenants.open(tenant_id) as tenant,
            self._sessions.use(tenant, session_id) as live,
            telling(live),
        ):
            require_active(live)
            if not live.tally.counts.transitions:
                raise FailedPrecondition(
                    f"the learning session {session_id!r} was told nothing yet: record experience,"
                    " or give feedback, before it is trained"
                )
            self._quota.require(tenant)
            live.catch_up(tenant)
            replaying = _ReplaySteps(tenant, live, batch)
            since, until, taken = UpdateTotals(), time.monotonic() + _PART_S, 0
            while taken < steps and (not taken or time.monotonic() < until):
                deadline.check()
                learned, count = replaying.take(steps - taken)
                since.add(learned)
                taken += count
            self._wake(tenant_id, live.save_due_us)  # Also if nobody wants the rest.
            return taken, since.result()

    def _save(self, tenant_id: str, session_id: str) -> None:
        with (
            self._tenants.open(tenant_id) as tenant,
            self._sessions.use(tenant, session_id) as live,
            telling(live),
        ):
            live.save(tenant)


class _ReplaySteps:
    """Takes steps of one session.

    Args:
        tenant: its tenant.
        live: the session; its `telling` is held.
        batch: how many transitions a step learns from; 0: as the config says.
    """

    def __init__(self, tenant: Tenant, live: LiveSession, batch: int) -> None:
        self._tenant, self._live = tenant, live
        self._batch = batch or int(live.session.definition.config.get("batch_size", 1))
        self._count = live.tally.counts.transitions

    def take(self, most: int) -> tuple[UpdateSummary, int]:
        """Take some steps, so many at most; return what was learned and how many they were."""
        learner = self._live.policy.learner
        if isinstance(learner, Trains):
            taken = min(most, _MOST_AT_ONCE)
            return self._live.train(lambda: learner.train(taken, self._batch)), taken
        if not isinstance(learner, Replays):
            return UpdateSummary(), most  # It has learned all there is.
        policy = self._live.policy
        numbers = policy.drawn(self._count, self._batch, in_order=learner.replays_in_order)
        with self._tenant.read() as unit:
            steps = unit.get(SqlLearningSteps).numbered(self._live.session.number, numbers)
        return self._live.train(lambda: learner.replay(policy.transitions(steps))), 1
