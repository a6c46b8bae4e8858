"""The policy of a session at work: its learner, and what it knows of its actions and episodes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mneme_server.common.canonical import Json
from mneme_server.common.stored import UNREADABLE, damaged
from mneme_server.features.learning.algorithms.algorithm import (
    MOST_OPEN,
    Action,
    ActionQuestion,
    Algorithm,
    Choice,
    Closes,
    Learner,
    LearningTask,
    Matures,
    Transition,
    UpdateSummary,
)
from mneme_server.features.learning.algorithms.choice import Vector, chosen
from mneme_server.features.learning.algorithms.reward_shaping import Shaper
from mneme_server.features.learning.model import (
    Checkpoint,
    LearningMode,
    LearningProgress,
    LearningSession,
    RecordedStep,
)
from mneme_server.features.learning.sessions.serialization import decoded, encoded, json_of
from mneme_server.features.learning.spaces import Actions, Box, OpenLabels
from mneme_server.features.learning.tally import SessionTally
from mneme_server.features.learning.trust.gate import GateAtWork

LARGEST = 1e100
"""Rewards that are larger are learned from as if they were this one: their squares are numbers."""
_SOURCES = b'"sources":{"'
"""What is in a checkpoint that names sources: `encoded` writes JSON as it is."""
_NONE = np.zeros(0)


@dataclass(frozen=True, slots=True)
class StateInput:
    """A state in which an action is asked for, checked. `allowed` is empty where all are."""

    state: Json
    allowed: Sequence[Json] = ()
    actor: str = ""
    target_return: float | None = None


@dataclass(frozen=True, slots=True)
class ChosenAction:
    """An action that was chosen; see `Choice`. `labels` are the actions it was chosen from."""

    action: Json
    labels: Sequence[Json]
    values: Vector
    policy: Vector
    probability: float | None
    confidence: float
    explored: bool
    trained: bool


def sources_of(checkpoint: bytes) -> dict[int, int]:
    """Return the sessions, by number, of which a policy took over what they had learned, each with
    the number of the last step that they had learned it from. The checkpoint is as it was written.

    Raises:
        ValueError: it is no checkpoint.
    """
    if _SOURCES not in checkpoint:  # Most have none, and reading tells no sooner.
        return {}
    return _sources(json_of(checkpoint))


def _sources(kept: Mapping[str, Any]) -> dict[int, int]:
    return {int(number): steps for number, steps in kept.get("sources", {}).items()}


class SessionPolicy:
    """What a session has learned, by the callers' actions instead of their numbers.

    Not thread-safe. `progress` and the random numbers are its own; what it was told and has not
    learned yet, it does not know.

    Args:
        algorithm: what learns.
        session: as it is stored.
        checkpoint: what it had learned when that was last saved; None if it never was.

    Raises:
        DataLoss: the checkpoint is damaged.
    """

    def __init__(
        self, algorithm: Algorithm, session: LearningSession, checkpoint: Checkpoint | None
    ) -> None:
        definition = session.definition
        self._space = definition.actions
        self._algorithm = algorithm
        self._task = LearningTask(
            states=definition.states,
            actions=definition.actions,
            config=definition.config,
            seed=definition.seed,
            background=definition.mode is LearningMode.BACKGROUND,
        )
        self._begin()
        self._chance = np.random.default_rng([definition.seed, 1])
        self._actions: Actions | None = None
        self._session_id = session.id
        self.progress = LearningProgress()
        self.shaper = Shaper(definition.states, float(definition.config.get("discount_factor", 1)))
        self.gates: dict[str, GateAtWork] = {}  # By what their baselines are.
        self.under_way: dict[str, None] = {}  # Whose episodes it has learned the beginnings of.
        # By number, the sessions of which it took over what they had learned from so many steps.
        self.sources: dict[int, int] = {}
        self.shaped = 0  # Rewards, since the session was opened.
        seen: Sequence[Json] = ()
        self.told: Mapping[str, Any] = {}
        if checkpoint is not None:
            seen = self._load(checkpoint)
        if not isinstance(definition.actions, Box):
            self._actions = Actions(definition.actions, seen)  # type: ignore[arg-type]

    def _begin(self) -> None:
        self._learner = self._algorithm.make(self._task)
        # Told once: it takes longer than a choice does.
        self._matures = self._learner if isinstance(self._learner, Matures) else None

    def begin_anew(self) -> None:
        """Know nothing, neither of the steps that were learned nor of other sessions. Gates have to
        collect their evidence anew, too."""
        if isinstance(self._learner, Closes):
            self._learner.close()
        self._begin()
        self.progress = replace(self.progress, learned=0, updates=0)
        self.sources, self.gates, self.under_way = {}, {}, {}

    @property
    def learner(self) -> Learner:
        """What learns."""
        return self._learner

    @property
    def is_trained(self) -> bool:
        """Whether it chooses by anything that it learned: from steps, or from another session."""
        if not self.progress.learned and not self.progress.updates:
            return False
        return self._matures is None or self._matures.is_trained

    @property
    def known(self) -> Sequence[Json]:
        """The actions known so far; none if they are a box."""
        return () if self._actions is None else self._actions.values

    def choose(self, asked: Sequence[StateInput], *, explore: bool) -> list[ChosenAction]:
        """Choose an action for each; there must be one to choose.

        Raises:
            Abandoned: nobody waits for it any more.
        """
        if not self.is_trained:
            return [self._even(one) for one in asked]
        questions, labels = zip(*map(self.question, asked), strict=True)
        choices = chosen(self._learner, questions, explore=explore, chance=self._chance)
        return [
            self._named(choice, question.allowed, names)
            for choice, question, names in zip(choices, questions, labels, strict=True)
        ]

    def choose_gated(self, asked: StateInput, gated: GateAtWork, *, explore: bool) -> ChosenAction:
        """Choose an action where a baseline answers unless the policy is trusted more."""
        assert gated.baseline is not None
        question, labels = self.question(asked)
        answer = self._answer(question, explore=explore)
        baseline = gated.baseline.probabilities(question)
        policy = gated.mixture(answer.policy, baseline, explore=explore)
        place = int(self._chance.choice(len(labels), p=policy / policy.sum()))
        mine = question.allowed[place] == answer.action
        left = (1 - answer.confidence) / max(1, len(labels) - 1)
        best = answer.policy if not len(answer.values) else answer.values
        return ChosenAction(
            action=labels[place],
            labels=labels,
            values=answer.values,
            policy=policy,
            probability=float(policy[place]),
            confidence=answer.confidence if mine else left,
            explored=bool(best[place] < best.max()),
            trained=self.is_trained,
        )

    def _answer(self, question: ActionQuestion, *, explore: bool) -> Choice:
        if self.is_trained:
            return self._learner.choose([question], explore=explore, chance=self._chance)[0]
        share = 1 / len(question.allowed)
        policy = np.full(len(question.allowed), share)
        return Choice(question.allowed[0], _NONE, policy, share, share, explored=False)

    def question(self, asked: StateInput) -> tuple[ActionQuestion, Sequence[Json]]:
        """Return a question as learners take it, and the actions it is about."""
        numbers, labels = self._numbers(asked.allowed)
        return ActionQuestion(asked.state, numbers, asked.actor, asked.target_return), labels

    def values(self, asked: Sequence[StateInput]) -> list[Vector]:
        """Return what it thinks each action is worth, for each that is asked; empty if it has no
        such opinion. Nothing is drawn from its random numbers."""
        questions = [self.question(one)[0] for one in asked]
        chance = np.random.default_rng(0)
        choices = chosen(self._learner, questions, explore=False, chance=chance)
        return [choice.values for choice in choices]

    def learn(self, steps: Sequence[RecordedStep]) -> UpdateSummary:
        """Learn from the steps that come next."""
        began = time.monotonic_ns()
        transitions = [self._transition(step) for step in steps]
        self._observe(transitions)
        learned = self._learner.learn(transitions)
        self.count(learned, time.monotonic_ns() - began, steps[-1].number)
        return learned

    def _observe(self, transitions: Sequence[Transition]) -> None:
        """Have gates judge by what comes next, and note whose episodes are then under way."""
        for one in transitions:
            self.under_way.pop(one.actor, None)
            if not one.ends:
                self.under_way[one.actor] = None
                if len(self.under_way) > MOST_OPEN:
                    del self.under_way[next(iter(self.under_way))]
        for gated in self.gates.values():
            if self.is_trained:
                gated.observe(self._learner, transitions, range(len(self.known)))
            else:
                gated.missed(self.under_way)

    def number_of(self, label: Json) -> int | None:
        """Return the number of an action; None if it has none yet, or actions are a box."""
        return None if self._actions is None else self._actions.number(label)

    def number(self, label: Json) -> int | None:
        """Return the number of an action, which a new label of an open space gets; None if the
        action is not in the space, or actions are a box."""
        if self._actions is None:
            return None
        known = self._actions.number(label)
        if known is None and isinstance(self._space, OpenLabels):
            return self._actions.add(label)
        return known

    def take_over(
        self,
        learned: Mapping[str, Any],
        numbers: int,
        again: Sequence[Transition],
        sources: Mapping[int, int],
    ) -> None:
        """Begin anew with what another session has learned.

        Args:
            learned: what its learner dumped, with the numbers that actions have here.
            numbers: how many numbers that is: each is a correction.
            again: transitions of this session to learn again on top of it.
            sources: the sessions that it comes from; see `sources_of`.
        """
        for number, steps in sources.items():  # Earlier ones may be in what was exported.
            self.sources[number] = max(steps, self.sources.get(number, 0))
        self._learner.load(learned)
        done = self._learner.learn(again) if again else UpdateSummary()
        self.count(UpdateSummary(updates=numbers + done.updates), 0)

    def count(self, learned: UpdateSummary, took_ns: int, last: int | None = None) -> None:
        """Note what learning did, how long it took, and the number of the last step it was of."""
        before = self.progress
        self.progress = replace(
            before,
            learned=before.learned if last is None else last,
            updates=before.updates + learned.updates,
            training_us=before.training_us + took_ns // 1_000,
        )

    def transitions(self, steps: Iterable[RecordedStep]) -> list[Transition]:
        """Return steps that were learned before as learners take them."""
        return [self._transition(step) for step in steps]

    def drawn(self, count: int, most: int, *, in_order: bool) -> list[int]:
        """Draw the numbers of steps to learn from again: in a row, or each by lot.

        Args:
            count: how many steps there are; they are numbered from 1.
            most: how many to draw; if they are in a row, there may be fewer.
            in_order: whether they are in a row.
        """
        if in_order:
            first = int(self._chance.integers(1, count + 1))
            return list(range(first, min(count, first + most - 1) + 1))
        return [int(number) for number in self._chance.integers(1, count + 1, most)]

    def draw_apart(self) -> None:
        """Draw other random numbers than the session does whose copy it is."""
        self._chance = np.random.default_rng()

    def checkpoint(self, tally: SessionTally) -> Checkpoint:
        """Return all that it has learned, and what was counted."""
        kept = {
            "learner": self._learner.dump(),
            "chance": self._chance.bit_generator.state,
            "seen": list(self.known) if isinstance(self._actions, Actions) else [],
            "tally": tally.dump(),
            "gates": {name: gated.dump() for name, gated in self.gates.items()},
            "shaper": self.shaper.dump() if self.shaper.used else None,
            "sources": {str(number): steps for number, steps in self.sources.items()},
        }
        return Checkpoint(self.progress, encoded(kept))

    def _load(self, checkpoint: Checkpoint) -> Sequence[Json]:
        try:
            kept = decoded(checkpoint.data)
            self._learner.load(kept["learner"])
            self._chance.bit_generator.state = kept["chance"]
            self.told = kept["tally"]
            seen: Sequence[Json] = kept["seen"]
            gates = kept.get("gates", {})
            self.gates = {name: GateAtWork.load(known) for name, known in gates.items()}
            self.under_way = dict.fromkeys(self.told["open"])
            self.sources = _sources(kept)
            if kept.get("shaper") is not None:
                self.shaper.load(kept["shaper"])
        except UNREADABLE as error:
            raise damaged("checkpoint of the learning session", self._session_id, error) from error
        self.progress = checkpoint.progress
        return seen

    def _numbers(self, allowed: Sequence[Json]) -> tuple[Sequence[int], Sequence[Json]]:
        """Return the numbers and labels to choose from; labels that are new have the next ones."""
        if self._actions is None:
            return (), ()
        if not allowed:
            return range(len(self._actions)), self._actions.values
        numbers, new = [], len(self._actions)
        for label in allowed:
            number = self._actions.number(label)
            if number is None:
                number, new = new, new + 1
            numbers.append(number)
        return numbers, allowed

    def _named(
        self, choice: Choice, numbers: Sequence[int], labels: Sequence[Json]
    ) -> ChosenAction:
        if isinstance(choice.action, int):
            action = labels[numbers.index(choice.action)]
        else:
            action = list(choice.action)
        return ChosenAction(
            action=action,
            labels=labels,
            values=choice.values,
            policy=choice.policy,
            probability=choice.probability,
            confidence=choice.confidence,
            explored=choice.explored,
            trained=True,
        )

    def _even(self, asked: StateInput) -> ChosenAction:
        """Draw an action of which nothing is known."""
        if isinstance(self._space, Box):
            low, high = np.array(self._space.low), np.array(self._space.high)
            drawn: Json = self._chance.uniform(low, high).tolist()
            density = float(np.exp(-np.log(high - low).sum()))
            return ChosenAction(drawn, (), _NONE, _NONE, density, 0.0, explored=True, trained=False)
        labels = self._numbers(asked.allowed)[1]
        share = 1 / len(labels)
        return ChosenAction(
            action=labels[int(self._chance.integers(len(labels)))],
            labels=labels,
            values=_NONE,
            policy=np.full(len(labels), share),
            probability=share,
            confidence=share,
            explored=False,
            trained=False,
        )

    def _transition(self, step: RecordedStep) -> Transition:
        action: Action
        if self._actions is None:
            action = tuple(map(float, step.action))  # type: ignore[arg-type]
        else:
            action = self._actions.add(step.action)
        available = self._added(step.available)  # In the order in which they were recorded.
        return Transition(
            state=step.state,
            action=action,
            reward=max(-LARGEST, min(LARGEST, step.reward)),
            next_state=step.next_state,
            terminated=step.terminated,
            truncated=step.truncated,
            actor=step.actor,
            probability=step.probability,
            allowed=self._added(step.allowed),
            available=available,
        )

    def _added(self, labels: Sequence[Json]) -> Sequence[int]:
        return () if self._actions is None else [self._actions.add(label) for label in labels]
