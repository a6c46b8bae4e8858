"""LinUCB with disjoint arms: Li, Chu, Langford and Schapire, "A contextual-bandit approach to
personalized news article recommendation", 2010, algorithm 1.

The action with the largest upper bound of its expected reward is chosen: the mean plus
`exploration` times its standard deviation for noise of variance 1.
"""

from __future__ import annotations

from mneme_server.learning.algorithms.linear import LinearBandit
from mneme_server.learning.learner import Vector


class LinUcb(LinearBandit):
    """See the module."""

    def _policy(self, worth: Vector, spread: Vector, noise: Vector, best: Vector) -> Vector:
        bound = worth + self.config.exploration * spread
        largest = (bound == bound.max()).astype(float)
        return largest / largest.sum()
