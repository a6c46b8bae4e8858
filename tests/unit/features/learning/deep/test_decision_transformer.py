"""A decision transformer: what it keeps and foretells, and that it does what it is asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="the extra `rl` is not installed")

import torch
from mneme_server.common.errors import FailedPrecondition, InvalidArgument
from mneme_server.features.learning.algorithms.algorithm import ActionQuestion, Transition
from mneme_server.features.learning.deep import frames
from mneme_server.features.learning.deep.learner import DeepLearner
from mneme_server.features.learning.deep.setup import Batch, Setup
from mneme_server.features.learning.deep.training.decision_transformer import (
    DecisionTransformer,
    EpisodeBuffer,
    Windows,
)
from mneme_server.features.learning.deep.transformer import foretold
from mneme_server.features.learning.spaces import Box, Discrete
from mneme_server.features.learning.tally import MOST_OPEN
from support.deep import config_of, learner_of

CONFIG = {"context": 4, "hidden_size": 32, "hidden_layers": 1}
_BOX = {"actions": 2, "middle": np.full(2, 3.0, np.float32), "half": np.full(2, 2.0, np.float32)}


def batch(rewards: list[float], ends: list[bool], actors: list[str], inputs: int = 1) -> Batch:
    n = len(rewards)
    return Batch(
        states=np.repeat(np.arange(n, dtype=np.float32)[:, None], inputs, axis=1),
        actions=np.zeros(n, np.int64),
        rewards=np.array(rewards, np.float32),
        next_states=np.zeros((n, inputs), np.float32),
        terminated=np.array(ends),
        ends=np.array(ends),
        log_probability=np.zeros(n, np.float32),
        actors=actors,
    )


def setup(actions: int = 2, inputs: int = 1) -> Setup:
    config = config_of("decision_transformer", **CONFIG)
    none = np.zeros(0, np.float32)
    numeric = np.zeros(inputs, bool)
    return Setup("decision_transformer", inputs, numeric, False, actions, none, none, config, 1)


def test_episodes_are_kept_whole_with_what_was_still_to_be_gained() -> None:
    episodes = EpisodeBuffer(setup(), 1_000)
    episodes.add(batch([1, 10, 2, 20], [False, False, True, False], ["a", "b", "a", "b"]))
    assert len(episodes) == 2
    episodes.add(batch([30, 5], [True, True], ["b", "c"]))

    assert episodes.dump()["returns"].tolist() == [3, 2, 60, 50, 30, 5]
    assert episodes.best == 60
    assert episodes.unit == 60

    windows = episodes.windows(200, 3, torch.Generator().manual_seed(1))
    assert windows.real.sum(1).unique().tolist() == [1, 2, 3]
    whole = windows.returns[windows.returns[:, 0] == 60]
    assert whole[0].tolist() == [60, 50, 30]
    alone = windows.returns[windows.returns[:, 0] == 5]
    assert alone[0].tolist() == [5, 0, 0]


def test_the_oldest_episodes_make_way_as_a_whole() -> None:
    episodes = EpisodeBuffer(setup(), 5)
    for reward in (1, 2, 3):
        episodes.add(batch([reward] * 3, [False, False, True], ["a"] * 3))

    assert episodes.dump()["returns"].tolist() == [9, 6, 3]
    episodes.add(batch([1] * 9, [False] * 8 + [True], ["a"] * 9))
    assert len(episodes) == 9  # One that is too long stays until the next comes.


def test_the_episodes_that_were_silent_for_longest_are_not_waited_for() -> None:
    episodes = EpisodeBuffer(setup(), 1_000)
    for n in range(MOST_OPEN):
        episodes.add(batch([1], [False], [str(n)]))
    episodes.add(batch([1, 1], [False, False], ["0", "new"]))
    episodes.add(batch([5, 5, 5], [True] * 3, ["0", "1", "2"]))

    assert len(episodes.dump()["open"]) == MOST_OPEN - 2
    assert episodes.dump()["returns"].tolist() == [7, 6, 5, 5, 6, 5]


def test_the_network_in_numpy_is_torchs_and_does_not_look_ahead() -> None:
    trainer = DecisionTransformer(setup(actions=3, inputs=2))
    chance = np.random.default_rng(1)
    for parameter in trainer.model.parameters():
        parameter.data += 0.1 * torch.from_numpy(chance.normal(size=parameter.shape)).float()
    returns = chance.normal(size=(2, 4)).astype(np.float32)
    states = chance.normal(size=(2, 4, 2)).astype(np.float32)
    actions = chance.normal(size=(2, 4, 3)).astype(np.float32)

    found = foretold(trainer.weights(), returns, states, actions, heads=2)

    with torch.no_grad():
        expected = trainer.model(*map(torch.from_numpy, (returns, states, actions))).numpy()
    assert found == pytest.approx(expected, abs=1e-4)
    actions[:, 2:], states[:, 3:], returns[:, 3:] = 9, 9, 9
    again = foretold(trainer.weights(), returns, states, actions, heads=2)
    assert again[:, :3] == pytest.approx(found[:, :3], abs=1e-5)


def test_the_loss_is_the_cross_entropy_of_what_was_done_given_what_was_still_to_be_gained() -> None:
    trainer = DecisionTransformer(setup(actions=3, inputs=2))
    chance = np.random.default_rng(1)
    for parameter in trainer.model.parameters():
        parameter.data += 0.1 * torch.from_numpy(chance.normal(size=parameter.shape)).float()
    trainer.episodes.add(batch([30.0, 20.0, 10.0], [False, False, True], ["a"] * 3, inputs=2))
    returns = np.array([[60, 30, 10], [10, 0, 0]], np.float32)
    states = chance.normal(size=(2, 3, 2)).astype(np.float32)
    actions = np.array([[2, 0, 1], [1, 0, 0]])
    real = np.array([[True, True, True], [True, False, False]])

    found = trainer.loss(Windows(*map(torch.from_numpy, (returns, states, actions, real))))

    logits = foretold(trainer.weights(), returns / 60, states, np.eye(3)[actions], heads=2)
    powers = np.exp(logits - logits.max(axis=2, keepdims=True))
    likely = np.take_along_axis(powers / powers.sum(axis=2, keepdims=True), actions[..., None], 2)
    assert found.item() == pytest.approx(-np.log(likely[..., 0][real]).mean(), rel=1e-4)


def test_in_a_box_it_is_the_squared_error_in_halves_of_its_width() -> None:
    trainer = DecisionTransformer(replace(setup(), **_BOX))
    chance = np.random.default_rng(1)
    returns = np.zeros((2, 3), np.float32)
    states = chance.normal(size=(2, 3, 1)).astype(np.float32)
    actions = chance.uniform(1, 5, size=(2, 3, 2)).astype(np.float32)
    real = np.array([[True, True, True], [True, True, False]])

    found = trainer.loss(Windows(*map(torch.from_numpy, (returns, states, actions, real))))

    inside = (actions - 3) / 2
    told = np.tanh(foretold(trainer.weights(), returns, states, inside, heads=2))
    assert found.item() == pytest.approx(((told - inside) ** 2)[real].mean(), rel=1e-4)


def recorded(learner: DeepLearner, episodes: int) -> None:
    """Episodes of four steps in which action 1 gains 1 and action 0 nothing; done by chance."""
    chance = np.random.default_rng(1)
    for number in range(episodes):
        for place, action in enumerate(chance.integers(0, 2, 4).tolist()):
            learner.learn(
                [
                    Transition(
                        [place / 4],
                        action,
                        float(action),
                        None if place == 3 else [(place + 1) / 4],
                        terminated=place == 3,
                        actor=f"recorder {number}",
                    )
                ]
            )


def gained(learner: DeepLearner, aim: float | None) -> float:
    chance, total = np.random.default_rng(2), 0.0
    for place in range(4):
        question = ActionQuestion([place / 4], [0, 1], "player", aim)
        [choice] = learner.choose([question], explore=False, chance=chance)
        assert isinstance(choice.action, int)
        total += choice.action
        learner.learn(
            [
                Transition(
                    [place / 4],
                    choice.action,
                    float(choice.action),
                    [(place + 1) / 4],
                    terminated=place == 3,
                    actor="player",
                )
            ]
        )
    return total


def test_it_gains_what_it_is_asked_for_and_goes_on_from_a_dump() -> None:
    learner = learner_of("decision_transformer", **CONFIG)
    recorded(learner, 200)
    with_seed = learner.dump()
    learned = learner.train(250)
    assert learned.updates == 250
    assert learned.loss is not None
    assert learned.loss < 0.6

    assert [gained(learner, aim) for aim in (0, 1, 3, 4, None)] == [0, 1, 3, 4, 4]

    again = learner_of("decision_transformer", seed=9, **CONFIG)
    again.load(frames.unpack(frames.pack(with_seed)))
    assert again.train(250) == learned


def test_in_a_box_it_foretells_coordinates() -> None:
    learner = learner_of("decision_transformer", Box((-2.0,), (2.0,)), **CONFIG)
    chance = np.random.default_rng(1)
    for number in range(300):
        state, action = chance.uniform(-1, 1), chance.uniform(-2, 2)
        gain = -abs(float(action - state))
        learner.learn(
            [Transition([float(state)], (float(action),), gain, actor=f"recorder {number}")]
        )
    learner.train(300)

    questions = [ActionQuestion([x], target_return=0.0) for x in (-0.8, 0.0, 0.8)]
    found = learner.choose(questions, explore=False, chance=chance)
    actions = [choice.action[0] for choice in found if isinstance(choice.action, tuple)]
    assert actions == pytest.approx([-0.8, 0, 0.8], abs=0.5)
    assert all(choice.probability is None and choice.confidence > 0.1 for choice in found)


def test_an_episode_that_has_not_ended_is_not_trained_on() -> None:
    learner = learner_of("decision_transformer", **CONFIG)
    learner.learn([Transition([0.1], 0, 1.0, [0.2], terminated=False)])
    with pytest.raises(FailedPrecondition, match="no episodes to train on yet"):
        learner.train(1)


def test_heads_must_share_the_hidden_units_evenly() -> None:
    with pytest.raises(InvalidArgument, match="must be a multiple"):
        learner_of("decision_transformer", Discrete(2), heads=3, hidden_size=32)
