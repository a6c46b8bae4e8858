"""Predictions: a session asked for actions, alone or while it is told of others, behind a gate
where a baseline answers until the policy is known to be better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mneme_server.common import deadline
from mneme_server.common.canonical import Json, canonical_json
from mneme_server.common.clock import now_us
from mneme_server.common.errors import FailedPrecondition, InvalidArgument, Reason
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.features.learning.algorithms.algorithm import Algorithm, number_of
from mneme_server.features.learning.model import StepInput
from mneme_server.features.learning.sessions.evaluation import fresh, newest_steps
from mneme_server.features.learning.sessions.experience import RecordedSteps, RecordExperience
from mneme_server.features.learning.sessions.live_session import (
    LiveSession,
    Tenant,
    require_active,
)
from mneme_server.features.learning.sessions.open_sessions import OpenSessions
from mneme_server.features.learning.sessions.policy import ChosenAction, StateInput
from mneme_server.features.learning.sessions.prediction_ids import PredictionContent, seal
from mneme_server.features.learning.sessions.session_copies import SessionCopies
from mneme_server.features.learning.spaces import Actions, Box, OpenLabels
from mneme_server.features.learning.store.steps import SqlLearningSteps
from mneme_server.features.learning.trust.baselines import (
    BehaviourBaseline,
    BehaviourClone,
    FixedBaseline,
    PolicyBaseline,
    VersionBaseline,
)
from mneme_server.features.learning.trust.gate import Gate, GateAtWork, GateVerdict

_MOST_GATES = 8
"""Of a session; the one that was asked for first makes room for another."""
_FITTED = 5_000
"""Steps that a behaviour is fitted to, the newest; with fewer than `_LEAST_FITTED` it is not."""
_LEAST_FITTED = 50
_PART = 500


@dataclass(frozen=True, slots=True)
class Prediction:
    """A prediction: its id, the action, and what the gate said if there was one."""

    id: str
    chosen: ChosenAction
    verdict: GateVerdict | None = None


class Predict:
    """The use case: ask for actions. Nothing is written.

    Args:
        tenants: where tenants are.
        asked: lends sessions that are asked.
        sessions: those in memory: a gate learns from what it sees.
        gating: finds gates.
    """

    def __init__(
        self,
        tenants: OpenTenants,
        asked: SessionCopies,
        sessions: OpenSessions,
        gating: SessionGates,
    ) -> None:
        self._tenants = tenants
        self._asked = asked
        self._sessions = sessions
        self._gating = gating

    def predict(
        self,
        tenant_id: str,
        session_id: str,
        asked: StateInput,
        *,
        explore: bool,
        baseline: BaselineInput | None = None,
    ) -> Prediction:
        """Return a prediction for a state.

        Args:
            tenant_id: whose session it is.
            session_id: the session.
            asked: the state, not checked yet.
            explore: whether to choose an action to learn from.
            baseline: what answers until the policy is known to be better; None: the policy.

        Raises:
            InvalidArgument: the state or an allowed action is not in its space.
            NotFound: there is no such session.
            FailedPrecondition: it has ended, or there is no action to choose.
        """
        checked = self.check(tenant_id, session_id, [asked])
        made = self.choose(
            tenant_id, session_id, checked, explore=explore, with_ids=True, baseline=baseline
        )
        return made[0]

    def check(
        self, tenant_id: str, session_id: str, asked: Sequence[StateInput], field: str = ""
    ) -> list[StateInput]:
        """Return states as a session takes them; `field` is where the request has one, with its
        place: "states[{item}].".

        Raises:
            InvalidArgument: one, or an allowed action, is not in its space.
            NotFound, FailedPrecondition: as above.
        """
        with (
            self._tenants.open(tenant_id) as tenant,
            self._asked.use(tenant, session_id) as live,
        ):
            require_active(live)
            return [checked(live, one, field.format(item=place)) for place, one in enumerate(asked)]

    def choose(
        self,
        tenant_id: str,
        session_id: str,
        asked: Sequence[StateInput],
        *,
        explore: bool,
        with_ids: bool,
        baseline: BaselineInput | None = None,
    ) -> list[Prediction]:
        """Return a prediction for each of the states that were checked.

        Args:
            tenant_id: whose session it is.
            session_id: the session.
            asked: the states.
            explore: whether to choose actions to learn from.
            with_ids: whether what comes of them may be told; else their ids are empty.
            baseline: as above.

        Raises:
            NotFound, FailedPrecondition: as above.
        """
        lender = self._asked if baseline is None else self._sessions
        with self._tenants.open(tenant_id) as tenant, lender.use(tenant, session_id) as live:
            require_active(live)
            with deadline.holding(live.thinking):
                chosen, verdict = self._chosen(tenant, live, asked, baseline, explore=explore)
            if not with_ids:
                return [Prediction("", made, verdict) for made in chosen]
            now, secret = now_us(), live.session.secret
            return [
                Prediction(seal(_sealed(session_id, one, made), secret, now), made, verdict)
                for one, made in zip(asked, chosen, strict=True)
            ]

    def _chosen(
        self,
        tenant: Tenant,
        live: LiveSession,
        asked: Sequence[StateInput],
        baseline: BaselineInput | None,
        *,
        explore: bool,
    ) -> tuple[list[ChosenAction], GateVerdict | None]:
        if baseline is None:
            _require_actions(live, asked)
            return live.policy.choose(asked, explore=explore), None
        gated = self._gating.gate(tenant, live, baseline)
        _require_actions(live, asked)
        verdict = gated.verdict()
        return [live.policy.choose_gated(one, gated, explore=explore) for one in asked], verdict


def _sealed(session_id: str, asked: StateInput, made: ChosenAction) -> PredictionContent:
    return PredictionContent(
        session_id, asked.state, made.action, made.probability, asked.actor, asked.allowed
    )


def checked(live: LiveSession, asked: StateInput, field: str) -> StateInput:
    """Return a question with its state and actions as they are kept.

    Raises:
        InvalidArgument: one is not in its space.
        FailedPrecondition: actions are a box, of which all are allowed.
    """
    definition = live.session.definition
    state = definition.states.check(asked.state, f"{field}state")
    allowed: Sequence[Json] = ()
    if asked.allowed:
        if isinstance(definition.actions, Box):
            raise FailedPrecondition(
                f"{field}allowed_actions: the session's actions are a box, of which all are allowed"
            )
        named = Actions(OpenLabels())
        for number, action in enumerate(asked.allowed):
            named.add(definition.actions.check(action, f"{field}allowed_actions[{number}]"))
        allowed = named.values
    return StateInput(state, allowed, asked.actor, asked.target_return)


def _require_actions(live: LiveSession, asked: Sequence[StateInput]) -> None:
    if live.policy.known or isinstance(live.session.definition.actions, Box):
        return
    if not all(one.allowed for one in asked):
        raise FailedPrecondition(
            f"the learning session {live.id!r} knows no action yet: give allowed_actions, or tell"
            " it what came of some",
            reason=Reason.MODEL_NOT_TRAINED,
            field="allowed_actions",
        )


@dataclass(frozen=True, slots=True)
class ActMessage:
    """What came of actions, and what to choose actions for; not checked yet."""

    session_id: str
    feedback: Sequence[StepInput]
    states: Sequence[StateInput]
    explore: bool
    with_ids: bool
    baseline: BaselineInput | None = None


@dataclass(frozen=True, slots=True)
class ActAnswer:
    """What became of a message: the feedback's record, None without any, and the predictions."""

    recorded: RecordedSteps | None
    predictions: Sequence[Prediction]

    @property
    def verdict(self) -> GateVerdict | None:
        """What the gate said of all of them, if there was one."""
        return self.predictions[0].verdict if self.predictions else None


