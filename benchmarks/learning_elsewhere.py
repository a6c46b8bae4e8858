"""Learning elsewhere, beside a textbook version and a peer, in one run.

    python -m benchmarks.learning_elsewhere [--only "a switch"] [--seeds 3]
        [--report benchmarks/learning_elsewhere.md]

Worlds that are not measured stay in the page as they were, so that the runs can be made in pieces.

The learners are the server's, with their defaults, asked and told one step after the other. The
textbook versions are written as their sources have them, with the settings given there, in
`learning_textbook.py`; the peer is the regression of scikit-learn that estimates its own noise and
ridge, with an epsilon of 0.1, and for tasks of several steps Monte Carlo control.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np
from mneme_server.common.canonical import Json
from mneme_server.features.learning.algorithms.algorithm import (
    Action,
    ActionQuestion,
    Closes,
    Learner,
    LearningTask,
    Transition,
)
from mneme_server.features.learning.catalogue import algorithm_named, configured
from mneme_server.features.learning.spaces import Box, Discrete, OpenObject, Space

from benchmarks.learning_textbook import LinUcb, MonteCarlo, Peer, QLearning, Sarsa, Student
from benchmarks.learning_worlds import (
    CHOICES,
    SEVERAL,
    Choices,
    DoubleIntegrator,
    Steps,
    regulator,
)
from benchmarks.machine import facts
from benchmarks.report import markdown_table
from benchmarks.server import ROOT

_GREEDY = 100
"""Episodes that a policy is judged by."""
_CONTROL_STEPS = (4_000, 8_000)


class Taught:
    """A learner of the server as the textbook's are asked."""

    def __init__(self, name: str, states: Space, actions: Space, seed: int) -> None:
        algorithm = algorithm_named(name)
        config = configured(algorithm, {})
        self.learner: Learner = algorithm.make(LearningTask(states, actions, config, seed))
        self._chance = np.random.default_rng(seed)
        self._actions = range(actions.size) if isinstance(actions, Discrete) else ()

    def choose(self, state: Json, *, explore: bool) -> Action:
        """Choose an action."""
        if isinstance(self.learner, Closes) and not self.learner.is_trained:  # type: ignore[attr-defined]
            return (float(self._chance.uniform(-1, 1)),)
        question = ActionQuestion(state, self._actions)
        (made,) = self.learner.choose([question], explore=explore, chance=self._chance)
        return made.action

    def learn(self, one: Transition) -> None:
        """Learn what came of it."""
        self.learner.learn([one])


@dataclass(frozen=True, slots=True)
class Row:
    """What somebody came to on a task, one number a seed."""

    who: str
    scores: Sequence[float]
    seconds: float

    def cells(self) -> list[str]:
        """The cells of the table."""
        low, high = min(self.scores), max(self.scores)
        return [self.who, _plain(fmean(self.scores)), f"{_plain(low)} to {_plain(high)}",
                f"{self.seconds:.1f} s"]  # fmt: skip


def _plain(number: float) -> str:
    return f"{number:.3g}"


def _choices(made: Callable[[int], Student], world: Callable[[int], Choices], seed: int) -> float:
    """Return the mean reward of the choices that count."""
    task, student = world(seed), made(seed)
    earned = []
    for _ in range(task.rounds):
        state = task.state()
        action = student.choose(state, explore=True)
        assert isinstance(action, int)
        earned.append(task.mean(action))
        student.learn(Transition(state, action, task.reward(action)))
    return fmean(earned[-task.counted :])


def _several(made: Callable[[int], Student], world: Callable[[int], Steps], seed: int) -> float:
    """Return the mean return of greedy episodes after so many steps."""
    task, student = world(seed), made(seed)
    state = task.begin()
    for _ in range(task.steps):
        action = student.choose(state, explore=True)
        assert isinstance(action, int)
        reward, following, terminated, truncated = task.step(action)
        student.learn(Transition(state, action, reward, None if terminated else following,
                                 terminated=terminated, truncated=truncated,
                                 probability=0.5))  # fmt: skip
        state = task.begin() if terminated or truncated else following
    returns = []
    for _ in range(_GREEDY):
        state, total, ended = task.begin(), 0.0, False
        while not ended:
            action = student.choose(state, explore=False)
            assert isinstance(action, int)
            reward, state, terminated, truncated = task.step(action)
            total, ended = total + reward, terminated or truncated
        returns.append(total)
    return fmean(returns)


def _row(who: str, play: Callable[[int], float], seeds: Sequence[int]) -> Row:
    begun = time.process_time()
    scores = [play(seed) for seed in seeds]
    row = Row(who, scores, (time.process_time() - begun) / len(seeds))
    print(*row.cells(), sep="  ", flush=True)
    return row


def _of_choices(world: type[Choices], seeds: Sequence[int]) -> list[Row]:
    count = world(0).count

    def ours(name: str) -> Callable[[int], Student]:
        return partial(Taught, name, OpenObject(), Discrete(count))

    students: list[tuple[str, Callable[[int], Student]]] = [
        ("`thompson`", ours("thompson")),
        ("`linucb`", ours("linucb")),
        ("LinUCB, textbook", partial(LinUcb, count)),
        ("peer: BayesianRidge", partial(Peer, count)),
    ]
    return [_row(who, partial(_choices, made, world), seeds) for who, made in students]


