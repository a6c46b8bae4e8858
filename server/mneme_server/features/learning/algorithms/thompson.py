"""Thompson sampling: Thompson, 1933; for linear rewards Agrawal and Goyal, "Thompson sampling for
contextual bandits with linear payoffs", 2013.

Each action is chosen with the probability that it is the best one, given what came of all choices
so far. With `exploration` other than 1 the posterior's deviations are scaled by it.
"""

from __future__ import annotations

from mneme_server.features.learning.algorithms.linear import LinearBandit
from mneme_server.features.learning.certainty import Matrix, probability_best


class Thompson(LinearBandit):
    """See the module."""

    def _policy(self, worth: Matrix, spread: Matrix, noise: Matrix, best: Matrix) -> Matrix:
        if self.config.exploration == 1:
            return best
        return probability_best(worth, self.config.exploration * spread * noise)
