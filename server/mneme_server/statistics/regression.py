"""The regressions behind off-policy evaluation: of rewards, and of which action was chosen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Numbers = NDArray[np.int64]


class ActionValues:
    """A linear regression for each action, drawn to the one over all actions.

    Args:
        states: encoded, shape (n, d); the first column is 1.
        places: which action was taken, from 0 on, shape (n,).
        actions: how many there are.
        ridge: how many decisions the prior counts for.
    """

    def __init__(self, states: Matrix, places: Numbers, actions: int, ridge: float = 4.0) -> None:
        self._states = states
        self._rows = [np.flatnonzero(places == action) for action in range(actions)]
        self._all = _solver(states, ridge)
        self._own = [_solver(states[rows], ridge) for rows in self._rows]
        self._weights: Matrix = np.zeros((states.shape[1], actions))

    def fit(self, targets: Vector) -> None:
        """Fit to what each of the decisions was worth, shape (n,)."""
        shared = self._all @ targets
        left = targets - self._states @ shared
        own = [solver @ left[rows] for solver, rows in zip(self._own, self._rows, strict=True)]
        self._weights = np.asarray(shared[:, None] + np.array(own).T, dtype=np.float64)

    def __call__(self, states: Matrix) -> Matrix:
        """Return what each action is worth in encoded states, shape (states, actions)."""
        return states @ self._weights


def _solver(states: Matrix, ridge: float) -> Matrix:
    """Return the matrix that makes weights of targets. The intercept is hardly drawn to 0."""
    penalty = np.full(states.shape[1], ridge)
    penalty[0] = min(ridge, 1.0)
    solver = np.linalg.solve(states.T @ states + np.diag(penalty), states.T)
    return np.asarray(solver, dtype=np.float64)


class Softmax:
    """A multinomial logistic regression: the probability of each action in a state.

    Args:
        states: encoded, shape (n, d); the first column is 1.
        places: which action was taken, from 0 on, shape (n,).
        actions: how many there are.
        ridge: the precision of the weights' prior.
        rounds: steps of Nesterov's accelerated gradient.
    """

    def __init__(
        self, states: Matrix, places: Numbers, actions: int, ridge: float = 1.0, rounds: int = 300
    ) -> None:
        taken = np.zeros((len(places), actions))
        taken[np.arange(len(places)), places] = 1.0
        penalty = np.full((states.shape[1], 1), ridge)
        penalty[0] = 1e-3
        step = 1.0 / (0.5 * float(np.linalg.norm(states, 2)) ** 2 + ridge)
        weights = ahead = np.zeros((states.shape[1], actions))
        for n in range(rounds):
            gradient = states.T @ (_softmax(states @ ahead) - taken) + penalty * ahead
            following = ahead - step * gradient
            ahead = following + (n / (n + 3)) * (following - weights)
            weights = following
            if float(np.abs(gradient).max()) < 1e-4 * len(places):
                break
        self._weights = weights

    def __call__(self, states: Matrix) -> Matrix:
        """Return the probability of each action in encoded states, shape (states, actions)."""
        return _softmax(states @ self._weights)


def _softmax(scores: Matrix) -> Matrix:
    grown = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Matrix = grown / grown.sum(axis=1, keepdims=True)
    return shares
