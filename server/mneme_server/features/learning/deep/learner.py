"""Learners whose networks are trained in a process of their own, and asked here."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict
from typing import Any

import numpy as np

from mneme_server.common.errors import InvalidArgument, MnemeError, Reason
from mneme_server.features.learning.algorithms.algorithm import (
    ActionQuestion,
    BestPolicy,
    Choice,
    Transition,
    UpdateSummary,
    aimed,
    in_rewards,
    scaled,
    told,
)
from mneme_server.features.learning.deep.best import BestWeights
from mneme_server.features.learning.deep.encoder import StateEncoder
from mneme_server.features.learning.deep.policies import NetworkPolicy
from mneme_server.features.learning.deep.process import Answer, Worker
from mneme_server.features.learning.deep.setup import Batch, Flags, Setup

_AHEAD = 32
"""How many transitions may wait for those before them to be learned from, in the background."""
_MOST_REWARD = 1e9


class DeepLearner:
    """Implements `Learner`. The process begins with the first transition and ends with `close`.

    Inline, `learn` waits until everything was learned that was due, and hands over exactly as many
    transitions as the trainer wants: the same transitions with the same seed are learned the same,
    however they come together, and whenever they are dumped and loaded meanwhile. In the background
    it hands over and returns; it waits only while as many transitions lie ready as are learned from
    at a time.

    Args:
        setup: what it trains for.
        encoder: of states.
        policy: what chooses.
        wants: how many transitions it takes before it learns anything.
        open_actions: whether new actions may appear.
        on_policy: whether it must know with which probability its behaviour chose.
        background: whether it learns in the background.
        reward_scale: by what rewards are multiplied before they are learned from.
        keeps_best: whether the best policy so far chooses where the newest is surely worse.
        start: begins a process.
    """

    def __init__(
        self,
        setup: Setup,
        encoder: StateEncoder,
        policy: NetworkPolicy,
        *,
        wants: int,
        open_actions: bool,
        on_policy: bool,
        background: bool = False,
        reward_scale: float = 1.0,
        keeps_best: bool = False,
        start: Callable[[Mapping[str, Any]], Worker] = Worker,
    ) -> None:
        self._setup = setup
        self._encoder = encoder
        self._policy = policy
        self._open = open_actions
        self._on_policy = on_policy
        self._start = start
        self._inline = not background
        self._scale = reward_scale
        self._best = BestWeights() if keeps_best else None
        self._actions = setup.actions
        self._worker: Worker | None = None
        self._saved: Mapping[str, Any] | None = None  # The trainer, as it was dumped or loaded,
        self._saved_wants = wants  # what it wanted then,
        self._saved_pending: list[Transition] = []  # and what lay ready.
        self._forget()

    @property
    def is_trained(self) -> bool:
        """Whether it chooses by anything that it learned."""
        return self._policy.weights is not None

    @property
    def exploration_rate(self) -> float:
        """See `Explores`.

        Raises:
            AttributeError: it draws from its policy, and from nothing else.
        """
        rate = self._policy.exploration_rate
        if rate is None:
            raise AttributeError("exploration_rate")
        return rate

    @property
    def best(self) -> BestPolicy | None:
        """See `KeepsBest`."""
        return None if self._best is None else self._best.told(self._scale)

    @property
    def worker_pid(self) -> int | None:
        """The number of its process; None while it has none."""
        return self._worker.pid if self._worker is not None else None

    def choose(
        self, questions: Sequence[ActionQuestion], *, explore: bool, chance: np.random.Generator
    ) -> list[Choice]:
        """See `Learner`."""
        self._hear(most_left=None)
        states = self._encoder.encode([question.state for question in questions])
        aims = aimed(questions, self._scale)
        kept = None if explore or self._best is None else self._best.instead
        newest = self._policy.weights
        if kept is not None:
            self._policy.weights = kept
        try:
            choices = self._policy.choose(states, aims, explore=explore, chance=chance)
        finally:
            self._policy.weights = newest
        return in_rewards(choices, self._scale)

    def learn(self, transitions: Sequence[Transition]) -> UpdateSummary:
        """See `Learner`.

        Raises:
            InvalidArgument: its behaviour's probability must be known, and is not.
            WorkFailed: the process ended; the next call begins one that goes on from what was
                dumped or loaded last.
            ResourceExhausted: the process took more memory than it may.
        """
        if self._on_policy and any(one.probability is None for one in transitions):
            raise InvalidArgument(
                f"{self._setup.algorithm} learns only from actions whose probability is known",
                reason=Reason.INVALID_PARAMETER,
                field="probability",
            )
        transitions = scaled(transitions, self._scale)
        self._begin()
        if self._inline:
            self._learn_as_due(transitions)
        else:
            self._learn_soon(transitions)
        return self._told()

    def _learn_as_due(self, transitions: Sequence[Transition]) -> None:
        for one in transitions:
            self._notice([one])
            self._pending.append(one)
            if len(self._pending) >= self._wants:
                self._hand_over()
                self._hear(most_left=0)
                self._raise_failure()
            self._judge([one])

    def _learn_soon(self, transitions: Sequence[Transition]) -> None:
        self._notice(transitions)
        self._judge(transitions)
        self._pending += transitions
        ready = len(self._pending)
        if ready >= self._wants and not (self._asked and ready < max(self._wants, _AHEAD)):
            self._hear(most_left=0)
            self._raise_failure()
            self._hand_over()

    def _judge(self, transitions: Sequence[Transition]) -> None:
        """Count rewards in, and keep the policy that they were earned with if it is the best."""
        if self._best is not None:
            for one in transitions:
                self._best.note(one, self._policy.weights)

    def train(self, steps: int, batch: int = 0) -> UpdateSummary:
        """Take so many steps, each on `batch` of the transitions that are kept; 0: as many as the
        config says.

        Raises:
            FailedPrecondition: there are none.
            WorkFailed, ResourceExhausted: as `learn`.
        """
        self._begin()
        self._hand_over()
        self._ask({"do": "train", "steps": steps, "batch": batch})
        self._hear(most_left=0)
        return self._told()

    def dump(self) -> Mapping[str, Any]:
        """See `Learner`. Waits for what was handed over to be learned from; what lies ready goes on
        lying ready, here and where it is loaded."""
        if self._worker is not None:
            self._hear(most_left=0)
            self._raise_failure()
            self._saved = self._worker.ask({"do": "dump"}).result()["dump"]
            self._saved_wants, self._saved_pending = self._wants, list(self._pending)
        weights = self._policy.weights
        return {
            "actions": self._actions,
            "encoder": self._encoder.dump(),
            "policy": self._policy.dump(),
            "weights": None if weights is None else dict(weights),
            "trainer": self._saved,
            "wants": self._saved_wants,
            "pending": [asdict(one) for one in self._saved_pending],
            "best": None if self._best is None else self._best.dump(),
        }

    def load(self, learned: Mapping[str, Any]) -> None:
        """See `Learner`."""
        self._saved_wants = learned["wants"]
        self._saved_pending = [_transition(told) for told in learned.get("pending", ())]
        self.close()
        self._actions = learned["actions"]
        self._encoder.load(learned["encoder"])
        self._policy.load(learned["policy"])
        self._policy.weights = learned["weights"]
        self._saved = learned["trainer"]
        if self._best is not None and learned.get("best") is not None:
            self._best.load(learned["best"])

    def close(self) -> None:
        """End its process. What was not dumped is lost; it can be asked on."""
        worker, self._worker = self._worker, None
        self._forget()
        if worker is not None:
            worker.close()

    def _forget(self) -> None:
        self._pending = list(self._saved_pending)
        self._asked: deque[Future[Answer]] = deque()
        self._done: list[UpdateSummary] = []
        self._failure: MnemeError | None = None
        self._wants = self._saved_wants

    def _begin(self) -> None:
        """See to it that there is a process. Nobody waits until it has loaded torch."""
        self._raise_failure()
        if self._worker is None:
            setup = self._setup.told()
            self._worker = self._start({"do": "setup", "setup": setup, "dump": self._saved})

    def _hand_over(self) -> None:
        if self._pending:
            pending, self._pending = self._pending, []
            batch = self._batch(pending).told()
            self._ask({"do": "learn", "actions": self._actions, "batch": batch})

    def _ask(self, question: Mapping[str, Any]) -> None:
        assert self._worker is not None
        self._asked.append(self._worker.ask(question))

    def _hear(self, most_left: int | None) -> None:
        """Take over the answers that came, and wait until no more than `most_left` are to come."""
        while self._asked:
            if not self._asked[0].done() and (most_left is None or len(self._asked) <= most_left):
                return
            try:
                answer = self._asked.popleft().result()
            except MnemeError as failure:
                self._fail(failure)
                return
            self._wants = answer["wants"]
            self._done.append(UpdateSummary(**answer["learned"]))
            if answer["weights"] is not None:
                self._policy.weights = answer["weights"]

    def _fail(self, failure: MnemeError) -> None:
        worker = self._worker
        if worker is not None and worker.has_ended:
            self.close()
        self._failure = failure

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _told(self) -> UpdateSummary:
        self._raise_failure()
        done, self._done = self._done, []
        return told(_sum(done), self._scale)

    def _notice(self, transitions: Sequence[Transition]) -> None:
        self._encoder.notice([one.state for one in transitions])
        self._policy.note(transitions)
        if self._open:
            for one in transitions:
                assert isinstance(one.action, int)
                self._actions = 1 + max(self._actions - 1, one.action, *one.allowed, *one.available)

    def _batch(self, transitions: Sequence[Transition]) -> Batch:
        known = [one.next_state is not None for one in transitions]
        following = np.zeros((len(transitions), self._encoder.size), np.float32)
        if any(known):
            states = [one.next_state for one in transitions if one.next_state is not None]
            following[known] = self._encoder.encode(states)
        chosen = [one.action for one in transitions]
        kind = np.float32 if self._setup.continuous else np.int64
        rewards = np.array([one.reward for one in transitions])
        likely = [np.nan if one.probability is None else one.probability for one in transitions]
        ends = [one.terminated for one in transitions]
        with np.errstate(divide="ignore"):
            log_probability = np.log(np.array(likely, float))
        return Batch(
            states=self._encoder.encode([one.state for one in transitions]),
            actions=np.array(chosen, kind),
            rewards=np.clip(rewards, -_MOST_REWARD, _MOST_REWARD).astype(np.float32),
            next_states=following,
            terminated=np.array(ends, bool) | ~np.array(known, bool),
            ends=np.array([one.ends for one in transitions], bool),
            log_probability=log_probability.astype(np.float32),
            actors=[one.actor for one in transitions],
            available=self._flags([one.available for one in transitions]),
            allowed=self._flags([one.allowed for one in transitions]),
        )

    def _flags(self, numbers: Sequence[Sequence[int]]) -> Flags | None:
        if self._setup.continuous or all(len(one) in {0, self._actions} for one in numbers):
            return None
        flags = np.zeros((len(numbers), self._actions), bool)
        for row, one in enumerate(numbers):
            flags[row, list(one) if len(one) else slice(None)] = True
        return flags


def _transition(told: Mapping[str, Any]) -> Transition:
    """Return a transition that was dumped."""
    action = told["action"]
    return Transition(**{**told, "action": action if isinstance(action, int) else tuple(action)})


def _sum(done: Sequence[UpdateSummary]) -> UpdateSummary:
    some = [one for one in done if one.updates]
    if not some:
        return UpdateSummary()
    weights = [one.updates for one in some]
    losses = [one.loss for one in some if one.loss is not None]
    values = [one.value for one in some if one.value is not None]
    return UpdateSummary(
        updates=sum(weights),
        loss=float(np.average(losses, weights=weights)) if len(losses) == len(some) else None,
        value=float(np.mean(values)) if values else None,
        gradient_norm=float(np.average([one.gradient_norm for one in some], weights=weights)),
    )
