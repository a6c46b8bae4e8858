"""Explaining what a session chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mneme_server.common import deadline
from mneme_server.common.canonical import Json, canonical_json
from mneme_server.common.errors import FailedPrecondition, InvalidArgument, Reason
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.features.learning.asking import AskedSessions
from mneme_server.features.learning.explaining.explanation import Explanation, explain
from mneme_server.features.learning.learner import Action
from mneme_server.features.learning.live import Asked
from mneme_server.features.learning.live_session import LiveSession, Tenant
from mneme_server.features.learning.ports import LearningUnit
from mneme_server.features.learning.predicting import checked
from mneme_server.features.learning.spaces import Box

_OBSERVED = 200
"""States that counterfactuals and the background are made of: the newest."""


@dataclass(frozen=True, slots=True)
class Named:
    """The callers' actions by the learner's numbers."""

    labels: Sequence[Json]
    numbers: Sequence[int]

    def __call__(self, action: Action) -> Json:
        """Return an action as callers know it."""
        if isinstance(action, int):
            return self.labels[self.numbers.index(action)]
        return list(action)


@dataclass(frozen=True, slots=True)
class Explained:
    """An explanation, and what its actions are called."""

    explanation: Explanation
    named: Named


class Explain:
    """The use case: explain a choice. Nothing is written.

    Args:
        tenants: where tenants are.
        sessions: lends those that are asked.
    """

    def __init__(self, tenants: OpenTenants[LearningUnit], sessions: AskedSessions) -> None:
        self._tenants = tenants
        self._sessions = sessions

    def __call__(
        self, tenant_id: str, session_id: str, asked: Asked, action: Json = None
    ) -> Explained:
        """Explain what a session chooses in a state.

        Args:
            tenant_id: whose session it is.
            session_id: the session.
            asked: the state, not checked yet.
            action: the action to explain; None: the one that is chosen.

        Raises:
            InvalidArgument: the state or an action is not in its space, or the action is not one
                of those to choose from.
            NotFound: there is no such session.
            FailedPrecondition: it has learned nothing yet.
        """
        with (
            self._tenants.open(tenant_id) as tenant,
            self._sessions.use(tenant, session_id) as live,
        ):
            asked = checked(live, asked, "")
            if action is not None:
                action = live.session.definition.actions.check(action, "action")
            observed = _observed(tenant, live)
            with deadline.holding(live.thinking):
                return _explained(live, asked, action, observed)


def _explained(
    live: LiveSession, asked: Asked, action: Json, observed: Sequence[Json]
) -> Explained:
    if not live.policy.is_trained:
        raise FailedPrecondition(
            f"the learning session {live.id!r} has learned nothing yet, so that there is nothing to"
            " explain; tell it what came of some actions first",
            reason=Reason.MODEL_NOT_TRAINED,
        )
    question, labels = live.policy.question(asked)
    number: Action | None = None
    if action is not None and not isinstance(live.session.definition.actions, Box):
        known = {
            canonical_json(label): n for label, n in zip(labels, question.allowed, strict=True)
        }
        number = known.get(canonical_json(action))
        if number is None:
            raise InvalidArgument(
                f"action: {canonical_json(action)} is none of the actions to choose from: "
                + ", ".join(sorted(known)[:20]),
                field="action",
            )
    named = Named(labels, question.allowed)
    explanation = explain(
        live.policy.learner,
        live.session.definition.states,
        question,
        observed or [asked.state],
        action=number,
        label=lambda one: canonical_json(named(one)),
    )
    return Explained(explanation, named)


def _observed(tenant: Tenant, live: LiveSession) -> list[Json]:
    last = live.policy.progress.learned
    with tenant.read() as unit:
        steps = unit.learning_steps.after(live.session.number, max(0, last - _OBSERVED), _OBSERVED)
    return [step.state for step in steps]
