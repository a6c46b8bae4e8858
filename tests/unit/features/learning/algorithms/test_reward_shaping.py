"""Shaped rewards: bonuses for what is new, surprising or promising."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.common.errors import InvalidArgument
from mneme_server.features.learning.algorithms.reward_shaping import (
    Shaped,
    Shaper,
    Shaping,
    ShapingStep,
    Visits,
)
from mneme_server.features.learning.spaces import Discrete, OpenObject

SPACE = OpenObject()


def walked(
    shaper: Shaper, places: list[int], shaping: Shaping, *, potential_based: bool = False
) -> list[Shaped]:
    return [
        shaper.shape(
            ShapingStep({"place": place}, action="on", ends=n == len(places) - 1),
            0.0,
            shaping=shaping,
            weight=1.0,
            potential_based=potential_based,
            value=place / 10,
        )
        for n, place in enumerate(places)
    ]


def test_the_bonus_is_the_weight_times_the_component_that_was_asked_for() -> None:
    shaper = Shaper(SPACE, 0.9)
    found = shaper.shape(ShapingStep({"place": 1}), 1.0, shaping=Shaping.NOVELTY)
    assert (found.novelty, found.bonus, found.reward) == (1.0, 0.1, 1.1)
    assert not found.keeps_best_policy
    assert "another policy than the task's best may earn more" in found.why
    nothing = shaper.shape(ShapingStep({"place": 1}), 1.0, shaping=Shaping.NONE)
    assert (nothing.bonus, nothing.reward, nothing.keeps_best_policy) == (0.0, 1.0, True)


def test_novelty_falls_with_the_square_root_of_the_visits() -> None:
    found = walked(Shaper(SPACE, 0.9), [1, 1, 1, 1, 2], Shaping.NOVELTY)
    assert [one.novelty for one in found] == pytest.approx([1, 2**-0.5, 3**-0.5, 0.5, 1])


def test_curiosity_fades_for_what_can_be_foreseen_and_returns_for_a_surprise() -> None:
    shaper = Shaper(SPACE, 0.9)
    around = [0, 1, 2, 3] * 60
    found = walked(shaper, [*around, 0], Shaping.CURIOSITY)
    first = np.mean([one.curiosity for one in found[1:5]])
    last = np.mean([one.curiosity for one in found[-12:]])
    assert last < 0.1 < first
    walked(shaper, [0], Shaping.NONE)
    shaper.shape(ShapingStep({"place": 0}, action="on"), 0.0)
    surprise = shaper.shape(ShapingStep({"place": 9, "siren": True}, action="on"), 0.0)
    assert surprise.curiosity > 0.5
    assert not surprise.keeps_best_policy


@given(st.lists(st.integers(0, 5), min_size=2, max_size=12), st.booleans())
def test_potentials_cancel_out_along_every_path_to_an_end(places: list[int], new: bool) -> None:
    shaping = Shaping.NOVELTY if new else Shaping.PROGRESS
    shaper = Shaper(SPACE, 0.9)
    walked(shaper, [0, 3, 3, 5], Shaping.NOVELTY)  # Something was seen before.
    start = Shaper(SPACE, 0.9)
    start.load(shaper.dump())
    found = walked(shaper, places, shaping, potential_based=new)
    assert all(one.keeps_best_policy for one in found)
    discounted = sum(0.9**n * one.bonus for n, one in enumerate(found[1:]))
    # Only the first state's potential is left: it is the same whatever was done there.
    first = walked(start, places[:1] * 2, Shaping.NOVELTY)[0].novelty if new else places[0] / 10
    assert discounted == pytest.approx(-first)


def test_potential_based_shaping_leaves_the_best_policy_of_a_task_the_best_one() -> None:
    chance = np.random.default_rng(0)
    led, rewards = chance.dirichlet(np.ones(5), (5, 3)), chance.normal(size=(5, 3))
    potential = chance.normal(size=5) * 3
    shaped = rewards + 0.9 * led @ potential - potential[:, None]

    def best(rewards: np.ndarray) -> list[int]:
        worth = np.zeros(5)
        for _ in range(500):
            worth = (rewards + 0.9 * led @ worth).max(axis=1)
        return [int(one) for one in (rewards + 0.9 * led @ worth).argmax(axis=1)]

    assert best(shaped) == best(rewards)


def test_progress_is_what_the_state_is_worth_more_than_the_one_before() -> None:
    shaper = Shaper(Discrete(5), 0.5)
    found = shaper.shape(
        ShapingStep(1, next_state=2), 0.25, shaping=Shaping.PROGRESS, value=0.8, value_before=0.1
    )
    assert found.progress == pytest.approx(0.5 * 0.8 - 0.1)
    assert found.reward == pytest.approx(0.25 + 0.1 * 0.3)


def test_what_cannot_be_is_refused_with_what_can() -> None:
    shaper = Shaper(SPACE, 0.9)
    with pytest.raises(InvalidArgument, match="ask for novelty or progress"):
        shaper.shape(ShapingStep({}), 0.0, potential_based=True)
    with pytest.raises(InvalidArgument, match="ask for curiosity or novelty"):
        shaper.shape(ShapingStep({}), 0.0, shaping=Shaping.PROGRESS)


def test_actors_and_episodes_are_told_apart() -> None:
    shaper = Shaper(SPACE, 0.9)
    shaper.shape(ShapingStep({"place": 1}, actor="a"), 0.0)
    assert shaper.before(ShapingStep({"place": 2}, actor="a")) == {"place": 1}
    assert shaper.before(ShapingStep({"place": 2}, actor="b")) is None
    shaper.shape(ShapingStep({"place": 2}, actor="a", ends=True), 0.0)
    assert shaper.before(ShapingStep({"place": 3}, actor="a")) is None


def test_a_shaper_goes_on_where_it_was_after_a_restart() -> None:
    shaper, again = Shaper(SPACE, 0.9), Shaper(SPACE, 0.9)
    walked(shaper, [0, 1, 2, 1, 5], Shaping.CURIOSITY)
    shaper.shape(ShapingStep({"place": 4}), 0.0)
    dumped = shaper.dump()
    json.dumps(dumped["last"])
    again.load(dumped)
    assert walked(again, [1, 2], Shaping.CURIOSITY) == walked(shaper, [1, 2], Shaping.CURIOSITY)


def test_visits_are_never_counted_too_low() -> None:
    visits = Visits()
    for n in range(3_000):
        visits.visit(str(n % 1_000))
    counts = [visits.count(str(n)) for n in range(1_000)]
    assert min(counts) == 3
    assert np.mean(counts) < 3.05
    assert visits.count("never") == 0
