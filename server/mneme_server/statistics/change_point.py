"""One change of a series' level, found whatever its distribution."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mneme_server.statistics.inference import Floats

MIN_SIDE = 3
"""Points on either side of a change: fewer are outliers, no level."""
_NEARLY = 0.9
"""Places that explain this share of what the best does are told apart by the values."""
_DRAWS = 1_999
_SEED = 20_261


class ChangePoint(NamedTuple):
    """Where a series' level changes most.

    `since` is the first point of the new level; `fits_better` tells whether two levels fit the
    series better than a straight line does.
    """

    since: int
    rises: bool
    p_value: float
    fits_better: bool


def change_point(times: Floats, values: Floats) -> ChangePoint:
    """Find where the level of a series (n,) changes most, and test whether it does.

    Pettitt's rank sums (1979), each over its standard deviation, so that a late change counts as
    much as one in the middle (Lausen and Schumacher 1992). The largest is compared with those of
    random orders of the same values: neither ties nor few points need an approximation. n is at
    least twice `MIN_SIDE`.
    """
    count = len(values)
    _, place, tied = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(tied) - (tied - 1) / 2)[place] - (count + 1) / 2
    if len(tied) == 1:
        return ChangePoint(MIN_SIDE, False, 1.0, False)
    explained = _explained(ranks)
    most = float(explained.max())
    # Ranks draw the place to the middle as soon as both levels are apart; values tell it exactly.
    nearly = np.where(explained >= _NEARLY * most, _explained(values - values.mean()), 0.0)
    since = MIN_SIDE + int(np.argmax(nearly))
    shuffled = np.random.default_rng(_SEED).permuted(np.tile(ranks, (_DRAWS, 1)), axis=1)
    as_large = int((_explained(shuffled).max(axis=1) >= most * (1 - 1e-9)).sum())
    line = float(np.corrcoef(times, ranks)[0, 1] ** 2)
    return ChangePoint(
        since,
        bool(ranks[since:].sum() > 0),
        (1 + as_large) / (1 + _DRAWS),
        # Schwarz's criterion (1978): where the level changes is one more thing to fit.
        (1 - most) * count ** (1 / count) < 1 - line,
    )


def _explained(centred: Floats) -> Floats:
    """Return the share of the variance of centred ranks or values (…, n) that a change of level
    explains at each point (…, k) that leaves `MIN_SIDE` on either side."""
    count = centred.shape[-1]
    before = np.arange(MIN_SIDE, count - MIN_SIDE + 1)
    sums = np.cumsum(centred, axis=-1)[..., before - 1]
    between = sums**2 * count / (before * (count - before))
    share: Floats = between / (centred**2).sum(axis=-1, keepdims=True)
    return share