class Act:
    """The use case: tell what came of actions, then ask for others.

    Args:
        predict: asks.
        record: tells.
    """

    def __init__(self, predict: Predict, record: RecordExperience) -> None:
        self._predict = predict
        self._record = record

    def act(self, tenant_id: str, message: ActMessage) -> ActAnswer:
        """Return what became of a message. Its states are checked before anything is recorded.

        Raises:
            See `Predict` and `RecordExperience`.
        """
        session_id = message.session_id
        checked = (
            self._predict.check(tenant_id, session_id, message.states, "states[{item}].")
            if message.states
            else []
        )
        recorded = None
        if message.feedback:
            recorded = self._record.steps(
                tenant_id, session_id, message.feedback, field="feedback[{item}]."
            )
        predictions: Sequence[Prediction] = ()
        if checked:
            predictions = self._predict.choose(
                tenant_id,
                session_id,
                checked,
                explore=message.explore,
                with_ids=message.with_ids,
                baseline=message.baseline,
            )
        return ActAnswer(recorded, predictions)


@dataclass(frozen=True, slots=True)
class BaselineInput:
    """A baseline as a caller wants it, not checked yet: one of the three.

    Args:
        action: always this action; None if it is not that.
        first_steps: what the algorithm had learned from so many steps; 0 if it is not that.
        behaviour: what was done in the steps recorded so far, fitted.
        low: the smallest reward that is told apart.
        high: the largest.
    """

    action: Json = None
    first_steps: int = 0
    behaviour: bool = False
    low: float = -1.0
    high: float = 1.0


