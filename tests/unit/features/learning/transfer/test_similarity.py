"""How alike two tasks are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.features.learning.algorithms.algorithm import Transition
from mneme_server.features.learning.spaces import Box, Dict, Discrete, OpenObject
from mneme_server.features.learning.transfer.similarity import ComparedTask, features_of, similarity

SPACE = OpenObject()
ACTIONS = {0: "password", 1: "pkce"}


def task(
    seed: int = 0,
    *,
    right: int = 1,
    types: tuple[str, ...] = ("auth", "ui"),
    low: float = 0.0,
    count: int = 300,
    actions: dict[int, str] = ACTIONS,
) -> ComparedTask:
    chance = np.random.default_rng(seed)
    transitions = []
    for _ in range(count):
        state = {"task_type": str(chance.choice(types)), "size": round(low + chance.random(), 1)}
        action = int(chance.integers(2))
        transitions.append(Transition(state, action, float(action == right)))
    return ComparedTask(SPACE, features_of(SPACE, transitions), actions, transitions)


def test_the_same_task_is_alike_in_all_parts_and_it_is_said() -> None:
    found = similarity(task(0), task(1))
    assert found.overall > 0.9
    assert found.features == found.actions == 1.0
    assert found.states is not None
    assert found.states > 0.9
    assert found.rewards == pytest.approx(1.0, abs=0.05)
    assert found.why.startswith(f"The tasks are {found.overall:.0%} alike: features 100%, actions")


def test_where_the_right_action_is_another_one_tasks_are_not_alike() -> None:
    found = similarity(task(0), task(1, right=0))
    assert found.rewards == 0.0
    assert found.overall == 0.0
    assert found.is_contradicted
    assert "Rewards speak against it: where an action brought 1 more in the source" in found.why


@pytest.mark.parametrize("count", [8, 200])
def test_opposite_rewards_are_seen_after_a_few_steps(count: int) -> None:
    found = similarity(task(0), task(1, right=0, count=count))
    assert found.is_contradicted
    assert found.overall == 0.0
    alike = similarity(task(0), task(1, count=count))
    assert not alike.is_contradicted
    assert alike.overall > 0.85


def noisy(seed: int, *, right: int, count: int) -> ComparedTask:
    """Rewards of 1 and 0 that come nine times in ten, and one in ten."""
    made = task(seed, right=right, count=count)
    chance = np.random.default_rng([seed, 1])
    again = [
        replace(one, reward=float(chance.random() < 0.1 + 0.8 * one.reward))
        for one in made.transitions
    ]
    return replace(made, transitions=again)


def test_from_a_few_noisy_rewards_nothing_is_concluded() -> None:
    """Of twenty targets with four steps none is told to be alike or not by its rewards; with sixty
    steps all are."""
    source = noisy(0, right=1, count=300)
    for seed in range(1, 21):
        few, many = (noisy(seed, right=1, count=count) for count in (4, 60))
        assert similarity(source, few).rewards is None
        assert not similarity(source, many).is_contradicted
        assert similarity(source, many).rewards is not None
        assert similarity(source, noisy(seed, right=0, count=60)).is_contradicted


def test_states_that_are_distributed_differently_are_less_alike() -> None:
    same, moved = similarity(task(0), task(1)), similarity(task(0), task(1, low=0.5))
    other = similarity(task(0), task(1, types=("db", "api")))
    assert same.states is not None
    assert moved.states is not None
    assert other.states is not None
    assert same.states > moved.states > other.states - 0.25
    assert other.states == pytest.approx(0.5, abs=0.1)  # Of two features one has nothing in common.


def test_features_and_actions_are_compared_by_name() -> None:
    other = task(1, actions={0: "password", 1: "magic link"})
    found = similarity(task(0), other)
    assert found.actions == pytest.approx(1 / 3)
    renamed = replace(task(1), features={"kind", "size"})
    assert similarity(task(0), renamed).features == pytest.approx(1 / 3)


def rewarded(*rewards: float, kinds: int = 1) -> ComparedTask:
    transitions = [
        Transition({"kind": f"{kinds}-{n % kinds}"}, 0, reward) for n, reward in enumerate(rewards)
    ]
    return ComparedTask(SPACE, features_of(SPACE, transitions), ACTIONS, transitions)


@pytest.mark.parametrize("most", [0.1, 1e-320, 1.0, 1.7e308])
def test_rewards_that_are_as_far_apart_as_can_be_have_nothing_in_common(most: float) -> None:
    """However large they are."""
    for other in (0.0, -most):
        found = similarity(rewarded(*[most] * 6), rewarded(*[other] * 6))
        assert found.rewards == found.overall == 0.0
    assert similarity(rewarded(*[most] * 6), rewarded(*[most] * 6)).rewards == 1.0


@pytest.mark.parametrize("kinds", range(2, 12))
def test_states_of_other_kinds_have_nothing_in_common(kinds: int) -> None:
    """Though the shares of the kinds may add up to a bit more than all."""
    found = similarity(rewarded(*[1.0] * 40, kinds=kinds), rewarded(*[1.0] * 40))
    assert found.states == pytest.approx(0.0, abs=1e-12)
    assert found.overall == pytest.approx(0.0, abs=1e-3)


def test_without_data_only_the_spaces_are_compared_and_it_is_said() -> None:
    empty = ComparedTask(SPACE, {"task_type", "size"}, ACTIONS)
    found = similarity(task(0), empty)
    assert (found.overall, found.states, found.rewards) == (1.0, None, None)
    assert found.why.endswith("Not known yet: distributions of states, rewards.")


def test_of_open_spaces_that_saw_nothing_nothing_is_known_and_so_nothing_alike() -> None:
    found = similarity(task(0), ComparedTask(SPACE, features_of(SPACE, []), {}))
    assert (found.overall, found.features, found.actions) == (0.0, None, None)
    assert not found.is_measured
    assert found.why == "Nothing of the tasks can be compared yet: too little was recorded."


def test_declared_spaces_have_their_features_before_anything_was_seen() -> None:
    space = Dict({"at": Box((0.0, 0.0), (1.0, 1.0)), "kind": Discrete(3)})
    assert features_of(space, []) == {"at[0]", "at[1]", "kind"}
    assert features_of(Discrete(3), []) == {""}


@given(st.integers(0, 100), st.integers(0, 1), st.floats(0, 2))
def test_similarity_is_from_0_to_1(seed: int, right: int, low: float) -> None:
    found = similarity(task(0, count=40), task(seed, right=right, low=low, count=40))
    assert 0.0 <= found.overall <= 1.0
