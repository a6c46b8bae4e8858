"""Whether a series rises or falls, evenly or at one step, where days are like the days before them.

A series that drifts goes up for a while and down for a while, whatever there is to it; tests that
take its points for independent find trends and steps in it half of the time. Here the points are
the sum of a level that forgets a share of itself each span (an autoregression), and of chance that
is the less the more a point is the mean of. How much of either there is, is estimated by restricted
maximum likelihood (Patterson and Thompson, 1971) over a grid, beside the strongest change there
could be; a change is measured by generalized least squares, and its size compared with those in
series that were drawn from such models, as likely as they are, and estimated in the same way: so
also what the estimate cannot know is allowed for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mneme_server.statistics.distributions import student_two_sided
from mneme_server.statistics.inference import Floats, Ints

MIN_SIDE = 3
"""Points on either side of a step: fewer are outliers, no level."""
_MEMORIES = (0.3, 0.5, 0.7, 0.85, 0.95)
"""What a level keeps of itself from one span to the next."""
_SHARES = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""How much the level varies, for how much chance does."""
_STEADY = 0.5
"""How likely it is beforehand that there is no such level."""
_DRAWS = 999
_FEW_DRAWS = 199
_TELLING = 0.1
_MAYBE = 0.15
"""Where a test that takes points for independent says more, the dearer one is not needed."""
_SEED = 20_261


@dataclass(frozen=True, slots=True)
class Changes:
    """How a series changes: the p-values of its trend and of its step; the point from which on its
    level is another, and the sizes, as least squares have them: the slope over a span, with its
    standard error, and the step. `step_fits` tells that a step fits better than a line."""

    trend_p: float
    step_p: float
    since: int
    slope: float
    slope_error: float
    step: float
    step_fits: bool


class _Model:
    """Least squares where points vary together as one model has it.

    Args:
        varies: how they do, shape (n, n): in their own unit where `is_known`, else for an unknown
            one.
        known: what is allowed for, shape (n, k).
        shapes: the changes that are looked for, shape (n, c): the trend first.
    """

    def __init__(
        self, varies: Floats, known: Floats, shapes: Floats, *, is_known: bool = False
    ) -> None:
        self.is_known = is_known
        self.root = np.linalg.cholesky(varies)
        whitened = np.linalg.solve(self.root, np.hstack([known, shapes]))
        basis, upper = np.linalg.qr(whitened[:, : known.shape[1]])
        free = whitened[:, known.shape[1] :]
        free = free - basis @ (basis.T @ free)
        self.lengths = np.sqrt((free**2).sum(axis=0))
        self._unit = free / np.maximum(self.lengths, 1e-12)
        self._unit[:, self.lengths < 1e-9] = 0.0
        self._basis = basis
        self._inverse = np.linalg.inv(self.root)
        self.freedom = len(varies) - known.shape[1] - 1
        self._volume = float(
            np.log(np.diag(self.root)).sum() + np.log(np.abs(np.diag(upper)) + 1e-300).sum()
        )

    def fit(self, series: Floats) -> tuple[Floats, Floats, Floats]:
        """Return how likely the model is (s,), Student's t of each change (c, s), and the residual
        variance beside the trend (s,), of several series (n, s)."""
        white = self._inverse @ series
        white = white - self._basis @ (self._basis.T @ white)
        parts = self._unit.T @ white
        whole = np.maximum((white**2).sum(axis=0), 1e-300)
        left = np.maximum(whole - parts**2, 1e-12 * whole)
        t = parts / np.sqrt(left / self.freedom)
        least = left.min(axis=0)
        chance = least if self.is_known else self.freedom * np.log(least)
        likely = -0.5 * chance - self._volume
        return likely, t, left[0] / self.freedom


def changes(
    places: Ints, values: Floats, counts: Floats, known: Floats, spread: float = 0.0
) -> Changes:
    """Look for a trend and for a step in a series.

    Args:
        places: which spans the points are of, rising, shape (n,); at least 2 `MIN_SIDE` of them.
        values: the series, shape (n,).
        counts: of how much each point is the mean, shape (n,).
        known: what is allowed for, shape (n, k): its first column is 1.
        spread: the variance of what points are means of, within spans; 0: not known.
    """
    count = len(places)
    time = (places - places[0]).astype(np.float64)
    starts = np.arange(MIN_SIDE, count - MIN_SIDE + 1)
    shapes = np.column_stack([time, np.arange(count)[:, None] >= starts])
    noise = _noise(counts, spread)
    chance = np.random.default_rng(_SEED)
    steady = _Model(noise, known, shapes, is_known=spread > 0)
    if np.ptp(values) == 0 or steady.freedom < 1:
        return Changes(1.0, 1.0, MIN_SIDE, 0.0, 0.0, 0.0, step_fits=False)
    drawn = steady.root @ chance.normal(size=(count, _FEW_DRAWS))
    _, t, variance = steady.fit(values[:, None])
    _, by_chance, _ = steady.fit(drawn)
    trend_p = student_two_sided(float(t[0, 0]), steady.freedom)
    step_p = _share(np.abs(by_chance[1:]).max(axis=0), float(np.abs(t[1:, 0]).max()))
    model, t = steady, t[:, 0]
    if min(trend_p, step_p) <= _MAYBE:
        model, t, variance, dearer = _drifting(
            noise, steady, known=known, shapes=shapes, time=time, values=values, chance=chance
        )
        trend_p, step_p = dearer
    best = int(np.abs(t[1:]).argmax())
    lengths = np.maximum(model.lengths, 1e-12)
    deviation = float(np.sqrt(variance[0]))
    return Changes(
        trend_p=trend_p,
        step_p=step_p,
        since=int(starts[best]),
        slope=float(t[0]) * deviation / float(lengths[0]),
        slope_error=deviation / float(lengths[0]),
        step=float(t[1 + best]) * deviation / float(lengths[1 + best]),
        # Schwarz's criterion (1978): where the level changes is one more thing to fit.
        step_fits=bool(
            np.log1p(t[1 + best] ** 2 / model.freedom) - np.log(count) / count
            > np.log1p(t[0] ** 2 / model.freedom)
        ),
    )


