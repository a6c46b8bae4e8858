"""Transfer of what one session has learned to another."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme_server.common import deadline
from mneme_server.common.canonical import Json, canonical_json
from mneme_server.common.errors import FailedPrecondition, InvalidArgument, NotFound, Reason
from mneme_server.engine.corpus.tenant import OpenTenants
from mneme_server.features.learning.algorithms.algorithm import Algorithm, Learner, Transition
from mneme_server.features.learning.algorithms.choice import chosen
from mneme_server.features.learning.model import Definition
from mneme_server.features.learning.sessions.evaluation import (
    basis_of,
    episodes_to_judge,
    fresh,
    newest_steps,
)
from mneme_server.features.learning.sessions.live_session import (
    LiveSession,
    Tenant,
    require_active,
    require_there,
    telling,
)
from mneme_server.features.learning.sessions.open_sessions import OpenSessions
from mneme_server.features.learning.spaces import Box, OpenLabels
from mneme_server.features.learning.transfer.similarity import (
    ComparedTask,
    Similarity,
    features_of,
    similarity,
)
from mneme_server.features.learning.trust.estimates import ValueEstimate
from mneme_server.features.learning.trust.evaluation import (
    Evaluation,
    evaluate_learning,
    evaluate_policy,
)

Learned = Mapping[str, Any]

EVIDENCE = 0.25
"""What a reward of the source counts for where what was learned from it is a prior."""

_COMPARED = 2_000
"""Steps of each session that are compared and judged by, the newest."""
_LEARNED_AGAIN = 10_000
"""Steps of the target that are learned again on top of what was taken over, the newest."""


class TransferKind(Enum):
    """The way in which what one learner has learned is taken over by another.

    - A table's rows are its values. All of them are taken; for fine-tuning, as if each had been
      tried once, so that confidence has to be earned anew.
    - A linear bandit's arms are posteriors. All of them are taken; for fine-tuning as priors, in
      which each reward of the source counts for a quarter: what it was sure of is believed, and
      given up when rewards speak against it.
    - Networks are taken with all that goes with their training, which needs the same spaces,
      actions and settings. With their encoder frozen, only the last layers learn from then on: what
      a state means is known from the source, what to do there is learned in the target.

    Actions go by what they are called: they can have other numbers in the target.
    """

    FULL = "full"
    FREEZE_ENCODER = "freeze_encoder"
    FINE_TUNE = "fine_tune"


@dataclass(frozen=True, slots=True)
class TransferResult:
    """What a transfer did.

    Args:
        similarity: of the tasks.
        numbers: how many numbers were taken over: values of cells, weights of arms or networks.
        before: what the target's algorithm learns from the target's steps, without the transfer.
        after: the same with it.
        steps: of the target, the newest, that both were judged by.
        gain: how much more an episode of the target brings with it; None if that cannot be told.
        worth: the same in a sentence: what it is worth, or why that cannot be told.
        is_applied: whether it was done; a dry run only tells.
    """

    similarity: Similarity
    numbers: int
    before: Evaluation
    after: Evaluation
    steps: int
    gain: ValueEstimate | None
    worth: str
    is_applied: bool


@dataclass(frozen=True, slots=True)
class _TransferSource:
    """What is taken of the source while it goes on."""

    definition: Definition
    learned: Mapping[str, Any]
    known: list[Json]
    task: ComparedTask
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
        tenants: OpenTenants,
        sessions: OpenSessions,
        algorithm: Callable[[str], Algorithm | None],
    ) -> None:
        self._tenants = tenants
        self._sessions = sessions
        self._algorithm = algorithm

    def transfer(
        self,
        tenant_id: str,
        source_id: str,
        target_id: str,
        *,
        kind: TransferKind,
        least: float,
        dry_run: bool = False,
    ) -> TransferResult:
        """Transfer what `source_id` has learned to `target_id`.

        Args:
            tenant_id: whose sessions they are.
            source_id: the session that has learned.
            target_id: the session that is to know it, too.
            kind: what is taken over.
            least: how alike the tasks must be, from 0 to 1; 0: whatever they are like, and whatever
                it is worth.
            dry_run: whether to change nothing, and to tell what it would be worth.

        Raises:
            InvalidArgument: they are the same.
            NotFound: there is no such session.
            FailedPrecondition: the source has learned nothing, the algorithms or settings do not
                fit each other, the tasks are not alike enough, the rewards contradict each other,
                the target would surely earn less, or it has ended.
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
                return self._transfer(tenant, source, live, kind, least, dry_run=dry_run)

    def undo(self, tenant_id: str, source_id: str, target_id: str) -> None:
        """Take back all that `target_id` has taken over: it learns its own steps again, and knows
        what they teach and nothing else.

        Args:
            tenant_id: whose sessions they are.
            source_id: a session that was transferred to it.
            target_id: the session that took it over.

        Raises:
            NotFound: there is no such session.
            FailedPrecondition: nothing of the source was taken over, or the target has ended.
            Unavailable: the target was closed meanwhile.
        """
        with self._tenants.open(tenant_id) as tenant:
            with _named("source_session_id"), self._sessions.use(tenant, source_id) as source:
                number = source.session.number
            with (
                _named("target_session_id"),
                self._sessions.use(tenant, target_id) as live,
                telling(live),
            ):
                require_active(live)
                if number not in live.policy.sources:
                    raise FailedPrecondition(
                        f"nothing of the learning session {source_id!r} was transferred to"
                        f" {target_id!r}",
                        field="source_session_id",
                    )
                try:
                    with deadline.holding(live.thinking):
                        live.policy.begin_anew()
                    live.catch_up(tenant)
                    live.save(tenant)
                except BaseException:
                    self._sessions.drop(tenant.tenant_id, live)  # It is as it was stored.
                    raise

    def _transfer(
        self,
        tenant: Tenant,
        source: _TransferSource,
        live: LiveSession,
        kind: TransferKind,
        least: float,
        *,
        dry_run: bool,
    ) -> TransferResult:
        definition = live.session.definition
        algorithm = self._algorithm(definition.algorithm)
        assert algorithm is not None  # Or the session could not have been opened.
        _require_fit(source.definition, definition, networks=algorithm.needs_torch)
        live.catch_up(tenant)
        transitions = _newest(tenant, live, _COMPARED)
        with deadline.holding(live.thinking):
            task = _task(definition, live.policy.known, transitions)
            alike = similarity(source.task, task)
            if not dry_run:
                _require_alike(alike, least)
            learned, count = carried(source.learned, _numbers(source.known, live), kind)
        with_it = _begun(algorithm, definition, learned)
        before, after = _judged(algorithm, definition, transitions, with_it, kind)
        gain = _gain(before, after)
        told = _worth(gain, alike, before, after, len(transitions))
        found = TransferResult(
            alike, count, before, after, len(transitions), gain, told, is_applied=not dry_run
        )
        if dry_run:
            return found
        _require_no_loss(found, least)
        again = [] if kind is TransferKind.FULL else _newest(tenant, live, _LEARNED_AGAIN)
        with deadline.holding(live.thinking):
            for label in source.known:
                live.policy.number(label)  # It gets the number that it was carried to.
            live.policy.take_over(learned, count, again, source.sessions)
        live.save(tenant)
        return found


