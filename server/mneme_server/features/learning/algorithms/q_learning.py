"""Q-learning: Watkins, "Learning from Delayed Rewards", 1989; Sutton and Barto, section 6.5.

Q(s, a) moves towards r + gamma * max over b of Q(s', b), whichever action follows: it learns what
the best policy is worth, also from transitions that others made.
"""

from __future__ import annotations

from mneme_server.features.learning.algorithms.tabular import Table
from mneme_server.features.learning.learner import Transition


class QLearning(Table):
    """See the module."""

    replays_in_order = False

    def _learn(self, transition: Transition) -> list[tuple[float, float]]:
        follows = 0.0 if transition.terminated else self._best_value(transition)
        return [self._towards(transition, follows)]
