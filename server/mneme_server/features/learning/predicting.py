"""Asking a session for actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mneme_server.common import deadline
from mneme_server.common.canonical import Json
from mneme_server.common.clock import now_us
from mneme_server.common.errors import FailedPrecondition, Reason
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.features.learning.actions import Actions
from mneme_server.features.learning.asking import AskedSessions
from mneme_server.features.learning.gating import Gating, Wanted
from mneme_server.features.learning.live import Asked, Chosen
from mneme_server.features.learning.live_session import LiveSession, Tenant, require_active
from mneme_server.features.learning.open_sessions import OpenSessions
from mneme_server.features.learning.ports import LearningUnit
from mneme_server.features.learning.sealing import Sealed, seal
from mneme_server.features.learning.spaces import Box, OpenLabels
from mneme_server.features.learning.trust.gate import Verdict


@dataclass(frozen=True, slots=True)
class Predicted:
    """A prediction: its id, the action, and what the gate said if there was one."""

    id: str
    chosen: Chosen
    verdict: Verdict | None = None


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
        tenants: OpenTenants[LearningUnit],
        asked: AskedSessions,
        sessions: OpenSessions,
        gating: Gating,
    ) -> None:
        self._tenants = tenants
        self._asked = asked
        self._sessions = sessions
        self._gating = gating

    def __call__(
        self,
        tenant_id: str,
        session_id: str,
        asked: Asked,
        *,
        explore: bool,
        baseline: Wanted | None = None,
    ) -> Predicted:
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
        self, tenant_id: str, session_id: str, asked: Sequence[Asked], field: str = ""
    ) -> list[Asked]:
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
        asked: Sequence[Asked],
        *,
        explore: bool,
        with_ids: bool,
        baseline: Wanted | None = None,
    ) -> list[Predicted]:
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
                return [Predicted("", made, verdict) for made in chosen]
            now, secret = now_us(), live.session.secret
            return [
                Predicted(seal(_sealed(session_id, one, made), secret, now), made, verdict)
                for one, made in zip(asked, chosen, strict=True)
            ]

    def _chosen(
        self,
        tenant: Tenant,
        live: LiveSession,
        asked: Sequence[Asked],
        baseline: Wanted | None,
        *,
        explore: bool,
    ) -> tuple[list[Chosen], Verdict | None]:
        if baseline is None:
            _require_actions(live, asked)
            return live.policy.choose(asked, explore=explore), None
        gated = self._gating.gate(tenant, live, baseline)
        _require_actions(live, asked)
        verdict = gated.verdict()
        return [live.policy.choose_gated(one, gated, explore=explore) for one in asked], verdict


def _sealed(session_id: str, asked: Asked, made: Chosen) -> Sealed:
    return Sealed(
        session_id, asked.state, made.action, made.probability, asked.actor, asked.allowed
    )


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
