"""Sarsa: Rummery and Niranjan, 1994; Sutton and Barto, section 6.4.

Q(s, a) moves towards r + gamma * Q(s', a'), a' being the action that is taken next: it learns what
its own policy is worth, exploration included. A transition is therefore learned from when the next
one of its actor comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from mneme_server.features.learning.algorithms.tabular import Table, TabularConfig
from mneme_server.features.learning.learner import Learned, Transition, number_of
from mneme_server.features.learning.spaces import Space
from mneme_server.features.learning.tally import MOST_OPEN


class Sarsa(Table):
    """See the module."""

    def __init__(self, space: Space, actions: int | None, config: TabularConfig) -> None:
        super().__init__(space, actions, config)
        self._last: dict[str, Transition] = {}  # Of each actor, while its episode goes on.

    replays_in_order = True

    def replay(self, transitions: Sequence[Transition]) -> Learned:
        """See `Replays`. Episodes under way are not touched."""
        under_way, self._last = self._last, {}
        try:
            return super().replay(transitions)
        finally:
            self._last = under_way

    def _learn(self, transition: Transition) -> list[tuple[float, float]]:
        moved = []
        before = self._last.pop(transition.actor, None)
        if before is not None:
            follows = self._value(transition.state, number_of(transition.action))
            moved.append(self._towards(before, follows))
        if transition.terminated:
            moved.append(self._towards(transition, 0.0))
        elif transition.truncated:
            # Which action would have followed is not known; the best so far stands for it.
            moved.append(self._towards(transition, self._best_value(transition)))
        else:
            self._last[transition.actor] = transition  # The latest comes last.
            if len(self._last) > MOST_OPEN:
                del self._last[next(iter(self._last))]
        return moved

    def dump(self) -> Mapping[str, Any]:
        """See `Learner`."""
        last = {actor: asdict(transition) for actor, transition in self._last.items()}
        return {**super().dump(), "last": last}

    def load(self, learned: Mapping[str, Any]) -> None:
        """See `Learner`."""
        super().load(learned)
        self._last = {actor: Transition(**facts) for actor, facts in learned["last"].items()}
