"""Policies in NumPy: what they say is what torch says, and what they draw is what they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mneme_server.features.learning.algorithms.algorithm import ActionQuestion, Transition
from mneme_server.features.learning.deep.exploration import Exploration, PinkNoise
from mneme_server.features.learning.deep.policies import (
    Categorical,
    Deterministic,
    Gaussian,
    NetworkPolicy,
    Values,
    network,
)

ONE = np.ones(1, np.float32)
STATE = np.zeros((1, 2), np.float32)


def weights(outputs: list[float], **more: np.ndarray) -> dict[str, np.ndarray]:
    """Those of a network that says the same in every state."""
    return {
        "policy.0.weight": np.zeros((len(outputs), 2), np.float32),
        "policy.0.bias": np.array(outputs, np.float32),
        "values.0.weight": np.zeros((len(outputs), 2), np.float32),
        "values.0.bias": np.array(outputs, np.float32),
        "mean": np.zeros(2, np.float32),
        "scale": np.ones(2, np.float32),
        "certainty": np.array(0.75, np.float32),
        **more,
    }


def always(epsilon: float) -> Exploration:
    return Exploration(epsilon, epsilon, count_tries=False)


def chances(
    policy: NetworkPolicy, explore: bool, allowed: list[int], times: int = 4_000
) -> np.ndarray:
    chance = np.random.default_rng(1)
    questions = [ActionQuestion(None, allowed)] * times
    chosen = policy.choose(np.repeat(STATE, times, 0), questions, explore=explore, chance=chance)
    counts = np.bincount([int(one.action) for one in chosen if isinstance(one.action, int)])
    return counts / times


def test_a_network_is_torchs() -> None:
    torch = pytest.importorskip("torch", reason="the extra `rl` is not installed")
    from mneme_server.features.learning.deep.training.networks import Network, arrays_of

    trained = Network([3, 8, 8, 2], torch.Generator().manual_seed(1))
    vectors = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)

    found = network(arrays_of(trained, "policy."), "policy", vectors)

    expected = trained(torch.from_numpy(vectors)).detach().numpy()
    assert found == pytest.approx(expected, abs=1e-5)


def test_what_is_worth_most_is_chosen_and_with_epsilon_any() -> None:
    policy = Values(always(0.3))
    policy.weights = weights([1.0, 3.0, 2.0], error=np.array(1.0, np.float32))

    assert chances(policy, False, [0, 1, 2]).tolist() == [0, 1]
    assert chances(policy, True, [0, 1, 2]) == pytest.approx([0.1, 0.8, 0.1], abs=0.03)
    assert chances(policy, False, [0, 2]).tolist() == [0, 0, 1]

    chance = np.random.default_rng(1)
    [choice] = policy.choose(STATE, [ActionQuestion(None, [2, 1])], explore=False, chance=chance)
    assert choice.values.tolist() == [2, 3]
    assert choice.probability == 1
    assert not choice.explored
    assert choice.confidence == pytest.approx(0.5 * (1 + math.erf(0.5)), abs=1e-3)


def test_an_action_that_the_network_does_not_know_is_tried_first() -> None:
    policy = Values(Exploration(0.0, 0.0, count_tries=True))
    policy.weights = weights([1.0, 3.0], error=np.array(1.0, np.float32))
    policy._trying.note([0] * 30 + [1] * 30, 0)

    assert chances(policy, True, [0, 1, 2]) == pytest.approx([0, 0.75, 0.25], abs=0.03)
    policy._trying.note([2] * 25, 0)
    assert chances(policy, True, [0, 1, 2]).tolist() == [0, 1]


def test_what_an_actor_tries_it_tries_on_until_its_episode_ends() -> None:
    policy = Values(Exploration(0.5, 0.5, count_tries=False, repeats=0.8))
    policy.weights = weights([1.0, 3.0, 2.0], error=np.array(1.0, np.float32))
    policy._trying.chose(["ann"], [2])
    chance = np.random.default_rng(1)

    def tried(actor: str, allowed: list[int]) -> list[float]:
        asked = [ActionQuestion(None, allowed, actor)]
        [choice] = policy.choose(STATE, asked, explore=True, chance=chance)
        policy._trying.chose(["ann"], [2])
        return choice.policy.tolist()

    even, known = 1 / 6, 0.5 * 0.2 / 3
    assert tried("ann", [0, 1, 2]) == pytest.approx([known, 0.5 + known, 0.4 + known])
    assert tried("bob", [0, 1, 2]) == pytest.approx([even, 0.5 + even, even])
    assert tried("ann", [0, 1]) == pytest.approx([0.25, 0.75])  # What it did is not allowed there.

    policy.note([Transition(None, 2, 0.0, None, actor="ann")])
    assert tried("ann", [0, 1, 2]) == pytest.approx([even, 0.5 + even, even])


def test_what_actors_did_last_is_kept_with_what_was_learned() -> None:
    one, other = (Values(Exploration(0.5, 0.5, count_tries=False, repeats=0.8)) for _ in range(2))
    one.weights = other.weights = weights([1.0, 3.0], error=np.array(1.0, np.float32))
    asked = [ActionQuestion(None, [0, 1], f"actor-{n}") for n in range(20)]
    states = np.repeat(STATE, len(asked), 0)
    one.choose(states, asked, explore=True, chance=np.random.default_rng(1))
    other.load(one.dump())

    one_policy, other_policy = (
        [
            choice.policy.tolist()
            for choice in policy.choose(
                states, asked, explore=True, chance=np.random.default_rng(2)
            )
        ]
        for policy in (one, other)
    )
    assert one_policy == other_policy
    assert len({tuple(policy) for policy in one_policy}) == 2  # By what each did last.


def test_epsilon_falls_with_transitions_or_episodes_and_goes_on_where_it_was() -> None:
    trying = Exploration(1.0, 0.0, 100, 20, count_tries=False)
    trying.note([0] * 25, 1)
    assert trying.epsilon == 0.75
    again = Exploration(1.0, 0.0, 100, 20, count_tries=False)
    again.load(trying.dump())
    again.note([0] * 25, 14)

    assert (trying.epsilon, again.epsilon) == (0.75, 0.25)


def test_a_softmax_is_drawn_from_and_its_most_probable_action_is_the_best() -> None:
    policy = Categorical(always(0.0))
    policy.weights = weights([0.0, math.log(3)])

    assert chances(policy, True, [0, 1]) == pytest.approx([0.25, 0.75], abs=0.03)
    assert chances(policy, False, [0, 1]).tolist() == [0, 1]
    chance = np.random.default_rng(1)
    [choice] = policy.choose(STATE, [ActionQuestion(None, [0, 1])], explore=False, chance=chance)
    assert choice.confidence == pytest.approx(0.75)
    assert len(choice.values) == 0


def test_before_anything_is_learned_all_actions_are_as_good() -> None:
    for policy in (Values(always(0.0)), Categorical(always(0.0))):
        assert chances(policy, False, [0, 1, 2, 3]) == pytest.approx([0.25] * 4, abs=0.03)
    policy = Gaussian(ONE, ONE * 2, correlated=False)
    chance = np.random.default_rng(1)
    questions = [ActionQuestion(None)] * 4_000
    states = np.repeat(STATE, 4_000, 0)
    chosen = policy.choose(states, questions, explore=False, chance=chance)
    drawn = np.array([one.action for one in chosen])
    assert np.histogram(drawn, 4, (-1, 3))[0] / 4_000 == pytest.approx([0.25] * 4, abs=0.03)
    assert {one.probability for one in chosen} == {0.25}
    assert {one.confidence for one in chosen} == {0.0}


def test_the_density_of_a_gaussian_policy_is_that_with_which_it_draws() -> None:
    policy = Gaussian(ONE * 5, ONE * 2, correlated=False)
    policy.weights = weights([0.4], log_deviation=np.array([-0.5], np.float32))
    chance = np.random.default_rng(1)
    times = 20_000
    states = np.repeat(STATE, times, 0)
    chosen = policy.choose(states, [ActionQuestion(None)] * times, explore=True, chance=chance)

    actions = np.array([one.action for one in chosen]).ravel()
    density = np.array([one.probability for one in chosen])
    counted, edges = np.histogram(actions, 20, (3.5, 6.9), density=False)
    for count, low, high in zip(counted, edges[:-1], edges[1:], strict=True):
        inside = (actions >= low) & (actions < high)
        if count > 200:
            expected = density[inside].mean() * (high - low)
            assert count / times == pytest.approx(expected, rel=0.2)

    [best] = policy.choose(STATE, [ActionQuestion(None)], explore=False, chance=chance)
    assert best.action == pytest.approx([5 + 2 * math.tanh(0.4)])
    assert best.probability is None
    assert best.confidence == 0.75


def test_the_density_that_is_learned_with_is_the_density_that_was_drawn_with() -> None:
    torch = pytest.importorskip("torch", reason="the extra `rl` is not installed")
    from mneme_server.features.learning.deep.training.ppo_a3c import squashed_log_density

    policy = Gaussian(ONE * 5, ONE * 2, correlated=False)
    policy.weights = weights([3.0], log_deviation=np.array([0.7], np.float32))
    chance = np.random.default_rng(1)
    states = np.repeat(STATE, 500, 0)
    chosen = policy.choose(states, [ActionQuestion(None)] * 500, explore=True, chance=chance)
    actions = np.array([one.action for one in chosen], np.float32)

    found = squashed_log_density(
        torch.from_numpy((actions - 5) / 2),
        torch.tensor([3.0]),
        torch.tensor([0.7]),
        torch.tensor([2.0]),
    )

    expected = np.log([one.probability for one in chosen])  # Many are cut off at the bound.
    assert found.numpy() == pytest.approx(expected, abs=0.1)


def test_noise_stays_inside_the_bounds() -> None:
    policy = Deterministic(ONE * 5, ONE * 2, 3.0)
    policy.weights = weights([0.0])
    chance = np.random.default_rng(1)
    states = np.repeat(STATE, 100, 0)
    chosen = policy.choose(states, [ActionQuestion(None)] * 100, explore=True, chance=chance)
    assert all(3 <= one.action[0] <= 7 for one in chosen if isinstance(one.action, tuple))
    assert len({one.action for one in chosen}) > 5


def test_noise_falls_with_transitions_and_goes_on_where_it_was() -> None:
    policy, again = (Deterministic(ONE * 5, ONE * 2, 0.2, 1.0, 100) for _ in range(2))
    assert policy.deviation == 1.0
    policy.note([Transition(None, (5.0,), 0.0)] * 50)
    assert policy.deviation == pytest.approx(0.6)
    again.load(policy.dump())
    again.note([Transition(None, (5.0,), 0.0)] * 80)
    assert again.deviation == pytest.approx(0.2)


def test_pink_noise_is_standard_normal_and_wanders_and_each_actor_has_its_own() -> None:
    noise = PinkNoise(1)
    chance = np.random.default_rng(1)
    drawn = np.array([noise.draw(["a", "b"], chance)[:, 0] for _ in range(20_000)])

    assert drawn.std() == pytest.approx(1, abs=0.15)
    steps_apart = {lag: np.mean(drawn[lag:] * drawn[:-lag]) for lag in (1, 10, 100)}
    assert steps_apart[1] > steps_apart[10] > steps_apart[100] > 0.05
    assert abs(np.mean(drawn[:, 0] * drawn[:, 1])) < 0.2

    again = PinkNoise(1)
    again.load(noise.dump())
    same = [one.draw(["a"], np.random.default_rng(2)).item() for one in (noise, again)]
    assert same[0] == same[1]
    noise.end("a")
    assert noise.dump()["actors"] == ["b"]