def _drifting(
    noise: Floats,
    steady: _Model,
    *,
    known: Floats,
    shapes: Floats,
    time: Floats,
    values: Floats,
    chance: np.random.Generator,
) -> tuple[_Model, Floats, Floats, tuple[float, float]]:
    """Return the likeliest model, what it says of the series, and the p-values of trend and step
    that allow for what may be between points."""
    usual = float(np.diag(noise).mean())
    apart = np.abs(time[:, None] - time[None, :])
    models, prior = [steady], [np.log(_STEADY)]
    each = np.log((1 - _STEADY) / (len(_MEMORIES) * len(_SHARES)))
    for memory in _MEMORIES:
        level = memory**apart
        for share in _SHARES:
            varies = noise + share * usual * level
            models.append(_Model(varies, known, shapes, is_known=steady.is_known))
            prior.append(each)
    fits = [model.fit(values[:, None]) for model in models]
    likely = np.array([float(fit[0][0]) for fit in fits]) + prior
    best = int(likely.argmax())
    weights = np.exp(likely - likely.max())
    drawn_from = chance.choice(len(models), size=_DRAWS, p=weights / weights.sum())
    white = chance.normal(size=(len(values), _DRAWS))
    drawn = np.empty_like(white)
    for place in np.unique(drawn_from):
        mine = drawn_from == place
        drawn[:, mine] = models[place].root @ white[:, mine]
    found = np.full(_DRAWS, -np.inf)
    by_chance = np.zeros((2, _DRAWS))
    for model, before in zip(models, prior, strict=True):
        how, t, _ = model.fit(drawn)
        better = how + before > found
        found = np.where(better, how + before, found)
        both = np.stack([np.abs(t[0]), np.abs(t[1:]).max(axis=0, initial=0.0)])
        by_chance = np.where(better, both, by_chance)
    _, t, variance = fits[best]
    trend, step = (
        _share(one, float(np.abs(seen).max(initial=0.0)))
        for one, seen in zip(by_chance, (t[:1, 0], t[1:, 0]), strict=True)
    )
    return models[best], t[:, 0], variance, (trend, step)


def difference_p(
    places: Ints, scores: tuple[Floats, Floats, float], known: Floats, side: Floats
) -> float:
    """Return the p-value of a series' means differing between two sides.

    Args:
        places: which spans the points are of, rising, shape (n,).
        scores: the series, shape (n,); of how much each point is the mean, shape (n,); and the
            variance of that within spans, 0 if it is not known.
        known: what is allowed for, shape (n, k): its first column is 1.
        side: the share of each point that is on one side, shape (n,).
    """
    values, counts, spread = scores
    noise = _noise(counts, spread)
    steady = _Model(noise, known, side[:, None], is_known=spread > 0)
    if np.ptp(values) == 0 or steady.freedom < 1 or steady.lengths[0] < _TELLING:
        return 1.0
    _, t, _ = steady.fit(values[:, None])
    p_value = student_two_sided(float(t[0, 0]), steady.freedom)
    if p_value > _MAYBE:
        return p_value
    time = (places - places[0]).astype(np.float64)
    chance = np.random.default_rng(_SEED)
    *_, (drifting, _) = _drifting(
        noise, steady, known=known, shapes=side[:, None], time=time, values=values, chance=chance
    )
    return drifting


def _noise(counts: Floats, spread: float) -> Floats:
    """Return how means of so many vary by chance, shape (n, n)."""
    return np.diag((spread or counts.mean()) / np.maximum(counts, 1e-9))


def _share(by_chance: Floats, seen: float) -> float:
    """Return the share of draws that are at least as large as what was seen, itself included."""
    return float((1 + (by_chance >= seen * (1 - 1e-9)).sum()) / (1 + len(by_chance)))
