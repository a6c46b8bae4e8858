"""The best policy so far of a learner whose policy may become worse while it learns."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mneme_server.features.learning.algorithms.algorithm import (
    MOST_OPEN,
    BestPolicy,
    Transition,
)
from mneme_server.features.learning.deep.policies import Weights

_JUDGED = 5
"""Episodes that a policy is judged by."""
_SURE = 2.0
"""So many standard errors less is surely worse."""


class BestWeights:
    """The weights with which the last episodes brought most, as told in the rewards' scale.

    A policy changes while it is judged: the mean return of the last episodes counts for the weights
    at their end. Exploration is in these returns, of the best and of the newest alike.
    """

    def __init__(self) -> None:
        self._under_way: OrderedDict[str, float] = OrderedDict()
        self._returns: tuple[float, ...] = ()  # Replaced as a whole: others may read.
        self._episodes = 0
        self._weights: Weights | None = None
        self._best: tuple[float, ...] = ()
        self._at = 0

    @property
    def instead(self) -> Weights | None:
        """The weights to choose by instead of the newest, as these are surely worse; else None."""
        return self._weights if self._newest_is_worse else None

    @property
    def _newest_is_worse(self) -> bool:
        if self._weights is None or len(self._returns) < _JUDGED:
            return False
        now = self._returns
        error = math.hypot(_error(now), _error(self._best))
        return _mean(now) < _mean(self._best) - _SURE * error

    def note(self, one: Transition, weights: Weights | None) -> None:
        """Count a transition in, in its actor's order; `weights` are those of now, None at first:
        episodes that end before there are any were not played by a policy."""
        earned = self._under_way.pop(one.actor, 0.0) + one.reward
        if not one.ends:
            self._under_way[one.actor] = earned
            if len(self._under_way) > MOST_OPEN:
                self._under_way.popitem(last=False)
            return
        self._episodes += 1
        if weights is None:
            return
        self._returns = (*self._returns, earned)[-_JUDGED:]
        full = len(self._returns) == _JUDGED
        if full and (self._weights is None or _mean(self._returns) > _mean(self._best)):
            self._weights = {name: array.copy() for name, array in weights.items()}
            self._best, self._at = self._returns, self._episodes

    def told(self, scale: float) -> BestPolicy | None:
        """Return what is told of it; rewards were multiplied by `scale`."""
        if self._weights is None:
            return None
        return BestPolicy(
            mean=_mean(self._best) / scale,
            episode=self._at,
            now=_mean(self._returns) / scale,
            chooses=self._newest_is_worse,
        )

    def dump(self) -> Mapping[str, Any]:
        """Return all of it, as JSON and arrays."""
        return {
            "under_way": dict(self._under_way),
            "returns": list(self._returns),
            "episodes": self._episodes,
            "weights": None if self._weights is None else dict(self._weights),
            "best": list(self._best),
            "at": self._at,
        }

    def load(self, kept: Mapping[str, Any]) -> None:
        """Take over what `dump` returned."""
        self._under_way = OrderedDict(kept["under_way"])
        self._returns = tuple(kept["returns"])
        self._episodes, self._weights = kept["episodes"], kept["weights"]
        self._best, self._at = tuple(kept["best"]), kept["at"]


def _mean(returns: Sequence[float]) -> float:
    return math.fsum(returns) / len(returns)


def _error(returns: Sequence[float]) -> float:
    return float(np.std(returns, ddof=1)) / math.sqrt(len(returns))
