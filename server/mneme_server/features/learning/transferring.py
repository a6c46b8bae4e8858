"""Transferring what one session has learned to another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from mneme_server.common import deadline
from mneme_server.common.canonical import Json, canonical_json
from mneme_server.common.errors import FailedPrecondition, InvalidArgument, NotFound, Reason
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.features.learning.algorithm import Algorithm
from mneme_server.features.learning.choosing import chosen
from mneme_server.features.learning.evaluating import (
    basis_of,
    episodes_to_judge,
    fresh,
    newest_steps,
)
from mneme_server.features.learning.learner import Learner, Transition
from mneme_server.features.learning.live_session import (
    LiveSession,
    Tenant,
    require_active,
    require_there,
    telling,
)
from mneme_server.features.learning.model import Definition
from mneme_server.features.learning.open_sessions import OpenSessions
from mneme_server.features.learning.ports import LearningUnit
from mneme_server.features.learning.spaces import Box
from mneme_server.features.learning.transfer.carrying import Kind, carried
from mneme_server.features.learning.transfer.similarity import (
    Similarity,
    Task,
    features_of,
    similarity,
)
from mneme_server.features.learning.trust.evaluation import (
    Evaluation,
    evaluate_learning,
    evaluate_policy,
)

_COMPARED = 2_000
"""Steps of each session that are compared and judged by, the newest."""
_LEARNED_AGAIN = 10_000
"""Steps of the target that are learned again on top of what was taken over, the newest."""


@dataclass(frozen=True, slots=True)
class Transferred:
    """What a transfer did.

    Args:
        similarity: of the tasks.
        numbers: how many numbers were taken over: values of cells, weights of arms or networks.
        before: what the target's algorithm learns from the target's steps, without the transfer.
        after: the same with it.
        steps: of the target, the newest, that both were judged by.
    """

    similarity: Similarity
    numbers: int
    before: Evaluation
    after: Evaluation
    steps: int


@dataclass(frozen=True, slots=True)
class _Source:
    """What is taken of the source while it goes on."""

    definition: Definition
    learned: Mapping[str, Any]
    known: list[Json]
    task: Task
    sessions: Mapping[int, int]
    live: LiveSession


class Transfer:
    """The use case: transfer what a session has learned to another one.

    Args:
        tenants: where tenants are.
        sessions: those in memory.
        algorithm: returns an algorithm by its name, or None.
    """

    def __init__(
        self,
        tenants: OpenTenants[LearningUnit],
        sessions: OpenSessions,
        algorithm: Callable[[str], Algorithm | None],
    ) -> None:
        self._tenants = tenants
        self._sessions = sessions
        self._algorithm = algorithm

    def __call__(
        self, tenant_id: str, source_id: str, target_id: str, *, kind: Kind, least: float
    ) -> Transferred:
        """Transfer what `source_id` has learned to `target_id`.

        Args:
            tenant_id: whose sessions they are.
            source_id: the session that has learned.
            target_id: the session that is to know it, too.
            kind: what is taken over.
            least: how alike the tasks must be, from 0 to 1.

        Raises:
            InvalidArgument: they are the same.
            NotFound: there is no such session.
            FailedPrecondition: the source has learned nothing, the algorithms or settings do not
                fit each other, the tasks are not alike enough, or the target has ended.
            Unavailable: one of them was closed meanwhile.
        """
        if source_id == target_id:
            raise InvalidArgument(
                "a session cannot be transferred to itself", field="target_session_id"
            )
        with self._tenants.open(tenant_id) as tenant:
            with _named("source_session_id"), self._sessions.use(tenant, source_id) as live:
                source = _taken(tenant, live)
            with (
                _named("target_session_id"),
                self._sessions.use(tenant, target_id) as live,
                telling(live),
            ):
                require_active(live)
                require_there(source.live)  # Else what it had learned may be forgotten.
                return self._transfer(tenant, source, live, kind, least)

    def _transfer(
        self, tenant: Tenant, source: _Source, live: LiveSession, kind: Kind, least: float
    ) -> Transferred:
        definition = live.session.definition
        algorithm = self._algorithm(definition.algorithm)
        assert algorithm is not None  # Or the session could not have been opened.
        _require_fit(source.definition, definition, networks=algorithm.needs_torch)
        live.catch_up(tenant)
        transitions = _newest(tenant, live, _COMPARED)
        with deadline.holding(live.thinking):
            task = _task(definition, live.policy.known, transitions)
            alike = similarity(source.task, task)
            _require_alike(alike, least)
            numbers = _numbers(source.known, live)
            ridge = float(definition.config.get("ridge", 1.0))
            learned, count = carried(source.learned, numbers, kind, ridge=ridge)
        with_it = _begun(algorithm, definition, learned)
        before, after = _judged(algorithm, definition, transitions, with_it, kind)
        again = [] if kind is Kind.FULL else _newest(tenant, live, _LEARNED_AGAIN)
        with deadline.holding(live.thinking):
            live.policy.take_over(learned, count, again, source.sessions)
        live.save(tenant)
        return Transferred(alike, count, before, after, len(transitions))


@contextmanager
def _named(field: str) -> Iterator[None]:
    """Say which of the two sessions there is not."""
    try:
        yield
    except NotFound as error:
        error.field = field
        raise


def _taken(tenant: Tenant, live: LiveSession) -> _Source:
    if not live.policy.is_trained:
        raise FailedPrecondition(
            f"the learning session {live.id!r} has learned nothing yet that could be transferred",
            reason=Reason.MODEL_NOT_TRAINED,
            field="source_session_id",
        )
    definition = live.session.definition
    transitions = _newest(tenant, live, _COMPARED)
    with deadline.holding(live.thinking):
        known = list(live.policy.known)
        learned = live.policy.learner.dump()
        return _Source(
            definition,
            deepcopy(dict(learned)),
            known,
            _task(definition, known, transitions),
            live.policy.sources | {live.session.number: live.policy.progress.learned},
            live,
        )


def _newest(tenant: Tenant, live: LiveSession, most: int) -> list[Transition]:
    steps = newest_steps(tenant, live, live.policy.progress.learned, most)
    with deadline.holding(live.thinking):
        return live.policy.transitions(steps)


def _task(definition: Definition, known: Sequence[Json], transitions: list[Transition]) -> Task:
    labels = {n: canonical_json(label) for n, label in enumerate(known)}
    space = definition.states
    return Task(space, features_of(space, transitions), labels, transitions)


def _require_fit(source: Definition, target: Definition, *, networks: bool) -> None:
    """Check that one session can begin with what the other one has learned."""
    if source.algorithm != target.algorithm:
        raise FailedPrecondition(
            f"the source learns by {source.algorithm} and the target by {target.algorithm}; only "
            "sessions of the same algorithm can be transferred to each other"
        )
    if isinstance(source.actions, Box) and source.actions != target.actions:
        raise FailedPrecondition("the action spaces differ, and a box can only be taken as it is")
    if networks and source.states != target.states:
        raise FailedPrecondition("the state spaces differ, and networks are made for one")
    shared = set(source.config)
    if not networks:
        shared &= {"bins", "features", "reward_scale"}
    differing = sorted(key for key in shared if source.config[key] != target.config[key])
    if differing:
        raise FailedPrecondition(
            f"the sessions differ in {', '.join(differing)}, which what was learned depends on"
        )


def _require_alike(alike: Similarity, least: float) -> None:
    if alike.overall < least:
        raise FailedPrecondition(
            f"{alike.why} At least {least:.0%} is asked for (similarity_threshold); nothing was "
            "transferred.",
            metadata={"task_similarity": f"{alike.overall:.4f}"},
        )


def _numbers(known: list[Json], live: LiveSession) -> dict[int, int]:
    """Return the target's numbers of the source's actions that it has."""
    found = {n: live.policy.number(label) for n, label in enumerate(known)}
    return {source: target for source, target in found.items() if target is not None}


def _begun(
    algorithm: Algorithm, definition: Definition, learned: Mapping[str, Any]
) -> Callable[[], Learner]:
    def make() -> Learner:
        learner = fresh(algorithm, definition)
        learner.load(deepcopy(dict(learned)))
        return learner

    return make


def _judged(
    algorithm: Algorithm,
    definition: Definition,
    transitions: list[Transition],
    with_it: Callable[[], Learner],
    kind: Kind,
) -> tuple[Evaluation, Evaluation]:
    """Return what the target learns without and with the transfer, judged by its own steps."""
    if isinstance(definition.actions, Box) or algorithm.needs_torch:
        unknown = Evaluation(
            refused="It is not measured for algorithms that train networks: the target would have "
            "to be trained twice more."
        )
        return unknown, unknown
    basis, episodes = basis_of(definition), episodes_to_judge(definition, transitions)
    before = evaluate_learning(basis, episodes, fresh(algorithm, definition))
    if kind is Kind.FINE_TUNE:
        return before, evaluate_learning(basis, episodes, with_it())
    learner, chance = with_it(), np.random.default_rng(0)
    after = evaluate_policy(
        basis,
        episodes,
        lambda questions: chosen(learner, questions, explore=False, chance=chance),
        learned_from=0,
    )
    return before, after
