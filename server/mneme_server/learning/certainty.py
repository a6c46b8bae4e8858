"""How sure it is which of several uncertain values is the largest."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(24)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_erf = np.vectorize(math.erf, otypes=[float])


def probability_best(means: Vector, deviations: Vector) -> Vector:
    """Return how probable it is of each value that it is the largest, the values being normal and
    independent; the probabilities sum to 1.

    P(i) is the expectation of the product over j != i of Phi((x - m_j) / s_j) for x normal around
    m_i: an integral over one variable, here by Gauss-Hermite quadrature with 24 nodes.

    Args:
        means: shape (n,).
        deviations: shape (n,), none negative.
    """
    if len(means) == 1:
        return np.ones(1)
    spread = np.maximum(deviations, 1e-9 * max(1.0, float(np.abs(means).max())))
    at = means[:, None] + spread[:, None] * _NODES  # (n, nodes)
    z = (at[:, :, None] - means) / spread  # (n, nodes, n)
    below = 0.5 * (1 + _erf(z / math.sqrt(2)))
    diagonal = np.arange(len(means))
    below[diagonal, :, diagonal] = 1.0
    found: Vector = below.prod(axis=2) @ _WEIGHTS
    total = float(found.sum())
    return found / total if total > 0 else np.full(len(means), 1 / len(means))


def best_of(values: Vector, chance: np.random.Generator) -> int:
    """Return the place of the largest value, one at random of several."""
    places = np.flatnonzero(values == values.max())
    return int(places[0]) if len(places) == 1 else int(chance.choice(places))
