"""The policy of a decision transformer: what its network foretells, in NumPy.

It looks at the latest transitions of an actor's episode, as far as they were learned from, and asks
what is done next where as much is still to be gained as the question aims at.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme_server.features.learning.algorithms.algorithm import (
    Action,
    ActionQuestion,
    Choice,
    Transition,
)
from mneme_server.features.learning.algorithms.choice import Matrix, greedy
from mneme_server.features.learning.deep.encoder import StateEncoder, Vectors
from mneme_server.features.learning.deep.policies import (
    NetworkPolicy,
    Weights,
    by_group,
    columns,
    evenly,
    softmax,
    standard,
)

_MOST_ACTORS = 1_000
_TOKENS = 3
_LEAST_VARIANCE = np.float32(1e-5)
"""What keeps a norm from dividing by zero, as in torch."""


class _Past:
    """What an actor did in this episode: the latest states and actions, and what it gained."""

    def __init__(self, length: int) -> None:
        self.steps: deque[tuple[Vectors, Action, float]] = deque(maxlen=length - 1)
        self.gained = 0.0


class TransformerPolicy(NetworkPolicy):
    """Chooses what the network foretells: over a number of actions the most probable one; in a box
    there is one answer.

    Exploring, or asked for less than the best recorded return, it draws from the softmax instead.
    What gained less was often done by chance; the most probable actions alone would gain more.

    Its confidence is the probability of the action; in a box the share of the variance of recorded
    actions that it foretells.

    Args:
        encoder: of states.
        actions: how many actions there are, or coordinates.
        length: how many transitions it looks at, the one to come included.
        heads: of its attention.
        box: middle and half the width of the box, if there is one.
    """

    def __init__(
        self,
        encoder: StateEncoder,
        actions: int,
        length: int,
        heads: int,
        box: tuple[Vectors, Vectors] | None,
    ) -> None:
        self._encoder = encoder
        self._actions = actions
        self._length = length
        self._heads = heads
        self._box = box
        self._pasts: OrderedDict[str, _Past] = OrderedDict()

    def choose(
        self,
        states: Vectors,
        questions: Sequence[ActionQuestion],
        *,
        explore: bool,
        chance: np.random.Generator,
    ) -> list[Choice]:
        """See `NetworkPolicy`."""
        weights = self.weights
        if weights is None:
            return self._untrained(questions, chance)
        out = self._foretold(weights, states, questions)
        if self._box is not None:
            return self._inside(np.tanh(out), float(np.clip(weights["certainty"], 0, 1)))

        best = float(weights["best"])
        aims = [one.target_return for one in questions]
        draws = np.array([explore or (aim is not None and aim < best) for aim in aims])

        def told(rows: list[int], allowed: NDArray[np.int64]) -> tuple[Matrix, Matrix, Matrix]:
            likely = softmax(columns(out[rows], allowed))
            policy = np.where(draws[rows, None], likely, greedy(likely))
            return np.empty((len(rows), 0)), policy, likely

        return by_group(questions, told, chance)

    def _untrained(
        self, questions: Sequence[ActionQuestion], chance: np.random.Generator
    ) -> list[Choice]:
        if self._box is None:
            return evenly(questions, chance)
        inside = chance.uniform(-1, 1, (len(questions), self._actions))
        density = float(np.prod(0.5 / self._box[1].astype(np.float64)))
        return self._inside(inside, 0.0, density)

    def _inside(self, inside: Matrix, certain: float, density: float | None = None) -> list[Choice]:
        assert self._box is not None
        none = np.empty(0)
        return [
            Choice(tuple(one), none, none, density, certain, explored=density is not None)
            for one in (self._box[0] + self._box[1] * inside).tolist()
        ]

    def _foretold(
        self, weights: Weights, states: Vectors, questions: Sequence[ActionQuestion]
    ) -> Vectors:
        """Return what is foretold of each question's action, shape (n, actions)."""
        unit, best = float(weights["unit"]), float(weights["best"])
        pasts = [self._pasts.get(question.actor) for question in questions]
        steps = [[] if past is None else [*past.steps] for past in pasts]
        length = max(map(len, steps)) + 1
        shape = (len(questions), length)
        seen = np.zeros((*shape, states.shape[1]), np.float32)
        returns = np.zeros(shape, np.float32)
        actions = np.zeros((*shape, self._actions), np.float32)
        for row, (question, past, own) in enumerate(zip(questions, pasts, steps, strict=True)):
            aim = best if question.target_return is None else question.target_return
            for place, (state, action, gained) in enumerate(own):
                seen[row, place], returns[row, place] = state, (aim - gained) / unit
                actions[row, place] = self._told(action)
            seen[row, len(own)] = states[row]
            returns[row, len(own)] = (aim - (past.gained if past is not None else 0.0)) / unit
        out = foretold(weights, returns, standard(weights, seen), actions, self._heads)
        last: Vectors = out[np.arange(len(questions)), [len(own) for own in steps]]
        return last

    def _told(self, action: Action) -> Vectors:
        found: Vectors = np.zeros(self._actions, np.float32)
        if isinstance(action, int):
            found[action] = 1.0
            return found
        assert self._box is not None
        found = (np.array(action, np.float32) - self._box[0]) / self._box[1]
        return found

    def note(self, transitions: Sequence[Transition]) -> None:
        """See `NetworkPolicy`."""
        vectors = self._encoder.encode([one.state for one in transitions])
        for vector, one in zip(vectors, transitions, strict=True):
            past = self._pasts.pop(one.actor, None) or _Past(self._length)
            past.steps.append((vector, one.action, past.gained))
            past.gained += one.reward
            if not one.ends:
                self._pasts[one.actor] = past  # The latest come last.
        while len(self._pasts) > _MOST_ACTORS:
            self._pasts.popitem(last=False)

    def dump(self) -> Mapping[str, Any]:
        """See `NetworkPolicy`."""
        return {
            "pasts": {
                actor: {
                    "states": np.array([state for state, _, _ in past.steps], np.float32),
                    "actions": [action for _, action, _ in past.steps],
                    "before": [gained for _, _, gained in past.steps],
                    "gained": past.gained,
                }
                for actor, past in self._pasts.items()
            }
        }

    def load(self, kept: Mapping[str, Any]) -> None:
        """See `NetworkPolicy`."""
        self._pasts = OrderedDict()
        for actor, told in kept["pasts"].items():
            past = self._pasts[actor] = _Past(self._length)
            past.gained = told["gained"]
            for state, action, before in zip(
                told["states"], told["actions"], told["before"], strict=True
            ):
                taken = action if isinstance(action, int) else tuple(action)
                past.steps.append((state, taken, before))


