"""Q-learning and sarsa against closed forms on processes small enough to solve by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mneme_server.features.learning.algorithms.algorithm import (
    ActionQuestion,
    Choice,
    Transition,
    UpdateSummary,
    number_of,
)
from mneme_server.features.learning.algorithms.tabular import (
    QLearning,
    Sarsa,
    TabularConfig,
    ValueTable,
)
from mneme_server.features.learning.spaces import Discrete
from mneme_server.features.learning.tally import MOST_OPEN

CONFIG = TabularConfig(
    learning_rate=0.5, discount_factor=0.9, epsilon=0.1, initial_value=0.0, bins=10
)
LEFT, RIGHT = 0, 1


def step(state: int, action: int, reward: float, follows: int | None) -> Transition:
    return Transition(state, action, reward, follows, terminated=follows is None)


def learned(learner: ValueTable, transition: Transition) -> UpdateSummary:
    return learner.learn([transition])


def chosen(
    learner: ValueTable, state: int, allowed: list[int], chance: np.random.Generator, explore: bool
) -> Choice:
    return learner.choose([ActionQuestion(state, allowed)], explore=explore, chance=chance)[0]


def test_one_step_moves_q_by_the_learning_rate_towards_reward_and_the_best_that_follows() -> None:
    learner = QLearning(Discrete(3), 2, CONFIG)
    assert learned(learner, step(1, RIGHT, 1.0, None)) == UpdateSummary(1, loss=1.0, value=0.5)
    assert learned(learner, step(0, RIGHT, 0.0, 1)).loss == pytest.approx((0.9 * 0.5) ** 2)
    found = chosen(learner, 0, [LEFT, RIGHT], np.random.default_rng(0), explore=False)
    assert found.action == RIGHT
    assert found.values.tolist() == [0.0, pytest.approx(0.5 * 0.9 * 0.5)]


@pytest.mark.parametrize("kind", [QLearning, Sarsa])
def test_the_first_targets_of_an_action_in_a_state_count_more_than_later_ones(
    kind: type[QLearning | Sarsa],
) -> None:
    learner = kind(Discrete(3), 2, replace(CONFIG, learning_rate=0.6, rate_decay=0.4))
    value = 0.0
    for n, reward in enumerate((8.0, 2.0, 5.0, 1.0, 3.0, 9.0), start=1):
        rate = max(0.6, n**-0.4)  # 1, 0.76, 0.64, then never below the learning rate.
        value += rate * (reward - value)
        learned(learner, Transition(0, LEFT, reward, 2, terminated=False))
        end = learned(learner, step(2, LEFT, 0.0, None))  # For sarsa, which waits for it.
        found = chosen(learner, 0, [LEFT], np.random.default_rng(0), explore=False)
        assert found.values == pytest.approx([value])
        assert end.updates
    assert learned(learner, step(1, LEFT, 7.0, None)).value == 7.0  # Of another state it is new.


@pytest.mark.parametrize("kind", [QLearning, Sarsa])
def test_where_nothing_follows_a_value_is_the_mean_of_what_came(
    kind: type[QLearning | Sarsa],
) -> None:
    learner = kind(Discrete(1), 2, replace(CONFIG, learning_rate=0.1, rate_decay=0.4))
    rewards = (1.0, 0.0, 0.0, 1.0, 1.0)
    for n, reward in enumerate(rewards, start=1):
        found = learned(learner, step(0, LEFT, reward, None))
        assert found.value == pytest.approx(sum(rewards[:n]) / n)


@pytest.mark.parametrize("seed", range(3))
def test_q_learning_finds_the_values_that_bellmans_equation_has(seed: int) -> None:
    """A corridor of five places: right costs 0.1 until the end pays 1, left costs 0.1."""
    chance = np.random.default_rng(seed)
    learner = QLearning(Discrete(5), 2, CONFIG)
    for _ in range(20_000):
        place, action = int(chance.integers(5)), int(chance.integers(2))
        learned(learner, _corridor(place, action))
    worth = _solved()
    for place in range(5):
        found = chosen(learner, place, [LEFT, RIGHT], chance, explore=False)
        assert found.values == pytest.approx(worth[place], abs=1e-6)


def _corridor(place: int, action: int) -> Transition:
    if action == RIGHT and place == 4:
        return step(place, action, 1.0, None)
    return step(place, action, -0.1, place + 1 if action == RIGHT else max(place - 1, 0))


def _solved() -> np.ndarray:
    worth = np.zeros((5, 2))
    for _ in range(200):
        best = worth.max(axis=1)
        for place in range(5):
            for action in (LEFT, RIGHT):
                moved = _corridor(place, action)
                follows = 0.0 if moved.terminated else best[int(str(moved.next_state))]
                worth[place, action] = moved.reward + 0.9 * follows
    return worth


def test_sarsa_learns_from_the_action_that_is_taken_next_not_from_the_best() -> None:
    learner = Sarsa(Discrete(2), 2, CONFIG)
    learned(learner, step(1, RIGHT, 1.0, None))  # Q(1, right) = 0.5, Q(1, left) = 0.
    assert learned(learner, step(0, RIGHT, 0.0, 1)).updates == 0  # What follows is not known yet.
    assert learned(learner, step(1, LEFT, 0.2, None)).updates == 2
    found = chosen(learner, 0, [RIGHT], np.random.default_rng(0), explore=False)
    assert found.values.tolist() == [0.0]  # It was followed by left, worth 0 then.


def test_sarsa_finds_the_values_that_the_policy_it_follows_has() -> None:
    """In the corridor above, going either way by lot: the values solve a linear equation."""
    chance = np.random.default_rng(0)
    learner = Sarsa(Discrete(5), 2, replace(CONFIG, learning_rate=0.001, rate_decay=0.7))
    place = 2
    for _ in range(20_000):
        moved = _corridor(place, int(chance.integers(2)))
        learned(learner, moved)
        place = int(chance.integers(5)) if moved.terminated else int(str(moved.next_state))
    found = [
        chosen(learner, place, [LEFT, RIGHT], chance, explore=False).values for place in range(5)
    ]
    assert np.array(found) == pytest.approx(_solved_by_lot(), abs=0.1)


def _solved_by_lot() -> np.ndarray:
    steps = [_corridor(place, action) for place in range(5) for action in (LEFT, RIGHT)]
    follows = np.zeros((10, 10))
    for row, moved in enumerate(steps):
        if not moved.terminated:
            first = 2 * int(str(moved.next_state))
            follows[row, first : first + 2] = 0.5
    rewards = np.array([moved.reward for moved in steps])
    return np.linalg.solve(np.eye(10) - 0.9 * follows, rewards).reshape(5, 2)


def test_sarsa_keeps_the_episodes_of_actors_apart() -> None:
    learner = Sarsa(Discrete(2), 2, CONFIG)
    learned(learner, Transition(0, LEFT, 1.0, 1, terminated=False, actor="ann"))
    other = Transition(0, LEFT, 0.0, 1, terminated=False, actor="bob")
    assert learned(learner, other).updates == 0


def test_sarsa_waits_for_no_more_actors_than_are_known_to_be_under_way() -> None:
    learner = Sarsa(Discrete(2), 2, CONFIG)
    for n in range(MOST_OPEN + 5):
        learned(learner, Transition(0, LEFT, 0.0, 1, terminated=False, actor=str(n)))
    assert len(learner.dump()["last"]) == MOST_OPEN
    goes_on = Transition(1, LEFT, 1.0, None, actor=str(MOST_OPEN))
    assert learned(learner, goes_on).updates == 2
    assert learned(learner, replace(goes_on, actor="0")).updates == 1  # It begins anew.


@pytest.mark.parametrize("kind", [QLearning, Sarsa])
def test_what_is_learned_again_makes_it_no_surer(kind: type[QLearning | Sarsa]) -> None:
    config, chance = replace(CONFIG, learning_rate=0.1), np.random.default_rng(0)
    learner = kind(Discrete(1), 2, config)
    steps = [
        step(0, action, reward, None)
        for action, rewards in ((LEFT, (0.0, 1.0, 0.0, 1.0)), (RIGHT, (1.0, 0.0, 1.0, 1.0)))
        for reward in rewards
    ]
    learner.learn(steps)
    for n in chance.integers(len(steps), size=(500, 8)):
        learner.replay([steps[one] for one in n])
    spread = [cell.deviation() for cell in learner._cells(ActionQuestion(0, [LEFT, RIGHT]))]
    assert spread == pytest.approx([np.sqrt(1 / 3) / 2, 0.25])  # Of four rewards each.
    assert chosen(learner, 0, [LEFT, RIGHT], chance, explore=False).confidence < 0.99


def test_it_explores_with_probability_epsilon_and_says_with_which_it_chose() -> None:
    learner = QLearning(Discrete(1), 2, CONFIG)
    for action, reward in ((LEFT, 0.0), (RIGHT, 1.0)):
        learned(learner, step(0, action, reward, None))
    chance = np.random.default_rng(1)
    several = [chosen(learner, 0, [LEFT, RIGHT], chance, explore=True) for _ in range(4000)]
    lefts = [one for one in several if one.action == LEFT]
    assert len(lefts) / len(several) == pytest.approx(0.05, abs=0.015)
    assert all(one.probability == pytest.approx(0.05) for one in lefts)
    assert all(one.explored for one in lefts)
    greedy = chosen(learner, 0, [LEFT, RIGHT], chance, explore=False)
    assert (greedy.action, greedy.probability, greedy.explored) == (RIGHT, 1.0, False)


def test_an_action_that_was_never_tried_in_a_state_is_tried_first() -> None:
    learner = QLearning(Discrete(1), 2, CONFIG)
    learned(learner, step(0, LEFT, 1.0, None))
    chance = np.random.default_rng(2)
    several = [chosen(learner, 0, [LEFT, RIGHT], chance, explore=True) for _ in range(200)]
    assert sum(one.action == RIGHT for one in several) > 150


@pytest.mark.parametrize("kind", [QLearning, Sarsa])
def test_what_was_learned_survives_being_stored(kind: type[QLearning | Sarsa]) -> None:
    learner, again = kind(Discrete(5), 2, CONFIG), kind(Discrete(5), 2, CONFIG)
    chance = np.random.default_rng(3)
    moves = [_corridor(int(chance.integers(5)), int(chance.integers(2))) for _ in range(200)]
    for move in moves[:100]:
        learned(learner, move)
    again.load(learner.dump())
    for move in moves[100:]:
        assert learned(learner, move) == learned(again, move)
    one, other = learner.dump(), again.dump()
    assert one.keys() == other.keys()
    for name in one.keys() - {"novelty"}:
        assert np.array_equal(one[name], other[name]), name
    for name in one["novelty"]:
        assert np.array_equal(one["novelty"][name], other["novelty"][name]), name


@pytest.mark.parametrize("kind", [QLearning, Sarsa])
@pytest.mark.parametrize("seed", range(3))
def test_without_any_reward_it_goes_where_it_has_not_been(
    kind: type[QLearning | Sarsa], seed: int
) -> None:
    """Twenty steps in a row, of which a wrong one leads back to the first: by lot that takes about
    a million."""
    learner, chance = kind(Discrete(20), 2, CONFIG), np.random.default_rng(seed)
    place, taken = 0, 0
    while place < 20 and taken < 3_000:
        action = chosen(learner, place, [LEFT, RIGHT], chance, explore=True).action
        follows = place + 1 if action == RIGHT else 0
        learned(learner, step(place, number_of(action), 0.0, follows if follows < 20 else None))
        place, taken = follows, taken + 1
    assert place == 20


@pytest.mark.parametrize("kind", [QLearning, Sarsa])
def test_what_is_learned_again_is_no_less_new(kind: type[QLearning | Sarsa]) -> None:
    learner, chance = kind(Discrete(2), 2, CONFIG), np.random.default_rng(0)
    often, once = step(0, LEFT, 0.0, None), step(0, RIGHT, 0.0, None)
    learner.learn([often] * 9 + [once])
    for _ in range(500):
        learner.replay([once])
    made = chosen(learner, 0, [LEFT, RIGHT], chance, explore=True)
    assert made.policy.tolist() == pytest.approx([0.05, 0.95])


def test_what_is_known_to_be_better_is_chosen_however_familiar_it_is() -> None:
    learner, chance = (
        QLearning(Discrete(1), 2, replace(CONFIG, epsilon=0.0)),
        np.random.default_rng(1),
    )
    learner.learn([Transition(0, 0, 0.1)] * 50 + [Transition(0, 1, 0.0)])
    (made,) = learner.choose([ActionQuestion(0, [0, 1])], explore=True, chance=chance)
    assert made.action == 0


def test_what_is_new_to_a_table_survives_being_stored_and_may_be_missing() -> None:
    learner = QLearning(Discrete(3), 2, replace(CONFIG, epsilon=0.0))
    learner.learn([Transition(0, 0, 0.0, 1, terminated=False), Transition(0, 1, 0.0)] * 3)
    dumped = learner.dump()
    again, older = (QLearning(Discrete(3), 2, replace(CONFIG, epsilon=0.0)) for _ in range(2))
    again.load(dumped)
    older.load({name: value for name, value in dumped.items() if name != "novelty"})
    question = [ActionQuestion(0, [0, 1])]
    policies = [
        one.choose(question, explore=True, chance=np.random.default_rng(1))[0].policy.tolist()
        for one in (learner, again, older)
    ]
    assert policies == [[1.0, 0.0], [1.0, 0.0], [0.5, 0.5]]


def test_when_the_world_changes_a_table_is_not_sure_of_what_is_wrong() -> None:
    chance = np.random.default_rng(0)
    learner = QLearning(Discrete(1), 2, replace(CONFIG, learning_rate=0.1, rate_decay=0.4))
    sure: list[list[float]] = [[], []]
    for n in range(800):
        made = chosen(learner, 0, [LEFT, RIGHT], chance, explore=True)
        right = LEFT if n < 500 else RIGHT
        if not made.explored:
            sure[n >= 500].append(made.confidence if made.action != right or n < 500 else 1.0)
        reward = float(chance.random() < (0.9 if made.action == right else 0.1))
        learner.learn([step(0, number_of(made.action), reward, None)])
    assert np.mean(sure[0][-100:]) > 0.95
    wrong = [one for one in sure[1][8:] if one < 1.0]
    assert np.mean(wrong) < 0.85
    assert len(wrong) < 40
    found = chosen(learner, 0, [LEFT, RIGHT], chance, explore=False)
    assert found.action == RIGHT
    assert found.confidence > 0.9
