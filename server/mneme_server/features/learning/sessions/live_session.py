"""A learning session in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import structlog

from mneme_server.common import deadline
from mneme_server.common.canonical import Json
from mneme_server.common.clock import DAY_US, MICROSECONDS, now_us
from mneme_server.common.errors import FailedPrecondition, NotFound, Reason, Unavailable
from mneme_server.common.stored import damaged
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.features.learning.algorithms.algorithm import Algorithm, Closes, UpdateSummary
from mneme_server.features.learning.model import (
    LearningMode,
    LearningSession,
    LearningStatus,
    RecordedStep,
)
from mneme_server.features.learning.sessions.policy import SessionPolicy
from mneme_server.features.learning.spaces import Actions, Box
from mneme_server.features.learning.store.sessions import SqlLearningSessions
from mneme_server.features.learning.store.steps import SqlLearningSteps
from mneme_server.features.learning.tally import SessionTally

Tenant = OpenTenant

SAVED_EVERY_S = 5.0
"""How old what is saved of a session may get, once it learned more."""
PART = 256
"""Steps that are read and learned at once."""

_log = structlog.get_logger(__name__)


class LiveSession:
    """A session in memory.

    Two locks keep callers apart. Whoever tells it something holds `telling` until that is durable
    and learned, so that all is learned in the order in which it was recorded; whoever asks holds
    `thinking` only, and waits for no disk.

    Attributes:
        session: as it is stored; its progress and counts here are further.
        policy: what it has learned. Only with `thinking`.
        tally: what it was told. Only with `telling`.
        since: what learning did since the last episode ended. Only with `thinking`.
        recorded: the actions it was told of; None if they are a box. Only with `telling`.
        gone: whether it was deleted, or is of no use any more: it must be opened again.
    """

    def __init__(self, session: LearningSession, policy: SessionPolicy) -> None:
        self.session = session
        self.policy = policy
        self.tally = SessionTally(session.counts)
        if policy.told:
            self.tally.load(policy.told)
        self.since = UpdateTotals()
        space = session.definition.actions
        self.recorded: Actions | None = None
        if not isinstance(space, Box):
            self.recorded = Actions(space, session.seen)  # type: ignore[arg-type]
        self.telling = threading.Lock()
        self.thinking = threading.Lock()
        self.gone = False
        self.saved = policy.progress
        self.saved_shaped = policy.shaped
        self.saved_at = time.monotonic()
        self.users = 0

    @property
    def id(self) -> str:
        """The session's id."""
        return self.session.id

    @property
    def learns_inline(self) -> bool:
        """Whether it learns in the call that tells it something."""
        return self.session.definition.mode is LearningMode.INLINE

    @property
    def behind(self) -> int:
        """How many recorded steps it has not learned yet."""
        return self.tally.counts.transitions - self.policy.progress.learned

    @property
    def unsaved(self) -> bool:
        """Whether it learned more than was saved."""
        return (self.policy.progress, self.policy.shaped) != (self.saved, self.saved_shaped)

    @property
    def save_due_us(self) -> int:
        """When what it learns now is to be saved at the latest, in microseconds: now, if it was
        not for as long as it may be."""
        left = self.saved_at + SAVED_EVERY_S - time.monotonic()
        return now_us() + max(0, int(left * MICROSECONDS))

    @property
    def unsaved_us(self) -> int:
        """For how long it learned since it was saved, in microseconds."""
        return max(0, self.policy.progress.training_us - self.saved.training_us)

    def current(self) -> LearningSession:
        """Return it as it stands now."""
        seen: Sequence[Json] = () if self.recorded is None else tuple(self.recorded.values)
        return replace(
            self.session,
            seen=seen,
            counts=self.tally.counts,
            progress=self.policy.progress,
        )

    def learn(self, steps: Sequence[RecordedStep]) -> UpdateSummary:
        """Learn from the steps that come next."""
        with self.thinking:
            learned = self.policy.learn(steps)
            self.since.add(learned)
            return learned

    def train(self, how: Callable[[], UpdateSummary]) -> UpdateSummary:
        """Learn again from what was learned before. The caller holds `telling`."""
        with self.thinking:
            began = time.monotonic_ns()
            learned = how()
            self.policy.count(learned, time.monotonic_ns() - began)
            self.since.add(learned)
            return learned

    def catch_up(self, tenant: Tenant, most: int | None = None) -> int:
        """Learn what was recorded and not learned yet, so many steps at most; return how many.
        The caller holds `telling`."""
        done = 0
        while self.behind and (most is None or done < most):
            with tenant.read() as unit:
                learned = self.policy.progress.learned
                steps = unit.get(SqlLearningSteps).after(self.session.number, learned, PART)
            if not steps:
                raise damaged("learning session", self.id, "recorded steps are missing")
            self.learn(steps)
            done += len(steps)
        return done

    def save(self, tenant: Tenant) -> None:
        """Save what it has learned. The caller holds `telling`."""
        with self.thinking:
            if self.gone or not self.unsaved:
                return
            checkpoint, shaped = self.policy.checkpoint(self.tally), self.policy.shaped
        took_us = checkpoint.progress.training_us - self.saved.training_us
        with tenant.write() as unit:
            unit.get(SqlLearningSessions).save(self.session.number, checkpoint)
            unit.get(SqlLearningSessions).add_trained(day_of(now_us()), took_us)
        self.saved, self.saved_shaped = checkpoint.progress, shaped
        self.saved_at = time.monotonic()

    def close(self) -> None:
        """Let go of what the learner holds."""
        self.gone = True
        if isinstance(self.policy.learner, Closes):
            self.policy.learner.close()


