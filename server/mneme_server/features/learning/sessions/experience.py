"""Experience that a session is told: durable first, then learned."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from mneme_server.common import deadline
from mneme_server.common.canonical import Json, canonical_json
from mneme_server.common.clock import later_us, now_us
from mneme_server.common.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    MnemeError,
    NotFound,
    Reason,
    ResourceExhausted,
)
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.features.learning.algorithms.algorithm import Explores, UpdateSummary
from mneme_server.features.learning.model import (
    MetricPoint,
    RecordedStep,
    SessionCounts,
    StepInput,
    Trajectory,
    TrajectoryInput,
)
from mneme_server.features.learning.sessions.live_session import (
    LiveSession,
    Tenant,
    UpdateTotals,
    require_active,
    telling,
)
from mneme_server.features.learning.sessions.open_sessions import OpenSessions, TrainingQuota
from mneme_server.features.learning.sessions.step_checks import (
    StepChecks,
    named_in,
    same_steps,
    session_of,
    unused,
)
from mneme_server.features.learning.spaces import Actions, Box, Space
from mneme_server.features.learning.store.sessions import SqlLearningSessions
from mneme_server.features.learning.store.steps import SqlLearningSteps
from mneme_server.features.learning.tally import EndedEpisode, SessionTally

_STEP_BYTES = 120
"""What a step takes in the database beside its values."""
_RETRY_S = 60.0


@dataclass(frozen=True, slots=True)
class RecordedSteps:
    """What became of steps that were told.

    Args:
        steps: as they are kept; those of the first time where they were told before.
        duplicate: whether they were told before.
        learned: what learning from them did; nothing if that is done in the background.
        episode_reward: of the last step's episode, up to that step.
        counts: the session's.
        bytes: that the tenant's steps and exported models take.
    """

    steps: Sequence[RecordedStep]
    duplicate: bool
    learned: UpdateSummary
    episode_reward: float
    counts: SessionCounts
    bytes: int


@dataclass(frozen=True, slots=True)
class RecordedTrajectories:
    """What became of trajectories that were told together.

    Args:
        recorded: those that were recorded now, by their places.
        known: the places of those that were told before.
        learned, counts, bytes: see `RecordedSteps`.
    """

    recorded: Mapping[int, Sequence[RecordedStep]]
    known: Sequence[int]
    learned: UpdateSummary
    counts: SessionCounts
    bytes: int


@dataclass(frozen=True, slots=True)
class _CheckedSteps:
    """Steps that were told in one piece, checked. `metadata_json` is None where it is no trajectory
    but feedback."""

    id: str | None
    metadata_json: str | None
    steps: Sequence[RecordedStep]


class RecordExperience:
    """The use case: record steps, and learn from them.

    Args:
        tenants: where tenants are.
        sessions: those in memory.
        most_bytes: that a tenant's recorded steps and exported models may take.
        quota: says whether a tenant's sessions may go on learning.
        wake: called with a tenant that has something to learn or to save in the background, and
            when that is due, in microseconds.
    """

    def __init__(
        self,
        tenants: OpenTenants,
        sessions: OpenSessions,
        most_bytes: int,
        quota: TrainingQuota,
        wake: Callable[[str, int], object],
    ) -> None:
        self._tenants = tenants
        self._sessions = sessions
        self._quota = quota
        self._wake = wake
        self.most_bytes = most_bytes

    def steps(
        self,
        tenant_id: str,
        session_id: str,
        told: Sequence[StepInput],
        *,
        feedback_id: str | None = None,
        field: str = "",
    ) -> RecordedSteps:
        """Record steps, all or none; with the id of a call before nothing is changed.

        Args:
            tenant_id: whose session it is.
            session_id: the session; empty: that of the first prediction.
            told: the steps, in their order, at least one.
            feedback_id: the id of the call; None: it cannot be sent again.
            field: where the request has a step, with its place: "steps[{item}].".

        Raises:
            InvalidArgument: a step is not valid.
            NotFound: there is no such session or prediction.
            AlreadyExists: the id is taken by other steps, or a prediction was used before.
            FailedPrecondition: the session has ended, or cannot learn from a step.
            ResourceExhausted: they take more bytes than the tenant may use, or its sessions have
                learned for as long as they may.
        """
        session_id = session_id or session_of(told[0], field.format(item=0))
        with self._held(tenant_id, session_id) as (tenant, live):
            before = _told_before(tenant, live, feedback_id)
            steps = StepChecks(live, now_us()).steps(told, field, trajectory=False)
            if before:
                _require_same(before, steps, feedback_id)
                return _again(tenant, live, before)
            kept, learned, reward, taken = self._record(
                tenant, live, [_CheckedSteps(feedback_id, None, steps)]
            )
        return RecordedSteps(kept[0], False, learned, reward, live.tally.counts, taken)

    def trajectories(
        self,
        tenant_id: str,
        session_id: str,
        told: Sequence[TrajectoryInput],
        refuse: Callable[[int, MnemeError], None] | None = None,
        *,
        dry_run: bool = False,
    ) -> RecordedTrajectories:
        """Record trajectories in one transaction; those that were told before change nothing.

        Args:
            tenant_id: whose session it is.
            session_id: the session.
            told: the trajectories; their steps belong to an episode each unless they name actors.
            refuse: told the place of a trajectory that cannot be recorded, and why; the others are
                recorded. None: then none is.
            dry_run: whether to record nothing, and to return what would be.

        Raises:
            See above; without `refuse` the error's `trajectory` is the place of what it is about.
        """
        with self._held(tenant_id, session_id) as (tenant, live):
            checking, places, known = StepChecks(live, now_us()), list[int](), list[int]()
            pieces: list[_CheckedSteps] = []
            for place, one in enumerate(told):
                deadline.check()
                try:
                    piece = _checked(tenant, live, checking, one, pieces)
                except (InvalidArgument, NotFound, AlreadyExists, FailedPrecondition) as error:
                    if refuse is None:
                        error.metadata["trajectory"] = str(place)
                        raise
                    refuse(place, error)
                    continue
                if piece is None:
                    known.append(place)
                else:
                    places.append(place)
                    pieces.append(piece)
            if dry_run or not pieces:
                with tenant.read() as unit:
                    taken = unit.get(SqlLearningSessions).taken_bytes()
                found = {at: one.steps for at, one in zip(places, pieces, strict=True)}
                return RecordedTrajectories(found, known, UpdateSummary(), live.tally.counts, taken)
            kept, learned, _, taken = self._record(tenant, live, pieces)
            recorded = dict(zip(places, kept, strict=True))
            return RecordedTrajectories(recorded, known, learned, live.tally.counts, taken)

    @contextmanager
    def _held(self, tenant_id: str, session_id: str) -> Iterator[tuple[Tenant, LiveSession]]:
        with (
            self._tenants.open(tenant_id) as tenant,
            self._sessions.use(tenant, session_id) as live,
            telling(live),
        ):
            require_active(live)
            yield tenant, live

    def _record(
        self, tenant: Tenant, live: LiveSession, pieces: Sequence[_CheckedSteps]
    ) -> tuple[list[list[RecordedStep]], UpdateSummary, float, int]:
        """Write and learn; return the steps of each piece, what was learned, the reward of the last
        episode, and the bytes that the tenant's steps and exported models take."""
        if live.learns_inline:
            self._quota.require(tenant)
        before = live.tally.counts
        try:
            kept, reward, taken = self._write(tenant, live, pieces)
            steps = [step for piece in kept for step in piece]
            learned = live.learn(steps) if live.learns_inline else UpdateSummary()
        except BaseException:
            if live.tally.counts is not before:
                # What was counted or learned is not what is stored: it must be read again.
                self._sessions.drop(tenant.tenant_id, live)
            raise
        self._wake(tenant.tenant_id, live.save_due_us if live.learns_inline else now_us())
        return kept, learned, reward, taken

    def _write(
        self, tenant: Tenant, live: LiveSession, pieces: Sequence[_CheckedSteps]
    ) -> tuple[list[list[RecordedStep]], float, int]:
        number = live.session.number
        sizes = [[step_size(step) for step in piece.steps] for piece in pieces]
        noted = sum(len(piece.metadata_json or "") for piece in pieces)
        with tenant.write() as unit:
            sessions = unit.get(SqlLearningSessions)
            taken = sessions.taken_bytes() + sum(map(sum, sizes)) + noted
            if taken > self.most_bytes:
                raise _full(self.most_bytes)
            unused(unit, number, [step for piece in pieces for step in piece.steps])
            now = later_us(live.session.updated_us)
            kept, ended, reward = [], [], 0.0
            for piece, size in zip(pieces, sizes, strict=True):
                # What is noted of a trajectory counts to its first step.
                size[0] += len(piece.metadata_json or "")
                counted, over, reward = _counted(live, piece.steps, size)
                ended += over
                kept.append(
                    [
                        replace(step, trajectory_id=piece.id, place=place, recorded_us=now)
                        for place, step in enumerate(counted)
                    ]
                )
            steps = [step for piece_steps in kept for step in piece_steps]
            unit.get(SqlLearningSteps).add(number, steps)
            unit.get(SqlLearningSteps).add_trajectories(number, _noted(pieces, kept))
            sessions.add_points(number, _points(live, ended, now))
            live.session = replace(live.session, updated_us=now)
            sessions.update(live.current())
        return kept, reward, taken


