"""Asking a session for actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mneme_server.common import deadline
from mneme_server.common.canonical import Json
from mneme_server.common.clock import now_us
from mneme_server.common.errors import FailedPrecondition, Reason
from mneme_server.corpus.tenant import OpenTenants
from mneme_server.learning.actions import Actions
from mneme_server.learning.live import Asked, Chosen
from mneme_server.learning.open_sessions import LiveSession, OpenSessions, require_active
from mneme_server.learning.ports import LearningUnit
from mneme_server.learning.sealing import Sealed, seal
from mneme_server.learning.spaces import Box, OpenLabels


@dataclass(frozen=True, slots=True)
class Predicted:
    """A prediction: its id, and the action."""

    id: str
    chosen: Chosen


class Predict:
    """The use case: ask for actions. Nothing is written.

    Args:
        tenants: where tenants are.
        sessions: those in memory.
    """

    def __init__(self, tenants: OpenTenants[LearningUnit], sessions: OpenSessions) -> None:
        self._tenants = tenants
        self._sessions = sessions

    def __call__(
        self,
        tenant_id: str,
        session_id: str,
        asked: Sequence[Asked],
        *,
        explore: bool,
        field: str = "",
    ) -> list[Predicted]:
        """Return a prediction for each state.

        Args:
            tenant_id: whose session it is.
            session_id: the session.
            asked: the states, not checked yet.
            explore: whether to choose actions to learn from.
            field: where the request has a state, with its place: "states[{item}].".

        Raises:
            InvalidArgument: a state or an allowed action is not in its space.
            NotFound: there is no such session.
            FailedPrecondition: it has ended, or there is no action to choose.
        """
        with (
            self._tenants.open(tenant_id) as tenant,
            self._sessions.use(tenant, session_id) as live,
        ):
            require_active(live)
            questions = [
                checked(live, one, field.format(item=place)) for place, one in enumerate(asked)
            ]
            with deadline.holding(live.thinking):
                _require_actions(live, questions)
                chosen = live.policy.choose(questions, explore=explore)
            now, secret = now_us(), live.session.secret
            return [
                Predicted(
                    seal(
                        Sealed(session_id, one.state, made.action, made.probability, one.actor),
                        secret,
                        now,
                    ),
                    made,
                )
                for one, made in zip(questions, chosen, strict=True)
            ]


def checked(live: LiveSession, asked: Asked, field: str) -> Asked:
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
    return Asked(state, allowed, asked.actor, asked.target_return)


def _require_actions(live: LiveSession, asked: Sequence[Asked]) -> None:
    if live.policy.known or isinstance(live.session.definition.actions, Box):
        return
    if not all(one.allowed for one in asked):
        raise FailedPrecondition(
            f"the learning session {live.id!r} knows no action yet: give allowed_actions, or tell"
            " it what came of some",
            reason=Reason.MODEL_NOT_TRAINED,
            field="allowed_actions",
        )
