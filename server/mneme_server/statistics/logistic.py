"""Logistic regression: how likely something is, by what else is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

_ROUNDS = 30
_SETTLED = 1e-6
_CHORDS = 12
"""Rounds for which a curvature from nearby is good enough."""
_LONGEST_STEP = 5.0
_CERTAIN = 30.0
"""Log odds beyond which a double cannot tell a probability from 0 or 1."""


def sigmoid(log_odds: Vector) -> Vector:
    """Return the probabilities (n,) that have these log odds (n,)."""
    found: Vector = 1 / (1 + np.exp(-np.clip(log_odds, -_CERTAIN, _CERTAIN)))
    return found


def logistic(
    features: Matrix,
    happened: NDArray[np.bool_],
    ridge: float = 1.0,
    near: tuple[Vector, Matrix] | None = None,
) -> Vector:
    """Return the weights (d,) of features, by Newton's method.

    Args:
        features: shape (n, d); the first column is 1, the others are of about unit size.
        happened: whether it did, shape (n,).
        ridge: the precision of the weights' normal prior around 0; the first has hardly any.
        near: weights (d,) near those looked for, and the `curvature` (d, d) there. They make it
            faster and change nothing else.
    """
    penalty = np.full(features.shape[1], ridge)
    penalty[0] = 1e-3
    targets = happened.astype(np.float64)
    weights, bend = (np.zeros(features.shape[1]), None) if near is None else near
    for turn in range(_ROUNDS):
        chances = sigmoid(features @ weights)
        gradient = features.T @ (chances - targets) + penalty * weights
        if bend is None or turn >= _CHORDS:
            bend = curvature(features, chances)
        step = np.linalg.solve(bend + np.diag(penalty), gradient)
        longest = float(np.abs(step).max())
        # Far from the solution a whole step may go too far.
        weights = weights - step * min(1.0, _LONGEST_STEP / max(longest, 1e-12))
        if longest < _SETTLED:
            break
        if near is None:
            bend = None
    return weights


def curvature(features: Matrix, chances: Vector) -> Matrix:
    """Return how the log likelihood bends (d, d) where these are the probabilities (n,)."""
    found: Matrix = (features * (chances * (1 - chances))[:, None]).T @ features
    return found
