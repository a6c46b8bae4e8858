"""How much each part of a state speaks for an action: Shapley values (Shapley, 1953; Štrumbelj and
Kononenko, 2014; Lundberg and Lee, 2017).

A part that is left out takes its value from a background of other states, and what is attributed
is how much more a score is than its mean over the background. The shares sum to that exactly: with
few parts they are Shapley's, over all subsets; with more they are means over permutations, of which
each sums to it (Castro, Gómez and Tejada, 2009), every second one the reverse of the one before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.canonical import Json, canonical_json
from mneme_server.learning.explaining.parts import ABSENT, Part, Path, parts_of, with_parts
from mneme_server.learning.spaces import Space

Vector = NDArray[np.float64]
Score: TypeAlias = Callable[[Sequence[Json]], Vector]
"""A number for each of some states."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """What each part contributes.

    Args:
        shares: the contribution of each part.
        score: of the state.
        typical: the mean score of the background; `score` is it plus all shares.
        exact: whether all subsets were asked about, or permutations were drawn.
    """

    shares: Mapping[Path, float]
    score: float
    typical: float
    exact: bool


def attribute(
    space: Space,
    state: Json,
    background: Sequence[Json],
    score: Score,
    *,
    budget: int,
    chance: np.random.Generator,
) -> Attribution:
    """Attribute a state's score to its parts.

    Args:
        space: of the states.
        state: the state.
        background: states to take the values of parts from that are left out; at least one.
        score: what is attributed.
        budget: about how many states may be asked about.
        chance: draws permutations, if not all subsets can be asked about.
    """
    there = parts_of(space, state)
    others = [parts_of(space, one) for one in background]
    paths = sorted(set(there).union(*others), key=str)
    # Parts that are the same everywhere contribute nothing, and are not asked about.
    moving = [
        path
        for path in paths
        if any(other.get(path, ABSENT) != there.get(path, ABSENT) for other in others)
    ]
    ask = _Asked(state, moving, others, score)
    exact = 2 ** len(moving) * len(background) <= budget
    shares = _all_subsets(ask) if exact else _permutations(ask, budget, chance)
    all_there, none_there = (True,) * len(moving), (False,) * len(moving)
    rows = range(len(background))
    found = ask([(all_there, row) for row in rows] + [(none_there, row) for row in rows])
    return Attribution(
        shares=dict.fromkeys(paths, 0.0) | dict(zip(moving, shares.tolist(), strict=True)),
        score=float(found[0]),
        typical=float(found[len(background) :].mean()),
        exact=exact,
    )


class _Asked:
    """Scores of states of which some parts are the background's. Equal ones are asked once."""

    def __init__(
        self,
        state: Json,
        moving: Sequence[Path],
        others: Sequence[Mapping[Path, Json]],
        score: Score,
    ) -> None:
        self._state = state
        self.moving = moving
        self.others = others
        self._score = score
        self._known: dict[str, float] = {}

    def __call__(self, mixtures: Sequence[tuple[Sequence[bool], int]]) -> Vector:
        """Return the scores of states that have those parts of the state which are marked, and the
        others of the background's state with a number."""
        states = [self._mixed(*one) for one in mixtures]
        keys = [canonical_json(one) for one in states]
        new = {key: one for key, one in zip(keys, states, strict=True) if key not in self._known}
        if new:
            found = self._score(list(new.values()))
            self._known.update(zip(new, found.tolist(), strict=True))
        return np.array([self._known[key] for key in keys])

    def _mixed(self, kept: Sequence[bool], row: int) -> Json:
        changes: dict[Path, Part] = {
            path: self.others[row].get(path, ABSENT)
            for path, keep in zip(self.moving, kept, strict=True)
            if not keep
        }
        return with_parts(self._state, changes)


def _all_subsets(ask: _Asked) -> Vector:
    size = len(ask.moving)
    subsets = list(product((False, True), repeat=size))
    rows = range(len(ask.others))
    scores = ask([(subset, row) for subset in subsets for row in rows])
    worth = dict(zip(subsets, scores.reshape(len(subsets), -1).mean(axis=1), strict=True))
    shares = np.zeros(size)
    for subset in subsets:
        weight = 1 / (size * math.comb(size - 1, sum(subset))) if sum(subset) < size else 0.0
        for place in range(size):
            if not subset[place]:
                joined = (*subset[:place], True, *subset[place + 1 :])
                shares[place] += weight * (worth[joined] - worth[subset])
    return shares


def _permutations(ask: _Asked, budget: int, chance: np.random.Generator) -> Vector:
    size, rows = len(ask.moving), len(ask.others)
    # Each state of the background equally often, so that the shares sum to what they should.
    rounds = max(1, budget // ((size + 1) * rows))
    orders: list[tuple[NDArray[np.int64], int]] = []
    for n in range(rounds * rows):
        order = orders[-1][0][::-1] if n % 2 else chance.permutation(np.arange(size))
        orders.append((order, n % rows))
    mixtures = []
    for order, row in orders:
        kept = np.zeros(size, dtype=bool)
        mixtures.append((tuple(kept.tolist()), row))
        for place in order:
            kept[place] = True
            mixtures.append((tuple(kept.tolist()), row))
    scores = ask(mixtures).reshape(len(orders), size + 1)
    shares = np.zeros(size)
    for (order, _), along in zip(orders, scores, strict=True):
        shares[order] += np.diff(along)
    return shares / len(orders)
