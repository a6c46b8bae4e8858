"""Groups of texts that mean the same, by their vectors."""

from __future__ import annotations

import numpy as np

from mneme_server.corpus.ports import Matrix, Rows

_ROUNDS = 10
_BLOCK = 512


def groups_of(vectors: Matrix, least: float) -> Rows:
    """Return the group (n,) of each unit vector (n, d), numbered from 0 by their first members.

    DP-means (Kulis and Jordan 2012) with cosines: each vector joins the group whose mean it is
    nearest to, and founds one where that is less than `least`; then the means are taken anew, until
    nothing moves or ten rounds are over. It depends on the order of the vectors, and on nothing
    else.
    """
    groups: Rows = np.full(len(vectors), -1, np.int64)
    means = np.empty((0, vectors.shape[1]), np.float32)
    for _ in range(_ROUNDS):
        assigned, means = _assigned(vectors, means, least)
        if np.array_equal(assigned, groups):
            break
        groups = assigned
        means = _means(vectors, groups)
    return groups


def _assigned(vectors: Matrix, means: Matrix, least: float) -> tuple[Rows, Matrix]:
    """Return each vector's group, and the means, those of new groups included."""
    nearest: Rows = np.empty(len(vectors), np.int64)
    founded = list(means)
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK]
        known = len(founded)
        near = block @ np.array(founded).T if founded else np.empty((len(block), 0), np.float32)
        for row, vector in enumerate(block):
            best, cosine = -1, -1.0
            if known:
                best = int(near[row].argmax())
                cosine = float(near[row, best])
            for place in range(known, len(founded)):  # Founded since the block began.
                later = float(founded[place] @ vector)
                if later > cosine:
                    best, cosine = place, later
            if cosine < least:
                best = len(founded)
                founded.append(vector)
            nearest[start + row] = best
    return _renumbered(nearest), np.array(founded)


def _renumbered(groups: Rows) -> Rows:
    """Return the groups numbered by their first members; empty ones are gone."""
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def _means(vectors: Matrix, groups: Rows) -> Matrix:
    """Return the unit means (g, d) of the groups."""
    sums = np.zeros((int(groups.max()) + 1, vectors.shape[1]), np.float32)
    np.add.at(sums, groups, vectors)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    means: Matrix = sums / np.maximum(lengths, 1e-12)
    return means
