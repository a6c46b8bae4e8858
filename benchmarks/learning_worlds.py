"""Worlds to learn in that nothing was tuned to."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from statistics import fmean
from typing import Any, ClassVar

import gymnasium
import numpy as np
from mneme_server.common.canonical import Json
from mneme_server.features.learning.spaces import Discrete, MultiDiscrete, Space
from numpy.typing import NDArray


class Choices(ABC):
    """A choice at a time, then its reward.

    Attributes:
        about: the task, in sentences.
        count: how many actions there are.
        rounds: how many choices are made.
        counted: how many of them, the last ones, count.
    """

    about: ClassVar[str]
    count: ClassVar[int]
    rounds: ClassVar[int]
    counted: ClassVar[int]

    def __init__(self, seed: int) -> None:
        self.chance = np.random.default_rng(seed)

    @abstractmethod
    def state(self) -> Json:
        """Return the next state."""

    @abstractmethod
    def mean(self, action: int) -> float:
        """Return what an action brings on average in the last state."""

    def reward(self, action: int) -> float:
        """Draw what it brings."""
        return float(self.chance.random() < self.mean(action))


class Router(Choices):
    """Six models, of which the better cost more."""

    about = (
        "Six models, of which the better ones cost more; a task says how difficult and long it "
        "is, and its language. The reward is 1 if it was solved, less the price. 600 choices; the"
        " last 300 count, of which the best would earn 0.78."
    )
    count, rounds, counted = 6, 600, 300

    def state(self) -> Json:
        """See `Choices`."""
        self._hard, self._language = float(self.chance.random()), int(self.chance.integers(5))
        return {
            "difficulty": round(self._hard, 2),
            "language": f"l{self._language}",
            "tokens": int(self.chance.integers(100, 5_000)),
        }

    def mean(self, action: int) -> float:
        """See `Choices`."""
        able = action / 5 - self._hard + 0.15 * (self._language == action % 5)
        return 1 / (1 + math.exp(-8 * able)) - self._price(action)

    def reward(self, action: int) -> float:
        """See `Choices`."""
        solved = self.chance.random() < self.mean(action) + self._price(action)
        return float(solved) - self._price(action)

    def _price(self, action: int) -> float:
        return 0.2 * float(2.0**action) / 32


class Wide(Choices):
    """Twenty-one facts, of which one tells."""

    about = (
        "Twenty-one facts, of which one tells which of eight actions is right (it earns 1 nine "
        "times in ten, the others one time in ten). 400 choices; the last 100 count, of which the"
        " best would earn 0.9."
    )
    count, rounds, counted = 8, 400, 100

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._right = self.chance.permutation(self.count)

    def state(self) -> Json:
        """See `Choices`."""
        self._kind = int(self.chance.integers(self.count))
        others: dict[str, Json] = {
            f"f{n:02}": f"v{int(self.chance.integers(3))}"
            if n % 2
            else round(float(self.chance.random()), 2)
            for n in range(20)
        }
        return {**others, "kind": f"k{self._kind}"}

    def mean(self, action: int) -> float:
        """See `Choices`."""
        return 0.9 if action == self._right[self._kind] else 0.1


class Switch(Choices):
    """What is right is wrong from some time on."""

    about = (
        "Four kinds of tasks, five actions, of which one is right for each kind (0.9 against "
        "0.1); after 500 choices it is another one. The 300 choices after that count."
    )
    count, rounds, counted = 5, 800, 300

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._made = 0

    def state(self) -> Json:
        """See `Choices`."""
        self._made += 1
        self._kind = int(self.chance.integers(4))
        return {"kind": f"k{self._kind}"}

    def mean(self, action: int) -> float:
        """See `Choices`."""
        turned = 2 if self._made > 500 else 0
        return 0.9 if action == (self._kind + turned) % 5 else 0.1


class Cents(Choices):
    """Costs of fractions of a cent."""

    about = (
        "Three kinds of tasks, four actions; the right one costs 0.0002 dollars, the others "
        "0.004, more or less a third. 300 choices; the last 100 count, of which the best would "
        "earn -0.0002."
    )
    count, rounds, counted = 4, 300, 100

    def state(self) -> Json:
        """See `Choices`."""
        self._kind = int(self.chance.integers(3))
        return {"kind": f"k{self._kind}"}

    def mean(self, action: int) -> float:
        """See `Choices`."""
        return -0.0002 if action == self._kind else -0.004

    def reward(self, action: int) -> float:
        """See `Choices`."""
        return self.mean(action) * float(self.chance.uniform(0.7, 1.3))


Step = tuple[float, Json, bool, bool]
"""The reward, where it led, whether the task ended, and whether it was broken off."""


class Steps(ABC):
    """A task of several steps.

    Attributes:
        about: the task, in sentences.
        count: how many actions there are.
        steps: how many are learned from.
        space: of the states.
    """

    about: ClassVar[str]
    count: ClassVar[int]
    steps: ClassVar[int]
    space: ClassVar[Space]

    def __init__(self, seed: int) -> None:
        self.chance = np.random.default_rng(seed)

    @abstractmethod
    def begin(self) -> Json:
        """Begin an episode; return its first state."""

    @abstractmethod
    def step(self, action: int) -> Step:
        """Do something."""


class Blackjack(Steps):
    """Blackjack, as Gymnasium has it."""

    about = (
        "`Blackjack-v1` of Gymnasium, 20,000 steps. The best policy earns -0.045 a hand (Sutton "
        "and Barto, example 5.1); a hundred hands are uncertain by 0.19."
    )
    count, steps, space = 2, 20_000, MultiDiscrete((32, 11, 2))

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._made: gymnasium.Env[Any, Any] = gymnasium.make("Blackjack-v1")
        self._made.reset(seed=seed)

    def begin(self) -> Json:
        """See `Steps`."""
        return [int(one) for one in self._made.reset()[0]]

    def step(self, action: int) -> Step:
        """See `Steps`."""
        state, reward, terminated, truncated, _ = self._made.step(action)
        return float(reward), [int(one) for one in state], terminated, truncated


class WindyGrid(Steps):
    """A grid across which a wind blows."""

    about = (
        "The windy grid of Sutton and Barto (example 6.5): -1 a step, 15 steps are the shortest "
        "way; 10,000 steps, episodes of 200 at most."
    )
    count, steps, space = 4, 10_000, Discrete(70)
    _WIND = (0, 0, 0, 1, 1, 1, 2, 2, 1, 0)

    def begin(self) -> Json:
        """See `Steps`."""
        self._row, self._column, self._at = 3, 0, 0
        return self._row * 10 + self._column

    def step(self, action: int) -> Step:
        """See `Steps`."""
        down, right = ((-1, 0), (1, 0), (0, -1), (0, 1))[action]
        self._row = min(6, max(0, self._row + down - self._WIND[self._column]))
        self._column = min(9, max(0, self._column + right))
        self._at += 1
        there = (self._row, self._column) == (3, 7)
        return -1.0, self._row * 10 + self._column, there, self._at >= 200 and not there


class Catch(Steps):
    """A ball falls, and has to be caught."""

    about = (
        "Catch (bsuite): a ball falls through ten rows and five columns onto a paddle; 1 if it is"
        " caught, -1 if not, and 1 is the best; 10,000 steps."
    )
    count, steps, space = 3, 10_000, MultiDiscrete((10, 5, 5))

    def begin(self) -> Json:
        """See `Steps`."""
        self._row, self._ball, self._paddle = 0, int(self.chance.integers(5)), 2
        return [self._row, self._ball, self._paddle]

    def step(self, action: int) -> Step:
        """See `Steps`."""
        self._paddle = min(4, max(0, self._paddle + action - 1))
        self._row += 1
        over = self._row == 9
        reward = (1.0 if self._ball == self._paddle else -1.0) if over else 0.0
        return reward, [self._row, self._ball, self._paddle], over, False


class Queues(Steps):
    """Three servers of different speed."""

    about = (
        "A queue of three servers, one of which is three times as fast as the slowest: to which "
        "of them does a call go that arrives? The reward is less the calls that wait, a tenth "
        "each; episodes of 100 calls, 10,000 of which are learned from. The rule to join the "
        "queue that is soonest done earns about -26, and joining any about -75."
    )
    count, steps, space = 3, 10_000, MultiDiscrete((8, 8, 8))
    _SPEED = (0.6, 0.35, 0.2)

    def begin(self) -> Json:
        """See `Steps`."""
        self._waiting, self._at = [0, 0, 0], 0
        return list(self._waiting)

    def step(self, action: int) -> Step:
        """See `Steps`."""
        self._at += 1
        self._waiting[action] = min(7, self._waiting[action] + 1)
        for place, speed in enumerate(self._SPEED):
            if self._waiting[place] and self.chance.random() < speed:
                self._waiting[place] -= 1
        return -0.1 * sum(self._waiting), list(self._waiting), False, self._at >= 100


class DeepSea(Steps):
    """A reward that only a long way of steps in the right direction leads to."""

    about = (
        "DeepSea (bsuite) of size 10: only going right ten times earns about 1, each step to the "
        "right costs 0.001; 10,000 steps. Whoever draws evenly where nothing is known gets there "
        "once in 1,024 episodes."
    )
    count, steps, space = 2, 10_000, Discrete(110)

    def begin(self) -> Json:
        """See `Steps`."""
        self._row = self._column = 0
        return 0

    def step(self, action: int) -> Step:
        """See `Steps`."""
        self._column = min(9, self._column + 1) if action else max(0, self._column - 1)
        self._row += 1
        over = self._row == 10
        reward = (-0.001 if action else 0.0) + float(over and bool(action) and self._column == 9)
        return reward, self._row * 10 + self._column, over, False


class DoubleIntegrator:
    """A mass on rails, pushed towards the middle."""

    about = (
        "A mass on rails that a force between -1 and 1 is to bring to the middle and hold there; "
        "the reward is less the square of where it is, a tenth of that of its speed, and a "
        "hundredth of that of the force; episodes of 100 steps of a tenth of a second. Twenty "
        "episodes without exploring, the mean of the seeds, and the lowest and highest seed."
    )

    def __init__(self, seed: int) -> None:
        self.chance = np.random.default_rng(seed)

    def begin(self) -> Json:
        """Begin an episode; return its first state."""
        self._at = 0
        self._place = float(self.chance.uniform(-1, 1))
        self._speed = float(self.chance.uniform(-1, 1))
        return [self._place, self._speed]

    def step(self, force: float) -> tuple[float, Json, bool]:
        """Push; return the reward, the state, and whether the episode is broken off."""
        reward = -(self._place**2) - 0.1 * self._speed**2 - 0.01 * force**2
        self._place = min(10.0, max(-10.0, self._place + 0.1 * self._speed))
        self._speed = min(10.0, max(-10.0, self._speed + 0.1 * force))
        self._at += 1
        return reward, [self._place, self._speed], self._at >= 100

    def episode(self, policy: Callable[[Json], float]) -> float:
        """Return what a policy earns in an episode."""
        state, total, over = self.begin(), 0.0, False
        while not over:
            reward, state, over = self.step(policy(state))
            total += reward
        return total

    def mean_of(self, policy: Callable[[Json], float]) -> float:
        """Return what it earns on average in twenty."""
        return fmean(self.episode(policy) for _ in range(20))


def regulator(state: Json) -> float:
    """The linear-quadratic regulator of the double integrator, cut off at the bounds."""
    assert isinstance(state, list)
    return float(np.clip(-(_gain() @ np.array(state, float))[0], -1, 1))


@cache
def _gain() -> NDArray[np.float64]:
    moves, pushes = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.0], [0.1]])
    cost = found = np.diag([1.0, 0.1])
    for _ in range(500):  # Riccati's equation, by iteration.
        gain = np.linalg.solve(0.01 + pushes.T @ found @ pushes, pushes.T @ found @ moves)
        found = cost + moves.T @ found @ (moves - pushes @ gain)
    return np.asarray(gain)


CHOICES: dict[str, type[Choices]] = {
    "a router with costs": Router,
    "wide states": Wide,
    "a switch": Switch,
    "fractions of a cent": Cents,
}
SEVERAL: dict[str, type[Steps]] = {
    "blackjack": Blackjack,
    "a windy grid": WindyGrid,
    "catch": Catch,
    "three servers": Queues,
    "deep sea": DeepSea,
}
