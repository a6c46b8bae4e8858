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
LEAST_TASKS = 10
"""Tasks that must have both kinds of attempts to be compared within, or either to be compared."""
_MOSTLY = 0.5
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
        tasks: the number of the task of each, shape (n,); attempts at one task are alike. Without
            it, each is of its own.
    """

    def __init__(
        self, features: Matrix, outcomes: Matrix, tasks: NDArray[np.int64] | None = None
    ) -> None:
        self.features = features
        self.outcomes = outcomes
        count = len(features)
        self.tasks = np.arange(count) if tasks is None else np.unique(tasks, return_inverse=True)[1]
        sizes = np.bincount(self.tasks)
        self._repeated = bool(count) and bool((sizes > 1).any())
        self._mostly_repeated = bool(count) and float((sizes[self.tasks] > 1).mean()) >= _MOSTLY
        chance = np.random.default_rng(0)
        self._fold = chance.permutation(np.arange(len(sizes)) % FOLDS)[self.tasks]
        self._rows = [np.flatnonzero(self._fold == fold) for fold in range(FOLDS)]
        self._sums = [self._products(rows) for rows in self._rows]
        self._penalty = np.full(features.shape[1], _RIDGE)
        self._penalty[0] = 1e-3

    def _products(self, rows: NDArray[np.int64]) -> tuple[Matrix, Matrix]:
        known = self.features[rows]
        return known.T @ known, known.T @ self.outcomes[rows]

    def estimate(self, treated: Flags) -> CauseEstimates:
        """Return what a cause changes that these episodes (n,) had: at least `LEAST` had it, and
        as many had not.

        Where tasks repeat and enough were tried both ways, each is compared with itself alone: by
        least squares with an effect of each task. As long as some were, but too few, nothing is
        estimated: tasks that were tried the one way may be the hard ones.
        """
        if self._mostly_repeated:
            both, having, lacking = self._tried(treated)
            if both >= LEAST_TASKS:
                return self._within_tasks(treated)
            if both or min(having, lacking) < LEAST_TASKS:
                arms = int(treated.sum()), int((~treated).sum())
                return CauseEstimates(0.0, *arms, None)
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

    def _tried(self, treated: Flags) -> tuple[int, int, int]:
        """Return how many tasks were tried both ways, with the cause, and without it."""
        size = np.bincount(self.tasks)
        having = np.bincount(self.tasks, treated, minlength=len(size))
        return (
            int(((having > 0) & (having < size)).sum()),
            int((having > 0).sum()),
            int((having < size).sum()),
        )

    def _within_tasks(self, treated: Flags) -> CauseEstimates:
        had = self._from_means(treated.astype(np.float64)[:, None])
        known = self._from_means(self.features[:, 1:])
        # What tells tasks apart tells nothing within one: a little ridge leaves it out.
        squares = known.T @ known + _RIDGE * np.eye(known.shape[1])
        left = (had - known @ np.linalg.solve(squares, known.T @ had))[:, 0]
        weight = float(left @ had[:, 0])
        size = np.bincount(self.tasks)
        share = np.bincount(self.tasks, treated, minlength=len(size))[self.tasks] / size[self.tasks]
        mixed = (share > 0) & (share < 1)
        arms = int((treated & mixed).sum()), int((~treated & mixed).sum())
        if min(arms) < LEAST or weight <= 1e-9:
            return CauseEstimates(float(mixed.mean()), *arms, None)
        freedom = len(np.unique(self.tasks[mixed])) - 1.0
        came = self._from_means(self.outcomes)
        estimates = [
            None
            if not np.ptp(self.outcomes[mixed, place])
            else self._within(
                place,
                treated,
                mixed,
                weights=left / weight,
                came=came[:, place],
                freedom=freedom,
            )
            for place in range(self.outcomes.shape[1])
        ]
        return CauseEstimates(float(mixed.mean()), *arms, estimates)

    def _within(
        self,
        place: int,
        treated: Flags,
        mixed: Flags,
        *,
        weights: Vector,
        came: Vector,
        freedom: float,
    ) -> EffectEstimate:
        """Return the effect where the weights (n,) make it of outcomes (n,) less their tasks'
        means. It is no surer than attempts that vary as much within tasks would have it, if these
        were all independent."""
        uplift = float(weights @ came)
        surprise = came - uplift * weights / float(weights @ weights)
        by_task = np.bincount(self.tasks, weights * surprise)
        pooled = float((surprise[mixed] ** 2).sum()) / max(mixed.sum() - freedom - 2, 1.0)
        error = math.sqrt(max(float(by_task @ by_task), pooled * float(weights @ weights), 1e-300))
        outcome = self.outcomes[:, place]
        reach = student_point(freedom) * error
        mean, share = float(outcome[mixed].mean()), float(treated[mixed].mean())
        lowest, highest = float(outcome.min()), float(outcome.max())
        return EffectEstimate(
            uplift=uplift,
            low=uplift - reach,
            high=uplift + reach,
            p_value=student_two_sided(uplift / error, freedom),
            with_cause=min(max(mean + (1 - share) * uplift, lowest), highest),
            without=min(max(mean - share * uplift, lowest), highest),
            plain=float(outcome[treated].mean() - outcome[~treated].mean()),
        )

    def _from_means(self, values: Matrix) -> Matrix:
        """Return values (n, k) less the means of their tasks."""
        size = np.bincount(self.tasks)
        found = np.empty_like(values)
        for place in range(values.shape[1]):
            means = np.bincount(self.tasks, values[:, place]) / size
            found[:, place] = values[:, place] - means[self.tasks]
        return found

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
        if self._repeated:
            error, freedom = self._by_task(sides, kept, had, (error, freedom))
        lowest, highest = float(outcome.min()), float(outcome.max())
        reach = student_point(freedom) * error
        return EffectEstimate(
            uplift=uplift,
            low=uplift - reach,
            high=uplift + reach,
            p_value=student_two_sided(uplift / error, freedom),
            # A mean of weighed surprises may leave the range of what it is a mean of.
            with_cause=min(max(means[0], lowest), highest),
            without=min(max(means[1], lowest), highest),
            plain=plain,
        )

    def _by_task(
        self,
        sides: Sequence[tuple[Vector, Vector, Vector]],
        kept: Flags,
        had: Flags,
        usual: tuple[float, float],
    ) -> tuple[float, float]:
        """Return a standard error and its degrees of freedom for that attempts at one task are
        alike: no smaller than if they were not."""
        error, freedom = usual
        (having, up, _), (lacking, down, _) = sides
        influence = having - lacking + up - down
        tasks = self.tasks[kept]
        by_task = np.bincount(tasks, influence - influence.mean())
        clustered = math.sqrt(float(by_task @ by_task)) / len(influence)
        arms = len(np.unique(tasks[had])), len(np.unique(tasks[~had]))
        return max(error, clustered), max(min(freedom, min(arms) - 1.0), 1.0)


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
    np.savez(
        path, features=problem.features, outcomes=problem.outcomes, tasks=problem.tasks,
        having=together, ends=ends,
    )  # fmt: skip


def run(step: Step, path: str) -> list[list[Any]]:
    """Return of each cause its overlap, how many had it and how many had not, and what it changes
    of each outcome, as `EffectEstimate` has it; None for what was not estimated."""
    with np.load(path) as kept:
        problem = Problem(kept["features"], kept["outcomes"], kept["tasks"])
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
