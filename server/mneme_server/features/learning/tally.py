"""Counts of the steps and episodes that a session is told of; how settled its rewards are, and
where its loss is going.
"""

from __future__ import annotations

import math
import sys
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme_server.features.learning.algorithms.algorithm import MOST_OPEN
from mneme_server.features.learning.model import RecordedStep, SessionCounts

WINDOW = 100
"""Episodes of the moving averages that are stored."""
_LARGEST = sys.float_info.max
_FEWEST_LOSSES = 8
_NOTHING = 0.01
"""The share of the largest reward that is about 0."""


@dataclass(slots=True)
class _OpenEpisode:
    number: int
    reward: float = 0.0


@dataclass(frozen=True, slots=True)
class EndedEpisode:
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


class SessionTally:
    """The counts of a session, and its episodes under way.

    Args:
        counts: so far.
    """

    def __init__(self, counts: SessionCounts | None = None) -> None:
        self.counts = counts or SessionCounts()
        self._begun = 0
        self._open: OrderedDict[str, _OpenEpisode] = OrderedDict()
        self._recent: deque[float] = deque(maxlen=2 * WINDOW)

    def reward_of(self, actor: str) -> float:
        """Return the sum of the rewards of an actor's episode so far."""
        episode = self._open.get(actor)
        return 0.0 if episode is None else episode.reward

    def add(self, step: RecordedStep, size: int) -> tuple[RecordedStep, EndedEpisode | None]:
        """Count a step of `size` bytes; return it with its numbers, and its episode if it ends."""
        episode = self._open.get(step.actor)
        if episode is None:
            self._begun += 1
            episode = self._open[step.actor] = _OpenEpisode(self._begun)
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

    def _end(self, actor: str, episode: _OpenEpisode) -> EndedEpisode:
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
        return EndedEpisode(
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
        self._open = OrderedDict(
            (actor, _OpenEpisode(*one)) for actor, one in dumped["open"].items()
        )
        self._recent.extend(dumped["recent"])

    def note(self, step: RecordedStep) -> None:
        """Note a step that is among the counts already."""
        self._begun = max(self._begun, step.episode)
        episode = self._open.setdefault(step.actor, _OpenEpisode(step.episode))
        self._open.move_to_end(step.actor)
        episode.reward = _sum(episode.reward, step.reward)
        if step.ends:
            self._recent.append(episode.reward)
            del self._open[step.actor]


class ConvergenceStatus(IntEnum):
    """A convergence score in a word; the numbers are the wire's."""

    INITIALIZING = 1
    LEARNING = 2
    CONVERGING = 3
    CONVERGED = 4
    SETTLED = 5


class LossTrend(IntEnum):
    """Where a loss is going; the numbers are the wire's."""

    UNKNOWN = 0
    DECREASING = 1
    STABLE = 2
    INCREASING = 3


_THRESHOLDS = (
    (0.95, ConvergenceStatus.CONVERGED),
    (0.80, ConvergenceStatus.CONVERGING),
    (0.60, ConvergenceStatus.LEARNING),
)


def convergence_score(
    rewards: Sequence[float], window: int, lowest: float, highest: float
) -> float:
    """Return how settled rewards are, from 0 to 1.

    It is 1 less how far the mean of the last `window` rewards is from that of the window before,
    and less its standard error, both as shares of the range of all rewards; times the share of both
    windows that is filled.

    Args:
        rewards: of the last episodes, oldest first; two windows of them at most.
        window: how many rewards a window has.
        lowest: the smallest reward of all episodes.
        highest: the largest.
    """
    if len(rewards) < 2:
        return 0.0
    # Before both windows are filled, each is half of what there is.
    size = min(window, len(rewards) // 2)
    filled = min(1.0, len(rewards) / (2 * window))
    scale = max(abs(lowest), abs(highest))
    if not highest > lowest:
        return filled
    scaled = np.asarray(rewards) / scale  # Sums and squares of rewards of any size stay finite.
    last, before = scaled[-size:], scaled[-2 * size : -size]
    width = highest / scale - lowest / scale
    error = _standard_error(last) if size > 1 else width
    unsettled = (abs(float(last.mean() - before.mean())) + error) / width
    return filled * max(0.0, 1.0 - unsettled)


def convergence_status(
    score: float, first: Sequence[float] = (), last: Sequence[float] = ()
) -> ConvergenceStatus:
    """Return a score in a word. Rewards that settled where they began, or around 0, which is what
    doing nothing brings, say nothing of what was learned.

    Args:
        score: see `convergence_score`.
        first: rewards of the first episodes.
        last: rewards of the last ones.
    """
    for threshold, status in _THRESHOLDS:
        if score >= threshold:
            if status is ConvergenceStatus.CONVERGED and not is_better(first, last):
                return ConvergenceStatus.SETTLED
            return status
    return ConvergenceStatus.INITIALIZING


def is_better(first: Sequence[float], last: Sequence[float]) -> bool:
    """Tell whether the last rewards are surely more than the first ones, and are not about 0."""
    if len(first) < 2 or len(last) < 2:
        return False
    scale = max(map(abs, (*first, *last))) or 1.0
    before, after = np.asarray(first) / scale, np.asarray(last) / scale
    error = math.hypot(_standard_error(before), _standard_error(after))
    return float(after.mean() - before.mean()) > 2 * error and abs(float(after.mean())) > _NOTHING


def loss_trend(losses: Sequence[float]) -> LossTrend:
    """Return where losses, oldest first, are going: whether the means of their halves differ by
    more than two standard errors."""
    if len(losses) < _FEWEST_LOSSES:
        return LossTrend.UNKNOWN
    scaled = np.asarray(losses) / (max(map(abs, losses)) or 1.0)
    first, second = scaled[: len(losses) // 2], scaled[len(losses) // 2 :]
    error = math.hypot(_standard_error(first), _standard_error(second))
    change = float(second.mean() - first.mean())
    if abs(change) <= 2 * error:
        return LossTrend.STABLE
    return LossTrend.INCREASING if change > 0 else LossTrend.DECREASING


def _standard_error(numbers: NDArray[np.float64]) -> float:
    return float(numbers.std(ddof=1)) / math.sqrt(len(numbers))
