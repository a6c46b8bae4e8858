"""Counting steps and episodes as a session is told of them."""

from __future__ import annotations

import math
import sys
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mneme_server.features.learning.convergence import convergence_score
from mneme_server.features.learning.model import Counts, Step

WINDOW = 100
"""Episodes of the moving averages that are stored."""
_LARGEST = sys.float_info.max
MOST_OPEN = 10_000
"""Episodes under way that are known at once. Those that nothing was heard of for longest are
forgotten first; what comes of them later begins a new one."""


@dataclass(slots=True)
class _Episode:
    number: int
    reward: float = 0.0


@dataclass(frozen=True, slots=True)
class Ended:
    """An episode that ended: its number in the order in which episodes ended, from 1."""

    number: int
    transitions: int
    reward: float
    moving_average: float
    convergence: float


def mean_of(rewards: Sequence[float]) -> float:
    """Return the mean of rewards of any size; 0 of none."""
    try:
        return math.fsum(rewards) / len(rewards) if rewards else 0.0
    except OverflowError:
        return math.fsum(reward / len(rewards) for reward in rewards)


def _sum(one: float, other: float) -> float:
    """Return a sum that is a number, also of the largest ones."""
    return max(-_LARGEST, min(_LARGEST, one + other))


class Tally:
    """The counts of a session, and its episodes under way.

    Args:
        counts: so far.
    """

    def __init__(self, counts: Counts | None = None) -> None:
        self.counts = counts or Counts()
        self._begun = 0
        self._open: OrderedDict[str, _Episode] = OrderedDict()
        self._recent: deque[float] = deque(maxlen=2 * WINDOW)

    def reward_of(self, actor: str) -> float:
        """Return the sum of the rewards of an actor's episode so far."""
        episode = self._open.get(actor)
        return 0.0 if episode is None else episode.reward

    def add(self, step: Step, size: int) -> tuple[Step, Ended | None]:
        """Count a step of `size` bytes; return it with its numbers, and its episode if it ends."""
        episode = self._open.get(step.actor)
        if episode is None:
            self._begun += 1
            episode = self._open[step.actor] = _Episode(self._begun)
            if len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
        self._open.move_to_end(step.actor)
        episode.reward = _sum(episode.reward, step.reward)
        before = self.counts
        self.counts = replace(
            before,
            transitions=before.transitions + 1,
            total_reward=_sum(before.total_reward, step.reward),
            bytes=before.bytes + size,
        )
        numbered = replace(
            step,
            number=self.counts.transitions,
            episode=episode.number,
            episode_reward=episode.reward,
        )
        return numbered, self._end(step.actor, episode) if step.ends else None

    def _end(self, actor: str, episode: _Episode) -> Ended:
        del self._open[actor]
        self._recent.append(episode.reward)
        before, first = self.counts, not self.counts.episodes
        self.counts = replace(
            before,
            episodes=before.episodes + 1,
            ended_reward=_sum(before.ended_reward, episode.reward),
            lowest=episode.reward if first else min(before.lowest, episode.reward),
            highest=episode.reward if first else max(before.highest, episode.reward),
        )
        counts, recent = self.counts, list(self._recent)
        return Ended(
            number=counts.episodes,
            transitions=counts.transitions,
            reward=episode.reward,
            moving_average=mean_of(recent[-WINDOW:]),
            convergence=convergence_score(recent, WINDOW, counts.lowest, counts.highest),
        )

    def dump(self) -> dict[str, Any]:
        """Return what is not among the counts, as JSON."""
        return {
            "transitions": self.counts.transitions,
            "begun": self._begun,
            "open": {actor: [one.number, one.reward] for actor, one in self._open.items()},
            "recent": list(self._recent),
        }

    def load(self, dumped: Mapping[str, Any]) -> None:
        """Take over what `dump` returned; the steps that were counted since must be noted."""
        self._begun = dumped["begun"]
        self._open = OrderedDict((actor, _Episode(*one)) for actor, one in dumped["open"].items())
        self._recent.extend(dumped["recent"])

    def note(self, step: Step) -> None:
        """Note a step that is among the counts already."""
        self._begun = max(self._begun, step.episode)
        episode = self._open.setdefault(step.actor, _Episode(step.episode))
        self._open.move_to_end(step.actor)
        episode.reward = _sum(episode.reward, step.reward)
        if step.ends:
            self._recent.append(episode.reward)
            del self._open[step.actor]
