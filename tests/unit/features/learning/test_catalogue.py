"""What the algorithms declare, and how a session's settings are checked against it."""

from __future__ import annotations

from pathlib import Path

import pytest
from mneme_server.common.canonical import Json
from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.features.learning.algorithms.algorithm import Algorithm, LearningTask
from mneme_server.features.learning.catalogue import (
    ALGORITHMS,
    algorithm_named,
    completed,
    configured,
)
from mneme_server.features.learning.spaces import Box, Discrete

TABLE = algorithm_named("q_learning")
GUIDE = Path(__file__).parents[4] / "docs/guides/learning.md"


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda one: one.name)
def test_each_algorithm_is_made_from_its_defaults_which_are_in_their_ranges(
    algorithm: Algorithm,
) -> None:
    config = configured(algorithm, {})
    assert list(config) == [key.name for key in algorithm.keys]
    assert configured(algorithm, config) == config
    actions = Discrete(3) if algorithm.discrete else Box((-1.0,), (1.0,))
    assert algorithm.make(LearningTask(Discrete(2), actions, config, seed=0)).dump() is not None


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda one: one.name)
def test_the_guide_names_the_defaults_of_each_algorithm(algorithm: Algorithm) -> None:
    defaults = {
        key.name: f"{key.default:g}" for key in algorithm.keys if not isinstance(key.default, str)
    }
    names = ("learning_rate", "discount_factor", "epsilon", "batch_size")
    row = " | ".join([f"`{algorithm.name}`", *(defaults.get(name, "–") for name in names)])
    assert f"| {row} |" in GUIDE.read_text(encoding="utf-8").splitlines()


def test_what_is_given_takes_the_place_of_the_defaults() -> None:
    config = configured(TABLE, {"epsilon": 0.5, "bins": 4.0})
    assert (config["epsilon"], config["bins"], config["discount_factor"]) == (0.5, 4, 0.99)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"learning_rat": 0.1}, "no such key; it has learning_rate (from 0.0001 to 1, by default"),
        ({"epsilon": 1.5}, "must be from 0 to 1, by default 0.1"),
        ({"epsilon": float("nan")}, "must be from 0 to 1"),
        ({"epsilon": "high"}, "must be from 0 to 1"),
        ({"epsilon": True}, "must be from 0 to 1"),
        ({"bins": 2.5}, "must be a whole number from 1 to 1000, by default 10"),
    ],
)
def test_what_is_not_valid_is_refused_with_what_would_be(given: dict[str, Json], says: str) -> None:
    with pytest.raises(InvalidArgument, match="config") as refused:
        configured(TABLE, given)
    assert says in refused.value.message
    assert refused.value.field == f"config.{next(iter(given))}"


def test_a_session_of_before_has_the_defaults_of_keys_that_came_since() -> None:
    kept = {"exploration": 1.5, "ridge": 1.0}
    assert completed("linucb", kept) == configured(algorithm_named("linucb"), kept)
    assert completed("gone", kept) == kept


def test_an_unknown_algorithm_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidArgument, match="linucb, thompson, q_learning, sarsa") as refused:
        algorithm_named("q")
    assert refused.value.reason is Reason.ALGORITHM_NOT_SUPPORTED
