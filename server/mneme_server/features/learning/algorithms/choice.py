"""Choices for many questions at once: draws from policies over a number of actions, and how sure it
is which of several uncertain values is the largest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from mneme_server.common import deadline
from mneme_server.features.learning.algorithms.algorithm import ActionQuestion, Choice, Learner

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

AT_ONCE = 64
"""Questions that a learner is asked at once: what it works out for each may take a megabyte."""
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(24)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
"""Of a Gauss-Hermite quadrature: what is integrated is weighted as a normal distribution does."""
_FEW = 32
"""Up to as many values each is integrated on its own nodes, which costs their square; of more, the
nodes of the `_FOREMOST` that may be largest serve all."""
_FOREMOST = 16
_AT_ONCE = 2**20
"""Values of a distribution function in memory at once."""
_FAR = 40.0
"""So many deviations away all of a normal distribution lies on one side."""
_MOST = 1e100
"""What values and deviations count as that are beyond it, or no numbers."""


def chosen(
    learner: Learner,
    questions: Sequence[ActionQuestion],
    *,
    explore: bool,
    chance: np.random.Generator,
) -> list[Choice]:
    """Have a learner choose for all, part by part, as long as somebody waits for it.

    Raises:
        Abandoned: nobody does any more.
    """
    found: list[Choice] = []
    while some := questions[len(found) : len(found) + AT_ONCE]:
        deadline.check()
        found += learner.choose(some, explore=explore, chance=chance)
    return found


def by_count(
    questions: Sequence[ActionQuestion],
) -> Iterator[tuple[list[int], list[ActionQuestion]]]:
    """Yield the questions with equally many allowed actions together, with their places."""
    groups: dict[int, list[int]] = {}
    for place, question in enumerate(questions):
        groups.setdefault(len(question.allowed), []).append(place)
    for places in groups.values():
        yield places, [questions[place] for place in places]


def greedy(values: Matrix) -> Matrix:
    """Return the policies that choose the largest value of each row, any of several."""
    largest: Matrix = (values == values.max(axis=1, keepdims=True)).astype(np.float64)
    policy: Matrix = largest / largest.sum(axis=1, keepdims=True)
    return policy


def mixed(policy: Matrix, epsilon: float) -> Matrix:
    """Return policies that choose evenly with probability epsilon."""
    evenly: Matrix = (1 - epsilon) * policy + epsilon / policy.shape[1]
    return evenly


def drawn(
    questions: Sequence[ActionQuestion],
    *,
    values: Matrix,
    policy: Matrix,
    best: Matrix,
    chance: np.random.Generator,
) -> list[Choice]:
    """Draw an action for each question.

    Args:
        questions: all with equally many allowed actions.
        values: what each is worth, shape (questions, actions); no columns if that is not known.
        policy: with which probability each is to be chosen.
        best: how probable it is that it is the best one.
        chance: one number is drawn from it for each question.
    """
    sums = policy.cumsum(axis=1)
    at = chance.random(len(questions)) * sums[:, -1]
    places = np.minimum((sums <= at[:, None]).sum(axis=1), policy.shape[1] - 1)
    scores = values if values.shape[1] else policy
    top = scores.max(axis=1)
    return [
        Choice(
            action=question.allowed[place],
            values=values[row],
            policy=policy[row],
            probability=float(policy[row, place]),
            confidence=float(best[row, place]),
            explored=bool(scores[row, place] < top[row]),
        )
        for row, (question, place) in enumerate(zip(questions, places.tolist(), strict=True))
    ]


def probability_best(means: Matrix, deviations: Matrix) -> Matrix:
    """Return how probable it is of each value that it is the largest of its row, the values being
    normal and independent; the probabilities of a row sum to 1.

    P(i) is the expectation of the product over j != i of Phi((x - m_j) / s_j) for x normal around
    m_i: an integral over one variable, here by quadrature.

    Args:
        means: shape (rows, n).
        deviations: shape (rows, n), none negative.
    """
    if means.shape[1] == 1:
        return np.ones_like(means)
    means = np.nan_to_num(means, nan=0.0, posinf=_MOST, neginf=-_MOST).clip(-_MOST, _MOST)
    deviations = np.nan_to_num(deviations, nan=_MOST, posinf=_MOST).clip(0, _MOST)
    size = np.maximum(1.0, np.abs(means).max(axis=1, keepdims=True))
    spread = np.maximum(deviations, 1e-9 * size)
    found = _each(means, spread) if means.shape[1] <= _FEW else _shared(means, spread)
    total = found.sum(axis=1, keepdims=True)
    even = np.full_like(means, 1 / means.shape[1])
    return np.where(total > 0, found / np.where(total > 0, total, 1.0), even)


def _each(means: Matrix, spread: Matrix) -> Matrix:
    """Integrate each on its own nodes, some rows at once: all may take gigabytes."""
    rows = max(1, _AT_ONCE // (len(_NODES) * means.shape[1] ** 2))
    blocks = range(0, len(means), rows)
    return np.concatenate([_block(means[n : n + rows], spread[n : n + rows]) for n in blocks])


def _block(means: Matrix, spread: Matrix) -> Matrix:
    at = means[:, :, None] + spread[:, :, None] * _NODES  # (rows, n, nodes)
    z = (at[..., None] - means[:, None, None, :]) / spread[:, None, None, :]
    below = _phi(z)  # (rows, n, nodes, n)
    diagonal = np.arange(means.shape[1])
    below[:, diagonal, :, diagonal] = 1.0
    found: Matrix = below.prod(axis=3) @ _WEIGHTS
    return found


def _shared(means: Matrix, spread: Matrix) -> Matrix:
    """Integrate by the trapezoidal rule over what the distributions of all have between nodes."""
    found = np.empty_like(means)
    for row, (mean, deviation) in enumerate(zip(means, spread, strict=True)):
        first = np.argsort(-(mean + 3 * deviation), kind="stable")[:_FOREMOST]
        at = np.sort((mean[first, None] + deviation[first, None] * _NODES).ravel())
        below = np.maximum(_phi((at - mean[:, None]) / deviation[:, None]), 1e-300)  # (n, nodes)
        others = np.exp(np.log(below).sum(axis=0) - np.log(below))
        found[row] = (np.diff(below, axis=1) * (others[:, 1:] + others[:, :-1]) / 2).sum(axis=1)
    return found


def _phi(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the normal distribution function, to 3e-7 (Abramowitz and Stegun, 7.1.26).

    In single precision, which is five times as fast: the series is no better than that.
    """
    x = (np.minimum(np.abs(z), _FAR) * np.sqrt(0.5)).astype(np.float32)
    t = 1 / (1 + 0.3275911 * x)
    series = t * (
        0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
    )
    above = 0.5 * series * np.exp(-x * x)
    found: NDArray[np.float64] = np.where(z < 0, above, 1 - above).astype(np.float64)
    return found
