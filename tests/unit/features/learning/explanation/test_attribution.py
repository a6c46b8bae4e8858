"""What speaks for an action, part by part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mneme_server.common.canonical import Json
from mneme_server.features.learning.explanation.attribution import (
    ABSENT,
    Attribution,
    attribute,
    name_of,
    parts_of,
    with_parts,
)
from mneme_server.features.learning.spaces import Box, Dict, Discrete, OpenObject

states = st.fixed_dictionaries(
    {"a": st.integers(-3, 3), "b": st.integers(-3, 3)},
    optional={"c": st.sampled_from(["x", "y"]), "d": st.booleans()},
)


def curious(given: Sequence[Json]) -> np.ndarray:
    """A score in which parts work together."""
    return np.array(
        [
            one["a"] * one["b"] + 2.0 * (one.get("c") == "x") * one["a"] + one.get("d", 0.5)  # type: ignore[index, call-overload, union-attr]
            for one in given
        ]
    )


def attributed(state: Json, background: Sequence[Json], budget: int) -> Attribution:
    chance = np.random.default_rng(0)
    return attribute(OpenObject(), state, background, curious, budget=budget, chance=chance)


@settings(max_examples=30)
@given(states, st.lists(states, min_size=1, max_size=4), st.sampled_from([0, 1_000]))
def test_the_shares_sum_to_what_is_more_than_typical_exactly_or_drawn(
    state: Json, background: list[Json], budget: int
) -> None:
    found = attributed(state, background, budget)
    assert found.score == pytest.approx(curious([state])[0])
    assert found.typical == pytest.approx(curious(background).mean())
    assert found.typical + sum(found.shares.values()) == pytest.approx(found.score)


def test_the_exact_shares_are_shapleys() -> None:
    found = attributed({"a": 2, "b": 3}, [{"a": 0, "b": 1}], 1_000)
    # a alone adds 2 * 1, b alone 0 * 3; together 6: each half of what the two orders give it.
    assert found.exact
    assert found.shares[("a",)] == pytest.approx((2 + 6) / 2)
    assert found.shares[("b",)] == pytest.approx((0 + 4) / 2)


def test_a_part_that_does_not_matter_has_no_share_and_equal_parts_equal_ones() -> None:
    found = attributed({"a": 2, "b": 2, "z": 9}, [{"a": 1, "b": 1, "z": 1}], 1_000)
    assert found.shares[("z",)] == pytest.approx(0)
    assert found.shares[("a",)] == pytest.approx(found.shares[("b",)])


def test_drawn_shares_are_close_to_the_exact_ones_and_the_same_each_time() -> None:
    state = {"a": 2, "b": 3, "c": "x", "d": True}
    background: list[Json] = [{"a": 1, "b": -1, "c": "y", "d": False}, {"a": 0, "b": 1}]
    exact, drawn = attributed(state, background, 10_000), attributed(state, background, 31)
    assert exact.exact
    assert not drawn.exact
    assert drawn == attributed(state, background, 31)
    for path, share in exact.shares.items():
        assert drawn.shares[path] == pytest.approx(share, abs=2.5)


def test_parts_are_the_leaves_of_a_state_by_name_and_can_be_exchanged_or_left_out() -> None:
    space = Dict({"at": Box((0.0, 0.0), (1.0, 1.0)), "free": OpenObject(), "kind": Discrete(2)})
    state: Json = {"at": [0.1, 0.2], "free": {"tags": ["a", "b"], "n": {"m": 1}}, "kind": 1}
    parts = parts_of(space, state)
    assert {name_of(path): part for path, part in parts.items()} == {
        "at[0]": 0.1,
        "at[1]": 0.2,
        "free.tags": ["a", "b"],
        "free.n.m": 1,
        "kind": 1,
    }
    assert with_parts(state, parts) == state
    changed = with_parts(state, {("at", 1): 0.5, ("free", "tags"): ABSENT, ("free", "n", "m"): 2})
    assert changed == {"at": [0.1, 0.5], "free": {"n": {"m": 2}}, "kind": 1}
    assert {name_of(path) for path in parts_of(Discrete(3), 2)} == {"state"}
    assert with_parts(2, {(): 1}) == 1
