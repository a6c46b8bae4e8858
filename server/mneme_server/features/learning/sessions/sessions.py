"""Sessions: started in spaces that can be learned in, shown with their trajectories, deleted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mneme_server.common import deadline
from mneme_server.common.canonical import Json
from mneme_server.common.clock import later_us, now_us
from mneme_server.common.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    Reason,
    ResourceExhausted,
)
from mneme_server.common.identity import new_id
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.learning.algorithms.algorithm import Algorithm
from mneme_server.features.learning.catalogue import algorithm_named, configured, missing
from mneme_server.features.learning.model import (
    Definition,
    LearningMode,
    LearningSession,
    LearningStatus,
    Trajectory,
)
from mneme_server.features.learning.ports import LearningSessionFilter, ModelFiles
from mneme_server.features.learning.sessions.live_session import Tenant, telling, unknown
from mneme_server.features.learning.sessions.open_sessions import OpenSessions
from mneme_server.features.learning.sessions.prediction_ids import new_secret
from mneme_server.features.learning.spaces import (
    MOST_ACTIONS,
    Box,
    Dict,
    Discrete,
    MultiDiscrete,
    OpenLabels,
    OpenObject,
    Space,
    count_of,
)
from mneme_server.features.learning.store.sessions import SqlLearningSessions
from mneme_server.features.learning.store.steps import SqlLearningSteps

_RETRY_S = 60.0


@dataclass(frozen=True, slots=True)
class NewLearningSession:
    """A session as a caller wants it, not checked yet."""

    id: str
    algorithm: str
    config: Mapping[str, Json]
    states: Space
    actions: Space
    seed: int
    mode: LearningMode


class StartLearningSession:
    """The use case: start a session, or resume it.

    Args:
        tenants: where tenants are.
        sessions: those in memory.
        most: active sessions of a tenant.
    """

    def __init__(self, tenants: OpenTenants, sessions: OpenSessions, most: int) -> None:
        self._tenants = tenants
        self._sessions = sessions
        self._most = most

    def start(self, tenant_id: str, given: NewLearningSession) -> tuple[LearningSession, bool]:
        """Return the session, and whether it existed before.

        Raises:
            InvalidArgument: there is no such algorithm, it does not work on the spaces, or its
                config has an unknown key or a value that is not valid.
            FailedPrecondition: this server lacks what the algorithm needs.
            AlreadyExists: the id is taken by a session with another definition.
            ResourceExhausted: the tenant has as many active sessions as it may.
        """
        algorithm = algorithm_named(given.algorithm)
        definition = _defined(algorithm, given)
        session_id = given.id or new_id()
        with self._tenants.open(tenant_id) as tenant:
            with tenant.read() as unit:
                known = unit.get(SqlLearningSessions).get(session_id)
            if known is None:
                _require(algorithm)
                started = self._added(tenant, algorithm, definition, session_id)
                if started is not None:
                    return started, False
            return self._resumed(tenant, session_id, definition), True

    def _added(
        self, tenant: Tenant, algorithm: Algorithm, definition: Definition, session_id: str
    ) -> LearningSession | None:
        """Insert a session; return None if another call was faster."""
        now = now_us()
        with tenant.write() as unit:
            if unit.get(SqlLearningSessions).get(session_id) is not None:
                return None
            self._require_place(unit)
            return unit.get(SqlLearningSessions).add(
                LearningSession(
                    number=0,
                    id=session_id,
                    definition=definition,
                    version=algorithm.version,
                    secret=new_secret(),
                    created_us=now,
                    updated_us=now,
                )
            )

    def _resumed(self, tenant: Tenant, session_id: str, asked: Definition) -> LearningSession:
        with self._sessions.use(tenant, session_id) as live, telling(live):
            session = live.session
            if session.definition != asked:
                raise AlreadyExists(
                    f"the learning session {session_id!r} exists with another definition:"
                    f" {_difference(session.definition, asked)} differs",
                    field="session_id",
                )
            if session.status is LearningStatus.ENDED:
                with tenant.write() as unit:
                    self._require_place(unit)
                    now = later_us(session.updated_us)
                    live.session = replace(
                        session, status=LearningStatus.ACTIVE, updated_us=now, ended_us=None
                    )
                    unit.get(SqlLearningSessions).update(live.current())
            return live.current()

    def _require_place(self, unit: CorpusUnit) -> None:
        if unit.get(SqlLearningSessions).count(LearningStatus.ACTIVE) >= self._most:
            raise ResourceExhausted(
                f"{self._most} learning sessions are active, as many as a tenant may have"
                " (MNEME_LEARNING_SESSIONS); end one or delete one",
                reason=Reason.QUOTA_EXCEEDED,
                retry_after_s=_RETRY_S,
            )


class LearningSessions:
    """The use cases that show and remove sessions."""

    def __init__(self, tenants: OpenTenants, sessions: OpenSessions, files: ModelFiles) -> None:
        self._tenants = tenants
        self._sessions = sessions
        self._files = files

    def get(self, tenant_id: str, session_id: str) -> LearningSession:
        """Return a session as it stands.

        Raises:
            NotFound: there is none.
        """
        with self._tenants.open(tenant_id) as tenant, tenant.read() as unit:
            session = unit.get(SqlLearningSessions).get(session_id)
        if session is None:
            raise unknown(session_id)
        return self._as_it_stands(tenant_id, session)

    def page(
        self, tenant_id: str, filter_: LearningSessionFilter, before: int | None, limit: int
    ) -> Sequence[LearningSession]:
        """Return sessions, the last started first."""
        with self._tenants.open(tenant_id) as tenant, tenant.read() as unit:
            found = unit.get(SqlLearningSessions).page(filter_, before, limit)
        return [self._as_it_stands(tenant_id, session) for session in found]

    def delete(self, tenant_id: str, session_id: str) -> LearningSession:
        """Delete a session with all that it was told, and return it as it was.

        Raises:
            NotFound: there is none.
        """
        with self._tenants.open(tenant_id) as tenant, self._sessions.leading(tenant_id):
            while True:
                with self._sessions.nobody_opening(tenant_id, session_id):
                    live = self._sessions.find(tenant_id, session_id)
                    if live is None:  # It may be damaged, and must not be opened to be deleted.
                        return self._as_it_stands(tenant_id, self._delete(tenant, session_id))
                with deadline.holding(live.telling):
                    if self._sessions.find(tenant_id, session_id) is live:  # Else it was parked.
                        session = live.current()
                        self._delete(tenant, session_id)
                        self._sessions.drop(tenant_id, live)
                        return session

    def _delete(self, tenant: Tenant, session_id: str) -> LearningSession:
        with tenant.write() as unit:
            session = unit.get(SqlLearningSessions).get(session_id)
            if session is None:
                raise unknown(session_id)
            unit.get(SqlLearningSessions).delete(session.number)
        self._files.remove(tenant.tenant_id, session)
        return session

    def _as_it_stands(self, tenant_id: str, session: LearningSession) -> LearningSession:
        live = self._sessions.find(tenant_id, session.id)
        if live is not None and live.session.number == session.number:
            return replace(session, progress=live.policy.progress)
        if session.definition.mode is LearningMode.BACKGROUND:
            return session
        # What it was told is learned when it is opened, before anybody asks it.
        learned = replace(session.progress, learned=session.counts.transitions)
        return replace(session, progress=learned)


class Trajectories:
    """The use case: show a session's trajectories.

    Args:
        tenants: where tenants are.
    """

    def __init__(self, tenants: OpenTenants) -> None:
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
            session = unit.get(SqlLearningSessions).get(session_id)
            if session is None:
                raise unknown(session_id)
            return unit.get(SqlLearningSteps).trajectories(session.number, before, limit)


def _defined(algorithm: Algorithm, given: NewLearningSession) -> Definition:
    config = configured(algorithm, given.config)
    check_space(given.states, "state_space")
    check_space(given.actions, "action_space")
    check_actions(given.actions, algorithm, "action_space")
    return Definition(given.algorithm, config, given.states, given.actions, given.seed, given.mode)


def _require(algorithm: Algorithm) -> None:
    lacking = missing(algorithm)
    if lacking:
        raise FailedPrecondition(
            f"{algorithm.name} {lacking}", reason=Reason.ALGORITHM_NOT_SUPPORTED
        )


def _difference(one: Definition, other: Definition) -> str:
    for name, words in (
        ("algorithm", "the algorithm"), ("config", "the config"), ("states", "the state space"),
        ("actions", "the action space"), ("seed", "the seed"),
    ):  # fmt: skip
        if getattr(one, name) != getattr(other, name):
            return words
    return "when it learns"


def check_space(space: Space, field: str) -> None:
    """Check that a space has values.

    Raises:
        InvalidArgument: it has none, or its parts contradict each other.
    """
    match space:
        case Discrete():
            if space.size < 1:
                raise _bad(f"{field}.discrete", "needs n or labels")
            if space.labels and len(space.labels) != space.size:
                what = f"n is {space.size}, but there are {len(space.labels)} labels"
                raise _bad(f"{field}.discrete.n", what)
            if len(set(space.labels)) != len(space.labels):
                raise _bad(f"{field}.discrete.labels", "one of them is there twice")
        case MultiDiscrete():
            if not space.sizes:
                raise _bad(f"{field}.multi_discrete.sizes", "needs at least one size")
        case Box():
            _check_box(space, f"{field}.box")
        case Dict():
            if not space.spaces:
                raise _bad(f"{field}.dict.spaces", "needs at least one key")
            for place, inner in enumerate(space.spaces.values()):
                check_space(inner, f"{field}.dict.spaces[{place}]")
        case OpenLabels() | OpenObject():
            pass


def _check_box(box: Box, field: str) -> None:
    for place, low in enumerate(box.low):
        if math.isnan(low) or low == math.inf:
            raise _bad(f"{field}.low[{place}]", f"must be a number or -Infinity, not {low}")
    for place, high in enumerate(box.high):
        if math.isnan(high) or high == -math.inf:
            raise _bad(f"{field}.high[{place}]", f"must be a number or Infinity, not {high}")
    if not box.low or len(box.low) != len(box.high):
        counts = f"low has {len(box.low)} numbers and high {len(box.high)}"
        raise _bad(f"{field}.high", f"{counts}; they need equally many, at least one")
    for place, (low, high) in enumerate(zip(box.low, box.high, strict=True)):
        if low > high:
            raise _bad(f"{field}.high[{place}]", f"{high:g} is less than low, {low:g}")


def check_actions(space: Space, algorithm: Algorithm, field: str) -> None:
    """Check that an algorithm can choose actions of a space.

    Raises:
        InvalidArgument: it cannot, or there are too many.
    """
    if isinstance(space, Dict | OpenObject):
        raise _bad(field, "actions are discrete, multi_discrete, open_labels or a box")
    if isinstance(space, Box):
        if not algorithm.continuous:
            raise _unsupported(algorithm, field, "a box")
        for place, (low, high) in enumerate(zip(space.low, space.high, strict=True)):
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise _bad(
                    f"{field}.box.high[{place}]", "the bounds of actions are finite, low below high"
                )
        return
    if not algorithm.discrete:
        raise _unsupported(algorithm, field, "one of a number")
    if isinstance(space, OpenLabels) and not algorithm.open_actions:
        raise _unsupported(algorithm, field, "labels that are collected as they are first seen")
    count = count_of(space)
    if count is not None and count > MOST_ACTIONS:
        raise _bad(field, f"has {count} actions; at most {MOST_ACTIONS} are supported")


def _unsupported(algorithm: Algorithm, field: str, what: str) -> InvalidArgument:
    if algorithm.continuous and not algorithm.discrete:
        needs = "a box"
    elif algorithm.open_actions:
        needs = "discrete, multi_discrete or open_labels"
    else:
        needs = "discrete or multi_discrete"
    return InvalidArgument(
        f"{algorithm.name} has no actions that are {what}: its {field} must be {needs}",
        reason=Reason.ALGORITHM_NOT_SUPPORTED,
        field=field,
    )


def _bad(field: str, problem: str) -> InvalidArgument:
    return InvalidArgument(f"{field}: {problem}", reason=Reason.OUT_OF_RANGE, field=field)
