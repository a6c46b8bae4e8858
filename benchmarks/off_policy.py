"""How often the intervals of off-policy evaluation hold: `python -m benchmarks.off_policy`.

A task is drawn: four strategies, whose chances of success depend on the type of a task and on
whether it is complex. A behaviour decides, an algorithm learns from what came of it, and is
evaluated from the same records, before it is let do anything. Then it is: what its policy really
earns is known here. Printed is the share of simulations in which each 95 % interval holds it.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from mneme_server.features.learning.algorithms.algorithm import (
    ActionQuestion,
    Learner,
    LearningTask,
    Transition,
)
from mneme_server.features.learning.catalogue import algorithm_named, configured
from mneme_server.features.learning.spaces import OpenLabels, OpenObject
from mneme_server.features.learning.trust.blocks import Basis, episodes_of
from mneme_server.features.learning.trust.estimates import ValueEstimate
from mneme_server.features.learning.trust.evaluation import Evaluation, evaluate_learning

TYPES = ("auth", "ui", "db", "api")
ACTIONS = range(4)
SPACE = OpenObject()
State = dict[str, str | float]


@dataclass(frozen=True, slots=True)
class Scenario:
    """Who decides, who learns, and from how much.

    Args:
        algorithm: what learns.
        decisions: how many are recorded.
        behaviour: "evenly", "favouring" (each type has a favourite, tried with 0.55), or "itself",
            exploring while it learns.
        rewards: "0 or 1", or "noisy": the chance plus normal noise of 0.2.
        recorded: whether the behaviour's probabilities are known.
    """

    algorithm: str
    decisions: int
    behaviour: str
    rewards: str = "0 or 1"
    recorded: bool = True


SCENARIOS = (
    Scenario("linucb", 600, "evenly"),
    Scenario("linucb", 2_000, "evenly"),
    Scenario("thompson", 1_000, "favouring", "noisy"),
    Scenario("thompson", 1_000, "favouring", recorded=False),
    Scenario("thompson", 600, "itself"),
    Scenario("linucb", 1_000, "itself"),
    Scenario("q_learning", 2_000, "evenly"),
)
MEASURES = ("weighted", "doubly robust", "gain")


class World:
    """A task.

    Args:
        seed: of everything that is drawn.
        rewards: see `Scenario`.
    """

    def __init__(self, seed: int, rewards: str) -> None:
        self.chance = np.random.default_rng(seed)
        self._chances = self.chance.uniform(0.1, 0.9, (4, 2, 4))
        self._rewards = rewards

    def state(self) -> State:
        kind = str(self.chance.choice(TYPES))
        return {"task_type": kind, "complexity": round(float(self.chance.random()), 2)}

    def mean(self, state: State, action: int) -> float:
        complex_ = int(float(state["complexity"]) > 0.5)
        return float(self._chances[TYPES.index(str(state["task_type"])), complex_, action])

    def reward(self, state: State, action: int) -> float:
        mean = self.mean(state, action)
        if self._rewards == "noisy":
            return mean + float(self.chance.normal(0, 0.2))
        return float(self.chance.random() < mean)

    def value(self, learner: Learner) -> float:
        """Return what a learner's policy earns."""
        states: list[State] = [
            {"task_type": kind, "complexity": n / 100} for kind in TYPES for n in range(101)
        ]
        questions = [ActionQuestion(state, ACTIONS) for state in states]
        chosen = learner.choose(questions, explore=False, chance=self.chance)
        worth = np.array([[self.mean(state, action) for action in ACTIONS] for state in states])
        return float((np.array([one.policy for one in chosen]) * worth).sum(axis=1).mean())


def simulate(scenario: Scenario, seed: int) -> dict[str, tuple[bool, float]] | None:
    """Return whether each interval holds, and how wide it is; None if it was refused."""
    world = World(seed, scenario.rewards)
    learner = _made(scenario.algorithm, seed)
    transitions: list[Transition] = []
    means: list[float] = []
    for _ in range(scenario.decisions):
        state = world.state()
        action, probability = _decided(scenario, world, learner, state)
        means.append(world.mean(state, action))
        told = Transition(
            state,
            action,
            world.reward(state, action),
            probability=probability if scenario.recorded else None,
            available=ACTIONS,
        )
        learner.learn([told])
        transitions.append(told)
    fresh = _made(scenario.algorithm, seed)
    found = evaluate_learning(Basis(SPACE), episodes_of(transitions), fresh)
    if found.refused:
        return None
    value = world.value(learner)
    truths = (value, value, value - float(np.mean(means[-found.episodes :])))
    return {
        name: _held(estimate, truth)
        for name, estimate, truth in zip(MEASURES, _estimates(found), truths, strict=True)
    }


def _decided(
    scenario: Scenario, world: World, learner: Learner, state: State
) -> tuple[int, float | None]:
    if scenario.behaviour == "itself":
        question = ActionQuestion(state, ACTIONS)
        (made,) = learner.choose([question], explore=True, chance=world.chance)
        assert isinstance(made.action, int)
        return made.action, made.probability
    policy = np.full(4, 0.25)
    if scenario.behaviour == "favouring":
        policy = np.full(4, 0.15)
        policy[TYPES.index(str(state["task_type"]))] = 0.55
    action = int(world.chance.choice(4, p=policy))
    return action, float(policy[action])


def _estimates(found: Evaluation) -> tuple[ValueEstimate | None, ...]:
    return found.weighted, found.doubly_robust, found.gain


def _held(estimate: ValueEstimate | None, truth: float) -> tuple[bool, float]:
    assert estimate is not None
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low <= truth <= estimate.high, estimate.high - estimate.low


def _made(name: str, seed: int) -> Learner:
    algorithm = algorithm_named(name)
    return algorithm.make(LearningTask(SPACE, OpenLabels(), configured(algorithm, {}), seed))


def row(scenario: Scenario, simulations: int) -> str:
    """Return a row of the table."""
    found = [one for seed in range(simulations) if (one := simulate(scenario, seed)) is not None]
    known = "recorded" if scenario.recorded else "estimated"
    cells = [scenario.algorithm, scenario.behaviour, scenario.rewards, known]
    cells += [f"{scenario.decisions:,}", str(simulations - len(found))]
    for name in MEASURES:
        held = float(np.mean([one[name][0] for one in found])) if found else math.nan
        width = float(np.mean([one[name][1] for one in found])) if found else math.nan
        cells.append(f"{held:.1%} ({width:.2f})")
    return f"| {' | '.join(cells)} |"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=300)
    parser.add_argument("--scenario", type=int, help="only the one with this number, from 0")
    arguments = parser.parse_args(argv)
    chosen = SCENARIOS if arguments.scenario is None else SCENARIOS[arguments.scenario :][:1]
    print("| learns | decides | rewards | probabilities | decisions | refused | weighted |", end="")
    print(" doubly robust | gain |")
    print("|---|---|---|---|---|---|---|---|---|")
    for scenario in chosen:
        print(row(scenario, arguments.simulations), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
