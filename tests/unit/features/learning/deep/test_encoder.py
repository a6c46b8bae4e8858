"""States as vectors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mneme_server.features.learning.deep.encoder import encoder_of
from mneme_server.features.learning.spaces import (
    Box,
    Dict,
    Discrete,
    MultiDiscrete,
    OpenLabels,
    OpenObject,
)


def test_bounded_numbers_run_from_minus_one_to_one_and_others_grow_with_their_logarithm() -> None:
    encoder = encoder_of(Box((0.0, -math.inf, -3.4e38), (10.0, math.inf, 3.4e38)), 8)

    found = encoder.encode([[0, 0.5, -0.5], [10, math.e, -math.e], [5, -1, 1]])

    assert found.dtype == np.float32
    assert found == pytest.approx(np.array([[-1, 0.5, -0.5], [1, 2, -2], [0, -1, 1]]), abs=1e-6)
    assert encoder.numeric().all()


def test_one_of_several_has_a_place_of_its_own() -> None:
    assert encoder_of(Discrete(3), 8).encode([2, 0]).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert encoder_of(Discrete(2, ("a", "b")), 8).encode(["b"]).tolist() == [[0, 1]]
    assert encoder_of(MultiDiscrete((2, 3)), 8).encode([[1, 0]]).tolist() == [[0, 1, 1, 0, 0]]
    assert encoder_of(MultiDiscrete((2, 3)), 8).binary


def test_one_of_very_many_shares_places() -> None:
    encoder = encoder_of(Discrete(10**9), 8)
    encoder.notice([5, 7])

    found = encoder.encode([5, 7, 10**8])
    assert found.shape == (3, 4_096)
    assert found.sum(axis=1).tolist() == [1, 1, 0]


def test_an_objects_parts_stand_one_after_the_other() -> None:
    encoder = encoder_of(Dict({"b": Discrete(2), "a": Box((0.0,), (1.0,))}), 8)

    assert encoder.encode([{"a": [0.5], "b": 1}]).tolist() == [[0, 0, 1]]
    assert encoder.numeric().tolist() == [True, False, False]
    assert not encoder.binary


def test_what_is_not_declared_gets_its_places_as_it_is_noticed_and_keeps_them() -> None:
    encoder = encoder_of(OpenObject(), 4)
    first = {"task": "auth", "size": 0.5}
    assert encoder.encode([first]).tolist() == [[0, 0, 0, 0]]

    encoder.notice([first])
    found = encoder.encode([first, {"task": "parse", "size": 1}])
    assert sorted(found[0].tolist()) == [0, 0, 0.5, 1]
    assert found[1].sum() == 1

    again = encoder_of(OpenObject(), 4)
    again.load(encoder.dump())
    assert again.encode([first]).tolist() == found[:1].tolist()


def test_a_label_that_is_an_object_stands_for_itself() -> None:
    encoder = encoder_of(OpenLabels(), 4)
    encoder.notice([{"tool": "a", "n": 1}, "b"])

    found = encoder.encode([{"n": 1, "tool": "a"}, "b", {"tool": "b", "n": 1}])
    assert found.sum(axis=1).tolist() == [1, 1, 0]
    assert found[0].argmax() != found[1].argmax()
