"""What `q_learning` and `sarsa` share: a table of what each action is worth in each state.

Actions are chosen as in Sutton and Barto, "Reinforcement Learning: An Introduction", 2nd edition,
section 6.4: with probability epsilon any, else the best so far; ties by lot. Actions that were
never tried in a state are tried first when it explores, so that new ones are found at once.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mneme_server.common.canonical import Json
from mneme_server.learning.certainty import probability_best
from mneme_server.learning.keys import key_of
from mneme_server.learning.learner import Choice, Transition, Vector
from mneme_server.learning.spaces import Space


@dataclass(frozen=True, slots=True)
class TabularConfig:
    """See `catalogue.py` for what the keys mean and may be."""

    learning_rate: float
    discount_factor: float
    epsilon: float
    initial_value: float
    bins: int


class _Cell:
    """What is known of one action in one state: its value, and the targets that it was moved to."""

    __slots__ = ("mean", "squares", "tries", "value")

    def __init__(self, value: float, tries: int = 0, mean: float = 0.0, squares: float = 0.0):
        self.value = value
        self.tries = tries
        self.mean = mean
        self.squares = squares

    def move(self, target: float, rate: float) -> float:
        """Move the value towards a target; return the error, squared."""
        error = target - self.value
        self.value += rate * error
        self.tries += 1
        before = target - self.mean
        self.mean += before / self.tries
        self.squares += before * (target - self.mean)  # Welford's sum of squared deviations.
        return error * error

    def deviation(self) -> float:
        """Return the standard error of the value: that of the mean of its targets."""
        if self.tries < 2:
            return 1.0
        return math.sqrt(self.squares / (self.tries - 1) / self.tries)


class Table(ABC):
    """The table and its policy; how a transition changes it is the algorithm's.

    Args:
        space: of states.
        config: see `TabularConfig`.
    """

    def __init__(self, space: Space, config: TabularConfig) -> None:
        self._space = space
        self.config = config
        self._rows: dict[str, dict[int, _Cell]] = {}

    def choose(
        self, state: Json, allowed: Sequence[int], *, explore: bool, chance: np.random.Generator
    ) -> Choice:
        """See `Learner`."""
        row = self._rows.get(self._key(state), {})
        cells = [row.get(action) or _Cell(self.config.initial_value) for action in allowed]
        values = np.array([cell.value for cell in cells])
        tries = np.array([cell.tries for cell in cells])
        policy = self._policy(values, tries, explore)
        place = int(chance.choice(len(allowed), p=policy))
        spread = np.array([cell.deviation() for cell in cells])
        return Choice(
            action=allowed[place],
            values=values,
            probability=float(policy[place]),
            confidence=float(probability_best(values, spread)[place]),
            explored=bool(values[place] < values.max()),
        )

    def _policy(self, values: Vector, tries: Vector, explore: bool) -> Vector:
        """Return the probability of each action."""
        best = (values == values.max()).astype(float)
        if not explore:
            return best / best.sum()
        if (tries == 0).any() and (tries > 0).any():
            best = (tries == 0).astype(float)
        epsilon = self.config.epsilon
        return (1 - epsilon) * best / best.sum() + epsilon / len(values)

    @abstractmethod
    def learn(self, transition: Transition) -> float | None:
        """See `Learner`."""

    def dump(self) -> Mapping[str, Any]:
        """See `Learner`."""
        return {
            "rows": {
                key: {
                    str(action): [cell.value, cell.tries, cell.mean, cell.squares]
                    for action, cell in row.items()
                }
                for key, row in self._rows.items()
            }
        }

    def load(self, learned: Mapping[str, Any]) -> None:
        """See `Learner`."""
        self._rows = {
            key: {int(action): _Cell(*cell) for action, cell in row.items()}
            for key, row in learned["rows"].items()
        }

    def _key(self, state: Json) -> str:
        return key_of(self._space, state, self.config.bins)

    def _move(self, state: Json, action: int, target: float) -> float:
        row = self._rows.setdefault(self._key(state), {})
        cell = row.setdefault(action, _Cell(self.config.initial_value))
        return cell.move(target, self.config.learning_rate)

    def _value(self, state: Json, action: int) -> float:
        cell = self._rows.get(self._key(state), {}).get(action)
        return self.config.initial_value if cell is None else cell.value

    def _best_value(self, state: Json) -> float:
        row = self._rows.get(self._key(state), {})
        return max((cell.value for cell in row.values()), default=self.config.initial_value)
