"""A lower bound of a mean that holds at every look: a confidence sequence.

For numbers x whose conditional mean is m and that are never below -c, exp(l * (x - m) - psi(l, c) *
x^2) has an expectation of at most 1 for each l in [0, 1 / c), with psi(l, c) = (-log(1 - l * c) - l
* c) / c^2 (Fan, Grama and Liu, 2015). The product of such factors is a supermartingale, and so is a
mixture over several stakes l. It exceeds 1 / level with a probability of at most `level`, ever
(Ville). The bound is the largest mean at which it would not have: Howard, Ramdas, McAuliffe and
Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence sequences", 2021, for off-policy
weights as in Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro, "Anytime-valid off-policy
inference for contextual bandits", 2022.

The numbers may depend on earlier ones, and their means may change: the bound is one of the average
of the conditional means so far. Nothing is asked of how large they can be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

_STAKES = 0.8 * 2.0 ** (-np.arange(20) / 2)
_MOST_AT_STAKE = 0.9
_LOG_SHARE = -math.log(len(_STAKES))


@dataclass(frozen=True, slots=True)
class Sample:
    """Two estimates of the same mean, both right on average.

    Args:
        bounded: one that is never below -1.
        precise: one that varies less.
        least: how far below 0 `precise` can be; known before the number was drawn.
    """

    bounded: float
    precise: float
    least: float


class LowerBound:
    """A confidence sequence. Each stake takes the precise estimate where it can afford what that
    could lose, else the bounded one."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0  # Of the precise numbers.
        self._sums = np.zeros(len(_STAKES))
        self._penalties = np.zeros(len(_STAKES))

    def observe(self, sample: Sample) -> None:
        """Take a number into account."""
        affordable = _STAKES * sample.least <= _MOST_AT_STAKE
        numbers = np.where(affordable, sample.precise, sample.bounded)
        least = np.where(affordable, max(sample.least, 1e-9), 1.0)
        at_stake = _STAKES * least
        self._sums += numbers
        self._penalties += (-np.log1p(-at_stake) - at_stake) * (numbers / least) ** 2
        self.count += 1
        self.total += sample.precise

    @property
    def mean(self) -> float:
        """The mean of the numbers; 0 before the first."""
        return self.total / self.count if self.count else 0.0

    def at(self, level: float) -> float:
        """Return the bound: that it ever lies above the mean has a probability of at most `level`.

        -1 before the first number, and never below.
        """
        limit = -math.log(level)
        low, high = -1.0, max(0.0, float(self._sums.max()) / max(1, self.count))
        if not self.count or self._log_mixture(low) <= limit:
            return -1.0
        for _ in range(30):
            middle = (low + high) / 2
            if self._log_mixture(middle) > limit:
                low = middle
            else:
                high = middle
        return low

    def is_positive(self, level: float) -> bool:
        """Return whether the bound is above 0, without searching for it."""
        return self._log_mixture(0.0) > -math.log(level)

    def _log_mixture(self, mean: float) -> float:
        powers = _STAKES * (self._sums - self.count * mean) - self._penalties
        largest = float(powers.max())
        return largest + math.log(float(np.exp(powers - largest).sum())) + _LOG_SHARE

    def dump(self) -> dict[str, Any]:
        """Return all that it knows, as JSON."""
        return {
            "count": self.count,
            "total": self.total,
            "sums": self._sums.tolist(),
            "penalties": self._penalties.tolist(),
        }

    @classmethod
    def load(cls, known: Mapping[str, Any]) -> LowerBound:
        """Return the bound that `dump` was called on."""
        found = cls()
        found.count, found.total = known["count"], known["total"]
        found._sums, found._penalties = np.array(known["sums"]), np.array(known["penalties"])
        return found
