"""Each algorithm on an environment that others wrote, through gRPC alone, with its default config.

    python -m benchmarks.learning [--only ppo] [--environment CartPole-v1] [--seeds 3]
        [--report benchmarks/learning.md] [--keep FILE [--kept]]

With `--keep` each run is appended to a file as it ends, and what the file holds is not run again:
so the runs can be made in pieces. With `--kept`, too, the page is written from the file alone.

A policy is learned over `Act` by actors in parallel and then plays 100 episodes greedily. The
median of the seeds must reach the goal; the worst is shown, too. Random play is measured likewise.
Where a task says what is enough, a policy is tried fifteen times on its way, and learning ends when
twenty greedy episodes reach that: the page says after how many steps, the median of the seeds.
`decision_transformer` learns from recorded trajectories of mixed quality: a hand-written rule that
is followed to various degrees.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Any

import gymnasium
import numpy as np
from gymnasium.wrappers import TimeLimit
from mneme import MnemeClient, gym
from mneme.v1 import learning_pb2

from benchmarks.learning_tasks import OTHERS, TASKS, Task
from benchmarks.machine import facts
from benchmarks.report import markdown_table
from benchmarks.server import ROOT, Server

_EPISODES = 100
_LOOKS, _FEW = 15, 20
"""How often a policy is tried meanwhile, and for how many episodes, where it may be enough."""
_TELL_EVERY = 4_000
_LONGEST = 1_000
"""Steps of an episode that its environment would not end."""
_ACTORS = 8
_FIRST_SEED_OF_TESTS = 1_000_000
_RECORDED = 300
"""Trajectories that decision_transformer is told."""
_TRAIN_STEPS = 1_500
_AIMS = (50, 150, 500)


@dataclass(frozen=True, slots=True)
class Run:
    """What a seed came to: the mean return of its greedy episodes, how many steps it learned from,
    and the seconds it took."""

    seed: int
    score: float
    steps: int
    seconds: float


def learned(client: MnemeClient, task: Task, seed: int) -> Run:
    """Learn a task and play it greedily."""
    begun = time.perf_counter()
    session = f"{task.environment}-{task.algorithm}-{seed}"
    gym.start(client, session, task.environment, task.algorithm, seed=seed)
    steps = task.steps
    try:
        gym.play(
            client,
            session,
            task.environment,
            steps=task.steps,
            actors=_ACTORS,
            seed=seed * _FIRST_SEED_OF_TESTS // 100,
            progress=_Progress(client, session, task),
        )
    except _Enough as reached:
        steps = reached.steps
    print(file=sys.stderr)
    score = _greedy(client, session, task.environment, _EPISODES)
    return Run(seed, score, steps, time.perf_counter() - begun)


class _Enough(Exception):
    """A policy is good enough after so many steps."""

    def __init__(self, steps: int) -> None:
        super().__init__(steps)
        self.steps = steps


class _Progress:
    """Tells how far learning is, and ends it when greedy episodes reach what is enough."""

    def __init__(self, client: MnemeClient, session: str, task: Task) -> None:
        self._client = client
        self._session = session
        self._task = task
        self._told = self._looked = 0

    def __call__(self, played: gym.Played) -> None:
        task, steps = self._task, played.steps
        if steps >= self._told + _TELL_EVERY:
            self._told = steps
            latest = played.returns[-100:]
            mean = f", {fmean(latest):.1f}" if latest else ""
            print(f"\r{self._session}: {steps}/{task.steps}{mean}   ", end="", file=sys.stderr)
        if task.enough < float("inf") and steps >= self._looked + task.steps // _LOOKS:
            self._looked = steps
            if _greedy(self._client, self._session, task.environment, _FEW) >= task.enough:
                raise _Enough(steps)


def by_chance(environment: str, seed: int) -> float:
    """Return the mean return of random play."""
    made = _bounded(environment)
    made.action_space.seed(seed)
    returns = [_episode(made, seed + n, lambda _: made.action_space.sample()) for n in range(100)]
    made.close()
    return fmean(returns)


def transformed(client: MnemeClient, seed: int) -> tuple[float, dict[int, float]]:
    """Tell decision_transformer recorded trajectories, let it learn, and play it towards returns.

    Returns:
        The mean return of what was recorded, and of its own episodes by the return aimed at.
    """
    environment, session = "CartPole-v1", f"recorded-{seed}"
    gym.start(client, session, environment, "decision_transformer", seed=seed)
    recorded = []
    for number in range(_RECORDED):
        steps = _ruled(environment, seed * 10_000 + number)
        recorded.append(float(sum(step.reward for step in steps)))
        client.record_experience(session, steps, trajectory_id=f"t{number}")
    for told in client.train(session, num_steps=_TRAIN_STEPS):
        print(f"\r{session}: {told.steps_completed} steps", end="", file=sys.stderr)
    print(file=sys.stderr)
    reached = {}
    for aim in _AIMS:
        played = gym.play(
            client,
            session,
            environment,
            episodes=_EPISODES // 2,
            actors=_ACTORS,
            explore=False,
            target_return=float(aim),
            seed=_FIRST_SEED_OF_TESTS,
        )
        reached[aim] = played.mean
    return fmean(recorded), reached


def _greedy(client: MnemeClient, session: str, environment: str, episodes: int) -> float:
    played = gym.play(
        client,
        session,
        partial(_bounded, environment),
        episodes=episodes,
        actors=_ACTORS,
        learn=False,
        seed=_FIRST_SEED_OF_TESTS,
    )
    return played.mean


def _ruled(environment: str, seed: int) -> list[learning_pb2.Experience]:
    """Play an episode of CartPole by a rule, push where the pole falls, and as often as the seed
    says by chance; return its steps."""
    made = gymnasium.make(environment)
    chance = np.random.default_rng(seed)
    follows = chance.uniform()  # How often the rule is followed.
    steps = []
    observation, _ = made.reset(seed=seed)
    ended = False
    while not ended:
        ruled = int(observation[2] + 0.5 * observation[3] > 0)
        action = ruled if chance.uniform() < follows else int(chance.integers(2))
        state = gym.state_of(made.observation_space, observation)
        observation, reward, terminated, truncated, _ = made.step(action)
        ended = terminated or truncated
        steps.append(
            learning_pb2.Experience(
                state=state,
                action=learning_pb2.Action(number=action),
                reward=float(reward),
                next_state=gym.state_of(made.observation_space, observation),
                terminated=terminated,
                truncated=truncated and not terminated,
                probability=follows * (action == ruled) + (1 - follows) / 2,
            )
        )
    made.close()
    return steps


def _bounded(environment: str) -> gymnasium.Env[Any, Any]:
    """Make an environment whose episodes end, also for a policy that goes round in circles."""
    made = gymnasium.make(environment)
    bound = made.spec is not None and made.spec.max_episode_steps is not None
    return made if bound else TimeLimit(made, _LONGEST)


def _episode(
    made: gymnasium.Env[object, object], seed: int, choose: Callable[[object], object]
) -> float:
    observation, _ = made.reset(seed=seed)
    total, ended = 0.0, False
    while not ended:
        observation, reward, terminated, truncated, _ = made.step(choose(observation))
        total += float(reward)
        ended = terminated or truncated
    return total


def _line(task: Task, runs: Sequence[Run], chance: float) -> list[str]:
    scores = [run.score for run in runs]
    middle, worst = median(scores), min(scores)
    goal = f"{task.low:g}" if task.low == task.high else f"≥ {task.low:g}"
    if task.low < task.high < float("inf"):
        goal = f"{task.low:g} to {task.high:g}"
    met = "met" if task.low <= middle <= task.high else "**missed**"
    seconds = fmean(run.seconds for run in runs)
    steps = f"{round(median(run.steps for run in runs)):,}"
    return [
        task.algorithm, task.environment, steps, f"{chance:.1f}", f"{middle:.1f}",
        f"{worst:.1f}", str(len(runs)), goal, met, f"{seconds:.0f} s", task.reference,
    ]  # fmt: skip


_HEADER = [
    "algorithm", "environment", "steps", "random", "median", "worst", "seeds", "goal", "",
    "a seed took", "to compare",
]  # fmt: skip


class Kept:
    """Runs that were made, in a file of one JSON object a line.

    Args:
        path: the file; None: nothing is kept.
        only: whether nothing is run that is not there.
    """

    def __init__(self, path: Path | None, *, only: bool) -> None:
        self._path = path
        self._only = only
        there = path is not None and path.exists()
        lines = path.read_text().splitlines() if path is not None and there else []
        self._made = {(one["task"], one["seed"]): one for one in map(json.loads, lines)}

    def runs(
        self, task: str, seeds: Sequence[int], make: Callable[[int], dict[str, object]]
    ) -> list[dict[str, Any]]:
        """Return what runs with each seed came to; make those that were not made before."""
        return [run for seed in seeds if (run := self._run(task, seed, make)) is not None]

    def _run(
        self, task: str, seed: int, make: Callable[[int], dict[str, object]]
    ) -> dict[str, Any] | None:
        found = self._made.get((task, seed))
        if found is None and not self._only:
            found = self._made[task, seed] = {"task": task, **make(seed), "seed": seed}
            if self._path is not None:
                with self._path.open("a") as file:
                    file.write(json.dumps(found) + "\n")
        return found


_KEPT = ("seed", "score", "steps", "seconds")


def _table(client: MnemeClient, tasks: Sequence[Task], seeds: Sequence[int], kept: Kept) -> str:
    """Return the table of some tasks, as far as they were run, and which were not."""
    lines, missing = [], []
    for task in tasks:
        name = f"{task.algorithm} {task.environment} {task.steps}"
        made = kept.runs(name, seeds, lambda seed, task=task: asdict(learned(client, task, seed)))  # type: ignore[misc]
        if made:
            runs = [Run(*(one[name] for name in _KEPT)) for one in made]
            lines.append(_line(task, runs, by_chance(task.environment, 0)))
            print(markdown_table(_HEADER, lines[-1:]), flush=True)
        else:
            missing.append(f"{task.algorithm} on {task.environment}")
    parts = [markdown_table(_HEADER, lines)] if lines else []
    parts += [f"Not run yet: {', '.join(missing)}."] if missing else []
    return "\n\n".join(parts)


def _told(client: MnemeClient, seeds: Sequence[int], kept: Kept) -> str:
    """Return the table of decision_transformer."""

    def make(seed: int) -> dict[str, object]:
        data, reached = transformed(client, seed)
        return {"recorded": data, "reached": [reached[aim] for aim in _AIMS]}

    rows = [
        [str(made["seed"]), *(f"{one:.0f}" for one in (made["recorded"], *made["reached"]))]
        for made in kept.runs("decision_transformer CartPole-v1", seeds, make)
    ]
    if not rows:
        return "Not run yet."
    first, *others = _AIMS
    return markdown_table(
        ["seed", "recorded", f"aiming at {first}", *(f"at {aim}" for aim in others)], rows
    )


def _page(client: MnemeClient, given: argparse.Namespace) -> str:
    """Return the page of what was asked for."""
    kept, seeds = Kept(given.keep, only=given.kept), range(1, given.seeds + 1)

    def chosen(tasks: Sequence[Task]) -> list[Task]:
        wanted = [
            task
            for task in tasks
            if (not given.only or task.algorithm in given.only)
            and (not given.environment or task.environment in given.environment)
        ]
        return [replace(one, steps=min(one.steps, given.steps or one.steps)) for one in wanted]

    parts = [_TITLE, "\n".join(f"- {name}: {value}" for name, value in facts(ROOT).items())]
    if tasks := chosen(TASKS):
        parts.append(_table(client, tasks, seeds, kept))
    recorded = not given.only or "decision_transformer" in given.only
    if recorded and (not given.environment or "CartPole-v1" in given.environment):
        parts += [_TRANSFORMER, _told(client, seeds, kept)]
    if tasks := chosen(OTHERS):
        parts += [_OTHERS, _table(client, tasks, seeds[:1], kept)]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Run the tasks, print the tables and write them to a file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", action="append", help="only this algorithm; may be repeated")
    parser.add_argument("--environment", action="append", help="only this; may be repeated")
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds (default 3)")
    parser.add_argument("--steps", type=int, help="at most so many steps each")
    parser.add_argument("--keep", type=Path, help="keep runs in this file, and take them from it")
    parser.add_argument("--kept", action="store_true", help="run nothing that is not kept")
    parser.add_argument("--report", type=Path, help="write the tables here, too")
    given = parser.parse_args()
    with TemporaryDirectory() as folder, Server(Path(folder) / "data") as server:
        text = _page(server.tenant("learning", scopes=["learn"]), given)
    print(text)
    if given.report is not None:
        given.report.write_text(text)


_TITLE = """\
# Learning

Made by `make bench-learning` (`python -m benchmarks.learning`): each algorithm with its default
config, through gRPC, the mean return of 100 greedy episodes after the given steps, which are the
median of the seeds. Where twenty greedy episodes on the way come to 495 on CartPole, -95 on Acrobot
or -130 on MountainCar, learning ends there; at the latest after 300,000, 100,000 and 150,000."""
_OTHERS = """\
Elsewhere: environments that no default was chosen by, one seed each, fewer steps. The goals say
what is clearly better than random play."""
_TRANSFORMER = """\
`decision_transformer` on CartPole-v1: the mean return of the 300 trajectories that it was told, and
of 50 episodes that aim at a return."""


if __name__ == "__main__":
    main()
