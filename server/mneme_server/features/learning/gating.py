"""Baselines that answer in the place of a policy until it is known to be better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mneme_server.common.canonical import Json, canonical_json
from mneme_server.common.errors import FailedPrecondition, InvalidArgument
from mneme_server.features.learning.algorithm import Algorithm
from mneme_server.features.learning.evaluating import fresh, newest_steps
from mneme_server.features.learning.learner import number_of
from mneme_server.features.learning.live_session import LiveSession, Tenant
from mneme_server.features.learning.spaces import Box
from mneme_server.features.learning.trust.baselines import Baseline, Behaviour, FixedAction, Version
from mneme_server.features.learning.trust.clone import Clone
from mneme_server.features.learning.trust.gate import Gate
from mneme_server.features.learning.trust.gated import Gated

_MOST_GATES = 8
"""Of a session; the one that was asked for first makes room for another."""
_FITTED = 5_000
_LEAST_FITTED = 50
_PART = 500


@dataclass(frozen=True, slots=True)
class Wanted:
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


class Gating:
    """Finds the gates of sessions, and makes them.

    Args:
        algorithm: returns an algorithm by its name, or None.
    """

    def __init__(self, algorithm: Callable[[str], Algorithm | None]) -> None:
        self._algorithm = algorithm

    def gate(self, tenant: Tenant, live: LiveSession, wanted: Wanted) -> Gated:
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
            found = Gated(
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

    def _baseline(self, tenant: Tenant, live: LiveSession, wanted: Wanted) -> Baseline:
        if wanted.action is not None:
            label = live.session.definition.actions.check(wanted.action, "only_if_better.action")
            number = live.policy.number(label)
            assert number is not None  # It is in the space.
            return FixedAction(number, label if isinstance(label, str) else canonical_json(label))
        if wanted.behaviour:
            return _behaviour(tenant, live)
        if wanted.first_steps:
            return self._version(tenant, live, wanted.first_steps)
        raise InvalidArgument(
            "only_if_better needs a baseline: an action, first_steps, or behaviour",
            field="only_if_better",
        )

    def _version(self, tenant: Tenant, live: LiveSession, steps: int) -> Baseline:
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
                part = unit.learning_steps.after(
                    live.session.number, first, min(_PART, steps - first)
                )
            learner.learn(live.policy.transitions(part))
        return Version(learner, steps)


def _behaviour(tenant: Tenant, live: LiveSession) -> Baseline:
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
    return Behaviour(Clone(live.session.definition.states, states, actions), len(steps))


def _name(live: LiveSession, wanted: Wanted) -> str:
    action = None
    if wanted.action is not None:
        action = live.session.definition.actions.check(wanted.action, "only_if_better.action")
    return canonical_json([action, wanted.first_steps, wanted.behaviour, wanted.low, wanted.high])
