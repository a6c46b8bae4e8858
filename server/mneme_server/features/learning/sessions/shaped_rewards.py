"""Rewards shaped with what a session has seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mneme_server.common import deadline
from mneme_server.common.canonical import Json, canonical_json
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.features.learning.algorithms.reward_shaping import Shaped, Shaping, ShapingStep
from mneme_server.features.learning.sessions.live_session import (
    LiveSession,
    require_active,
)
from mneme_server.features.learning.sessions.open_sessions import OpenSessions
from mneme_server.features.learning.sessions.policy import SessionPolicy, StateInput


@dataclass(frozen=True, slots=True)
class ShapingInput:
    """A step whose reward is to be shaped, not checked yet; see `ShapingStep` and `Shaper`."""

    state: Json
    next_state: Json
    action: Json
    actor: str
    ends: bool
    reward: float
    shaping: Shaping
    weight: float
    potential_based: bool


class ShapeReward:
    """The use case: shape a reward, and learn what is new.

    Args:
        tenants: where tenants are.
        sessions: those in memory.
        wake: called with a tenant that has something to save in the background, and when that is
            due, in microseconds.
    """

    def __init__(
        self,
        tenants: OpenTenants,
        sessions: OpenSessions,
        wake: Callable[[str, int], object],
    ) -> None:
        self._tenants = tenants
        self._sessions = sessions
        self._wake = wake

    def shape(self, tenant_id: str, session_id: str, wanted: ShapingInput) -> Shaped:
        """Return a shaped reward.

        Raises:
            InvalidArgument: a state or the action is not in its space, or there is no such bonus.
            NotFound: there is no such session.
            FailedPrecondition: it has ended.
        """
        with (
            self._tenants.open(tenant_id) as tenant,
            self._sessions.use(tenant, session_id) as live,
        ):
            require_active(live)
            step = _checked(live, wanted)
            with deadline.holding(live.thinking):
                shaped = _shaped(live.policy, step, wanted)
                live.policy.shaped += 1
            self._wake(tenant_id, live.save_due_us)
        return shaped


def _checked(live: LiveSession, wanted: ShapingInput) -> ShapingStep:
    definition = live.session.definition
    next_state, action = wanted.next_state, wanted.action
    return ShapingStep(
        state=definition.states.check(wanted.state, "state"),
        next_state=None
        if next_state is None
        else definition.states.check(next_state, "next_state"),
        action="" if action is None else canonical_json(definition.actions.check(action, "action")),
        actor=wanted.actor,
        ends=wanted.ends,
    )


def _shaped(policy: SessionPolicy, step: ShapingStep, wanted: ShapingInput) -> Shaped:
    before = policy.shaper.before(step)
    reached = step.state if step.next_state is None else step.next_state
    value, value_before = _values(policy, reached, before)
    return policy.shaper.shape(
        step,
        wanted.reward,
        shaping=wanted.shaping,
        weight=wanted.weight,
        potential_based=wanted.potential_based,
        value=value,
        value_before=value_before,
    )


def _values(policy: SessionPolicy, *states: Json) -> list[float | None]:
    """Return what states are worth: each its best action; 0 before anything was learned. None where
    there is no state, or the algorithm does not value actions."""
    if not policy.is_trained:
        return [None if state is None else 0.0 for state in states]
    asked = [StateInput(state) for state in states if state is not None]
    found = iter(policy.values(asked))
    values = [() if state is None else next(found) for state in states]
    return [float(max(actions)) if len(actions) else None for actions in values]
