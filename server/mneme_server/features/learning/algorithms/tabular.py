"""What `q_learning` and `sarsa` share: a table of what each action is worth in each state.

Actions are chosen as in Sutton and Barto, "Reinforcement Learning: An Introduction", 2nd edition,
section 6.4: with probability epsilon any, else the best so far. When it explores, actions that were
never tried in a state are tried first, so that new ones are found at once, and ties go to where it
leads to what is new (see `novelty.py`); else they are broken by lot.

What is known of an action in a state at first is little, so that its first targets count fully: its
learning rate is n to the power of -`rate_decay` at the nth, and never below `learning_rate`
(Even-Dar and Mansour, "Learning rates for Q-learning", 2003). Rewards far away so get to where they
are needed soon, and what changes later is still learned. Where nothing follows, the target is a
reward alone, whose mean is the best that one knows: there it is 1/n.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mneme_server.common.canonical import Json
from mneme_server.features.learning.algorithms.novelty import Novelty
from mneme_server.features.learning.certainty import Matrix, probability_best
from mneme_server.features.learning.choosing import by_count, drawn, greedy, mixed
from mneme_server.features.learning.keys import key_of
from mneme_server.features.learning.learner import Choice, Learned, Question, Transition, number_of
from mneme_server.features.learning.scaling import in_rewards, scaled, told
from mneme_server.features.learning.spaces import Space


@dataclass(frozen=True, slots=True)
class TabularConfig:
    """See `catalogue.py` for what the keys mean and may be."""

    learning_rate: float
    discount_factor: float
    epsilon: float
    initial_value: float
    bins: int
    rate_decay: float = 0.0
    reward_scale: float = 1.0

    def rate(self, tries: int, *, last: bool) -> float:
        """Return how far a value moves towards its next target, after so many.

        Args:
            tries: how many there were.
            last: whether nothing follows, so that the target is what a reward alone says.
        """
        if not self.rate_decay:
            return self.learning_rate
        falls = 1.0 if last else self.rate_decay
        return float(max(self.learning_rate, (tries + 1) ** -falls))


class _Cell:
    """What is known of one action in one state: its value, and the targets that it was moved to.

    `tries` are all of them. `seen` are those of steps that were new: what is learned again says
    nothing more of how far the value may be off.
    """

    __slots__ = ("mean", "seen", "squares", "tries", "value")

    def __init__(
        self,
        value: float,
        tries: int = 0,
        mean: float = 0.0,
        squares: float = 0.0,
        seen: int = 0,
    ):
        self.value = value
        self.tries = tries
        self.mean = mean
        self.squares = squares
        self.seen = seen

    def move(self, target: float, rate: float, *, again: bool) -> float:
        """Move the value towards a target; return the error, squared."""
        error = target - self.value
        self.value += rate * error
        self.tries += 1
        if not again:
            self.seen += 1
            before = target - self.mean
            self.mean += before / self.seen
            self.squares += before * (target - self.mean)  # Welford's sum of squared deviations.
        return error * error

    def deviation(self) -> float:
        """Return the standard error of the value: that of the mean of its targets."""
        if self.seen < 2:
            return 1.0
        return math.sqrt(self.squares / (self.seen - 1) / self.seen)


class Table(ABC):
    """The table and its policy; how a transition changes it is the algorithm's.

    Args:
        space: of states.
        actions: how many actions there are; None if new ones may appear.
        config: see `TabularConfig`.
    """

    def __init__(self, space: Space, actions: int | None, config: TabularConfig) -> None:
        self._space = space
        self._actions = actions
        self.config = config
        self._rows: dict[str, dict[int, _Cell]] = {}
        self._novelty = Novelty()
        self._initial_value = config.initial_value * config.reward_scale
        self._new = _Cell(self._initial_value)
        self._again = False  # Whether what is learned was learned before.

    @property
    def exploration_rate(self) -> float:
        """See `Explores`."""
        return self.config.epsilon

    def choose(
        self, questions: Sequence[Question], *, explore: bool, chance: np.random.Generator
    ) -> list[Choice]:
        """See `Learner`."""
        chosen: dict[int, Choice] = {}
        for places, group in by_count(questions):
            cells = [self._cells(question) for question in group]
            values = np.array([[cell.value for cell in row] for row in cells])
            spread = np.array([[cell.deviation() for cell in row] for row in cells])
            policy = greedy(values)
            if explore:
                tries = np.array([[cell.tries for cell in row] for row in cells])
                new = [self._novelty.of(self._key(one.state), one.allowed) for one in group]
                policy = greedy(np.where(policy > 0, np.array(new), -np.inf))
                policy = mixed(_untried_first(policy, tries), self.config.epsilon)
            best = probability_best(values, spread)
            found = drawn(group, values=values, policy=policy, best=best, chance=chance)
            chosen.update(zip(places, found, strict=True))
        choices = [chosen[place] for place in range(len(questions))]
        return in_rewards(choices, self.config.reward_scale)

    def learn(self, transitions: Sequence[Transition]) -> Learned:
        """See `Learner`. The loss is the mean squared error of the values that were corrected."""
        scale = self.config.reward_scale
        moved = []
        for one in scaled(transitions, scale):
            if not self._again:  # What is learned again was not done again.
                self._note(one)
            moved += self._learn(one)
        if not moved:
            return Learned()
        errors, values = zip(*moved, strict=True)
        found = Learned(len(moved), sum(errors) / len(errors), sum(values) / len(values))
        return told(found, scale)

    def replay(self, transitions: Sequence[Transition]) -> Learned:
        """See `Replays`."""
        self._again = True
        try:
            return self.learn(transitions)
        finally:
            self._again = False

    @abstractmethod
    def _learn(self, transition: Transition) -> list[tuple[float, float]]:
        """Learn from a transition; return the squared errors and the new values of the cells that
        it corrected."""

    def _note(self, transition: Transition) -> None:
        """Count a step in: it is less new from then on."""
        known = self._key(transition.state)
        beyond = None if transition.terminated else self._key(transition.next_state)
        allowed = transition.allowed or range(self._actions or 0)
        self._novelty.note(known, number_of(transition.action), beyond, allowed)

    def dump(self) -> Mapping[str, Any]:
        """See `Learner`."""
        cells = [
            (number, action, cell)
            for number, row in enumerate(self._rows.values())
            for action, cell in row.items()
        ]
        return {
            "states": list(self._rows),
            "state": np.array([number for number, _, _ in cells], dtype=np.int64),
            "action": np.array([action for _, action, _ in cells], dtype=np.int64),
            "tries": np.array([cell.tries for _, _, cell in cells], dtype=np.int64),
            "value": np.array([cell.value for _, _, cell in cells]),
            "mean": np.array([cell.mean for _, _, cell in cells]),
            "squares": np.array([cell.squares for _, _, cell in cells]),
            "seen": np.array([cell.seen for _, _, cell in cells], dtype=np.int64),
            "novelty": self._novelty.dump(),
        }

    def load(self, learned: Mapping[str, Any]) -> None:
        """See `Learner`."""
        rows: list[dict[int, _Cell]] = [{} for _ in learned["states"]]
        columns = [learned[name].tolist() for name in _COLUMNS]
        for state, action, *known in zip(*columns, strict=True):
            rows[state][action] = _Cell(*known)
        self._rows = dict(zip(learned["states"], rows, strict=True))
        self._novelty = Novelty()
        if "novelty" in learned:  # What is of another session has none.
            self._novelty.load(learned["novelty"])

    def _cells(self, question: Question) -> list[_Cell]:
        row = self._rows.get(self._key(question.state), {})
        return [row.get(action, self._new) for action in question.allowed]

    def _key(self, state: Json) -> str:
        return key_of(self._space, state, self.config.bins)

    def _towards(self, transition: Transition, follows: float) -> tuple[float, float]:
        """Move the value of a transition's action, where what follows is worth `follows`; return
        the error, squared, and the new value."""
        target = transition.reward + self.config.discount_factor * follows
        row = self._rows.setdefault(self._key(transition.state), {})
        cell = row.setdefault(number_of(transition.action), _Cell(self._initial_value))
        rate = self.config.rate(cell.tries, last=transition.terminated)
        return cell.move(target, rate, again=self._again), cell.value

    def _value(self, state: Json, action: int) -> float:
        return self._rows.get(self._key(state), {}).get(action, self._new).value

    def _best_value(self, transition: Transition) -> float:
        """Return what the best action is worth where a transition led. Where new actions may
        appear, those that were tried are all there are."""
        row = self._rows.get(self._key(transition.next_state), {})
        if transition.allowed:
            return max(row.get(action, self._new).value for action in transition.allowed)
        values = [cell.value for cell in row.values()]
        if not values or (self._actions is not None and len(values) < self._actions):
            values.append(self._initial_value)
        return max(values)


_COLUMNS = ("state", "action", "value", "tries", "mean", "squares", "seen")


def _untried_first(policy: Matrix, tries: Matrix) -> Matrix:
    """Return policies that choose what was never tried where other actions were."""
    new = tries == 0
    some = (new.any(axis=1) & ~new.all(axis=1))[:, None]
    evenly = new / np.maximum(new.sum(axis=1, keepdims=True), 1)
    return np.where(some, evenly, policy)
