"""Shaped rewards: what the task gives, plus a bonus that helps to find it.

A bonus that is the difference of a potential, discount * potential(after) - potential(before), with
a potential of 0 where an episode ends, leaves the best policy the best one: Ng, Harada and Russell,
"Policy invariance under reward transformations", 1999. So it does if the potential changes as one
learns, as long as a state counts as much when it is left as it did when it was reached: Devlin and
Kudenko, "Dynamic potential-based reward shaping", 2012. Any other bonus may not: an agent can come
to prefer it to the task.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from hashlib import blake2b
from typing import Any

import numpy as np

from mneme_server.common.canonical import Json
from mneme_server.common.errors import InvalidArgument
from mneme_server.features.learning.features import Dimensions, Fact, facts, key_of
from mneme_server.features.learning.spaces import Space

_BINS = 10
_MOST_ACTORS = 1_000


class Shaping(Enum):
    """What the bonus is for."""

    CURIOSITY = "curiosity"
    NOVELTY = "novelty"
    PROGRESS = "progress"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ShapingStep:
    """What happened, as far as it is told.

    Args:
        state: the state that was reached or, with `next_state`, the one before.
        next_state: the state that was reached. Without it, `state` is the one, and the one before
            is the last that this actor reached.
        action: what was done in between; empty if it is not told.
        actor: whose step it is.
        ends: whether the episode is over; the actor's next step begins another.
    """

    state: Json
    next_state: Json = None
    action: str = ""
    actor: str = ""
    ends: bool = False


@dataclass(frozen=True, slots=True)
class Shaped:
    """A shaped reward.

    Args:
        reward: the task's reward plus the bonus.
        bonus: the weight times the component that was asked for.
        curiosity: from 0 to 1: how far the state could not be predicted; 0 for the first state of
            an actor.
        novelty: from 0 to 1: 1 / sqrt(visits); as a potential's difference, from -1 to 1.
        progress: how much closer the state is to rewards, in their unit.
        keeps_best_policy: whether the best policy stays the best.
        why: why it does or does not, a sentence.
    """

    reward: float
    bonus: float
    curiosity: float
    novelty: float
    progress: float
    keeps_best_policy: bool
    why: str


@dataclass(frozen=True, slots=True)
class _ReachedState:
    """A state that was reached, with the potentials that it had then."""

    state: Json
    novelty: float
    value: float


class Shaper:
    """Shapes the rewards of a session. Not thread-safe.

    Args:
        space: of the states.
        discount: of the session.
    """

    def __init__(self, space: Space, discount: float) -> None:
        self._space = space
        self._discount = discount
        self._curiosity = Curiosity()
        self._visits = Visits()
        self._last: dict[str, _ReachedState] = {}  # By actor.
        self.used = False  # Whether there is anything worth keeping.

    def before(self, step: ShapingStep) -> Json:
        """Return the state before a step; None if the step is the first of its actor."""
        if step.next_state is not None:
            return step.state
        last = self._last.get(step.actor)
        return None if last is None else last.state

    def shape(
        self,
        step: ShapingStep,
        reward: float,
        *,
        shaping: Shaping = Shaping.CURIOSITY,
        weight: float = 0.1,
        potential_based: bool = False,
        value: float | None = None,
        value_before: float | None = None,
    ) -> Shaped:
        """Return the shaped reward of a step, and learn from the step.

        Args:
            step: what happened.
            reward: what the task gave for it.
            shaping: what the bonus is for.
            weight: how much it counts.
            potential_based: whether novelty is to be a potential, so that the best policy stays.
            value: what the learner thinks the state that was reached is worth; None if it has no
                such opinion.
            value_before: the same of the state before; None, too, if there is none.

        Raises:
            InvalidArgument: curiosity was to be potential-based, or progress without values.
        """
        if shaping is Shaping.CURIOSITY and potential_based:
            raise InvalidArgument(
                "curiosity depends on how a state was reached, not on the state alone, so that it "
                "is no potential; ask for novelty or progress, or without potential_based",
                field="potential_based",
            )
        if shaping is Shaping.PROGRESS and value is None:
            raise InvalidArgument(
                "progress needs an algorithm that values actions, and this session's does not; ask "
                "for curiosity or novelty",
                field="shaping_type",
            )
        self.used = True
        before = self._left(step, value_before)
        state = step.state if step.next_state is None else step.next_state
        visits = self._visits.visit(key_of(self._space, state, _BINS))
        reached = _ReachedState(state, novelty(visits), value or 0.0)
        curiosity = self._curious(before, step.action, state)
        if potential_based:
            new = self._difference(before, reached, step.ends, lambda one: one.novelty)
        else:
            new = reached.novelty
        progress = self._difference(before, reached, step.ends, lambda one: one.value)
        self._remember(step, reached)
        bonus = (
            weight
            * {
                Shaping.CURIOSITY: curiosity,
                Shaping.NOVELTY: new,
                Shaping.PROGRESS: progress,
                Shaping.NONE: 0.0,
            }[shaping]
        )
        keeps, why = _kept(shaping, weight, potential_based)
        return Shaped(reward + bonus, bonus, curiosity, new, progress, keeps, why)

    def dump(self) -> Mapping[str, Any]:
        """Return all that it knows, as JSON and arrays."""
        return {
            "curiosity": self._curiosity.dump(),
            "visits": self._visits.dump(),
            "last": {
                actor: {"state": one.state, "novelty": one.novelty, "value": one.value}
                for actor, one in self._last.items()
            },
        }

    def load(self, known: Mapping[str, Any]) -> None:
        """Take over what `dump` returned."""
        self.used = True
        self._curiosity = Curiosity.load(known["curiosity"])
        self._visits = Visits.load(known["visits"])
        self._last = {actor: _ReachedState(**one) for actor, one in known["last"].items()}

    def _left(self, step: ShapingStep, value: float | None) -> _ReachedState | None:
        """Return the state before a step with what it counted when it was reached."""
        last = self._last.get(step.actor)
        if step.next_state is None or (last is not None and last.state == step.state):
            return last
        visits = self._visits.count(key_of(self._space, step.state, _BINS))
        return _ReachedState(step.state, novelty(visits), value or 0.0)

    def _curious(self, before: _ReachedState | None, action: str, reached: Json) -> float:
        if before is None:
            return 0.0
        left = list(facts(self._space, before.state))
        return self._curiosity.bonus(left, action, list(facts(self._space, reached)))

    def _difference(
        self,
        before: _ReachedState | None,
        reached: _ReachedState,
        ends: bool,
        potential: Callable[[_ReachedState], float],
    ) -> float:
        if before is None:
            return 0.0
        after = 0.0 if ends else self._discount * potential(reached)
        return after - potential(before)

    def _remember(self, step: ShapingStep, reached: _ReachedState) -> None:
        self._last.pop(step.actor, None)
        if not step.ends:
            self._last[step.actor] = reached
        if len(self._last) > _MOST_ACTORS:
            self._last.pop(next(iter(self._last)))


def _kept(shaping: Shaping, weight: float, potential_based: bool) -> tuple[bool, str]:
    if shaping is Shaping.NONE or weight == 0:
        return True, "Nothing is added."
    if shaping is Shaping.PROGRESS or potential_based:
        return True, (
            "The bonus is the difference of a potential, which cancels out along every path to an "
            "episode's end."
        )
    return False, (
        f"The bonus for {shaping.value} adds up along a path, so that another policy than the "
        "task's best may earn more; it fades as states become familiar."
    )


_SIZE = 64
_INPUTS = 128
_STEP = 0.5
_FADES = 0.99
"""How much of the mean that a state is compared with stays at each step."""


class Curiosity:
    """Curiosity: a bonus for what could not be predicted (Pathak, Agrawal, Efros and Darrell,
    "Curiosity-driven exploration by self-supervised prediction", 2017).

    A linear model predicts the facts of the state that follows from those of the one before, where
    each number is also told by its tenth, and the action. It learns with each step by normalised
    least mean squares (Widrow and Hoff, 1960; Haykin, "Adaptive Filter Theory", chapter 6). The
    bonus is the share of what could have been predicted that was not: from 0, foreseen exactly, to
    1.
    """

    def __init__(self) -> None:
        self._states = Dimensions(_SIZE)
        self._actions = Dimensions(_SIZE)
        self._before = Dimensions(_INPUTS)
        self._weights = np.zeros((_SIZE, 1 + 2 * _INPUTS + _SIZE))
        self._mean = np.zeros(_SIZE)
        self._variance = 0.0

    def bonus(self, before: list[Fact], action: str, after: list[Fact]) -> float:
        """Return the bonus of a step, and learn from it.

        Args:
            before: the facts of the state in which the action was taken.
            action: what it is called; empty if it is not known.
            after: the facts of the state that followed.
        """
        detailed = list(_detailed(before))
        self._before.notice(_names(detailed))
        self._states.notice(_names(after))
        self._actions.notice([action])
        inputs = self._inputs(detailed, action)
        reached = self._states.vector(after)
        error = reached - self._weights @ inputs
        size = float(inputs @ inputs)
        self._weights += _STEP * np.outer(error, inputs) / size
        distance = reached - self._mean
        squares = float(distance @ distance)
        fades = _FADES if self._variance else 0.0
        self._variance = fades * self._variance + (1 - fades) * squares
        self._mean += (1 - _FADES) * distance
        unforeseen = float(error @ error)
        return unforeseen / (unforeseen + self._variance) if unforeseen > 0 else 0.0

    def _inputs(self, before: list[Fact], action: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        state = self._before.vector(before)
        taken = self._actions.vector([(action, 1.0)])
        place = self._actions.place(action) or 0
        # The action alone, the state alone, and what this action does to this state, folded.
        return np.concatenate([[1.0], state, taken, np.roll(state, 1 + place)])

    def dump(self) -> Mapping[str, Any]:
        """Return all that it knows, as JSON and arrays."""
        return {
            "before": self._before.names,
            "states": self._states.names,
            "actions": self._actions.names,
            "weights": self._weights.copy(),
            "mean": self._mean.copy(),
            "variance": self._variance,
        }

    @classmethod
    def load(cls, known: Mapping[str, Any]) -> Curiosity:
        """Return the model that `dump` was called on."""
        found = cls()
        found._before = Dimensions(_INPUTS, known["before"])
        found._states = Dimensions(_SIZE, known["states"])
        found._actions = Dimensions(_SIZE, known["actions"])
        found._weights, found._mean = known["weights"].copy(), known["mean"].copy()
        found._variance = known["variance"]
        return found


def _detailed(facts: Iterable[Fact]) -> Iterator[Fact]:
    for name, number in facts:
        yield name, number
        if "=" not in name:
            yield f"{name} about {number:.1f}", 1.0


def _names(facts: Iterable[Fact]) -> list[str]:
    return [name for name, _ in facts]


_ROWS, _COLUMNS = 4, 1 << 14


class Visits:
    """Novelty: a bonus that falls with how often a state was visited: 1 / sqrt(visits).

    Strehl and Littman, "An analysis of model-based interval estimation for Markov decision
    processes", 2008; states are told apart by a key, as in Tang et al., "#Exploration", 2017.

    Visits are counted in a sketch of a fixed size (Cormode and Muthukrishnan, "An improved data
    stream summary: the count-min sketch", 2005): of more than some ten thousand states a rare one
    may look as if it had been visited more often, never less.
    """

    def __init__(self) -> None:
        self._counts = np.zeros((_ROWS, _COLUMNS), dtype=np.uint32)

    def visit(self, key: str) -> int:
        """Count a visit; return how many there were, this one included."""
        cells = self._cells(key)
        count = int(self._counts[cells].min()) + 1
        # Only what is too small is raised: other states in the same cells gain nothing.
        self._counts[cells] = np.maximum(self._counts[cells], count)
        return count

    def count(self, key: str) -> int:
        """Return how often a state was visited."""
        return int(self._counts[self._cells(key)].min())

    def dump(self) -> Mapping[str, Any]:
        """Return all that it knows, as arrays."""
        return {"counts": self._counts.copy()}

    @classmethod
    def load(cls, known: Mapping[str, Any]) -> Visits:
        """Return the counts that `dump` was called on."""
        found = cls()
        found._counts = known["counts"].copy()
        return found

    def _cells(self, key: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        digest = blake2b(key.encode(), digest_size=4 * _ROWS).digest()
        return np.arange(_ROWS), np.frombuffer(digest, dtype="<u4") % _COLUMNS


def novelty(visits: int) -> float:
    """Return the bonus of a state with so many visits: 1 for the first one."""
    return 1 / math.sqrt(max(1, visits))
