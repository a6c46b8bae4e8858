"""Tasks that others wrote, and those that agents have, learned through the API."""

from __future__ import annotations

import random
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import gymnasium
import pytest
from integration.learning.test_acting import Stream
from mneme.v1 import learning_pb2
from support.learning import Session, discrete, learner, plain, state
from support.server import LocalServer

pytestmark = pytest.mark.slow

needs_torch = pytest.mark.skipif(
    find_spec("torch") is None, reason="the extra `rl` is not installed"
)
ACTORS = [f"actor-{number}" for number in range(16)]
MESSAGES = 900


class Walker:
    """One of several who walk along the cliff, and what came of its last step."""

    def __init__(self, seed: int) -> None:
        self.env = gymnasium.make("CliffWalking-v1", max_episode_steps=200)
        self.place = int(self.env.reset(seed=seed)[0])

    def step(self, made: learning_pb2.Prediction) -> learning_pb2.Experience:
        place, reward, terminated, truncated, _ = self.env.step(made.action.number)
        self.place = int(place)
        told = learning_pb2.Experience(
            prediction_id=made.prediction_id, reward=float(reward), next_state=state(self.place),
            terminated=bool(terminated), truncated=bool(truncated),
        )  # fmt: skip
        if terminated or truncated:
            self.place = int(self.env.reset()[0])
        return told


def test_q_learning_finds_the_shortest_way_along_the_cliff(server: LocalServer) -> None:
    session = Session(
        learner(server.keys), "q_learning", state_space=discrete(48), action_space=discrete(4),
        config={"learning_rate": 0.5},
    )  # fmt: skip
    walkers = [Walker(seed) for seed in range(len(ACTORS))]
    stream = Stream(session)
    told: Sequence[learning_pb2.Experience] = ()
    for _ in range(MESSAGES):
        places = [walker.place for walker in walkers]
        made = stream(places, told, actors=ACTORS, explore=True).predictions
        told = [walker.step(one) for walker, one in zip(walkers, made, strict=True)]
    assert greedy_return(stream) == -13  # The best there is.
    stream.end()


def greedy_return(stream: Stream) -> float:
    """The reward of an episode without exploring."""
    walker, total = Walker(0), 0.0
    for _ in range(100):
        (made,) = stream([walker.place], without_feedback=True).predictions
        told = walker.step(made)
        total += told.reward
        if told.terminated:
            break
    return total


KINDS = ["auth", "ui", "db", "infra"]


def worth(task: dict[str, Any], strategy: int) -> float:
    """How often a strategy succeeds: that depends on the kind of task, and for two of the
    strategies on how complex it is."""
    base = [0.2 + 0.7 * task["complexity"], 0.9 - 0.7 * task["complexity"], 0.5, 0.45][strategy]
    return base + (0.3 if KINDS.index(task["task_type"]) == strategy else 0.0)


def tasks(chance: random.Random, count: int) -> list[dict[str, Any]]:
    """Tasks as an agent describes them."""
    return [
        {"task_type": chance.choice(KINDS), "complexity": round(chance.random(), 3)}
        for _ in range(count)
    ]


@pytest.mark.parametrize("algorithm", ["linucb", "thompson"])
def test_300_rewards_are_enough_to_choose_well_and_300_more_with_a_new_strategy(
    server: LocalServer, algorithm: str
) -> None:
    api = learner(server.keys)
    reached = [
        chosen_well(Session(api, algorithm, f"session-{seed}", seed=seed), random.Random(seed))
        for seed in range(3)
    ]
    for shares in zip(*reached, strict=True):  # Before the new strategy, and with it.
        assert sorted(shares)[1] >= 0.9, reached


@pytest.mark.parametrize("algorithm", ["q_learning", pytest.param("ppo", marks=needs_torch)])
def test_some_thousand_rewards_are_enough_for_the_others(
    server: LocalServer, algorithm: str
) -> None:
    session = Session(learner(server.keys), algorithm, seed=1)
    shares = chosen_well(session, random.Random(1), messages=50, together=100)
    assert min(shares) >= 0.8, shares


def chosen_well(
    session: Session, chance: random.Random, messages: int = 100, together: int = 3
) -> list[float]:
    """Learn from rewards with three strategies, then with four; return how well it chooses."""
    stream, shares = Stream(session), []
    for strategies in (["a", "b", "c"], ["a", "b", "c", "d"]):
        for _ in range(messages):
            asked, told = tasks(chance, together), []
            made = stream(asked, allowed=strategies, explore=True).predictions
            for task, one in zip(asked, made, strict=True):
                won = chance.random() < worth(task, strategies.index(plain(one.action)))
                told.append(
                    learning_pb2.Experience(prediction_id=one.prediction_id, reward=float(won))
                )
            stream(feedback=told)
        shares.append(share_of_best(stream, strategies))
    stream.end()
    return shares


def share_of_best(stream: Stream, strategies: Sequence[str]) -> float:
    """What is got without exploring, as a share of the most that could be."""
    asked = tasks(random.Random(2), 400)
    made = stream(asked, allowed=strategies, without_feedback=True).predictions
    got = best = 0.0
    for task, one in zip(asked, made, strict=True):
        best += max(worth(task, number) for number in range(len(strategies)))
        got += worth(task, strategies.index(plain(one.action)))
    return got / best
