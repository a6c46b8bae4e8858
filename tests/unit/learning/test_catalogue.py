"""What the algorithms declare, and how a session's settings are checked against it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from mneme_server.common.canonical import Json
from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.learning.algorithm import Algorithm, Task
from mneme_server.learning.catalogue import ALGORITHMS, algorithm_named, configured
from mneme_server.learning.model import Definition, Mode
from mneme_server.learning.sessions import of_its_time
from mneme_server.learning.spaces import Box, Discrete, OpenLabels, OpenObject

TABLE = algorithm_named("q_learning")
GUIDE = Path(__file__).parents[3] / "docs/guides/learning.md"


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda one: one.name)
def test_each_algorithm_is_made_from_its_defaults_which_are_in_their_ranges(
    algorithm: Algorithm,
) -> None:
    config = configured(algorithm, {})
    assert list(config) == [key.name for key in algorithm.keys]
    assert configured(algorithm, config) == config
    actions = Discrete(3) if algorithm.discrete else Box((-1.0,), (1.0,))
    assert algorithm.make(Task(Discrete(2), actions, config, seed=0)).dump() is not None


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda one: one.name)
def test_the_guide_names_the_defaults_of_each_algorithm(algorithm: Algorithm) -> None:
    defaults = {key.name: f"{key.default:g}" for key in algorithm.keys}
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


def test_a_session_from_before_a_key_was_added_has_the_defaults_of_its_time() -> None:
    spaces = (OpenObject(), OpenLabels())
    now = Definition("q_learning", configured(TABLE, {}), *spaces, 0, Mode.INLINE)
    config = {**now.config, "learning_rate": 0.5, "epsilon": 0.2}
    other = replace(now, config=config)
    older = replace(now, config={k: v for k, v in config.items() if k != "reward_scale"})

    assert of_its_time(now, older, {}) == older
    assert of_its_time(now, older, {"learning_rate": 0.1}) != older
    assert of_its_time(now, other, {}) == now  # It was made with other settings.


def test_a_session_keeps_the_default_of_its_time_where_that_has_changed() -> None:
    pytest.importorskip("torch", reason="the extra `rl` is not installed")
    algorithm = algorithm_named("a3c")
    [changed] = [key for key in algorithm.keys if key.formerly]
    spaces = (OpenObject(), OpenLabels())
    now = Definition("a3c", configured(algorithm, {}), *spaces, 0, Mode.INLINE)
    [former] = changed.formerly
    older = replace(now, config={**now.config, changed.name: former})
    other = replace(now, config={**now.config, changed.name: 0.123})

    assert of_its_time(now, older, {}) == older
    assert of_its_time(now, older, {changed.name: changed.default}) == now
    assert of_its_time(now, other, {}) == now  # It was made with other settings.


def test_an_unknown_algorithm_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidArgument, match="linucb, thompson, q_learning, sarsa") as refused:
        algorithm_named("q")
    assert refused.value.reason is Reason.ALGORITHM_NOT_SUPPORTED
