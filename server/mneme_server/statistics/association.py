"""Whether something goes with a trait of what it is seen in, beyond what else is known of that.

Many traits are compared at once, each had by some of the units (sessions, calls). Of each, the
units that have it are compared with the others by a score test: the outcomes are fitted by what
else is known (the design), and what is left is summed over those with the trait. Its variance is
taken over clusters, within which units may be alike in any way (Liang and Zeger, 1986). Where each
cluster can be compared with itself, only that is done: outcome, trait and design are taken from
their clusters' means.

What is rare is not normal. So where counts are small the p-value is the larger of Student's and of
Fisher's exact test, of as many independent observations as those counts are worth: less by the
design effect (Rao and Scott, 1992), and by what the design already tells of the trait.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mneme_server.statistics.distributions import Z95
from mneme_server.statistics.inference import Floats, Ints, Lift, fisher_exact, rate_ratio, sum_by

_LEAST_LEFT = 0.02
"""Of a trait, the share that must be left without what is known: else the two are one."""
_NEARLY = 0.2
_PLENTY = 10
"""Expected hits, and misses, with a trait and without, from which on they are normal enough: the
exact test does not know how much of the outcome the design tells, and would find less."""
_RARE = 0.002
LEAST_CLUSTERS = 10
"""Tasks that must have both kinds of units to be compared within, or either to be compared."""


class Traits(NamedTuple):
    """Which units have which trait: `unit` has `code`, each (p,), and each pair once. There are
    `kinds` traits."""

    unit: Ints
    code: Ints
    kinds: int


class Likeness(NamedTuple):
    """Which units may be alike: the cluster of each (u,), from 0 on. `least` clusters must have
    units with a trait, and as many units without; `within` tells to compare them within clusters
    where enough have both."""

    cluster: Ints
    least: int
    within: bool = False


@dataclass(slots=True)
class Associated:
    """How the outcome goes with each trait; arrays are (t,).

    `base` is the rate that units with the trait would have without it, as far as the design and the
    others tell; `difference` how far theirs is from it. `units` and `other_units` are as many
    independent ones as there are worth. `tested` tells where there are enough to test at all;
    elsewhere the p-value is 1.
    """

    count: Ints
    hits: Floats
    base: Floats
    difference: Floats
    p_value: Floats
    tested: NDArray[np.bool_]
    units: Floats
    other_units: Floats

    def ratio(self) -> Lift:
        """Return the rate over that without the trait, with its 95 % interval, each (t,)."""
        rate = self.hits / np.maximum(self.count, 1)
        return rate_ratio(
            rate * self.units, self.units, self.base * self.other_units, self.other_units
        )

    def reach(self) -> Floats:
        """Return how far the 95 % interval of each difference (t,) goes to either side, as its test
        says."""
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.abs(self.difference) / normal_point(self.p_value)
        found: Floats = np.where(np.isfinite(error), Z95 * error, 1.0)
        return found


class Associations:
    """Compares the outcomes of units with traits with those of the others.

    Args:
        traits: which units have which.
        design: what else is known of each unit (u, d); the first column is 1.
        likenesses: the ways in which units may be alike. By the first, there must be enough
            clusters; by the others, what there is enough of is compared, too. The least sure is
            told.
    """

    def __init__(self, traits: Traits, design: Floats, likenesses: Sequence[Likeness]) -> None:
        first = likenesses[0]
        self._first = _Comparison(traits, design, first, within=False)
        self._within = _Comparison(traits, design, first, within=True) if first.within else None
        self._others = [_Comparison(traits, design, one, within=False) for one in likenesses[1:]]

    def of(self, outcome: Floats) -> Associated:
        """Return how outcomes (u,), 0 to 1, go with each trait."""
        found = self._first.of(outcome)
        inside = np.zeros(len(found.count), bool)
        if self._within is not None:
            nearer = self._within.of(outcome)
            inside = nearer.tested
            found = _instead(found, nearer, inside, "base", "difference")
            found.tested = found.tested | inside
        for comparison in self._others:
            other = comparison.of(outcome)
            less = other.tested & found.tested & ~inside & (other.p_value > found.p_value)
            found = _instead(found, other, less)
        found.p_value = np.where(found.tested, found.p_value, 1.0)
        return found


def joined(found: Associated, other: Associated, where: NDArray[np.bool_]) -> Associated:
    """Return what was found, and what another comparison says where that counts (t,)."""
    return _instead(found, other, where, "base", "difference", "tested")


def _instead(
    found: Associated, other: Associated, where: NDArray[np.bool_], *names: str
) -> Associated:
    return replace(
        found,
        **{
            name: np.where(where, getattr(other, name), getattr(found, name))
            for name in ("p_value", "units", "other_units", *names)
        },
    )


class _Comparison:
    """One way to compare: all that does not depend on the outcome is done once."""

    def __init__(self, traits: Traits, design: Floats, likeness: Likeness, *, within: bool) -> None:
        unit, code, size = self._traits = traits
        self._cluster = cluster = likeness.cluster
        self._clusters = clusters = int(cluster.max()) + 1 if len(cluster) else 1
        self._is_within = within
        self._repeats = within or likeness.least >= LEAST_CLUSTERS
        self._known = known = _from_means(design[:, 1:], cluster, clusters) if within else design
        self._inverse = np.linalg.pinv(
            (known.T @ known).astype(np.float64), rcond=1e-9, hermitian=True
        )
        self._count = np.bincount(code, minlength=size)
        of_trait = _sums(code, known, size, unit)
        self._told = of_trait @ self._inverse
        pairs, self._place, of_pair = np.unique(
            code * clusters + cluster[unit], return_inverse=True, return_counts=True
        )
        self._pair_code, self._pair_cluster = pairs // clusters, pairs % clusters
        in_cluster = np.bincount(cluster, minlength=clusters)
        having = np.bincount(self._pair_code, minlength=size)
        mixed = of_pair < in_cluster[self._pair_cluster]
        both = np.bincount(self._pair_code, mixed, minlength=size).astype(np.int64)
        spread = self._count.astype(np.float64)
        if within:
            spread -= sum_by(self._pair_code, of_pair**2 / in_cluster[self._pair_cluster], size)
            self._seen, enough = both, both >= likeness.least
        else:
            lacking = int((in_cluster > 0).sum()) - having + both
            self._seen, enough = having, np.minimum(having, lacking) >= likeness.least
        weight = spread - (self._told * of_trait).sum(axis=1)
        usable = weight > _LEAST_LEFT * np.maximum(spread, 1e-9)
        self._weight = np.where(usable, np.maximum(weight, 1e-9), 1.0)
        self._tested = usable & enough & (self._seen > 1)

    def of(self, outcome: Floats) -> Associated:
        unit, code, size = self._traits
        known, cluster = self._known, self._cluster
        came = outcome.astype(np.float64)
        if self._is_within:
            came = _from_means(came[:, None], cluster, self._clusters)[:, 0]
        left = came - known @ (self._inverse @ (known.T @ came))
        n, hits = self._count, sum_by(code, outcome[unit], size)
        score = sum_by(code, left[unit], size)
        robust, apart = self._variances(left)
        with np.errstate(divide="ignore", invalid="ignore"):
            # What comes of units of a cluster being alike; not of rare outcomes varying more.
            inflated = np.where(apart > 0, np.maximum(robust / apart, 1.0), 1.0)
        # As the outcomes would vary if the trait changed nothing: by what is expected of each.
        fitted = np.clip(outcome - left, _RARE, 1 - _RARE)
        usual = sum_by(code, (fitted * (1 - fitted))[unit], size) / np.maximum(n, 1)
        is_binary = bool(((outcome == 0) | (outcome == 1)).all())
        if not is_binary:
            usual = np.full(size, float((left**2).mean()))
        variance = usual * self._weight * inflated
        if self._repeats:
            variance = np.maximum(variance, robust)
        t = np.where(variance > 0, np.abs(score) / np.sqrt(np.maximum(variance, 1e-300)), 0.0)
        difference = score / self._weight
        rate, others = hits / np.maximum(n, 1), len(outcome) - n
        base = np.clip(rate - difference, 0.0, 1.0)
        worth = np.clip(self._weight * len(outcome) / np.maximum(n * others, 1e-9), 0.0, 1.0)
        units, rest = n * worth / inflated, others * worth / inflated
        # Few clusters are a poor measure of how clusters vary; chance alone needs none.
        many = np.full(size, max(len(outcome) - known.shape[1], 1))
        p_value = _students(t, np.maximum(self._seen - 1, 1) if self._repeats else many)
        # What is not sure as it is need not be counted exactly, which takes long.
        common = float(outcome.mean()) if len(outcome) else 0.0
        few = np.minimum(units, rest) * min(common, 1 - common) < _PLENTY
        near = np.flatnonzero(self._tested & (p_value <= _NEARLY) & few & is_binary)
        exact = _fishers(rate[near], units[near], base[near], rest[near])
        p_value[near] = np.maximum(p_value[near], exact)
        return Associated(
            count=n,
            hits=hits,
            base=base,
            difference=difference,
            p_value=p_value,
            tested=self._tested.copy(),
            units=units,
            other_units=rest,
        )

    def _variances(self, left: Floats) -> tuple[Floats, Floats]:
        """Return the variances (t,) of the scores, over clusters, and over units as if these were
        not alike: of each the part that those with the trait make, less what the design told."""
        unit, code, size = self._traits
        known, told = self._known, self._told
        part = np.bincount(self._place, left[unit], minlength=len(self._pair_code))
        shared = np.zeros((self._clusters, known.shape[1]))
        expected, of_unit = np.zeros(len(part)), np.zeros(len(unit))
        for j in range(known.shape[1]):
            shared[:, j] = sum_by(self._cluster, known[:, j] * left, self._clusters)
            expected += shared[self._pair_cluster, j] * told[self._pair_code, j]
            of_unit += known[unit, j] * told[code, j]
        squares = left**2
        over = sum_by(self._pair_code, part**2 - 2 * part * expected, size)
        alone = sum_by(code, squares[unit] * (1 - 2 * of_unit), size)
        weighed = (known * squares[:, None]).T @ known
        return tuple(
            np.maximum(mine + ((told @ whole) * told).sum(axis=1), 0.0)
            for mine, whole in ((over, shared.T @ shared), (alone, weighed))
        )


def _sums(code: Ints, values: Floats, size: int, unit: Ints) -> Floats:
    """Return the sums (size, d) of the values (u, d) of units (p,) by their code (p,)."""
    sums = np.zeros((size, values.shape[1]))
    for j in range(values.shape[1]):
        sums[:, j] = sum_by(code, values[unit, j], size)
    return sums


def _from_means(values: Floats, cluster: Ints, clusters: int) -> Floats:
    """Return values (u, d) less the means of their clusters."""
    size = np.maximum(np.bincount(cluster, minlength=clusters), 1)
    found = np.empty_like(values, dtype=np.float64)
    for j in range(values.shape[1]):
        found[:, j] = values[:, j] - (sum_by(cluster, values[:, j], clusters) / size)[cluster]
    return found


def _fishers(rate: Floats, units: Floats, base: Floats, rest: Floats) -> Floats:
    hits, others = np.rint(rate * units).astype(np.int64), np.rint(base * rest).astype(np.int64)
    here = np.maximum(np.rint(units).astype(np.int64), hits)
    there = np.maximum(np.rint(rest).astype(np.int64), others)
    return fisher_exact(hits, here, hits + others, here + there)


def _students(t: Floats, freedom: Floats | Ints) -> Floats:
    """Return the two-sided p-values (n,) of Student's t, by Wallace's normal deviates (1959)."""
    z = np.sqrt(freedom * np.log1p(t**2 / freedom)) * (8 * freedom + 1) / (8 * freedom + 3)
    return np.array([math.erfc(one / math.sqrt(2)) for one in z], np.float64)


def normal_point(p_values: Floats) -> Floats:
    """Return how many standard errors from 0 have these two-sided p-values (n,)."""
    # Abramowitz and Stegun, 26.2.23; good to 5e-4.
    t = np.sqrt(-2 * np.log(np.clip(p_values, 1e-300, 1.0) / 2))
    above = 2.515517 + 0.802853 * t + 0.010328 * t**2
    below = 1 + 1.432788 * t + 0.189269 * t**2 + 0.001308 * t**3
    found: Floats = np.maximum(t - above / below, 0.0)
    return found
