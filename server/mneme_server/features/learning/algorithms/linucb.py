"""LinUCB with disjoint arms: Li, Chu, Langford and Schapire, "A contextual-bandit approach to
personalized news article recommendation", 2010, algorithm 1.

The action with the largest upper bound of its expected reward is chosen: the mean plus
`exploration` times its standard deviation for noise of variance 1.
"""

from __future__ import annotations

from mneme_server.features.learning.algorithms.linear import LinearBandit
from mneme_server.features.learning.certainty import Matrix
from mneme_server.features.learning.choosing import greedy


class LinUcb(LinearBandit):
    """See the module."""

    def _policy(self, worth: Matrix, spread: Matrix, noise: Matrix, best: Matrix) -> Matrix:
        return greedy(worth + self.config.exploration * spread)
