"""Curiosity: a bonus for what could not be predicted (Pathak, Agrawal, Efros and Darrell,
"Curiosity-driven exploration by self-supervised prediction", 2017).

A linear model predicts the facts of the state that follows from those of the one before, where each
number is also told by its tenth, and the action. It learns with each step by normalised least mean
squares (Widrow and Hoff, 1960; Haykin, "Adaptive Filter Theory", chapter 6). The bonus is the share
of what could have been predicted that was not: from 0, foreseen exactly, to 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from mneme_server.features.learning.features import Fact
from mneme_server.features.learning.named import Dimensions

_SIZE = 64
_INPUTS = 128
_STEP = 0.5
_FADES = 0.99
"""How much of the mean that a state is compared with stays at each step."""


class Curiosity:
    """The model and what it has seen."""

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
