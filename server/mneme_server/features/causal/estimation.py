"""Estimates of what a cause changes, from episodes that nobody assigned by chance.

The estimator is augmented inverse propensity weighting (Robins, Rotnitzky and Zhao, 1994), cross-
fitted (Chernozhukov et al., "Double/debiased machine learning", 2018): two models are fitted to
some of the episodes and applied to the others, one of how likely each had the cause, one of the
outcome that it would have had with and without. The estimate is right if either is. Both are
linear, of what was known before the attempt; regressions are drawn to the one over both arms, and
all are drawn to 0 a little.

Who has no counterpart tells nothing: episodes that are more than 20 times as likely as all others
to have the cause, or less than a twentieth, by their odds, are left out.

This is the heavy part of Discover: `run` does it in a process of its own, from a file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.progress import Step
from mneme_server.statistics.distributions import student_point, student_two_sided
from mneme_server.statistics.logistic import curvature, logistic, sigmoid

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Flags = NDArray[np.bool_]
LEAST = 30
"""Episodes in an arm, below which nothing is estimated."""
FOLDS = 5
MOST_ODDS = 20.0
_LEAST_OVERLAP = 0.5
"""Of the smaller arm, the share that must have counterparts."""
_RIDGE = 4.0
_SPREADS = 4.0


@dataclass(frozen=True, slots=True)
class EffectEstimate:
    """What a cause changes of one outcome.

    `with_cause` and `without` are the adjusted means; `plain` is the difference of the plain ones.
    """

    uplift: float
    low: float
    high: float
    p_value: float
    with_cause: float
    without: float
    plain: float


@dataclass(frozen=True, slots=True)
class CauseEstimates:
    """What a cause changes: an estimate for each outcome, None for one that never differs.

    `overlap` is the share of episodes that have counterparts. `estimates` is None where too few
    have: then nothing is estimated.
    """

    overlap: float
    treated: int
    control: int
    estimates: Sequence[EffectEstimate | None] | None


class Problem:
    """Episodes: what was known before, and what came of them.

    Args:
        features: what was known before, shape (n, d); the first column is 1, the others have a mean
            of 0 and a deviation of 1.
        outcomes: what came of them, shape (n, k).
    """

    def __init__(self, features: Matrix, outcomes: Matrix) -> None:
        self.features = features
        self.outcomes = outcomes
        count = len(features)
        chance = np.random.default_rng(0)
        self._fold = chance.permutation(np.arange(count) % FOLDS)
        self._rows = [np.flatnonzero(self._fold == fold) for fold in range(FOLDS)]
        self._sums = [self._products(rows) for rows in self._rows]
        self._penalty = np.full(features.shape[1], _RIDGE)
        self._penalty[0] = 1e-3

    def _products(self, rows: NDArray[np.int64]) -> tuple[Matrix, Matrix]:
        known = self.features[rows]
        return known.T @ known, known.T @ self.outcomes[rows]

    def estimate(self, treated: Flags) -> CauseEstimates:
        """Return what a cause changes that these episodes (n,) had: at least `LEAST` had it, and
        as many had not."""
        chances = self._propensities(treated)
        usual = treated.mean()
        odds = chances / (1 - chances) / (usual / (1 - usual))
        kept = (odds <= MOST_ODDS) & (odds >= 1 / MOST_ODDS)
        arms = int((treated & kept).sum()), int((~treated & kept).sum())
        smaller = treated if usual <= 0.5 else ~treated
        covered = float(kept[smaller].mean()) >= _LEAST_OVERLAP
        if min(arms) < LEAST or not covered:
            return CauseEstimates(float(kept.mean()), *arms, None)
        expected = self._expected(treated)
        estimates = [
            self._estimated(place, treated, kept, chances, [one[:, place] for one in expected])
            for place in range(self.outcomes.shape[1])
        ]
        return CauseEstimates(float(kept.mean()), *arms, estimates)

    def _propensities(self, treated: Flags) -> Vector:
        """Return how likely each episode had the cause, as the others say, shape (n,)."""
        everywhere = logistic(self.features, treated)
        chances = sigmoid(self.features @ everywhere)
        bends = [curvature(self.features[rows], chances[rows]) for rows in self._rows]
        log_odds = np.empty(len(treated))
        for fold, rows in enumerate(self._rows):
            others = self._fold != fold
            bend = sum((one for n, one in enumerate(bends) if n != fold), np.zeros(1))
            near = everywhere, bend
            weights = logistic(self.features[others], treated[others], near=near)
            log_odds[rows] = self.features[rows] @ weights
        # Where the features say little and are many, what is fitted is too sure of itself: Platt's
        # scaling takes that back.
        scaled = np.column_stack([np.ones(len(treated)), log_odds])
        return sigmoid(scaled @ logistic(scaled, treated, ridge=1e-3))

    def _expected(self, treated: Flags) -> tuple[Matrix, Matrix]:
        """Return what is expected with and without the cause, as the others say, each (n, k)."""
        having, lacking = np.empty_like(self.outcomes), np.empty_like(self.outcomes)
        smaller = treated if treated.mean() <= 0.5 else ~treated
        own = [self._products(rows[smaller[rows]]) for rows in self._rows]
        for fold, rows in enumerate(self._rows):
            whole, part = _without(self._sums, fold), _without(own, fold)
            rest = whole[0] - part[0], whole[1] - part[1]
            shared = self._drawn(*whole, np.zeros_like(whole[1]))
            weights = [self._drawn(*arm, shared) for arm in (part, rest)]
            if smaller is not treated:
                weights.reverse()
            having[rows] = self.features[rows] @ weights[0]
            lacking[rows] = self.features[rows] @ weights[1]
        return having, lacking

    def _drawn(self, squares: Matrix, products: Matrix, shared: Matrix) -> Matrix:
        """Return the weights (d, k) that fit, drawn to shared ones (d, k)."""
        left = products - squares @ shared
        found: Matrix = shared + np.linalg.solve(squares + np.diag(self._penalty), left)
        return found

    def _estimated(
        self, place: int, treated: Flags, kept: Flags, chances: Vector, expected: Sequence[Vector]
    ) -> EffectEstimate | None:
        outcome = self.outcomes[:, place]
        deviation = float(outcome[kept].std())
        if deviation == 0:
            return None
        plain = float(outcome[treated].mean() - outcome[~treated].mean())
        had, chance, came = treated[kept], chances[kept], outcome[kept]
        weights = np.where(had, 1 / chance, 0.0), np.where(had, 0.0, 1 / (1 - chance))
        sides = [
            (model[kept], weight / weight.mean() * (came - model[kept]), weight)
            for model, weight in zip(expected, weights, strict=True)
        ]
        means = [float((model + left).mean()) for model, left, _ in sides]
        uplift = means[0] - means[1]
        error, freedom = _error(sides, len(came), min(float(np.ptp(came)), _SPREADS * deviation))
        reach = student_point(freedom) * error
        return EffectEstimate(
            uplift=uplift,
            low=uplift - reach,
            high=uplift + reach,
            p_value=student_two_sided(uplift / error, freedom),
            with_cause=means[0],
            without=means[1],
            plain=plain,
        )


def _without(parts: Sequence[tuple[Matrix, Matrix]], fold: int) -> tuple[Matrix, Matrix]:
    """Return the sum of all parts but one."""
    squares = sum((part[0] for n, part in enumerate(parts) if n != fold), np.zeros(1))
    products = sum((part[1] for n, part in enumerate(parts) if n != fold), np.zeros(1))
    return squares, products


def _error(
    sides: Sequence[tuple[Vector, Vector, Vector]], count: int, spread: float
) -> tuple[float, float]:
    """Return the estimate's standard error, and its degrees of freedom.

    Few large weights make an estimate less sure than its deviation shows: Student's t has as many
    degrees of freedom as the arms have effective episodes (Kish), less one, joined as Welch and
    Satterthwaite do. And each arm counts as if an outcome half the spread off had been missed
    (after Agresti and Coull, 1998), or surprised as often as both do together if that is more:
    outcomes that were all the same so far are not certain, least of all those of a few episodes
    that had what is rare, where nearly all succeed.

    Args:
        sides: of each arm: what was expected, the weighed surprises, and the weights, (n,) each.
        count: how many episodes there are.
        spread: how far apart outcomes are.
    """
    (having, up, _), (lacking, down, _) = sides
    influence = having - lacking + up - down
    variance = float(influence.var(ddof=1)) / count
    parts = [(float((having - lacking).var(ddof=1)) / count, count - 1.0)]
    arms = [
        (float(left @ left) / count**2, float(weights.sum()) ** 2 / float(weights @ weights))
        for _, left, weights in sides
    ]
    usual = sum(own * effective**2 for own, effective in arms) / sum(of for _, of in arms)
    for own, effective in arms:
        missed = max((spread / 2 / effective) ** 2, usual / effective - own)
        variance += missed
        parts.append((own + missed, effective - 1))
    freedom = sum(part for part, _ in parts) ** 2 / sum(part**2 / of for part, of in parts)
    return math.sqrt(variance), max(freedom, 1.0)


def write_problem(path: Path, problem: Problem, having: list[np.typing.NDArray[np.int64]]) -> None:
    """Write what is to be estimated: a problem, and the places of the episodes that had each
    cause."""
    ends = np.cumsum([len(rows) for rows in having])
    together = np.concatenate(having) if having else np.zeros(0, np.int64)
    np.savez(path, features=problem.features, outcomes=problem.outcomes, having=together, ends=ends)


def run(step: Step, path: str) -> list[list[Any]]:
    """Return of each cause its overlap, how many had it and how many had not, and what it changes
    of each outcome, as `EffectEstimate` has it; None for what was not estimated."""
    with np.load(path) as kept:
        problem = Problem(kept["features"], kept["outcomes"])
        having = np.split(kept["having"], kept["ends"][:-1])
    found: list[list[Any]] = []
    for place, rows in enumerate(having):
        step.report("estimating", place, len(having))
        treated = np.zeros(len(problem.outcomes), np.bool_)
        treated[rows] = True
        one = problem.estimate(treated)
        estimates = None
        if one.estimates is not None:
            estimates = [None if each is None else astuple(each) for each in one.estimates]
        found.append([one.overlap, one.treated, one.control, estimates])
    return found
