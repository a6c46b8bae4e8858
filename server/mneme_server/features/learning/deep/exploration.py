"""Exploration: doing something else than what seems best, to learn from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme_server.features.learning.algorithms.choice import Matrix, mixed

_FEW_TRIES = 25
_FOR_NEW = 0.25
"""With which probability one of the actions is tried of which less than `_FEW_TRIES` are known,
where new ones may appear."""
_CORRELATED_OVER = (0.0, 4.0, 16.0, 64.0, 256.0)
"""Steps; an octave of frequencies and more apart, so that they add up to pink noise."""
_MOST_ACTORS = 1_000


class Exploration:
    """With which probability a policy over a number of actions is departed from.

    What is tried may be tried on: chance that begins anew at each step stays near where it began,
    and tasks without rewards nearby need to get away (Dabney, Ostrovski and Barreto,
    "Temporally-extended epsilon-greedy exploration", 2021). Here an actor's last action is repeated
    by lot, so that each allowed action keeps a probability, and what it is is known.

    Args:
        first: the probability of any action at first.
        last: and in the end.
        over: after so many transitions, to which it falls evenly,
        episodes: or after so many episodes, if that is sooner.
        count_tries: whether new actions may appear, which are then tried first.
        repeats: with which probability what is tried is the actor's last action in its episode.
    """

    def __init__(
        self,
        first: float,
        last: float,
        over: int = 0,
        episodes: int = 0,
        *,
        count_tries: bool,
        repeats: float = 0.0,
    ) -> None:
        self._first, self._last = first, last
        self._over, self._episodes = max(1, over), max(1, episodes)
        self._tries: dict[int, int] | None = {} if count_tries else None
        self._repeats = repeats
        self._latest: dict[str, int] = {}  # Each actor's last action.
        self._seen = 0
        self._ended = 0

    @property
    def epsilon(self) -> float:
        """The probability of any action now."""
        done = min(1.0, max(self._seen / self._over, self._ended / self._episodes))
        return self._first + done * (self._last - self._first)

    def mixed(self, policy: Matrix, allowed: NDArray[np.int64], actors: Sequence[str]) -> Matrix:
        """Return policies that try others, too.

        Args:
            policy: the probability of each allowed action, shape (questions, n).
            allowed: the numbers of the actions, of the same shape.
            actors: who asks.
        """
        if self._tries is not None:
            tries = self._tries
            few = np.array(
                [[tries.get(a, 0) < _FEW_TRIES for a in row] for row in allowed.tolist()]
            )
            count = few.sum(axis=1, keepdims=True)
            share = np.where((count > 0) & (count < few.shape[1]), _FOR_NEW, 0.0)
            policy = (1 - share) * policy + share * few / np.maximum(count, 1)
        if not self._repeats:
            return mixed(policy, self.epsilon)
        latest = np.array([self._latest.get(actor, -1) for actor in actors])
        again = (allowed == latest[:, None]).astype(float)
        repeats = self._repeats * again.any(axis=1, keepdims=True)
        tried = repeats * again + (1 - repeats) / allowed.shape[1]
        found: Matrix = (1 - self.epsilon) * policy + self.epsilon * tried
        return found

    def chose(self, actors: Sequence[str], actions: Sequence[int]) -> None:
        """Know what actors did last."""
        if not self._repeats:
            return
        for actor, action in zip(actors, actions, strict=True):
            self._latest.pop(actor, None)
            self._latest[actor] = action  # The latest comes last.
        while len(self._latest) > _MOST_ACTORS:
            del self._latest[next(iter(self._latest))]

    def end(self, actor: str) -> None:
        """Begin anew for an actor, whose episode ended."""
        self._latest.pop(actor, None)

    def note(self, actions: Sequence[int], ended: int) -> None:
        """Count transitions that are learned from, and episodes that ended with them."""
        self._seen += len(actions)
        self._ended += ended
        if self._tries is not None:
            for action in actions:
                self._tries[action] = self._tries.get(action, 0) + 1

    def dump(self) -> Mapping[str, Any]:
        """Return the counts, as JSON."""
        return {
            "seen": self._seen,
            "ended": self._ended,
            "tries": [*(self._tries or {}).items()],
            "latest": [*self._latest.items()],
        }

    def load(self, counted: Mapping[str, Any]) -> None:
        """Take over what `dump` returned."""
        self._seen, self._ended = counted["seen"], counted["ended"]
        if self._tries is not None:
            self._tries = dict(counted["tries"])
        self._latest = dict(counted.get("latest", []))


class PinkNoise:
    """Noise for each actor that is as strong slowly as quickly: Eberhard et al., "Pink noise is all
    you need: colored noise exploration in deep reinforcement learning", 2023.

    White noise stays near where it began; pink noise also gets away, which tasks without rewards
    nearby need. Each number is standard normal. It is a sum of autoregressive processes.

    Args:
        size: how many numbers a step has.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        keep = [math.exp(-1 / over) if over else 0.0 for over in _CORRELATED_OVER]
        self._keep = np.array(keep)[:, None]
        self._add = np.sqrt(1 - self._keep**2)
        self._states: dict[str, NDArray[np.float64]] = {}

    def draw(self, actors: Sequence[str], chance: np.random.Generator) -> NDArray[np.float64]:
        """Return the next numbers of each actor, shape (actors, size)."""
        fresh = chance.standard_normal((len(actors), len(_CORRELATED_OVER), self._size))
        for row, actor in enumerate(actors):
            before = self._states.pop(actor, None)
            after = fresh[row] if before is None else self._keep * before + self._add * fresh[row]
            self._states[actor] = fresh[row] = after  # The latest comes last.
        while len(self._states) > _MOST_ACTORS:
            del self._states[next(iter(self._states))]
        found: NDArray[np.float64] = fresh.sum(axis=1) / math.sqrt(len(_CORRELATED_OVER))
        return found

    def end(self, actor: str) -> None:
        """Begin anew for an actor, whose episode ended."""
        self._states.pop(actor, None)

    def dump(self) -> Mapping[str, Any]:
        """Return where it is, as JSON and arrays."""
        rows = [state.ravel() for state in self._states.values()]
        return {
            "actors": list(self._states),
            "rows": np.array(rows).reshape(len(rows), len(_CORRELATED_OVER) * self._size),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Take over what `dump` returned."""
        shape = (len(_CORRELATED_OVER), self._size)
        rows = (np.array(row).reshape(shape) for row in state["rows"])
        self._states = dict(zip(state["actors"], rows, strict=True))
