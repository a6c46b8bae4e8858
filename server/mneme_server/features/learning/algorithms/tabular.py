"""Tables of what each action is worth in each state: Q-learning and Sarsa.

Actions are chosen as in Sutton and Barto, "Reinforcement Learning: An Introduction", 2nd edition,
section 6.4: with probability epsilon any, else the best so far. When it explores, actions that were
never tried in a state are tried first, so that new ones are found at once, and ties go to where it
leads to what is new (see `Novelty`); else they are broken by lot.

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
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from mneme_server.common.canonical import Json
from mneme_server.features.learning.algorithms.algorithm import (
    MOST_OPEN,
    ActionQuestion,
    Choice,
    Transition,
    UpdateSummary,
    in_rewards,
    number_of,
    scaled,
    told,
)
from mneme_server.features.learning.algorithms.choice import (
    Matrix,
    by_count,
    drawn,
    greedy,
    mixed,
    probability_best,
)
from mneme_server.features.learning.features import key_of
from mneme_server.features.learning.spaces import Space

_COLUMNS = ("state", "action", "value", "tries", "mean", "squares", "seen")


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

    @property
    def lasting(self) -> int:
        """How many of the latest targets a value is worth that keeps moving by the learning rate:
        their mean is as uncertain as it is."""
        return max(2, round(2 / self.learning_rate - 1))

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

    def move(self, target: float, rate: float, lasting: int, *, again: bool) -> float:
        """Move the value towards a target; return the error, squared. Of more than `lasting`
        targets, earlier ones count less and less for how far the value may be off."""
        error = target - self.value
        self.value += rate * error
        self.tries += 1
        if not again:
            if self.seen >= lasting:
                self.squares *= (lasting - 1) / (self.seen if self.seen > lasting else lasting)
                self.seen = lasting - 1
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


class ValueTable(ABC):
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
        self, questions: Sequence[ActionQuestion], *, explore: bool, chance: np.random.Generator
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

    def knows(self, state: Json) -> bool:
        """See `KnowsStates`."""
        return self._key(state) in self._rows

    def drawn_values(self, questions: Sequence[ActionQuestion], count: int) -> list[Matrix]:
        """See `DrawsValues`."""
        return [self._drawn_of(one, count) / self.config.reward_scale for one in questions]

    def _drawn_of(self, question: ActionQuestion, count: int) -> Matrix:
        seed = int.from_bytes(blake2b(self._key(question.state).encode(), digest_size=8).digest())
        drawn = []
        for action, cell in zip(question.allowed, self._cells(question), strict=True):
            away = np.random.default_rng([seed, action]).normal(size=1 + count)
            away[0] = 0.0
            drawn.append(cell.value + cell.deviation() * away)
        return np.array(drawn).T

    def learn(self, transitions: Sequence[Transition]) -> UpdateSummary:
        """See `Learner`. The loss is the mean squared error of the values that were corrected."""
        scale = self.config.reward_scale
        moved = []
        for one in scaled(transitions, scale):
            if not self._again:  # What is learned again was not done again.
                self._note(one)
            moved += self._learn(one)
        if not moved:
            return UpdateSummary()
        errors, values = zip(*moved, strict=True)
        found = UpdateSummary(len(moved), sum(errors) / len(errors), sum(values) / len(values))
        return told(found, scale)

    def replay(self, transitions: Sequence[Transition]) -> UpdateSummary:
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

    def _cells(self, question: ActionQuestion) -> list[_Cell]:
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
        return cell.move(target, rate, self.config.lasting, again=self._again), cell.value

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


def _untried_first(policy: Matrix, tries: Matrix) -> Matrix:
    """Return policies that choose what was never tried where other actions were."""
    new = tries == 0
    some = (new.any(axis=1) & ~new.all(axis=1))[:, None]
    evenly = new / np.maximum(new.sum(axis=1, keepdims=True), 1)
    return np.where(some, evenly, policy)


class QLearning(ValueTable):
    """Q-learning: Watkins, "Learning from Delayed Rewards", 1989; Sutton and Barto, section 6.5.

    Q(s, a) moves towards r + gamma * max over b of Q(s', b), whichever action follows: it learns
    what the best policy is worth, also from transitions that others made.
    """

    replays_in_order = False

    def _learn(self, transition: Transition) -> list[tuple[float, float]]:
        follows = 0.0 if transition.terminated else self._best_value(transition)
        return [self._towards(transition, follows)]


class Sarsa(ValueTable):
    """Sarsa: Rummery and Niranjan, 1994; Sutton and Barto, section 6.4.

    Q(s, a) moves towards r + gamma * Q(s', a'), a' being the action that is taken next: it learns
    what its own policy is worth, exploration included. A transition is therefore learned from when
    the next one of its actor comes.
    """

    def __init__(self, space: Space, actions: int | None, config: TabularConfig) -> None:
        super().__init__(space, actions, config)
        self._last: dict[str, Transition] = {}  # Of each actor, while its episode goes on.

    replays_in_order = True

    def replay(self, transitions: Sequence[Transition]) -> UpdateSummary:
        """See `Replays`. Episodes under way are not touched."""
        under_way, self._last = self._last, {}
        try:
            return super().replay(transitions)
        finally:
            self._last = under_way

    def _learn(self, transition: Transition) -> list[tuple[float, float]]:
        moved = []
        before = self._last.pop(transition.actor, None)
        if before is not None:
            follows = self._value(transition.state, number_of(transition.action))
            moved.append(self._towards(before, follows))
        if transition.terminated:
            moved.append(self._towards(transition, 0.0))
        elif transition.truncated:
            # Which action would have followed is not known; the best so far stands for it.
            moved.append(self._towards(transition, self._best_value(transition)))
        else:
            self._last[transition.actor] = transition  # The latest comes last.
            if len(self._last) > MOST_OPEN:
                del self._last[next(iter(self._last))]
        return moved

    def dump(self) -> Mapping[str, Any]:
        """See `Learner`."""
        last = {actor: asdict(transition) for actor, transition in self._last.items()}
        return {**super().dump(), "last": last}

    def load(self, learned: Mapping[str, Any]) -> None:
        """See `Learner`."""
        super().load(learned)
        self._last = {actor: Transition(**facts) for actor, facts in learned["last"].items()}


_DISCOUNT = 0.95
_UNTRIED = 1 / (1 - _DISCOUNT)
"""The most there can be: each step for the first time, for ever."""
_LEAST_RATE, _RATE_DECAY = 0.1, 0.4
"""The nth target counts n to the power of minus `_RATE_DECAY`, at least `_LEAST_RATE`."""


class Novelty:
    """What actions were taken in states, and how new that was with what lay beyond.

    Where rewards are rare nothing tells actions apart at first, and who draws among them evenly
    gets away from the beginning only slowly. So each step is also worth 1/sqrt(n) at its nth
    time (Strehl and Littman, "An analysis of model-based interval estimation for Markov decision
    processes", 2008), and what is new beyond it a share of that, as Q-learning reckons values.
    Only ties between values are broken by it: what is known to be better is chosen all the same,
    however familiar it is.
    """

    def __init__(self) -> None:
        self._rows: dict[str, dict[int, tuple[int, float]]] = {}

    def of(self, state: str, actions: Sequence[int]) -> list[float]:
        """Return how new each action is in a state."""
        row = self._rows.get(state, {})
        return [row[action][1] if action in row else _UNTRIED for action in actions]

    def note(self, state: str, action: int, beyond: str | None, actions: Sequence[int]) -> None:
        """Count a step in.

        Args:
            state: where it was taken.
            action: what was done.
            beyond: where it led; None if nothing follows.
            actions: what can be done there.
        """
        follows = 0.0 if beyond is None else max(self.of(beyond, actions), default=_UNTRIED)
        row = self._rows.setdefault(state, {})
        tries, novelty = row.get(action, (0, _UNTRIED))
        tries += 1
        target = 1 / math.sqrt(tries) + _DISCOUNT * follows
        rate = max(_LEAST_RATE, tries**-_RATE_DECAY)
        row[action] = (tries, novelty + rate * (target - novelty))

    def dump(self) -> Mapping[str, Any]:
        """Return it, as JSON and arrays."""
        cells = [
            (number, action, *known)
            for number, row in enumerate(self._rows.values())
            for action, known in row.items()
        ]
        return {
            "states": list(self._rows),
            "state": np.array([cell[0] for cell in cells], dtype=np.int64),
            "action": np.array([cell[1] for cell in cells], dtype=np.int64),
            "tries": np.array([cell[2] for cell in cells], dtype=np.int64),
            "novelty": np.array([cell[3] for cell in cells]),
        }

    def load(self, kept: Mapping[str, Any]) -> None:
        """Take over what `dump` returned."""
        rows: list[dict[int, tuple[int, float]]] = [{} for _ in kept["states"]]
        columns = (kept[name].tolist() for name in ("state", "action", "tries", "novelty"))
        for state, action, tries, novelty in zip(*columns, strict=True):
            rows[state][action] = (tries, novelty)
        self._rows = dict(zip(kept["states"], rows, strict=True))
