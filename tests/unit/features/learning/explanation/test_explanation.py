"""Explanations of what real policies choose."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from mneme_server.common import deadline
from mneme_server.common.canonical import Json
from mneme_server.common.deadline import Abandoned
from mneme_server.common.errors import InvalidArgument
from mneme_server.features.learning.algorithms.algorithm import (
    Action,
    ActionQuestion,
    Choice,
    Transition,
)
from mneme_server.features.learning.algorithms.choice import AT_ONCE
from mneme_server.features.learning.explanation.attribution import MOST_PARTS, name_of
from mneme_server.features.learning.explanation.explanation import Explanation, explain
from mneme_server.features.learning.spaces import Box, OpenObject
from unit.features.learning.trust.bandits import learner

NAMES = ("password", "oauth2", "pkce")
STATE: Json = {"task_type": "auth", "complexity": 0.9, "team": "a"}
SPACE = OpenObject()


def best(state: dict[str, object]) -> int:
    """What is right depends on the complexity of auth tasks, and on nothing else."""
    if state["task_type"] != "auth":
        return 0
    return 2 if float(str(state["complexity"])) > 0.5 else 1


def experience(count: int = 400) -> list[Transition]:
    chance = np.random.default_rng(0)
    found = []
    for _ in range(count):
        state = {
            "task_type": str(chance.choice(["auth", "ui"])),
            "complexity": round(float(chance.random()), 1),
            "team": str(chance.choice(["a", "b"])),
        }
        action = int(chance.integers(3))
        found.append(Transition(state, action, float(action == best(state)), probability=1 / 3))
    return found


def label(action: Action) -> str:
    assert isinstance(action, int)
    return f"'{NAMES[action]}'"


def explained(name: str, action: int | None = None) -> Explanation:
    pupil = learner(name)
    transitions = experience()
    for _ in range(5 if name == "q_learning" else 1):
        pupil.learn(transitions)
    observed = [one.state for one in transitions]
    question = ActionQuestion(STATE, range(3))
    return explain(pupil, SPACE, question, observed, action=action, label=label)


@pytest.mark.parametrize("name", ["linucb", "thompson", "q_learning"])
def test_what_matters_has_the_largest_shares_and_what_does_not_a_small_one(name: str) -> None:
    found = explained(name)
    assert found.action == found.choice.action == 2
    shares = {name_of(path): share for path, share in found.attribution.shares.items()}
    assert min(shares["complexity"], shares["task_type"]) > 0.1
    assert abs(shares["team"]) < 0.7 * min(shares["complexity"], shares["task_type"])
    assert sum(shares.values()) == pytest.approx(
        found.attribution.score - found.attribution.typical
    )


@pytest.mark.parametrize("name", ["linucb", "thompson", "q_learning"])
def test_counterfactuals_really_flip_the_action_and_change_little(name: str) -> None:
    pupil = learner(name)
    transitions = experience()
    for _ in range(5):
        pupil.learn(transitions)
    question = ActionQuestion(STATE, range(3))
    found = explain(pupil, SPACE, question, [one.state for one in transitions])
    assert found.counterfactuals
    for one in found.counterfactuals:
        asked = pupil.choose(
            [ActionQuestion(one.state, range(3))], explore=False, chance=np.random.default_rng(1)
        )[0]
        assert asked.policy[int(np.argmax(asked.policy))] > 0
        assert int(np.argmax(asked.policy)) == one.choice.action != found.choice.action
        assert one.state != STATE
    changed = {name_of(path) for one in found.counterfactuals for path in one.changes}
    assert changed <= {"task_type", "complexity"}


def test_the_decision_is_told_in_sentences_with_figures() -> None:
    found = explained("linucb")
    assert found.path[0].startswith("The policy chooses 'pkce', of which it expects ")
    assert "; its confidence is " in found.path[0]
    assert found.path[1].startswith("How much more it is expected to bring than the others")
    assert any(one.startswith("complexity = 0.9 makes it ") and " to " in one for one in found.path)
    assert any(one.startswith("Were ") and one.endswith("'.") for one in found.path)
    assert all(one.endswith(".") for one in found.path)


def told_apart(seed: int) -> bool:
    """Whether an explanation says that a fact which means nothing makes a difference."""
    chance = np.random.default_rng(seed)
    pupil, states = learner("linucb"), []
    for _ in range(200):
        state = {
            "kind": str(chance.choice(["x", "y"])),
            "team": str(chance.choice(["red", "blue"])),
        }
        states.append(state)
        right = int(state["kind"] == "x")
        action = int(chance.integers(2))
        pupil.learn(
            [Transition(state, action, float(chance.random() < 0.3 + 0.4 * (action == right)))]
        )
    question = ActionQuestion({"kind": "x", "team": "red"}, range(2))
    found = explain(pupil, SPACE, question, states)
    shares, reaches = found.attribution.shares, found.attribution.reaches
    assert set(shares) == set(reaches)
    assert any(one.startswith("kind = ") and ") more." in one for one in found.path)
    return abs(shares["team",]) > reaches["team",]


def test_each_part_has_its_uncertainty_and_what_means_nothing_is_not_said_to_matter() -> None:
    assert sum(told_apart(seed) for seed in range(12)) <= 2


def test_what_networks_value_has_no_interval_and_that_is_said() -> None:
    class Network:
        """Values without knowing how sure they are."""

        def choose(
            self, questions: Sequence[ActionQuestion], *, explore: bool, chance: np.random.Generator
        ) -> list[Choice]:
            values = [np.array([0.0, float(one.state["x"])]) for one in questions]  # type: ignore[index, call-overload, arg-type]
            return [
                Choice(int(v.argmax()), v, (v == v.max()).astype(float), 1.0, 0.5, explored=False)
                for v in values
            ]

    found = explain(
        Network(),  # type: ignore[arg-type]
        SPACE,
        ActionQuestion({"x": 1.0}, range(2)),
        [{"x": 0.0}, {"x": 1.0}],
    )
    assert not found.attribution.reaches
    assert "How sure these figures are is not known." in found.path


@pytest.mark.parametrize("seed", range(3))
def test_a_counterfactual_is_a_number_that_one_can_say_not_the_edge(seed: int) -> None:
    class Edge:
        """Chooses 1 from 0.5 on."""

        def choose(
            self, questions: Sequence[ActionQuestion], *, explore: bool, chance: np.random.Generator
        ) -> list[Choice]:
            values = [np.array([0.5, 0.5 + (one.state["x"] >= 0.5)]) for one in questions]  # type: ignore[index, call-overload, operator]
            return [
                Choice(int(v.argmax()), v, (v == v.max()).astype(float), 1.0, 1.0, explored=False)
                for v in values
            ]

    chance = np.random.default_rng(seed)
    seen: list[Json] = [{"x": float(one)} for one in chance.random(100)]
    for now, least, most in ((0.8137, 0.48, 0.4999), (0.1337, 0.5, 0.52)):
        question = ActionQuestion({"x": now}, range(2))
        found = explain(Edge(), SPACE, question, seen)  # type: ignore[arg-type]
        (flip,) = found.counterfactuals
        (value,) = flip.changes.values()
        assert isinstance(value, float)
        assert least <= value <= most
        assert value == round(value, 2)


def test_an_action_that_is_not_chosen_can_be_explained_too() -> None:
    found = explained("linucb", action=1)
    assert (found.action, found.choice.action) == (1, 2)
    assert found.path[1] == "What follows is about 'oauth2', which it does not choose."


def test_the_same_question_has_the_same_explanation() -> None:
    assert explained("thompson").path == explained("thompson").path


def test_two_parts_are_changed_where_one_is_not_enough() -> None:
    class Both:
        """Chooses 1 only where both are true."""

        def choose(self, questions: Sequence[ActionQuestion], **_: object) -> list[Choice]:
            flags = [(one.state["x"], one.state["y"]) for one in questions]  # type: ignore[index, call-overload]
            return [
                Choice(int(x and y), np.array([0.5, float(x and y)]), policy, 1.0, 1.0, False)
                for x, y in flags
                for policy in [np.array([not (x and y), x and y], dtype=float)]
            ]

    seen: list[Json] = [{"x": True, "y": False}, {"x": False, "y": True}]
    question = ActionQuestion({"x": False, "y": False}, range(2))
    found = explain(Both(), SPACE, question, seen)  # type: ignore[arg-type]
    assert [one.state for one in found.counterfactuals] == [{"x": True, "y": True}]
    assert found.path[-1] == "Were x true and y true, it would choose 1."


def test_a_continuous_action_is_explained_by_its_largest_coordinate() -> None:
    class Steering:
        def choose(self, questions: Sequence[ActionQuestion], **_: object) -> list[Choice]:
            return [
                Choice((0.1, float(one.state[0]) * 2), np.zeros(0), np.zeros(0), None, 0.5, False)  # type: ignore[index, call-overload, arg-type]
                for one in questions
            ]

    seen: list[Json] = [[0.0, 0.3], [0.5, 0.6], [1.0, 0.1]]
    space = Box((0.0, 0.0), (1.0, 1.0))
    found = explain(Steering(), space, ActionQuestion([1.0, 1.0]), seen)  # type: ignore[arg-type]
    assert found.measure == "coordinate 1 of the action"
    assert found.attribution.shares[(0,)] == pytest.approx(2.0 - 1.0)
    assert found.attribution.shares[(1,)] == 0
    assert found.counterfactuals


class Counting:
    """A policy that counts what it is asked, and sums what a state has."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def choose(
        self, questions: Sequence[ActionQuestion], *, explore: bool, chance: np.random.Generator
    ) -> list[Choice]:
        self.asked.append(len(questions))
        sums = [float(sum(one.state.values())) for one in questions]  # type: ignore[union-attr, arg-type, misc]
        policy = np.array([0.5, 0.5])
        return [Choice(0, np.array([one, 0.0]), policy, 0.5, 0.5, explored=explore) for one in sums]


