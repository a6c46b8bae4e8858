"""A task to evaluate policies on: which of four strategies is best depends on its state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from mneme_server.features.learning.algorithms.algorithm import (
    ActionQuestion,
    Learner,
    LearningTask,
    Transition,
)
from mneme_server.features.learning.catalogue import algorithm_named, configured
from mneme_server.features.learning.spaces import OpenLabels, OpenObject

SPACE = OpenObject()
ACTIONS = range(4)
TYPES = ("auth", "ui", "db", "api")
State = dict[str, str | float]


class World:
    """Rewards are 1 or 0."""

    def __init__(self, seed: int) -> None:
        self.chance = np.random.default_rng(seed)
        self._chances = self.chance.uniform(0.1, 0.9, (4, 2, 4))

    def state(self) -> State:
        return {
            "task_type": str(self.chance.choice(TYPES)),
            "complexity": round(float(self.chance.random()), 2),
        }

    def mean(self, state: State, action: int) -> float:
        complexity = state["complexity"]
        assert isinstance(complexity, float)
        return float(
            self._chances[TYPES.index(str(state["task_type"])), int(complexity > 0.5), action]
        )

    def reward(self, state: State, action: int) -> float:
        return float(self.chance.random() < self.mean(state, action))

    def value(self, learner: Learner) -> float:
        """What the learner's policy earns on average."""
        states = [self.state() for _ in range(500)]
        questions = [ActionQuestion(state, ACTIONS) for state in states]
        chosen = learner.choose(questions, explore=False, chance=self.chance)
        return float(
            np.mean(
                [
                    sum(p * self.mean(state, a) for a, p in zip(ACTIONS, one.policy, strict=True))
                    for state, one in zip(states, chosen, strict=True)
                ]
            )
        )

    def logged(self, count: int, favourite: float = 0.25) -> list[Transition]:
        """Decisions of a behaviour that likes one action of each type best."""
        found = []
        for _ in range(count):
            state = self.state()
            policy = np.full(4, (1 - favourite) / 3)
            policy[TYPES.index(str(state["task_type"]))] = favourite
            action = int(self.chance.choice(4, p=policy))
            reward = self.reward(state, action)
            found.append(Transition(state, action, reward, probability=float(policy[action])))
        return found


def learner(name: str = "linucb", seed: int = 0) -> Learner:
    algorithm = algorithm_named(name)
    return algorithm.make(LearningTask(SPACE, OpenLabels(), configured(algorithm, {}), seed))


def taught(transitions: Sequence[Transition], name: str = "linucb") -> Learner:
    found = learner(name)
    found.learn(transitions)
    return found