def _of_steps(world: type[Steps], seeds: Sequence[int]) -> list[Row]:
    made = world(0)
    count, states = made.count, made.space

    def ours(name: str) -> Callable[[int], Student]:
        return partial(Taught, name, states, Discrete(count))

    students: list[tuple[str, Callable[[int], Student]]] = [
        ("`q_learning`", ours("q_learning")),
        ("`sarsa`", ours("sarsa")),
        ("Q-learning, textbook", partial(QLearning, count)),
        ("Sarsa, textbook", partial(Sarsa, count)),
        ("peer: Monte Carlo control", partial(MonteCarlo, count)),
    ]
    return [_row(who, partial(_several, student, world), seeds) for who, student in students]


def _control(name: str, seed: int) -> dict[int, float]:
    """Return the mean return of twenty greedy episodes after so many steps."""
    task = DoubleIntegrator(seed)
    student = Taught(name, Box((-10.0, -10.0), (10.0, 10.0)), Box((-1.0,), (1.0,)), seed)
    found, state = {}, task.begin()
    for step in range(1, max(_CONTROL_STEPS) + 1):
        action = student.choose(state, explore=True)
        assert not isinstance(action, int)
        reward, following, truncated = task.step(action[0])
        student.learn(Transition(state, action, reward, following, terminated=False,
                                 truncated=truncated, probability=None))  # fmt: skip
        state = task.begin() if truncated else following
        if step in _CONTROL_STEPS:
            judge = DoubleIntegrator(1_000 + seed)

            def greedy(state: Json) -> float:
                chosen = student.choose(state, explore=False)
                assert not isinstance(chosen, int)
                return chosen[0]

            found[step] = fmean(judge.episode(greedy) for _ in range(20))
    if isinstance(student.learner, Closes):
        student.learner.close()
    return found


def _controlled(seeds: Sequence[int]) -> list[list[str]]:
    lines = []
    for name in ("sac", "td3", "ddpg"):
        begun = time.perf_counter()
        found = [_control(name, seed) for seed in seeds]
        seconds = (time.perf_counter() - begun) / len(seeds)
        cells = [
            f"{_plain(fmean(scores))} ({_plain(min(scores))} to {_plain(max(scores))})"
            for step in _CONTROL_STEPS
            for scores in ([one[step] for one in found],)
        ]
        lines.append([f"`{name}`", *cells, f"{seconds:.0f} s"])
        print(*lines[-1], sep="  ", flush=True)
    best = _plain(fmean(DoubleIntegrator(1_000 + seed).mean_of(regulator) for seed in seeds))
    nothing = _plain(fmean(DoubleIntegrator(1_000 + s).mean_of(lambda _: 0.0) for s in seeds))
    return [*lines, ["linear-quadratic regulator", best, best, ""],
            ["doing nothing", nothing, nothing, ""]]  # fmt: skip


def main() -> None:
    """Run the tasks, print the tables and write them to a file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", action="append", help="only this world; may be repeated")
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds (default 3)")
    parser.add_argument("--report", type=Path, help="write the tables here")
    given = parser.parse_args()
    seeds = range(1, given.seeds + 1)
    machine = "\n".join(f"- {name}: {value}" for name, value in facts(ROOT).items())
    parts = [_TITLE, machine]
    head = ["who", "mean", "lowest to highest seed", "processor time of a seed"]
    for name in (*CHOICES, *SEVERAL):
        if given.only and name not in given.only:
            continue
        print(name)
        several = SEVERAL.get(name)
        about = several.about if several else CHOICES[name].about
        rows = _of_steps(several, seeds) if several else _of_choices(CHOICES[name], seeds)
        table = markdown_table(head, [row.cells() for row in rows])
        parts.append(f"## {name.capitalize()}\n\n{about}\n\n{table}")
    if not given.only or "double integrator" in given.only:
        head = ["who", *(f"after {steps:,} steps" for steps in _CONTROL_STEPS), "a seed took"]
        table = markdown_table(head, _controlled(seeds))
        parts.append(f"## Double integrator\n\n{DoubleIntegrator.about}\n\n{table}")
    if given.report is not None:
        given.report.write_text(_merged(given.report, parts))


def _merged(report: Path, parts: Sequence[str]) -> str:
    """Return a page with what was measured now, and the worlds of the page before that were not."""
    before = report.read_text() if report.exists() else ""
    kept = {text.split("\n", 1)[0]: text.strip() for text in before.split("\n## ")[1:]}
    now = {text.removeprefix("## ").split("\n", 1)[0]: text[3:] for text in parts[2:]}
    names = [name.capitalize() for name in (*CHOICES, *SEVERAL, "double integrator")]
    sections = {**kept, **now}
    told = [f"## {sections[name]}" for name in names if name in sections]
    return "\n\n".join([*parts[:2], *told]) + "\n"


_TITLE = """\
# Learning, elsewhere

Made by `python -m benchmarks.learning_elsewhere`: the server's learners with their defaults,
each beside a textbook version and a peer in the same run, with the same seeds. The textbook's
LinUCB (Li and others, 2010, algorithm 1) has alpha 1 and ridge 1 and sees the same facts without
steps and pairs; its Q-learning and Sarsa (Sutton and Barto, sections 6.4 and 6.5) have a step
size and an epsilon of 0.1; the peers are scikit-learn's `BayesianRidge` with an epsilon of 0.1,
and Monte Carlo control (Sutton and Barto, section 5.4). The first four worlds were looked at
while the bandits' regression was written; no default was chosen by the others, and what is out
of reach is shown."""


if __name__ == "__main__":
    main()
