"""What every deep algorithm must do: learn, go on from a dump exactly, give the same for a seed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="the extra `rl` is not installed")

import torch
from mneme_server.common.errors import FailedPrecondition, InvalidArgument, Reason, WorkFailed
from mneme_server.features.learning.algorithms.algorithm import (
    ActionQuestion,
    Transition,
    UpdateSummary,
)
from mneme_server.features.learning.deep import frames
from mneme_server.features.learning.deep.learner import DeepLearner
from mneme_server.features.learning.spaces import Box, Discrete, OpenLabels, OpenObject
from mneme_server.features.learning.transfer.transfer import TransferKind, carried
from support.deep import NAMED, config_of, learner_of, practise, reward, score, tried

pytestmark = pytest.mark.slow

ONLINE = [name for name in NAMED if name != "decision_transformer"]
DISCRETE = [name for name in ONLINE if NAMED[name].discrete]
ON_POLICY = [name for name in ONLINE if NAMED[name].on_policy]


@pytest.mark.parametrize("name", ONLINE)
def test_it_beats_chance_after_a_few_hundred_tries(name: str) -> None:
    learner = learner_of(name)
    by_chance = score(learner)

    practise(learner, 700, np.random.default_rng(1))

    best = 1.0 if NAMED[name].discrete else 0.0
    assert score(learner) > by_chance + 0.5 * (best - by_chance)


@pytest.mark.parametrize("name", ON_POLICY)
def test_those_that_learn_from_their_own_behaviour_do_so_in_a_box_too(name: str) -> None:
    learner = learner_of(name, Box((-2.0,), (2.0,)))
    by_chance = score(learner)

    practise(learner, 2_000, np.random.default_rng(1))

    assert score(learner) > 0.6 * by_chance


@pytest.mark.parametrize("name", ONLINE)
def test_what_was_dumped_goes_on_exactly_as_what_goes_on(name: str) -> None:
    first = learner_of(name)
    practise(first, 150, np.random.default_rng(1))
    kept = frames.unpack(frames.pack(first.dump()))
    second = learner_of(name, seed=2)
    second.load(kept)

    practise(first, 120, np.random.default_rng(3))
    practise(second, 120, np.random.default_rng(3))

    assert _same(first.dump(), second.dump())


@pytest.mark.parametrize("name", sorted(NAMED))
def test_with_its_encoder_frozen_only_its_last_layers_learn(name: str) -> None:
    source, target = learner_of(name), learner_of(name, seed=2)
    _taught(source)
    target.load(carried(source.dump(), {0: 0, 1: 1}, TransferKind.FREEZE_ENCODER)[0])
    before = _networks(target)

    _taught(target)
    target.load(frames.unpack(frames.pack(target.dump())))  # As after a restart.
    _taught(target)

    after = _networks(target)
    changed = {place for place, one in after.items() if not np.array_equal(one, before[place])}
    assert changed
    assert all(_is_head(place, after) for place in changed), changed


def _taught(learner: DeepLearner) -> None:
    chance = np.random.default_rng(1)
    for _ in range(150):
        learner.learn([replace(tried(learner, chance), terminated=True)])
    learner.train(20)


def _networks(learner: DeepLearner) -> dict[str, Any]:
    """The weights of all networks that its trainer has, by name, and how it standardises; not those
    that follow others, which they reach in time."""
    trainer = learner.dump()["trainer"]
    weights = {
        f"{module}.{name}": array
        for module, arrays in trainer["modules"].items()
        if module not in {"target", "targets", "average", "slow_policy"}
        for name, array in arrays.items()
    }
    return {**weights, "mean": trainer["scaling"]["mean"].copy()}


def _is_head(name: str, all_of_them: dict[str, Any]) -> bool:
    """Whether it is of the last layer of a network, or of none."""
    *network, layer, _kind = name.split(".")
    if not layer.isdigit():
        return layer in {"last_norm", "head"} or name.endswith(("log_deviation", "temperature.log"))
    following = ".".join([*network, str(int(layer) + 1), "weight"])
    return following not in all_of_them and "blocks" not in network


@pytest.mark.parametrize("name", ONLINE)
def test_the_same_seed_learns_the_same_and_another_does_not(name: str) -> None:
    dumps = []
    for seed in (5, 5, 6):
        learner = learner_of(name, seed=seed)
        practise(learner, 150, np.random.default_rng(1))
        dumps.append(learner.dump())

    assert _same(dumps[0], dumps[1])
    assert not _same(dumps[0], dumps[2])


@pytest.mark.parametrize("name", ONLINE)
def test_training_on_what_is_kept_learns_and_tells_about_it(name: str) -> None:
    learner = learner_of(name)
    with pytest.raises(FailedPrecondition, match="no transitions"):
        learner.train(1)
    learner.learn([tried(learner, np.random.default_rng(1)) for _ in range(20)])

    learned = learner.train(5)

    assert learned.updates == 5
    assert learned.loss is not None
    assert math.isfinite(learned.loss)
    assert learned.gradient_norm > 0
    assert learner.is_trained


def test_training_that_diverged_is_refused_and_the_policy_stays_as_it_was() -> None:
    learner = learner_of("dqn")
    practise(learner, 400, np.random.default_rng(1))
    before = score(learner)
    with torch.no_grad():
        learner._worker._desk._trainer.values[-1].bias.fill_(1e30)  # type: ignore[union-attr]

    with pytest.raises(WorkFailed, match="training of dqn diverged") as failure:
        learner.train(5)

    assert failure.value.reason is Reason.CONVERGENCE_FAILED
    assert score(learner) == before
    told = learner.learn([tried(learner, np.random.default_rng(2)) for _ in range(4)])
    assert (told.updates, told.loss, told.gradient_norm) == (1, None, 0)


@pytest.mark.parametrize("name", ON_POLICY)
def test_a_transition_of_unknown_behaviour_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match="whose probability is known"):
        learner_of(name).learn([Transition([0.1], 0, 1.0)])


@pytest.mark.parametrize("name", DISCRETE)
def test_a_new_action_that_is_better_is_found(name: str) -> None:
    learner = learner_of(name, OpenLabels(), epsilon=0.1)
    chance = np.random.default_rng(1)

    def go(steps: int, known: int) -> None:
        for _ in range(steps):
            state = [float(chance.uniform(-1, 1))]
            question = ActionQuestion(state, range(known))
            choice = learner.choose([question], explore=True, chance=chance)[0]
            gained = 1.0 if choice.action == 2 else 0.5 * reward(state[0], choice.action)
            learner.learn(
                [Transition(state, choice.action, gained, probability=choice.probability)]
            )

    go(300, 2)
    go(900, 3)

    questions = [ActionQuestion([float(x)], range(3)) for x in np.linspace(-0.9, 0.9, 20)]
    found = learner.choose(questions, explore=False, chance=chance)
    assert sum(choice.action == 2 for choice in found) >= 16


@pytest.mark.parametrize("name", DISCRETE)
def test_a_new_action_may_be_there_to_choose_from_long_before_anybody_chooses_it(name: str) -> None:
    learner = learner_of(name, OpenLabels())
    for turn in range(150):
        learner.learn([Transition([0.1], turn % 2, 1.0, probability=0.3, available=[0, 1, 2])])

    [choice] = learner.choose(
        [ActionQuestion([0.1], [0, 1, 2])], explore=False, chance=np.random.default_rng(1)
    )
    assert len(choice.policy) == 3
    learner.learn([Transition([0.1], 2, 1.0, probability=0.3, available=[0, 1, 2])])


@pytest.mark.parametrize("name", DISCRETE)
def test_only_what_is_allowed_is_chosen_trained_or_not(name: str) -> None:
    learner = learner_of(name, Discrete(4))
    chance = np.random.default_rng(1)
    for _ in range(100):
        questions = [
            ActionQuestion([0.2], [1, 3]),
            ActionQuestion([0.3], [2]),
            ActionQuestion([0.1], [0, 2, 3]),
        ]
        choices = learner.choose(questions, explore=True, chance=chance)
        for question, choice in zip(questions, choices, strict=True):
            assert choice.action in question.allowed
            assert choice.policy.sum() == pytest.approx(1)
            place = list(question.allowed).index(choice.action)
            assert choice.probability == pytest.approx(choice.policy[place])
            learner.learn(
                [
                    Transition(
                        [0.2],
                        choice.action,
                        1.0,
                        [0.1],
                        terminated=False,
                        probability=choice.probability,
                        allowed=[0, 1],
                        available=question.allowed,
                    )
                ]
            )
    assert learner.is_trained


@pytest.mark.parametrize("name", ["dqn", "ppo"])
def test_states_of_any_json_are_learned_from(name: str) -> None:
    learner = learner_of(name, Discrete(2), states=OpenObject(), features=16)
    chance = np.random.default_rng(1)
    states = [{"task": "auth"}, {"task": "parse", "size": 3}]
    for _ in range(500):
        which = int(chance.integers(2))
        question = ActionQuestion(states[which], [0, 1])
        choice = learner.choose([question], explore=True, chance=chance)[0]
        gained = float(choice.action == which)
        learner.learn(
            [Transition(states[which], choice.action, gained, probability=choice.probability)]
        )

    questions = [ActionQuestion(state, [0, 1]) for state in states]
    found = learner.choose(questions, explore=False, chance=chance)
    assert [choice.action for choice in found] == [0, 1]


@pytest.mark.parametrize("name", ["ddpg", "sac", "td3"])
def test_a_box_without_bounds_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match="needs bounds"):
        learner_of(name, Box((-math.inf,), (math.inf,)))


def test_in_the_background_learning_is_handed_over_and_taken_over_later() -> None:
    learner = learner_of("dqn", background=True)
    practise(learner, 400, np.random.default_rng(1))

    assert learner.is_trained
    assert score(learner) > 0.7


def test_a3c_with_one_actor_learns_just_as_actor_critic_does() -> None:
    weights = []
    for name in ("actor_critic", "a3c"):
        learner = learner_of(name, rollout_steps=32, target_kl=0.05)
        practise(learner, 200, np.random.default_rng(1))
        weights.append(learner.dump()["weights"])

    assert _same(weights[0], weights[1])


@pytest.mark.parametrize("name", ON_POLICY)
def test_a_rollout_is_learned_from_in_parts_as_often_as_there_are_epochs(name: str) -> None:
    learner = learner_of(name, rollout_steps=64, batch_size=32, epochs=3, target_kl=100.0)

    learned = _gathered(learner, 64)

    assert learned.updates == 6


@pytest.mark.parametrize("name", ON_POLICY)
def test_a_rollout_is_left_when_the_policy_went_too_far_from_what_gathered_it(name: str) -> None:
    learner = learner_of(
        name, rollout_steps=64, batch_size=32, epochs=50, target_kl=0.001, learning_rate=0.01
    )

    learned = _gathered(learner, 64)

    assert 1 <= learned.updates < 50


@pytest.mark.parametrize("name", ["dqn", "ppo"])
def test_networks_learn_scaled_rewards_as_if_they_had_that_size(name: str) -> None:
    plain = learner_of(name)
    scaled = learner_of(name, reward_scale=1 / 1_024)
    chance = np.random.default_rng(1)
    told = [tried(plain, chance) for _ in range(150)]
    plain.learn(told)
    scaled.learn([replace(one, reward=one.reward * 1_024) for one in told])

    assert _same(plain.dump()["weights"], scaled.dump()["weights"])
    question = [ActionQuestion([0.5], [0, 1])]
    one, other = (
        each.choose(question, explore=False, chance=chance)[0] for each in (plain, scaled)
    )
    assert other.values == pytest.approx(1_024 * one.values)


def _gathered(learner: DeepLearner, steps: int) -> UpdateSummary:
    """Tell it what one actor did evenly."""
    chance = np.random.default_rng(1)
    told = []
    for _ in range(steps):
        state, action = float(chance.uniform(-1, 1)), int(chance.integers(2))
        told.append(Transition([state], action, reward(state, action), probability=0.5))
    return learner.learn(told)


def test_a3c_steps_from_where_others_are_with_gradients_from_where_an_actor_began() -> None:
    def transition(actor: str, action: int) -> Transition:
        return Transition([0.5], action, float(action), actor=actor, probability=0.5)

    learner = learner_of("a3c", rollout_steps=4, epochs=1)
    learner.learn([transition("slow", n % 2) for n in range(3)])
    learner.learn([transition("quick", n % 2) for n in range(4)])
    begun = learner.dump()["trainer"]["actors"]
    assert [actor["name"] for actor in begun] == ["slow", "quick"]
    assert not _same(begun[0]["networks"], begun[1]["networks"])

    learned = learner.learn([transition("slow", 1)])

    assert learned.updates == 1
    ended = learner.dump()["trainer"]
    slow = next(actor for actor in ended["actors"] if actor["name"] == "slow")
    assert _same(slow["networks"], ended["modules"]["networks"])


def test_every_key_has_a_default_in_its_range() -> None:
    for name, algorithm in NAMED.items():
        for key in algorithm.keys:
            value = config_of(name)[key.name]
            valid = value in key.choices if key.choices else key.low <= value <= key.high
            assert valid, f"{name}.{key.name}"


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
