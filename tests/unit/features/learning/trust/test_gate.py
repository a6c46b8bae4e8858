"""Gates: a policy answers in the place of a baseline once it is known to gain, and no longer."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mneme_server.common.errors import InvalidArgument
from mneme_server.features.learning.algorithms.algorithm import ActionQuestion, number_of
from mneme_server.features.learning.trust.baselines import (
    BehaviourBaseline,
    BehaviourClone,
    FixedBaseline,
    VersionBaseline,
)
from mneme_server.features.learning.trust.gate import Gate, compare
from mneme_server.statistics.sequence import LowerBound, Sample
from unit.features.learning.trust.bandits import ACTIONS, SPACE, World, taught

POLICY, BASELINE = np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0])
NAME = "the action 'cache'"

distributions = st.lists(st.floats(0.01, 1), min_size=3, max_size=3).map(
    lambda shares: np.array(shares) / sum(shares)
)


def play(gate: Gate, worth: tuple[float, float, float], count: int, seed: int = 0) -> list[bool]:
    """Answer with what the gate trusts, the other one being tried now and then."""
    chance = np.random.default_rng(seed)
    trusted = []
    for _ in range(count):
        now, other = (POLICY, BASELINE) if gate.trusts_policy else (BASELINE, POLICY)
        behaviour = 0.8 * now + 0.2 * (0.9 * other + 0.1 / 3)
        taken = int(chance.choice(3, p=behaviour))
        comparison = compare(POLICY, BASELINE, behaviour, taken)
        assert comparison is not None
        gate.observe(comparison, float(chance.random() < worth[taken]))
        trusted.append(gate.trusts_policy)
    return trusted


def test_a_policy_that_gains_is_trusted_and_the_verdict_says_so_in_figures() -> None:
    gate = Gate(low=0, high=1)
    first = gate.verdict(NAME)
    assert not first.trusts_policy
    assert first.why == (
        "The action 'cache' answers: nothing is known yet of what the policy gains over it."
    )
    play(gate, (0.4, 0.9, 0.5), 600)
    verdict = gate.verdict(NAME)
    assert verdict.trusts_policy
    assert 0 < verdict.low < 0.5 < verdict.high
    assert verdict.gain == pytest.approx(0.5, abs=0.15)
    assert verdict.why.startswith("The policy answers instead of the action 'cache': 600 decisions")
    assert verdict.why.endswith("with a confidence of 95.0%.")


def test_a_policy_that_gains_nothing_is_hardly_ever_trusted_however_often_one_looks() -> None:
    wrong = [any(play(Gate(low=0, high=1), (0.5, 0.5, 0.5), 300, seed)) for seed in range(40)]
    assert sum(wrong) <= 5  # More with a probability of 0.014 at a level of 0.05.


def test_a_policy_that_becomes_worse_loses_its_trust_soon_and_must_earn_it_again() -> None:
    gate = Gate(low=0, high=1)
    assert play(gate, (0.2, 0.9, 0.5), 500)[-1]
    assert not play(gate, (0.9, 0.2, 0.5), 800)[-1]
    assert gate.begun == 2
    assert "since the policy became worse" in gate.verdict(NAME).why
    assert play(gate, (0.2, 0.9, 0.5), 2_500)[-1]


def test_rewards_beyond_the_range_count_as_its_ends_and_are_counted() -> None:
    gate, same = Gate(low=0, high=1), Gate(low=0, high=1)
    comparison = compare(POLICY, BASELINE, np.full(3, 1 / 3), 1)
    assert comparison is not None
    gate.observe(comparison, 7.0)
    same.observe(comparison, 1.0)
    assert (gate.clipped, same.clipped) == (1, 0)
    assert gate.verdict(NAME).gain == same.verdict(NAME).gain
    assert (gate.verdict(NAME).clipped, same.verdict(NAME).clipped) == (1, 0)
    assert " 1 of the rewards were beyond 0 to 1 (lowest_reward, " in gate.verdict(NAME).why
    assert "beyond" not in same.verdict(NAME).why


def test_a_gate_goes_on_where_it_was_after_a_restart() -> None:
    gate = Gate(low=-2, high=3, level=0.1)
    play(gate, (0.2, 0.9, 0.5), 200)
    again = Gate.load(json.loads(json.dumps(gate.dump())))
    assert again.verdict(NAME) == gate.verdict(NAME)
    assert play(again, (0.2, 0.9, 0.5), 50, seed=1) == play(gate, (0.2, 0.9, 0.5), 50, seed=1)
    assert again.dump() == gate.dump()


@given(distributions, distributions, distributions, st.floats(0, 1), st.floats(0, 1))
def test_both_estimates_of_the_gain_are_right_on_average_and_bounded_as_they_say(
    policy: np.ndarray, baseline: np.ndarray, behaviour: np.ndarray, reward: float, center: float
) -> None:
    rewards = np.array([reward, 1 - reward, 0.3])
    bounded = precise = 0.0
    for taken in range(3):
        comparison = compare(policy, baseline, behaviour, taken)
        assert comparison is not None
        sample = comparison.sample(rewards[taken], center)
        assert sample.bounded >= -1 - 1e-9
        assert sample.precise >= -sample.least - 1e-9
        bounded += behaviour[taken] * sample.bounded
        precise += behaviour[taken] * sample.precise
    gain = float((policy - baseline) @ rewards)
    assert bounded == pytest.approx(gain, abs=1e-9)
    assert precise == pytest.approx(gain, abs=1e-9)


def test_a_decision_that_could_not_have_gone_otherwise_tells_nothing_unless_both_agree() -> None:
    assert compare(POLICY, BASELINE, BASELINE, 0) is None
    same = compare(POLICY, POLICY, POLICY, 1)
    assert same is not None
    assert same.sample(1.0, 0.5) == Sample(0.0, 0.0, 0.0)


def test_the_bound_holds_at_every_look_for_means_that_change() -> None:
    wrong = 0
    for seed in range(60):
        chance = np.random.default_rng(seed)
        bound, means = LowerBound(), []
        for n in range(150):
            mean = 0.3 * np.sin(n / 20)
            number = 4.0 * (chance.random() < 0.25) * (mean + 1) - 1
            means.append(mean)
            bound.observe(Sample(number, number, 1.0))
            if n % 10 == 9 and bound.at(0.1) > np.mean(means):
                wrong += 1
                break
    assert wrong <= 12  # More with a probability of 0.01 at a level of 0.1.


def test_before_anything_was_seen_the_bound_says_nothing() -> None:
    assert LowerBound().at(0.05) == -1.0
    assert not LowerBound().is_positive(0.05)


def test_baselines_are_a_fixed_action_an_earlier_version_or_a_fit_of_what_was_done() -> None:
    world = World(0)
    transitions = world.logged(2_000, favourite=0.7)
    question = ActionQuestion({"task_type": "ui", "complexity": 0.5}, ACTIONS)
    fixed = FixedBaseline(2, "cache")
    assert fixed.name == NAME
    assert fixed.probabilities(question).tolist() == [0, 0, 1, 0]
    with pytest.raises(InvalidArgument, match="not among the allowed actions"):
        fixed.probabilities(ActionQuestion(question.state, [0, 1]))
    version = VersionBaseline(taught(transitions), 3)
    assert version.name == "version 3"
    assert version.probabilities(question).sum() == pytest.approx(1)
    done = [number_of(one.action) for one in transitions]
    clone = BehaviourClone(SPACE, [one.state for one in transitions], done)
    behaviour = BehaviourBaseline(clone, len(transitions))
    assert "2000 recorded decisions" in behaviour.name
    assert behaviour.probabilities(question) == pytest.approx([0.1, 0.7, 0.1, 0.1], abs=0.1)
    assert behaviour.probabilities(ActionQuestion(question.state, [7])).tolist() == [1.0]
