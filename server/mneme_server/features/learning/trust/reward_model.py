"""Policies whose actions are coordinates, as a model of the rewards sees them.

How likely a continuous policy would have done what was done is a density that deterministic ones do
not have, so that weights mean nothing. What is left is fitted Q evaluation (see `regression`), here
on random Fourier features of state and action (Rahimi and Recht, "Random features for large-scale
kernel machines", 2007). It can be off by any amount where the policy does what was never done, so
that there is no interval, and the figure is to compare policies by, not to promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from mneme_server.features.learning.algorithms.algorithm import ActionQuestion, Learner, Transition
from mneme_server.features.learning.algorithms.choice import chosen
from mneme_server.features.learning.trust.blocks import Basis, Episode
from mneme_server.features.learning.trust.estimates import ValueEstimate, mean_of
from mneme_server.features.learning.trust.evaluation import LEAST_EFFECTIVE, Evaluation
from mneme_server.features.learning.trust.regression import RegressionEncoder, RegressionSteps

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

_FEATURES = 256
_RIDGE = 1.0
_SETTLED = 1e-3


def model_policy(basis: Basis, episodes: Sequence[Episode], learner: Learner) -> Evaluation:
    """Say what a model thinks of a learner's policy where actions are coordinates.

    Args:
        basis: of the session.
        episodes: all ended.
        learner: the learner. It is asked, and may have learned from them.
    """
    flat = list(chain.from_iterable(episodes))
    if len(flat) < LEAST_EFFECTIVE:
        return Evaluation(
            episodes=len(episodes),
            decisions=len(flat),
            refused=f"Only {len(flat)} steps of episodes that ended were recorded; at least "
            f"{LEAST_EFFECTIVE} are needed.",
        )
    values = _first_values(basis, episodes, flat, learner)
    discount = basis.discount
    returns = np.array(
        [sum(one.reward * discount**n for n, one in enumerate(episode)) for episode in episodes]
    )
    spread = float(np.ptp(returns))
    return Evaluation(
        episodes=len(episodes),
        decisions=len(flat),
        behaviour=mean_of(returns, len(returns), spread) if len(returns) > 2 else None,
        modelled=ValueEstimate(float(values.mean())),
        refused="Actions are coordinates, of which only a model can say what others would have "
        "brought, and not how sure that is.",
    )


def _first_values(
    basis: Basis, episodes: Sequence[Episode], flat: Sequence[Transition], learner: Learner
) -> Vector:
    """Return what the policy is worth in the first state of each episode."""
    encoder = RegressionEncoder(basis.space, [one.state for one in flat])
    now = encoder.encode([one.state for one in flat])
    goes_on = np.array([not one.terminated for one in flat])
    following = np.zeros_like(now)
    if goes_on.any():
        following[goes_on] = encoder.encode([one.next_state for one in flat if not one.terminated])
    first = encoder.encode([episode[0].state for episode in episodes])
    done = np.array([one.action for one in flat], dtype=np.float64)
    scale = np.maximum(done.std(axis=0), 1e-3)
    features = _Features(now.shape[1] + done.shape[1])
    known = features(now, done / scale)
    then = np.zeros_like(known)
    if goes_on.any():
        asked = _actions(learner, [one.next_state for one in flat if not one.terminated])
        then[goes_on] = features(following[goes_on], asked / scale)
    there = features(first, _actions(learner, [one[0].state for one in episodes]) / scale)
    rewards = np.array([one.reward for one in flat])
    empty = np.zeros((len(flat), 0))
    limits = RegressionSteps(
        now, np.zeros(0, dtype=np.int64), rewards, following, empty, goes_on,
        basis.discount, max(map(len, episodes)), any(one.truncated for one in flat),
    )  # fmt: skip
    low, high = limits.bounds
    solver = np.linalg.solve(known.T @ known + _RIDGE * np.eye(known.shape[1]), known.T)
    weights = solver @ rewards
    before = np.full(len(rewards), np.inf)
    for _ in range(limits.rounds):
        follows = np.clip(then @ weights, low, high) * goes_on
        targets = np.clip(rewards + basis.discount * follows, low, high)
        weights = solver @ targets
        if float(np.abs(targets - before).max()) <= _SETTLED * (high - low):
            break
        before = targets
    return np.asarray(np.clip(there @ weights, low, high), dtype=np.float64)


class _Features:
    """Random Fourier features of a Gaussian kernel as wide as two points are apart on average."""

    def __init__(self, size: int) -> None:
        chance = np.random.default_rng(0)
        self._directions = chance.normal(size=(size, _FEATURES)) / np.sqrt(size)
        self._phases = chance.uniform(0, 2 * np.pi, _FEATURES)

    def __call__(self, states: Matrix, actions: Matrix) -> Matrix:
        joined = np.hstack([states, actions])
        waves = np.cos(joined @ self._directions + self._phases) * np.sqrt(2 / _FEATURES)
        return np.hstack([np.ones((len(joined), 1)), waves])


def _actions(learner: Learner, states: Sequence[object]) -> Matrix:
    questions = [ActionQuestion(state) for state in states]  # type: ignore[arg-type]
    choices = chosen(learner, questions, explore=False, chance=np.random.default_rng(0))
    return np.array([one.action for one in choices], dtype=np.float64)
