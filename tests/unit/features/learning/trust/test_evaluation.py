"""Off-policy evaluation: what a learned policy would earn, before it is let do anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from mneme_server.features.learning.algorithms.algorithm import (
    ActionQuestion,
    Choice,
    Transition,
    number_of,
)
from mneme_server.features.learning.spaces import Discrete
from mneme_server.features.learning.trust.behaviour import contradiction
from mneme_server.features.learning.trust.blocks import Basis, episodes_of
from mneme_server.features.learning.trust.estimates import ValueEstimate
from mneme_server.features.learning.trust.evaluation import (
    Evaluation,
    Propensities,
    evaluate_learning,
    evaluate_policy,
)
from unit.features.learning.trust.bandits import ACTIONS, SPACE, TYPES, World, learner, taught

BASIS = Basis(SPACE)


def evaluated(transitions: Sequence[Transition], name: str = "linucb") -> Evaluation:
    return evaluate_learning(BASIS, episodes_of(transitions), learner(name))


def holds(found: ValueEstimate | None, truth: float) -> bool:
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    return found.low <= truth <= found.high


def test_the_intervals_hold_what_the_learned_policy_earns_once_it_is_deployed() -> None:
    held = []
    for seed in range(12):
        world = World(seed)
        transitions = world.logged(600)
        found = evaluated(transitions)
        truth = world.value(taught(transitions))
        assert found.propensities is Propensities.RECORDED
        held += [holds(found.weighted, truth), holds(found.doubly_robust, truth)]
    assert np.mean(held) >= 0.8  # 95 % in the long run: `python -m benchmarks.off_policy`.


def test_a_policy_that_learned_something_gains_and_the_gain_is_measured() -> None:
    found = evaluated(World(3).logged(2_000))
    assert found.gain is not None
    assert found.gain.low is not None
    assert found.gain.low > 0
    assert found.doubly_robust is not None
    assert found.behaviour is not None
    gained = found.doubly_robust.value - found.behaviour.value
    assert found.gain.value == pytest.approx(gained)


def test_without_recorded_probabilities_those_of_the_behaviour_are_fitted_and_it_is_said() -> None:
    world = World(1)
    transitions = world.logged(2_000, favourite=0.6)
    known = evaluated(transitions)
    guessed = evaluated([replace(one, probability=None) for one in transitions])
    assert guessed.propensities is Propensities.ESTIMATED
    assert known.propensities is Propensities.RECORDED
    assert known.doubly_robust is not None
    assert guessed.doubly_robust is not None
    assert guessed.doubly_robust.value == pytest.approx(known.doubly_robust.value, abs=0.05)
    some = [replace(one, probability=None) if n % 3 else one for n, one in enumerate(transitions)]
    assert evaluated(some).propensities is Propensities.PARTLY_ESTIMATED


def _by_rule(transitions: Sequence[Transition], probability: float | None) -> list[Transition]:
    """The decisions of a behaviour that leaves nothing to chance."""
    return [
        replace(one, probability=probability)
        for one in transitions
        if number_of(one.action) == TYPES.index(str(one.state["task_type"]))  # type: ignore[index,call-overload]
    ]


@pytest.mark.parametrize("probability", [1.0, None])
def test_where_nothing_was_left_to_chance_nothing_is_concluded(probability: float | None) -> None:
    found = evaluated(_by_rule(World(0).logged(3_000), probability))
    assert found.gain is found.weighted is found.doubly_robust is None
    assert "would have brought there is not known" in found.refused
    assert found.behaviour is not None


def test_where_there_was_only_one_action_to_choose_it_may_be_certain() -> None:
    transitions = World(2).logged(2_000)
    alone = [
        replace(one, probability=1.0, available=(number_of(one.action),)) if n % 5 == 0 else one
        for n, one in enumerate(transitions)
    ]
    assert evaluated(alone).refused == ""


@pytest.mark.parametrize("claimed", [0.25, 0.9])
def test_probabilities_that_the_frequencies_contradict_are_refused(claimed: float) -> None:
    transitions = World(1).logged(1_000, favourite=0.6 if claimed == 0.25 else 0.25)
    skewed = [one for n, one in enumerate(transitions) if one.action != 0 or n % 4 == 0]
    found = evaluated([replace(one, probability=claimed) for one in skewed])
    assert found.gain is None
    assert found.refused.startswith("The recorded probabilities are not those with which")


def test_true_probabilities_are_not_contradicted_by_chance() -> None:
    refused = [
        contradiction(
            np.array([one.probability or np.nan for one in transitions]),
            np.array([number_of(one.action) for one in transitions]),
        )
        for seed in range(40)
        for transitions in (World(seed).logged(300, favourite=0.25 + 0.018 * seed),)
    ]
    assert refused == [""] * 40


def test_fewer_than_fifty_effective_episodes_are_refused_in_words() -> None:
    few = evaluated(World(0).logged(60))
    assert few.weighted is few.doubly_robust is few.gain is None
    assert few.refused.startswith("Only 30 of the session's episodes came after")
    thin = evaluated(World(0).logged(200))
    assert thin.gain is None
    assert "at least 50 are needed" in thin.refused
    assert thin.effective < 50
    assert thin.behaviour is not None


def test_a_policy_that_does_what_was_never_done_is_refused() -> None:
    chance = np.random.default_rng(0)
    transitions = [
        Transition({"n": n % 2}, int(chance.integers(2)), 1.0, probability=0.5) for n in range(400)
    ]

    def always_the_third(questions: Sequence[ActionQuestion]) -> list[Choice]:
        policy = np.array([0.4, 0.0, 0.6])
        return [Choice(2, np.zeros(0), policy, 0.6, 1.0, False) for _ in questions]

    transitions = [replace(one, available=(0, 1, 2)) for one in transitions]
    found = evaluate_policy(BASIS, episodes_of(transitions), always_the_third, 100)
    assert found.weighted is None
    assert "was never done, so that nothing is known of it" in found.refused


def test_nothing_recorded_is_refused_too() -> None:
    assert evaluated([]).refused


def test_the_policy_is_asked_about_episodes_before_it_learns_from_them() -> None:
    seen: list[object] = []

    class Watching:
        def __init__(self) -> None:
            self._inner = learner()

        def __getattr__(self, name: str) -> object:
            return getattr(self._inner, name)

        def choose(self, questions: Sequence[ActionQuestion], **how: object) -> list[Choice]:
            if len(seen) < 500:  # Then it is compared with what it was.
                assert not {id(one.state) for one in questions} & set(seen)
            return self._inner.choose(questions, **how)  # type: ignore[arg-type]

        def learn(self, transitions: Sequence[Transition]) -> object:
            seen.extend(id(one.state) for one in transitions)
            return self._inner.learn(transitions)

    found = evaluate_learning(BASIS, episodes_of(World(0).logged(500)), Watching())  # type: ignore[arg-type]
    assert found.episodes == 250
    assert len(seen) == 500


def test_the_interval_of_a_policy_that_goes_on_changing_is_wider() -> None:
    class Turning:
        """Chooses an action until it has learned from all, then that or another one."""

        def __init__(self, last: int) -> None:
            self._last, self._known = last, 0

        def choose(self, questions: Sequence[ActionQuestion], **_how: object) -> list[Choice]:
            action = self._last if self._known == 500 else 0
            policy = np.eye(len(ACTIONS))[action]
            return [Choice(action, np.zeros(0), policy, 1.0, 1.0, False) for _ in questions]

        def learn(self, transitions: Sequence[Transition]) -> None:
            self._known += len(transitions)

    episodes = episodes_of(World(0).logged(500))
    same, other = (evaluate_learning(BASIS, episodes, Turning(last)) for last in (0, 1))  # type: ignore[arg-type]
    assert same.doubly_robust is not None
    assert other.doubly_robust is not None
    assert same.doubly_robust.value == other.doubly_robust.value
    assert same.doubly_robust.low > other.doubly_robust.low  # type: ignore[operator]


def corridor(chance: np.random.Generator, right: float) -> list[Transition]:
    """Play an episode: from 0 on to 3, which pays 1; each step costs 0.1, and ten are the most."""
    found, place = [], 0
    for step in range(10):
        action = int(chance.random() < right)
        following = max(0, place + (1 if action else -1))
        there = following == 3
        found.append(
            Transition(
                place,
                action,
                (1.0 if there else 0.0) - 0.1,
                following,
                terminated=there,
                truncated=not there and step == 9,
                probability=right if action else 1 - right,
            )
        )
        place = following
        if there:
            break
    return found


def test_tasks_of_several_steps_are_evaluated_by_their_returns() -> None:
    chance = np.random.default_rng(0)
    target = 0.8

    def policy(questions: Sequence[ActionQuestion]) -> list[Choice]:
        probabilities = np.array([1 - target, target])
        return [Choice(1, np.zeros(0), probabilities, target, 1.0, False) for _ in questions]

    played = [one for _ in range(3_000) for one in corridor(chance, 0.6)]
    truth = float(
        np.mean([sum(one.reward for one in corridor(chance, target)) for _ in range(4_000)])
    )
    found = evaluate_policy(Basis(Discrete(4)), episodes_of(played), policy, 500)
    assert found.behaviour is not None
    assert found.behaviour.value < truth - 0.1
    assert holds(found.weighted, truth)
    assert found.doubly_robust is not None
    assert found.doubly_robust.value == pytest.approx(truth, abs=0.1)
    assert found.modelled is not None


@pytest.mark.parametrize("steps", [1, 2])
def test_episodes_that_were_broken_off_are_no_gain_where_actions_make_no_difference(
    steps: int,
) -> None:
    chance = np.random.default_rng(0)

    def policy(questions: Sequence[ActionQuestion]) -> list[Choice]:
        return [Choice(1, np.zeros(0), np.array([0.0, 1.0]), 1.0, 1.0, False) for _ in questions]

    episodes = [
        [
            Transition(
                int(chance.integers(4)),
                int(chance.integers(2)),
                1 + 0.1 * float(chance.normal()),
                int(chance.integers(4)),
                terminated=False,
                truncated=step == steps - 1,
                probability=0.5,
            )
            for step in range(steps)
        ]
        for _ in range(1_000)
    ]
    found = evaluate_policy(Basis(Discrete(4), 0.99), episodes, policy, 200)
    truth = sum(0.99**step for step in range(steps))
    assert found.modelled is not None
    assert found.modelled.value == pytest.approx(truth, abs=0.05)
    assert holds(found.doubly_robust, truth)
    assert holds(found.gain, 0.0)


def test_episodes_of_several_actors_are_told_apart_and_open_ones_left_out() -> None:
    def step(actor: str, ends: bool) -> Transition:
        return Transition(0, 0, 1.0, 0, terminated=ends, actor=actor)

    order = [step("a", False), step("b", False), step("b", True), step("a", True), step("a", False)]
    assert episodes_of(order) == [[order[0], order[3]], [order[1], order[2]]]
