"""What one learner has learned, as another begins with it."""

from __future__ import annotations

import numpy as np
import pytest
from mneme_server.common.errors import FailedPrecondition
from mneme_server.features.learning.algorithms.algorithm import ActionQuestion, Learner, Transition
from mneme_server.features.learning.transfer.transfer import TransferKind, carried
from unit.features.learning.trust.bandits import ACTIONS, World, learner, taught

STATE = {"task_type": "ui", "complexity": 0.4}
SAME = {n: n for n in ACTIONS}


def values(of: Learner, allowed: range | list[int] = ACTIONS) -> list[float]:
    chance = np.random.default_rng(0)
    choice = of.choose([ActionQuestion(STATE, allowed)], explore=False, chance=chance)[0]
    return [float(one) for one in choice.values]


def confidence(of: Learner) -> float:
    chance = np.random.default_rng(0)
    return of.choose([ActionQuestion(STATE, ACTIONS)], explore=False, chance=chance)[0].confidence


@pytest.mark.parametrize("name", ["linucb", "thompson", "q_learning", "sarsa"])
@pytest.mark.parametrize("kind", [TransferKind.FULL, TransferKind.FINE_TUNE])
def test_the_target_values_actions_as_the_source_does_under_its_own_numbers(
    name: str, kind: TransferKind
) -> None:
    source, target = taught(World(0).logged(400), name), learner(name)
    learned, count = carried(source.dump(), {0: 3, 1: 1, 2: 0}, kind)
    target.load(learned)
    assert count > 0
    known = values(source)
    assert values(target, [3, 1, 0]) == pytest.approx(known[:3])
    (unknown,) = values(target, [2])  # It was not taken over: no reward of it is known.
    rewards = [one.reward for one in World(0).logged(400)]
    expected = 0.0 if name in {"q_learning", "sarsa"} else float(np.mean(rewards))
    assert unknown == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize("name", ["linucb", "q_learning"])
def test_what_is_fine_tuned_is_less_sure_and_learns_faster(name: str) -> None:
    transitions = World(0).logged(1_000)
    source = taught(transitions, name)
    full, tuned = learner(name), learner(name)
    full.load(carried(source.dump(), SAME, TransferKind.FULL)[0])
    tuned.load(carried(source.dump(), SAME, TransferKind.FINE_TUNE)[0])
    assert confidence(full) == pytest.approx(confidence(source))
    assert confidence(tuned) < confidence(full)
    if name == "linucb":
        before = values(source)[0]
        against = [Transition(STATE, 0, -5.0) for _ in range(10)]
        full.learn(against)
        tuned.learn(against)
        assert values(tuned)[0] < values(full)[0] < before


def test_of_a_linear_bandit_each_reward_counts_for_a_quarter() -> None:
    source = taught(World(0).logged(200)).dump()
    arm = source["arms"]["0"]
    prior = carried(source, SAME, TransferKind.FINE_TUNE)[0]["arms"]["0"]
    assert prior["gram"] == pytest.approx(arm["gram"] / 4)
    assert prior["rewards"] == pytest.approx([one / 4 for one in arm["rewards"]])
    assert np.linalg.inv(prior["covariance"]) == pytest.approx(
        np.diag(1 / source["spreads"]) + arm["gram"] / 4, abs=1e-6
    )


@pytest.mark.parametrize("name", ["linucb", "q_learning"])
def test_the_source_stays_as_it_was(name: str) -> None:
    source, target = taught(World(0).logged(100), name), learner(name)
    before = values(source)
    target.load(carried(source.dump(), SAME, TransferKind.FULL)[0])
    target.learn(World(1).logged(100))
    assert values(source) == before
    assert values(target) != before


@pytest.mark.parametrize("name", ["linucb", "q_learning"])
def test_what_has_no_encoder_has_none_to_freeze(name: str) -> None:
    with pytest.raises(FailedPrecondition, match="has no encoder that could be frozen"):
        carried(taught(World(0).logged(20), name).dump(), SAME, TransferKind.FREEZE_ENCODER)