def of_trajectory(step: StepInput, trajectory_id: str) -> StepInput:
    """Return a step with the trajectory as its actor, unless it names one: trajectories that are
    told at once are episodes of their own."""
    if step.actor or step.prediction_id:
        return step
    return replace(step, actor=trajectory_id)


def _checked(
    tenant: Tenant,
    live: LiveSession,
    checking: StepChecks,
    told: TrajectoryInput,
    others: Sequence[_CheckedSteps],
) -> _CheckedSteps | None:
    """Return a trajectory checked; None if it was told before, or is among the others."""
    before = _told_before(tenant, live, told.id) or next(
        (one.steps for one in others if one.id == told.id), ()
    )
    given = [of_trajectory(one, told.id) for one in told.steps]
    steps = checking.steps(given, "steps[{item}].", trajectory=True)
    if before:
        _require_same(before, steps, told.id)
        return None
    return _CheckedSteps(told.id, told.metadata_json, steps)


def _told_before(tenant: Tenant, live: LiveSession, piece_id: str | None) -> Sequence[RecordedStep]:
    if piece_id is None:
        return ()
    with tenant.read() as unit:
        return unit.get(SqlLearningSteps).of_trajectory(live.session.number, piece_id)


def _require_same(
    before: Sequence[RecordedStep], steps: Sequence[RecordedStep], piece_id: str | None
) -> None:
    if not same_steps(before, steps):
        raise AlreadyExists(
            f"the id {piece_id!r} is taken by other steps of the session", field="id"
        )


