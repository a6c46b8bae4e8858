"""Deep learners for tests: small, on tasks of one step, and with a trainer in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

import numpy as np
from mneme_server.features.learning.algorithms.algorithm import (
    Action,
    ActionQuestion,
    LearningTask,
    Setting,
    Transition,
)
from mneme_server.features.learning.catalogue import algorithm_named
from mneme_server.features.learning.deep import frames
from mneme_server.features.learning.deep.algorithms import DEEP_ALGORITHMS
from mneme_server.features.learning.deep.learner import DeepLearner
from mneme_server.features.learning.deep.worker import TrainerHost
from mneme_server.features.learning.spaces import Box, Discrete, Space

NAMED = {one.name: algorithm_named(one.name) for one in DEEP_ALGORITHMS}
STATES = Box((-1.0,), (1.0,))
SMALL: dict[str, Setting] = {
    "hidden_size": 16,
    "target_rate": 0.02,
    "learning_starts": 32,
    "train_every": 4,
    "buffer_size": 2_000,
    "rollout_steps": 64,
    "epsilon_steps": 200,
    "epsilon_episodes": 200,
    "batch_size": 32,
    "learning_rate": 0.005,
}


class Here:
    """A worker without a process: what it is asked goes through frames all the same."""

    pid = 0
    has_ended = False

    def __init__(self, setup: Mapping[str, Any]) -> None:
        self._desk = TrainerHost()
        self.ask(setup)

    def ask(self, question: Mapping[str, Any]) -> Future[Mapping[str, Any]]:
        future: Future[Mapping[str, Any]] = Future()
        try:
            future.set_result(
                frames.unpack(frames.pack(self._desk.answer(frames.unpack(frames.pack(question)))))
            )
        except Exception as error:
            future.set_exception(error)
        return future

    def close(self) -> None:
        pass


def config_of(name: str, **settings: Setting) -> dict[str, Setting]:
    """The defaults of an algorithm, but small."""
    keys = {key.name: key.default for key in NAMED[name].keys}
    small = {key: value for key, value in SMALL.items() if key in keys}
    return {**keys, **small, **settings}


def learner_of(
    name: str,
    actions: Space | None = None,
    *,
    states: Space = STATES,
    seed: int = 1,
    start: Callable[[Mapping[str, Any]], Any] | None = Here,
    background: bool = False,
    **settings: Setting,
) -> DeepLearner:
    """A learner; `start` None trains in a process."""
    if actions is None:
        actions = Discrete(2) if NAMED[name].discrete else Box((-2.0,), (2.0,))
    learner = NAMED[name].make(
        LearningTask(states, actions, config_of(name, **settings), seed, background)
    )
    assert isinstance(learner, DeepLearner)
    if start is not None:
        learner._start = start  # type: ignore[assignment]
    return learner


def reward(state: float, action: Action) -> float:
    """Best is the action that goes where the state is: 1 if it is positive, or in a box itself."""
    if isinstance(action, int):
        return float(action == (state > 0))
    return -abs(action[0] - state)


def practise(learner: DeepLearner, steps: int, chance: np.random.Generator) -> None:
    """Have it learn from what it does, one step at a time."""
    for _ in range(steps):
        learner.learn([tried(learner, chance)])


def tried(learner: DeepLearner, chance: np.random.Generator) -> Transition:
    """What came of an action that it chose."""
    state = [float(chance.uniform(-1, 1))]
    choice = learner.choose(
        [ActionQuestion(state, _allowed(learner))], explore=True, chance=chance
    )[0]
    return Transition(
        state, choice.action, reward(state[0], choice.action), probability=choice.probability
    )


def score(learner: DeepLearner) -> float:
    """The mean reward of its best actions, over states of all kinds."""
    states = [[float(x)] for x in np.linspace(-0.95, 0.95, 40)]
    questions = [ActionQuestion(state, _allowed(learner)) for state in states]
    choices = learner.choose(questions, explore=False, chance=np.random.default_rng(0))
    rewards = [reward(s[0], c.action) for s, c in zip(states, choices, strict=True)]
    return float(np.mean(rewards))


def _allowed(learner: DeepLearner) -> list[int]:
    return [] if learner._setup.continuous else list(range(learner._actions))