def carried(
    learned: Learned, actions: Mapping[int, int], kind: TransferKind
) -> tuple[Learned, int]:
    """Return what a learner that was dumped knows, for another one to load, and how many numbers
    that is.

    Args:
        learned: what `dump` returned. It is not changed.
        actions: the target's number of each of the source's actions that the target has.
        kind: whether it is the target's knowledge, or what it begins with.

    Raises:
        FailedPrecondition: it cannot be taken over so.
    """
    if "arms" in learned:
        return _arms(learned, actions, kind)
    if "tries" in learned:
        return _cells(learned, actions, kind)
    return _networks(learned, actions, kind)


@contextmanager
def _named(field: str) -> Iterator[None]:
    """Say which of the two sessions there is not."""
    try:
        yield
    except NotFound as error:
        error.field = field
        raise


def _taken(tenant: Tenant, live: LiveSession) -> _TransferSource:
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
        return _TransferSource(
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


def _task(
    definition: Definition, known: Sequence[Json], transitions: list[Transition]
) -> ComparedTask:
    labels = {n: canonical_json(label) for n, label in enumerate(known)}
    space = definition.states
    return ComparedTask(space, features_of(space, transitions), labels, transitions)


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
        shared &= {"bins", "features", "pairs", "reward_scale"}
    differing = sorted(key for key in shared if source.config[key] != target.config[key])
    if differing:
        raise FailedPrecondition(
            f"the sessions differ in {', '.join(differing)}, which what was learned depends on"
        )


def _require_alike(alike: Similarity, least: float) -> None:
    if least <= 0 or not alike.is_measured:
        return
    asked = f"At least {least:.0%} is asked for (similarity_threshold)"
    if alike.is_contradicted or alike.overall < least:
        raise FailedPrecondition(
            f"{alike.why} {asked}; nothing was transferred.",
            metadata={"task_similarity": f"{alike.overall:.4f}"},
        )


def _require_no_loss(found: TransferResult, least: float) -> None:
    if least > 0 and found.gain is not None and found.gain.high is not None and found.gain.high < 0:
        raise FailedPrecondition(
            f"{found.worth} Nothing was transferred; a similarity_threshold of 0 does it"
            " nevertheless.",
            metadata={"gain": f"{found.gain.value:.4g}"},
        )


def _gain(before: Evaluation, after: Evaluation) -> ValueEstimate | None:
    """Return how much more is earned with a transfer than without. The interval is that of a
    difference of independent estimates: as both were judged by the same steps, it is too wide
    rather than too narrow."""
    one, other = before.doubly_robust, after.doubly_robust
    if one is None or other is None or one.high is None or other.high is None:
        return None
    reach = math.hypot(one.high - one.value, other.high - other.value)
    value = other.value - one.value
    return ValueEstimate(value, value - reach, value + reach)


def _worth(
    gain: ValueEstimate | None,
    alike: Similarity,
    before: Evaluation,
    after: Evaluation,
    steps: int,
) -> str:
    """Return what a transfer is worth, or why that cannot be told, in sentences."""
    if gain is not None and gain.low is not None and gain.high is not None:
        said = (
            f"With the transfer an episode of the target brings {gain.value:+.3g} "
            f"({gain.low:+.3g} to {gain.high:+.3g}) more than without it"
        )
        if gain.low > 0:
            return f"{said}: it helps."
        return f"{said}: it harms." if gain.high < 0 else f"{said}: whether it helps is not known."
    if not steps:
        known = "" if alike.rewards is None else " but by the rewards of both"
        return (
            "The target has no steps yet, so that what the transfer is worth to it cannot be told"
            f"{known}. Ask again (dry_run) when it has some, and take it back (undo) if it harms."
        )
    rewards = ""
    if alike.rewards is None:
        rewards = " Whether the target rewards the same things as the source is not known either."
    return f"What it is worth cannot be told. {before.refused or after.refused}{rewards}"


def _numbers(known: list[Json], live: LiveSession) -> dict[int, int]:
    """Return the target's numbers of the source's actions that it has, or would get."""
    found, new = {}, len(live.policy.known)
    for number, label in enumerate(known):
        target = live.policy.number_of(label)
        if target is None and isinstance(live.session.definition.actions, OpenLabels):
            target, new = new, new + 1
        if target is not None:
            found[number] = target
    return found


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
    kind: TransferKind,
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
    if kind is TransferKind.FINE_TUNE:
        return before, evaluate_learning(basis, episodes, with_it())
    learner, chance = with_it(), np.random.default_rng(0)
    after = evaluate_policy(
        basis,
        episodes,
        lambda questions: chosen(learner, questions, explore=False, chance=chance),
        learned_from=0,
    )
    return before, after


def _arms(learned: Learned, actions: Mapping[int, int], kind: TransferKind) -> tuple[Learned, int]:
    _require_no_encoder(kind, "a linear bandit")
    arms = {
        str(actions[int(number)]): _prior(arm, learned["spreads"])
        if kind is TransferKind.FINE_TUNE
        else deepcopy(arm)
        for number, arm in learned["arms"].items()
        if int(number) in actions
    }
    found = {**deepcopy(dict(learned)), "arms": arms, "changes": [], "short": 0.0}
    if kind is TransferKind.FINE_TUNE:
        told, fitted, _ = learned["told"]
        found["told"] = [round(EVIDENCE * told), round(EVIDENCE * min(told, fitted)), 0]
    return found, sum(len(arm["mean"]) for arm in arms.values())


def _prior(arm: Mapping[str, Any], spreads: NDArray[np.float64]) -> dict[str, Any]:
    """Return an arm each of whose rewards counts for a part; what it expects stays the same until
    all is fitted anew."""
    size = len(arm["mean"])
    precision = EVIDENCE * arm["gram"] + np.diag(1 / spreads[:size])
    covariance = np.linalg.inv(precision)
    sums = {name: EVIDENCE * arm[name] for name in ("gram", "moment", "states")}
    return {
        "covariance": (covariance + covariance.T) / 2,
        "mean": arm["mean"].copy(),
        **sums,
        "rewards": [EVIDENCE * one for one in arm["rewards"]],
    }


def _cells(learned: Learned, actions: Mapping[int, int], kind: TransferKind) -> tuple[Learned, int]:
    _require_no_encoder(kind, "a table")
    kept = np.array([int(one) in actions for one in learned["action"]], dtype=bool)
    found: dict[str, Any] = {
        name: learned[name][kept].copy()
        for name in ("state", "action", "tries", "value", "mean", "squares", "seen")
    }
    found["action"] = np.array([actions[int(one)] for one in found["action"]], dtype=np.int64)
    if kind is TransferKind.FINE_TUNE:
        found["tries"] = found["seen"] = np.minimum(found["tries"], 1)
        found["mean"] = found["value"].copy()
        found["squares"] = np.zeros(len(found["squares"]))
    found["states"] = list(learned["states"])
    if "last" in learned:
        found["last"] = {}  # Episodes that are under way in the source.
    return found, int(kept.sum())


def _networks(
    learned: Learned, actions: Mapping[int, int], kind: TransferKind
) -> tuple[Learned, int]:
    if any(source != target for source, target in actions.items()):
        raise FailedPrecondition(
            "networks can be transferred only between sessions that know the same actions in the "
            "same order"
        )
    weights: Mapping[str, NDArray[Any]] = learned["weights"] or {}
    found = deepcopy(dict(learned)) | {"best": None}  # What was best there need not be so here.
    if kind is not TransferKind.FULL and found["trainer"] is not None:
        found["trainer"]["frozen"] = kind is TransferKind.FREEZE_ENCODER
    return found, sum(int(one.size) for one in weights.values())


def _require_no_encoder(kind: TransferKind, what: str) -> None:
    if kind is TransferKind.FREEZE_ENCODER:
        raise FailedPrecondition(
            f"freeze_encoder: {what} has no encoder that could be frozen; transfer with fine_tune "
            "or full",
            field="transfer_type",
        )