class UpdateTotals:
    """What learning did since something: sums, and their means."""

    def __init__(self) -> None:
        self._updates = 0
        self._loss = self._value = self._norm = 0.0
        self._has_loss = self._has_value = 0

    def add(self, learned: UpdateSummary) -> None:
        """Note what learning did; means are weighted by how often something was corrected."""
        weight = learned.updates
        self._updates += weight
        self._norm += weight * learned.gradient_norm
        if learned.loss is not None:
            self._loss += weight * learned.loss
            self._has_loss += weight
        if learned.value is not None:
            self._value += weight * learned.value
            self._has_value += weight

    def result(self) -> UpdateSummary:
        """Return what was done."""
        return UpdateSummary(
            updates=self._updates,
            loss=self._loss / self._has_loss if self._has_loss else None,
            value=self._value / self._has_value if self._has_value else None,
            gradient_norm=self._norm / self._updates if self._updates else 0.0,
        )


def opened(
    tenant: Tenant, session_id: str, named: Callable[[str], Algorithm | None]
) -> LiveSession:
    """Return a session that has learned what it had when it was saved, and what follows from it.

    Raises:
        NotFound: there is none.
        FailedPrecondition: this server cannot run it.
        DataLoss: what it has learned is damaged.
    """
    with tenant.read() as unit:
        session = unit.get(SqlLearningSessions).get(session_id)
        if session is None:
            raise unknown(session_id)
        checkpoint = unit.get(SqlLearningSessions).checkpoint(session.number)
    algorithm = named(session.definition.algorithm)
    if algorithm is None or algorithm.version != session.version:
        raise _outdated(session, algorithm)
    return _resumed(tenant, session, SessionPolicy(algorithm, session, checkpoint))


def _resumed(tenant: Tenant, session: LearningSession, policy: SessionPolicy) -> LiveSession:
    """Return a session that has counted and learned what came after its checkpoint."""
    live = LiveSession(session, policy)
    place = int(policy.told.get("transitions", 0))
    while place < session.counts.transitions:
        with tenant.read() as unit:
            steps = unit.get(SqlLearningSteps).after(session.number, place, PART)
        if not steps:
            raise damaged("learning session", session.id, "recorded steps are missing")
        for step in steps:
            live.tally.note(step)
        place = steps[-1].number
    if live.learns_inline:
        live.catch_up(tenant)
    return live


def day_of(time_us: int) -> int:
    """Return the day (UTC) of a time, in days since 1970."""
    return time_us // DAY_US


@contextmanager
def telling(live: LiveSession) -> Iterator[None]:
    """Hold a session's `telling`.

    Raises:
        Unavailable: it was closed while the lock was waited for.
    """
    with deadline.holding(live.telling):
        require_there(live)
        yield


def require_there(live: LiveSession) -> None:
    """Check that what is in memory of a session is still what is stored.

    Raises:
        Unavailable: it was closed.
    """
    if live.gone:
        raise Unavailable(
            f"the learning session {live.id!r} was closed or deleted meanwhile; try again",
            reason=Reason.TRANSACTION_FAILED,
            retry_after_s=0.1,
        )


def require_active(live: LiveSession) -> None:
    """Check that a session is in use.

    Raises:
        FailedPrecondition: it has ended.
    """
    if live.session.status is LearningStatus.ENDED:
        raise FailedPrecondition(
            f"the learning session {live.id!r} has ended; start it again to resume it"
        )


def unknown(session_id: str) -> NotFound:
    """Return the error for a session that there is not."""
    return NotFound(
        f"there is no learning session {session_id!r}",
        reason=Reason.SESSION_NOT_FOUND,
        field="session_id",
    )


def _outdated(session: LearningSession, algorithm: Algorithm | None) -> FailedPrecondition:
    name = session.definition.algorithm
    if algorithm is None:
        has = f"this server has no algorithm {name}"
    else:
        has = f"this server's {name} is of version {algorithm.version}"
    return FailedPrecondition(
        f"the learning session {session.id!r} was learned by {name} of version {session.version},"
        f" but {has}; what it has learned cannot be loaded. Delete it, or start another one",
        reason=Reason.ALGORITHM_NOT_SUPPORTED,
    )
