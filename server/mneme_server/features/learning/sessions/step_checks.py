"""Checks of what a caller tells a session: which steps can be learned from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from mneme_server.common.canonical import Json, canonical_json
from mneme_server.common.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    Reason,
)
from mneme_server.engine.corpus.tenant_store import CorpusUnit
from mneme_server.features.learning.catalogue import find_algorithm
from mneme_server.features.learning.model import RecordedStep, StepInput
from mneme_server.features.learning.sessions.live_session import LiveSession
from mneme_server.features.learning.sessions.prediction_ids import (
    LIFETIME_US,
    InvalidPredictionId,
    PredictionContent,
    check_seal,
    opened,
)
from mneme_server.features.learning.spaces import Actions, Box, OpenLabels
from mneme_server.features.learning.store.steps import SqlLearningSteps


def named_in(step: RecordedStep) -> Iterator[Json]:
    """Yield the actions that a step names, the one that was done first."""
    yield step.action
    yield from step.available
    yield from step.allowed


def session_of(told: StepInput, field: str) -> str:
    """Return the session of a prediction.

    Raises:
        InvalidArgument: there is no prediction, so the session must be named.
        NotFound: the prediction is none.
    """
    if not told.prediction_id:
        raise InvalidArgument(
            "session_id: is required without a prediction_id",
            reason=Reason.MISSING_REQUIRED_FIELD,
            field="session_id",
        )
    return _opened(told.prediction_id, field).session_id


def unused(unit: CorpusUnit, number: int, steps: Sequence[RecordedStep]) -> None:
    """Check that nothing was told of the steps' predictions before.

    Raises:
        AlreadyExists: it was.
    """
    marks = [step.prediction for step in steps if step.prediction is not None]
    used = set(unit.get(SqlLearningSteps).used(number, marks)) if marks else set()
    for place, step in enumerate(steps):
        if step.prediction is None:
            continue
        if step.prediction in used:
            raise AlreadyExists(
                "the prediction was given feedback already; each is learned from once",
                field="prediction_id",
                item=place,
            )
        used.add(step.prediction)


def same_steps(before: Sequence[RecordedStep], steps: Sequence[RecordedStep]) -> bool:
    """Tell whether steps are those that were recorded before."""
    return [_said(step) for step in before] == [_said(step) for step in steps]


def _said(step: RecordedStep) -> tuple[object, ...]:
    values = (step.state, step.next_state, list(named_in(step)))
    return (
        *map(canonical_json, values),
        step.reward,
        step.terminated,
        step.truncated,
        step.actor,
        step.probability,
        step.prediction,
    )


class StepChecks:
    """Checks steps for a session; those of several calls as if all were recorded.

    Args:
        live: the session; its `telling` is held.
        now_us: the time.
    """

    def __init__(self, live: LiveSession, now_us: int) -> None:
        definition = live.session.definition
        self._live = live
        self._now_us = now_us
        self._new = Actions(OpenLabels())
        self._states = definition.states
        self._actions = definition.actions
        algorithm = find_algorithm(definition.algorithm)
        self._on_policy = algorithm is not None and algorithm.on_policy

    def steps(
        self, told: Sequence[StepInput], field: str, *, trajectory: bool
    ) -> list[RecordedStep]:
        """Return steps as they are kept, without their numbers.

        Args:
            told: the steps.
            field: where the request has one, with its place: "steps[{item}].".
            trajectory: whether they follow each other: a step that does not say where it led has
                then led to the next one of its actor, unless its episode was over by then.

        Raises:
            InvalidArgument: one is not valid.
            NotFound: a prediction is not one of the session's, or too old.
            FailedPrecondition: the algorithm cannot learn from one.
        """
        steps: list[RecordedStep] = []
        following: dict[str, RecordedStep] = {}  # By whose they are.
        for place in reversed(range(len(told))):
            step = self._step(told[place], following, field.format(item=place))
            if trajectory:
                following[step.actor] = step
            steps.append(step)
        steps.reverse()
        self._require_room(steps)
        return steps

    def _step(
        self, told: StepInput, following: Mapping[str, RecordedStep], field: str
    ) -> RecordedStep:
        if not math.isfinite(told.reward):
            raise _bad(f"{field}reward", "must be a number, neither NaN nor infinite")
        sealed = self._followed(told, field)
        if sealed.probability is None and self._on_policy:
            name = self._live.session.definition.algorithm
            raise FailedPrecondition(
                f"{field or 'the step: '}{name} learns only from its own behaviour, and with which"
                " probability this action was chosen is not known: give feedback by prediction_id,"
                " or the probability"
            )
        next_state = told.next_state
        if next_state is not None:
            next_state = self._states.check(next_state, f"{field}next_state")
        elif told.truncated and not told.terminated:  # What comes next is of another episode.
            raise InvalidArgument(
                f"{field}next_state: is required where an episode is truncated",
                reason=Reason.MISSING_REQUIRED_FIELD,
                field=f"{field}next_state",
            )
        elif sealed.actor in following and not told.terminated:
            next_state = following[sealed.actor].state
        return RecordedStep(
            state=sealed.state,
            action=sealed.action,
            reward=told.reward,
            next_state=next_state,
            terminated=told.terminated or next_state is None,
            truncated=told.truncated and not told.terminated,
            actor=sealed.actor,
            probability=sealed.probability,
            allowed=[
                self._actions.check(action, f"{field}next_allowed_actions[{number}]")
                for number, action in enumerate(told.allowed)
            ],
            available=sealed.available,
            prediction=sealed.mark or None,
        )

    def _available(self, told: StepInput, action: Json, field: str) -> Sequence[Json]:
        """Return the actions that one was chosen from, as it is told; empty if they are a box."""
        field = f"{field}allowed_actions"
        if isinstance(self._actions, Box):
            if told.available:
                raise _bad(field, "must not be given: actions are a box, of which all are allowed")
            return ()
        named = Actions(OpenLabels())
        for number, one in enumerate(told.available):
            named.add(self._actions.check(one, f"{field}[{number}]"))
        if told.available and named.number(action) is None:
            raise _bad(field, "must hold the action that was chosen")
        return named.values

    def _followed(self, told: StepInput, field: str) -> PredictionContent:
        """Return what was done where, from the prediction or as it is told."""
        session = self._live.session
        if told.prediction_id:
            for name, given in (
                ("state", told.state), ("action", told.action), ("actor_id", told.actor or None),
                ("probability", told.probability), ("allowed_actions", told.available or None),
            ):  # fmt: skip
                if given is not None:
                    raise _bad(
                        f"{field}{name}", "must not be given with a prediction, which knows it"
                    )
            sealed = _opened(told.prediction_id, field)
            try:
                if sealed.session_id != session.id:
                    raise InvalidPredictionId
                check_seal(told.prediction_id, session.secret)
            except InvalidPredictionId:
                raise _unknown(field) from None
            if self._now_us - sealed.made_us > LIFETIME_US:
                raise _unknown(field)
            return sealed
        for name, value in (("state", told.state), ("action", told.action)):
            if value is None:
                raise InvalidArgument(
                    f"{field}{name}: is required without a prediction_id",
                    reason=Reason.MISSING_REQUIRED_FIELD,
                    field=f"{field}{name}",
                )
        action = self._actions.check(told.action, f"{field}action")
        likely = told.probability
        if likely is not None and likely > 1 and not isinstance(self._actions, Box):
            raise InvalidArgument(
                f"{field}probability: must be above 0 and at most 1, not {likely:g}; only for"
                " actions in a box it is a density, which may be more",
                reason=Reason.OUT_OF_RANGE,
                field=f"{field}probability",
            )
        return PredictionContent(
            session_id=session.id,
            state=self._states.check(told.state, f"{field}state"),
            action=action,
            probability=told.probability,
            actor=told.actor,
            available=self._available(told, action, field),
        )

    def _require_room(self, steps: Sequence[RecordedStep]) -> None:
        recorded = self._live.recorded
        if recorded is None or not isinstance(self._actions, OpenLabels):
            return
        new = Actions(OpenLabels(), self._new.values)
        for one in (one for step in steps for one in named_in(step)):
            if recorded.number(one) is None:
                new.add(one)
        if len(recorded) + len(new) > self._actions.most:
            raise FailedPrecondition(
                f"the session knows {len(recorded)} actions, and at most {self._actions.most} are"
                " supported; labels must not hold what is different each time"
            )
        self._new = new


def _opened(prediction_id: str, field: str) -> PredictionContent:
    try:
        return opened(prediction_id)
    except InvalidPredictionId:
        raise _unknown(field) from None


def _unknown(field: str) -> NotFound:
    return NotFound(
        "the prediction is unknown: it is not from this session, or is older than 30 days",
        field=f"{field}prediction_id",
    )


def _bad(field: str, problem: str) -> InvalidArgument:
    return InvalidArgument(f"{field}: {problem}", field=field)