def _noted(
    pieces: Sequence[_CheckedSteps], kept: Sequence[Sequence[RecordedStep]]
) -> list[Trajectory]:
    return [
        Trajectory(
            id=piece.id or "",
            metadata_json=piece.metadata_json,
            steps=len(steps),
            total_reward=sum_of(step.reward for step in steps),
            first=steps[0].number,
            recorded_us=steps[0].recorded_us,
        )
        for piece, steps in zip(pieces, kept, strict=True)
        if piece.metadata_json is not None
    ]


def sum_of(rewards: Iterable[float]) -> float:
    """Return the sum of rewards, which is a number, also of the largest ones."""
    total = sum(rewards)
    return total if math.isfinite(total) else math.copysign(sys.float_info.max, total)


def _again(tenant: Tenant, live: LiveSession, before: Sequence[RecordedStep]) -> RecordedSteps:
    with tenant.read() as unit:
        taken = unit.get(SqlLearningSessions).taken_bytes()
    last = before[-1]
    reward = last.episode_reward
    if reward is None:
        reward = live.tally.reward_of(last.actor)
    return RecordedSteps(before, True, UpdateSummary(), reward, live.tally.counts, taken)


def _counted(
    live: LiveSession, steps: Sequence[RecordedStep], sizes: Sequence[int]
) -> tuple[list[RecordedStep], list[EndedEpisode], float]:
    """Count steps; return them numbered, the episodes that ended, and the reward of the last."""
    kept, ended, reward = [], [], 0.0
    for step, size in zip(steps, sizes, strict=True):
        numbered, end = live.tally.add(step, size)
        reward = live.tally.reward_of(step.actor) if end is None else end.reward
        kept.append(numbered)
        if end is not None:
            ended.append(end)
        if live.recorded is not None:
            for action in named_in(step):
                live.recorded.add(action)
    return kept, ended, reward


def _points(live: LiveSession, ended: Sequence[EndedEpisode], now: int) -> list[MetricPoint]:
    """Return how the session stands at the ends of episodes; what learning did belongs to the
    first: the others ended in the same call."""
    if not ended:
        return []
    with live.thinking:
        learned, live.since = live.since.result(), UpdateTotals()
        learner = live.policy.learner
        rate = learner.exploration_rate if isinstance(learner, Explores) else None
    nothing = UpdateSummary()
    return [
        MetricPoint(
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


def step_size(step: RecordedStep) -> int:
    """Return how many bytes a step is counted as."""
    texts = (step.state, step.action, step.next_state, *step.allowed, *step.available)
    return _STEP_BYTES + sum(len(canonical_json(one)) for one in texts)


def _full(most: int) -> ResourceExhausted:
    return ResourceExhausted(
        f"the tenant's recorded steps and exported models would take more than {most:,} bytes"
        " (MNEME_LEARNING_BYTES); nothing was recorded, delete sessions that are not needed",
        reason=Reason.QUOTA_EXCEEDED,
        retry_after_s=_RETRY_S,
    )


def recounted(actions: Space, left: Iterable[RecordedStep]) -> tuple[SessionCounts, Sequence[Json]]:
    """Return the counts of the steps that are left, in their order, and the labels of an open
    action space that they name."""
    tally = SessionTally()
    known = None if isinstance(actions, Box) else Actions(actions)  # type: ignore[arg-type]
    for step in left:
        tally.add(step, step_size(step))
        if known is not None:
            for action in named_in(step):
                known.add(action)
    return tally.counts, () if known is None else tuple(known.values)
