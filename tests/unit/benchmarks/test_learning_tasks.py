"""The tasks that algorithms are tried on."""

from __future__ import annotations

import pytest
from mneme_server.features.learning.catalogue import algorithm_named

from benchmarks.learning_tasks import OTHERS, TASKS, Task

gymnasium = pytest.importorskip("gymnasium", reason="the extra `gym` is not installed")


@pytest.mark.parametrize("task", [*TASKS, *OTHERS], ids=lambda one: one.algorithm)
def test_each_environment_exists_and_suits_the_algorithm(task: Task) -> None:
    made = gymnasium.make(task.environment)
    algorithm = algorithm_named(task.algorithm)
    counted = isinstance(made.action_space, gymnasium.spaces.Discrete)
    assert algorithm.discrete if counted else algorithm.continuous
    made.close()
