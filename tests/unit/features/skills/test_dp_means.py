"""Groups by meaning: each vector with those that are near, whatever there is besides."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.engine.corpus.ports import Matrix
from mneme_server.features.skills.dp_means import groups_of

DIMENSIONS = 64


def clouds(sizes: list[int], seed: int, spread: float = 0.02) -> Matrix:
    """Unit vectors in tight clouds around far centres, one cloud after the other."""
    rng = np.random.default_rng(seed)
    centres = np.eye(DIMENSIONS)[rng.permutation(DIMENSIONS)[: len(sizes)]]
    points = np.repeat(centres, sizes, axis=0)
    points += spread * rng.standard_normal(points.shape)
    unit: Matrix = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
    return unit


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(0, 99))
def test_clouds_are_found_in_whatever_order_they_come(sizes: list[int], seed: int) -> None:
    vectors = clouds(sizes, seed)
    cloud = np.repeat(np.arange(len(sizes)), sizes)
    order = np.random.default_rng(seed).permutation(len(vectors))
    groups = groups_of(vectors[order], 0.7)
    together = groups[:, None] == groups[None]
    assert np.array_equal(together, cloud[order][:, None] == cloud[order][None])


def test_groups_are_numbered_by_their_first_members() -> None:
    vectors = clouds([3, 1, 2], seed=5)
    assert groups_of(vectors, 0.7).tolist() == [0, 0, 0, 1, 2, 2]
    assert groups_of(vectors[::-1], 0.7).tolist() == [0, 0, 1, 2, 2, 2]


def test_a_thousand_vectors_of_no_structure_are_grouped_all_the_same() -> None:
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((1_500, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    groups = groups_of(vectors, 0.8)
    assert set(groups) == set(range(groups.max() + 1))
    assert np.array_equal(groups, groups_of(vectors, 0.8))
