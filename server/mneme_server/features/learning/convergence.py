"""How settled the rewards of a session are, and where its loss is going."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class ConvergenceStatus(IntEnum):
    """A convergence score in a word; the numbers are the wire's."""

    INITIALIZING = 1
    LEARNING = 2
    CONVERGING = 3
    CONVERGED = 4


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
_FEWEST_LOSSES = 8


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


def convergence_status(score: float) -> ConvergenceStatus:
    """Return a score in a word."""
    for threshold, status in _THRESHOLDS:
        if score >= threshold:
            return status
    return ConvergenceStatus.INITIALIZING


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
