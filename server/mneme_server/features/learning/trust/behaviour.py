"""What recorded probabilities must agree with: how often what was done."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Numbers = NDArray[np.int64]
Matrix = NDArray[np.float64]

_CERTAIN = 0.999
_MOST_CERTAIN = 0.05
"""The share of decisions that were left nothing to chance in, up to which others can judge."""
_SURE = 4.0
"""So many deviations away is no chance, though there are many actions."""
_LEAST = 30
"""Fewer decisions contradict nothing."""
_COMPARED = 1_000
_LIKELIER = math.log(1_000)
"""By so much a fit foretells true probabilities' decisions better once in a thousand times."""


def certain(probabilities: Vector) -> str:
    """Return why decisions cannot be judged by: too many of them left nothing to chance. Empty if
    they can; NaN is not known."""
    known = probabilities[~np.isnan(probabilities)]
    share = float((known >= _CERTAIN).sum()) / max(1, len(probabilities))
    if share <= _MOST_CERTAIN:
        return ""
    return (
        f"{share:.0%} of what was done was certain to be done (its recorded probability is 1), so"
        " that what anything else would have brought there is not known."
    )


def foretold(probabilities: Vector, fitted: Vector, episodes: Numbers, folds: int) -> str:
    """Return how much better what was done is foretold by a fit than by the recorded probabilities;
    empty if it is not, as far as one can be sure.

    Each part is foretold by a fit to the others. How much likelier that fit makes it is at most 1
    on average if the recorded probabilities are true (Wasserman, Ramdas and Balakrishnan,
    "Universal inference", 2020), and so is the mean of the parts.

    Args:
        probabilities: of what was done, NaN where it is not known, shape (n,).
        fitted: by the fit to other parts, shape (n,).
        episodes: the number of the episode of each; its remainder is its part.
        folds: how many parts there are.
    """
    there = ~np.isnan(probabilities)
    likelier = np.where(there, np.log(fitted) - np.log(np.where(there, probabilities, 1.0)), 0.0)
    sums = [float(likelier[episodes % folds == fold].sum()) for fold in range(folds)]
    largest = max(sums)
    if largest + math.log(sum(math.exp(one - largest) for one in sums) / folds) <= _LIKELIER:
        return ""
    share, said = (float(np.exp(np.log(one[there]).mean())) for one in (fitted, probabilities))
    return (
        "The recorded probabilities are not those with which it was done: a fit to other decisions"
        f" gives what was done a probability of {share:.2g} (geometric mean), and they give it"
        f" {said:.2g}."
    )


def contradiction(probabilities: Vector, actions: Numbers) -> str:
    """Return how often what was done contradicts the recorded probabilities; empty if it does not.

    Two things hold whatever the behaviour was. An action counts once each time on average if it
    counts 1 / p when it is done, or less, if there are states in which it is never done. And where
    an action is likelier than all others, something else is done (1 - p) / p times as often as
    itself.

    Args:
        probabilities: of what was done, NaN where it is not known, shape (n,).
        actions: which it was, shape (n,).
    """
    there = ~np.isnan(probabilities)
    known, done = probabilities[there], actions[there]
    if len(known) < _LEAST:
        return ""
    for action in np.unique(done):
        counts = np.where(done == action, 1 / known, 0.0)
        error = float(counts.std()) / math.sqrt(len(counts))
        if float(counts.mean()) - _SURE * error > 1.0:
            share = float((done == action).mean())
            return (
                f"The recorded probabilities are not those with which it was done: an action was"
                f" done in {share:.0%} of the decisions, {counts.mean():.2g} times as often as its"
                " probabilities allow."
            )
    favoured = known[known > 0.5]
    others = float(((1 - favoured) / favoured).sum())
    rare = float((known <= 0.5).sum())
    if others - _SURE * math.sqrt(others + float((((1 - favoured) / favoured) ** 2).sum())) > rare:
        return (
            "The recorded probabilities are not those with which it was done: by them some"
            f" {others:.0f} decisions would have been for something less likely, and"
            f" {rare:.0f} were."
        )
    return ""


def determined(states: Matrix, actions: Numbers) -> float:
    """Return how often what was done in a state is what was done in the most similar other one.

    Args:
        states: encoded, shape (n, d); the newest are compared.
        actions: what was done in them, shape (n,).
    """
    states, actions = states[-_COMPARED:], actions[-_COMPARED:]
    if len(states) < 2:
        return 0.0
    squares = (states * states).sum(axis=1)
    apart = squares[:, None] + squares[None, :] - 2 * states @ states.T
    np.fill_diagonal(apart, np.inf)
    return float((actions[apart.argmin(axis=1)] == actions).mean())