def apart(number: int, parts: int) -> Json:
    """A state that shares no part with one of another number."""
    return {f"{number}-{part}": float(part + 1) for part in range(parts)}


def asked_about(parts: int, states: int = 12) -> Counting:
    """Explain a state of so many parts, which others have none of."""
    policy = Counting()
    others = [apart(number, parts) for number in range(1, states)]
    explain(policy, SPACE, ActionQuestion(apart(0, parts), range(2)), others)  # type: ignore[arg-type]
    return policy


def test_states_that_share_no_part_cost_no_more_than_parts_times_states() -> None:
    few, many = (sum(asked_about(parts).asked) for parts in (20, 200))
    assert many <= 12 * few
    assert max(asked_about(200).asked) <= AT_ONCE


def test_a_large_state_is_compared_with_fewer_others_and_its_shares_still_sum() -> None:
    policy = asked_about(MOST_PARTS)
    assert sum(policy.asked) < 2 * 2 * MOST_PARTS
    state, other = apart(0, MOST_PARTS), apart(1, MOST_PARTS)
    found = explain(Counting(), SPACE, ActionQuestion(state, range(2)), [other]).attribution  # type: ignore[arg-type]
    assert found.typical + sum(found.shares.values()) == pytest.approx(found.score)


def test_a_state_of_too_many_parts_is_refused_before_anything_is_asked_of_it() -> None:
    with pytest.raises(InvalidArgument, match="has 513 parts; of 512 at most") as refusal:
        asked_about(MOST_PARTS + 1)
    assert refusal.value.field == "state"


def test_an_explanation_ends_when_nobody_waits_for_it_any_more() -> None:
    policy, others = Counting(), [apart(number, 100) for number in range(1, 9)]
    deadline.enter(lambda: 0.0 if len(policy.asked) >= 5 else None)
    try:
        with pytest.raises(Abandoned):
            explain(policy, SPACE, ActionQuestion(apart(0, 100), range(2)), others)  # type: ignore[arg-type]
    finally:
        deadline.leave()
    assert len(policy.asked) == 5