class SessionGates:
    """Finds the gates of sessions, and makes them.

    Args:
        algorithm: returns an algorithm by its name, or None.
    """

    def __init__(self, algorithm: Callable[[str], Algorithm | None]) -> None:
        self._algorithm = algorithm

    def gate(self, tenant: Tenant, live: LiveSession, wanted: BaselineInput) -> GateAtWork:
        """Return the gate of a session with a baseline. The caller holds `thinking`.

        Raises:
            InvalidArgument: the baseline is none, or the range of rewards is empty.
            FailedPrecondition: the session has no such baseline.
        """
        definition = live.session.definition
        if isinstance(definition.actions, Box):
            raise FailedPrecondition(
                "only_if_better: a policy and a baseline can only be compared where actions are one"
                " of a number, and the session's are a box",
                field="only_if_better",
            )
        if not wanted.low < wanted.high:
            raise InvalidArgument(
                "lowest_reward must be below highest_reward", field="only_if_better.lowest_reward"
            )
        name = _name(live, wanted)
        gates = live.policy.gates
        found = gates.get(name)
        if found is None:
            discount = definition.config.get("discount_factor")
            found = GateAtWork(
                Gate(low=wanted.low, high=wanted.high),
                None if discount is None else float(discount),
            )
        if found.baseline is None:
            found.baseline = self._baseline(tenant, live, wanted)
            found.missed(live.policy.under_way)
        gates[name] = found
        while len(gates) > _MOST_GATES:
            del gates[next(iter(gates))]
        return found

    def _baseline(self, tenant: Tenant, live: LiveSession, wanted: BaselineInput) -> PolicyBaseline:
        if wanted.action is not None:
            label = live.session.definition.actions.check(wanted.action, "only_if_better.action")
            number = live.policy.number(label)
            assert number is not None  # It is in the space.
            return FixedBaseline(number, label if isinstance(label, str) else canonical_json(label))
        if wanted.behaviour:
            return _behaviour(tenant, live)
        if wanted.first_steps:
            return self._version(tenant, live, wanted.first_steps)
        raise InvalidArgument(
            "only_if_better needs a baseline: an action, first_steps, or behaviour",
            field="only_if_better",
        )

    def _version(self, tenant: Tenant, live: LiveSession, steps: int) -> PolicyBaseline:
        algorithm = self._algorithm(live.session.definition.algorithm)
        assert algorithm is not None  # Or the session could not have been opened.
        if algorithm.needs_torch:
            raise FailedPrecondition(
                "first_steps: networks would have to be trained again; take an action or behaviour"
                " as the baseline",
                field="only_if_better.first_steps",
            )
        if steps > live.policy.progress.learned:
            raise FailedPrecondition(
                f"first_steps: the session has learned {live.policy.progress.learned} steps so far",
                field="only_if_better.first_steps",
            )
        learner = fresh(algorithm, live.session.definition)
        for first in range(0, steps, _PART):
            with tenant.read() as unit:
                part = unit.get(SqlLearningSteps).after(
                    live.session.number, first, min(_PART, steps - first)
                )
            learner.learn(live.policy.transitions(part))
        return VersionBaseline(learner, steps)


def _behaviour(tenant: Tenant, live: LiveSession) -> PolicyBaseline:
    steps = newest_steps(tenant, live, live.policy.progress.learned, _FITTED)
    if len(steps) < _LEAST_FITTED:
        raise FailedPrecondition(
            f"behaviour: {len(steps)} steps were recorded so far, and at least {_LEAST_FITTED} are"
            " needed to tell what is done; take an action as the baseline",
            field="only_if_better.behaviour",
        )
    transitions = live.policy.transitions(steps)
    actions = [number_of(one.action) for one in transitions]
    states = [one.state for one in transitions]
    return BehaviourBaseline(
        BehaviourClone(live.session.definition.states, states, actions), len(steps)
    )


def _name(live: LiveSession, wanted: BaselineInput) -> str:
    action = None
    if wanted.action is not None:
        action = live.session.definition.actions.check(wanted.action, "only_if_better.action")
    return canonical_json([action, wanted.first_steps, wanted.behaviour, wanted.low, wanted.high])