def foretold(
    weights: Weights, returns: Vectors, states: Vectors, actions: Vectors, heads: int
) -> Vectors:
    """Return what is foretold of each action from what came before it, shape (n, length, actions).

    Args:
        weights: of `training.decision_transformer.Transformer`.
        returns: shape (n, length), in the network's unit.
        states: standardised, shape (n, length, inputs).
        actions: shape (n, length, actions).
        heads: of the attention.
    """
    n, length = returns.shape
    tokens = [
        _dense(weights, "returns", returns[..., None]),
        _dense(weights, "states", states),
        _dense(weights, "actions", actions),
    ]
    placed = np.stack(tokens, 2) + weights["positions"][:length, None]
    x = _normed(weights, "norm", placed.reshape(n, _TOKENS * length, -1))
    block = 0
    while f"blocks.{block}.norm.weight" in weights:
        x = _block(weights, f"blocks.{block}", x, heads)
        block += 1
    at_states = x.reshape(n, length, _TOKENS, -1)[:, :, 1]
    return _dense(weights, "head", _normed(weights, "last_norm", at_states))


def _block(weights: Weights, name: str, x: Vectors, heads: int) -> Vectors:
    n, count, size = x.shape
    asked = _dense(weights, f"{name}.asked", _normed(weights, f"{name}.norm", x))
    parts = asked.reshape(n, count, 3, heads, size // heads).transpose(2, 0, 3, 1, 4)
    query, key, value = parts
    scores = query @ key.swapaxes(2, 3) / np.float32(np.sqrt(size // heads))
    scores = np.where(np.tri(count, dtype=bool), scores, np.float32(-np.inf))
    likely = np.exp(scores - scores.max(axis=3, keepdims=True))
    likely /= likely.sum(axis=3, keepdims=True)
    seen = (likely @ value).transpose(0, 2, 1, 3).reshape(n, count, size)
    x = x + _dense(weights, f"{name}.found", seen)
    wide = _dense(weights, f"{name}.wide", _normed(weights, f"{name}.second_norm", x))
    return x + _dense(weights, f"{name}.narrow", np.maximum(wide, 0))


def _dense(weights: Weights, name: str, x: Vectors) -> Vectors:
    found: Vectors = x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
    return found


def _normed(weights: Weights, name: str, x: Vectors) -> Vectors:
    centred = x - x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + _LEAST_VARIANCE)
    found: Vectors = centred / deviation * weights[f"{name}.weight"] + weights[f"{name}.bias"]
    return found
