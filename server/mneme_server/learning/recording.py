"""Telling a session what came of actions: durable first, then learned."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mneme_server.common.canonical import canonical_json
from mneme_server.common.clock import later_us, now_us
from mneme_server.common.errors import AlreadyExists, Reason, ResourceExhausted
from mneme_server.corpus.tenant import OpenTenants
from mneme_server.learning.checking import Checking, named_in, same_steps, session_of, unused
from mneme_server.learning.learner import Explores, Learned
from mneme_server.learning.model import Counts, Point, Step, Told
from mneme_server.learning.open_sessions import (
    LiveSession,
    OpenSessions,
    Tenant,
    require_active,
    telling,
)
from mneme_server.learning.ports import LearningUnit
from mneme_server.learning.tally import Ended

_STEP_BYTES = 120
"""What a step takes in the database beside its values."""
_RETRY_S = 60.0


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of steps that were told.

    Args:
        steps: as they are kept; those of the first time where they were told before.
        duplicate: whether they were told before.
        learned: what learning from them did; nothing if that is done in the background.
        episode_reward: of the last step's episode, so far or as it ended.
        counts: the session's.
        bytes: that the tenant's steps take.
    """

    steps: Sequence[Step]
    duplicate: bool
    learned: Learned
    episode_reward: float
    counts: Counts
    bytes: int


class Record:
    """The use case: record steps, and learn from them.

    Args:
        tenants: where tenants are.
        sessions: those in memory.
        most_bytes: that a tenant's recorded steps may take.
        wake: called with a tenant that has something to learn or to save in the background.
    """

    def __init__(
        self,
        tenants: OpenTenants[LearningUnit],
        sessions: OpenSessions,
        most_bytes: int,
        wake: Callable[[str], object],
    ) -> None:
        self._tenants = tenants
        self._sessions = sessions
        self._wake = wake
        self.most_bytes = most_bytes

    def __call__(
        self,
        tenant_id: str,
        session_id: str,
        told: Sequence[Told],
        *,
        trajectory_id: str | None = None,
        field: str = "",
    ) -> Recorded:
        """Record steps, all or none; with the id of a call before nothing is changed.

        Args:
            tenant_id: whose session it is.
            session_id: the session; empty: that of the first prediction.
            told: the steps, in their order, at least one.
            trajectory_id: the id of the call; None: it cannot be sent again.
            field: where the request has a step, with its place: "steps[{item}].".

        Raises:
            InvalidArgument: a step is not valid.
            NotFound: there is no such session or prediction.
            AlreadyExists: the id is taken by other steps, or a prediction was used before.
            FailedPrecondition: the session has ended, or cannot learn from a step.
            ResourceExhausted: they take more bytes than the tenant may use.
        """
        session_id = session_id or session_of(told[0], field.format(item=0))
        with (
            self._tenants.open(tenant_id) as tenant,
            self._sessions.use(tenant, session_id) as live,
            telling(live),
        ):
            require_active(live)
            before = self._told_before(tenant, live, trajectory_id)
            steps = Checking(live, now_us()).steps(told, field)
            if before:
                return _again(live, before, steps, trajectory_id)
            recorded = self._record(tenant, live, steps, trajectory_id)
            self._wake(tenant_id)
        return recorded

    def _told_before(
        self, tenant: Tenant, live: LiveSession, trajectory_id: str | None
    ) -> Sequence[Step]:
        if trajectory_id is None:
            return ()
        with tenant.read() as unit:
            return unit.learning_steps.of_trajectory(live.session.number, trajectory_id)

    def _record(
        self, tenant: Tenant, live: LiveSession, steps: Sequence[Step], trajectory_id: str | None
    ) -> Recorded:
        before = live.tally.counts
        try:
            kept, reward, taken = self._write(tenant, live, steps, trajectory_id)
            learned = live.learn(kept) if live.learns_inline else Learned()
        except BaseException:
            if live.tally.counts is not before:
                # What was counted or learned is not what is stored: it must be read again.
                self._sessions.drop(tenant.tenant_id, live)
            raise
        return Recorded(kept, False, learned, reward, live.tally.counts, taken)

    def _write(
        self, tenant: Tenant, live: LiveSession, steps: Sequence[Step], trajectory_id: str | None
    ) -> tuple[list[Step], float, int]:
        number = live.session.number
        sizes = [_size(step) for step in steps]
        with tenant.write() as unit:
            taken = unit.learning_sessions.taken_bytes() + sum(sizes)
            if taken > self.most_bytes:
                raise _full(self.most_bytes)
            unused(unit, number, steps)
            now = later_us(live.session.updated_us)
            kept, ended, reward = _counted(live, steps, sizes)
            kept = [
                replace(step, trajectory_id=trajectory_id, place=place, recorded_us=now)
                for place, step in enumerate(kept)
            ]
            unit.learning_steps.add(number, kept)
            unit.learning_sessions.add_points(number, _points(live, ended, now))
            live.session = replace(live.session, updated_us=now)
            unit.learning_sessions.update(live.current())
        return kept, reward, taken


def _again(
    live: LiveSession, before: Sequence[Step], steps: Sequence[Step], trajectory_id: str | None
) -> Recorded:
    if not same_steps(before, steps):
        raise AlreadyExists(
            f"the id {trajectory_id!r} is taken by other steps of the session", field="id"
        )
    reward = live.tally.reward_of(before[-1].actor)
    return Recorded(before, True, Learned(), reward, live.tally.counts, live.tally.counts.bytes)


def _counted(
    live: LiveSession, steps: Sequence[Step], sizes: Sequence[int]
) -> tuple[list[Step], list[Ended], float]:
    """Count steps; return them numbered, the episodes that ended, and the reward of the last."""
    kept, ended, reward = [], [], 0.0
    for step, size in zip(steps, sizes, strict=True):
        reward = live.tally.reward_of(step.actor) + step.reward
        numbered, end = live.tally.add(step, size)
        kept.append(numbered)
        if end is not None:
            ended.append(end)
        if live.recorded is not None:
            for action in named_in(step):
                live.recorded.add(action)
    return kept, ended, reward


def _points(live: LiveSession, ended: Sequence[Ended], now: int) -> list[Point]:
    """Return how the session stands at the ends of episodes; what learning did belongs to the
    first: the others ended in the same call."""
    if not ended:
        return []
    with live.thinking:
        learned = live.since.taken()
        learner = live.policy.learner
        rate = learner.exploration_rate if isinstance(learner, Explores) else None
    nothing = Learned()
    return [
        Point(
            episode=one.number,
            transitions=one.transitions,
            reward=one.reward,
            moving_average=one.moving_average,
            convergence=one.convergence,
            loss=_finite(did.loss),
            value=_finite(did.value),
            gradient_norm=_finite(did.gradient_norm or None),
            exploration=rate,
            recorded_us=now,
        )
        for one, did in zip(ended, [learned, *[nothing] * len(ended)], strict=False)
    ]


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _size(step: Step) -> int:
    texts = (step.state, step.action, step.next_state)
    return _STEP_BYTES + sum(len(canonical_json(one)) for one in texts)


def _full(most: int) -> ResourceExhausted:
    return ResourceExhausted(
        f"the tenant's recorded steps would take more than {most:,} bytes"
        " (MNEME_LEARNING_BYTES); nothing was recorded, delete sessions that are not needed",
        reason=Reason.QUOTA_EXCEEDED,
        retry_after_s=_RETRY_S,
    )
