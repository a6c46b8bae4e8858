"""DP-means: groups of texts that mean the same, by their vectors."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from mneme_server.engine.corpus.ports import Matrix, Rows

_ROUNDS = 8
_BLOCK = 256

Turn = Callable[[], AbstractContextManager[object]]


def groups_of(vectors: Matrix, least: float, turn: Turn = nullcontext) -> Rows:
    """Return the group (n,) of each unit vector (n, d), numbered from 0 by their first members.

    DP-means (Kulis and Jordan 2012) with cosines: each vector joins the group whose mean it is
    nearest to, and founds one where that is less than `least`; then the means are taken anew, and
    vectors go to the nearest of those that have several members, or stay alone, until nothing moves
    or eight rounds are over. It depends on the order of the vectors, and on nothing else.

    Args:
        vectors: unit vectors.
        least: the cosine to a mean from which a vector belongs to it.
        turn: each block of vectors is worked off inside one.
    """
    groups = _founded(vectors, least, turn)
    for _ in range(_ROUNDS):
        moved = _moved(vectors, groups, least, turn)
        if np.array_equal(moved, groups):
            break
        groups = moved
    return groups


def _founded(vectors: Matrix, least: float, turn: Turn) -> Rows:
    """Return the groups, each the vectors that came later and are nearest to its founder."""
    founders: Matrix = np.empty_like(vectors)
    count = 0
    groups: Rows = np.empty(len(vectors), np.int64)
    for start in range(0, len(vectors), _BLOCK):
        with turn():
            block = vectors[start : start + _BLOCK]
            known = count
            best, cosine = _nearest(block, founders[:known])
            for row, vector in enumerate(block):
                later = founders[known:count] @ vector  # Founded since the block began.
                if len(later) and later.max() > cosine[row]:
                    best[row], cosine[row] = known + int(later.argmax()), later.max()
                if cosine[row] < least:
                    founders[count] = vector
                    best[row] = count
                    count += 1
            groups[start : start + len(block)] = best
    return groups


def _moved(vectors: Matrix, groups: Rows, least: float, turn: Turn) -> Rows:
    """Return the groups after each vector went to the nearest mean of several, or stayed alone."""
    sizes = np.bincount(groups)
    several = np.flatnonzero(sizes > 1)
    with turn():
        means = _means(vectors, groups, several)
    moved: Rows = np.empty(len(vectors), np.int64)
    for start in range(0, len(vectors), _BLOCK):
        with turn():
            block = slice(start, start + _BLOCK)
            best, cosine = _nearest(vectors[block], means)
            alone = len(several) + np.arange(start, start + len(best))
            moved[block] = np.where(cosine >= least, best, alone)
    return _renumbered(moved)


def _nearest(vectors: Matrix, means: Matrix) -> tuple[Rows, Matrix]:
    """Return the nearest of the means (n,), and its cosine (n,); -1 and -2 without any."""
    if not len(means):
        return np.full(len(vectors), -1, np.int64), np.full(len(vectors), -2, np.float32)
    near = vectors @ means.T
    best = near.argmax(axis=1)
    return best, near[np.arange(len(vectors)), best]


def _renumbered(groups: Rows) -> Rows:
    """Return the groups numbered by their first members."""
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def _means(vectors: Matrix, groups: Rows, wanted: Rows) -> Matrix:
    """Return the unit means (g, d) of the wanted groups."""
    place = np.full(int(groups.max(initial=-1)) + 1, -1, np.int64)
    place[wanted] = np.arange(len(wanted))
    mine = np.flatnonzero(place[groups] >= 0)
    sums = np.zeros((len(wanted), vectors.shape[1]), np.float32)
    np.add.at(sums, place[groups[mine]], vectors[mine])
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    means: Matrix = sums / np.maximum(lengths, 1e-12)
    return means
