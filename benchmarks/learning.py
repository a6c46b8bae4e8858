"""Each algorithm on an environment that others wrote, through gRPC alone, with its default config.

    python -m benchmarks.learning [--only ppo] [--seeds 3] [--report benchmarks/learning.md]

A policy is learned over `Act` by actors in parallel and then plays 100 episodes greedily. The
median of the seeds must reach the goal; the worst is shown, too. Random play is measured likewise.
`decision_transformer` learns from recorded trajectories of mixed quality: a hand-written rule that
is followed to various degrees.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory

import gymnasium
import numpy as np
from mneme import MnemeClient, gym
from mneme.v1 import learning_pb2

from benchmarks.machine import facts
from benchmarks.report import markdown_table
from benchmarks.server import ROOT, Server

_EPISODES = 100
_ACTORS = 8
_FIRST_SEED_OF_TESTS = 1_000_000
_RECORDED = 300
"""Trajectories that decision_transformer is told."""
_TRAIN_STEPS = 1_500
_CARTPOLE_STEPS, _PENDULUM_STEPS, _TABLE_STEPS = 300_000, 20_000, 50_000


@dataclass(frozen=True, slots=True)
class Task:
    """An algorithm, where it is tried, and what it must reach.

    Args:
        low: the goal: the mean return of greedy episodes must be at least this,
        high: and at most this (what stays away from the edge is longer).
        reference: published, or known of the environment.
    """

    algorithm: str
    environment: str
    steps: int
    low: float
    reference: str
    high: float = float("inf")


_CLIFF = (
    "-13 is the shortest way, -17 the one furthest from the edge (Sutton and Barto, example 6.6)"
)
_CARTPOLE = "500 is the most there is; solved from 475 (Gymnasium)"
_PENDULUM = "about -150 (rl-baselines3-zoo: ddpg -169, sac -176, td3 -172)"

TASKS = [
    Task("q_learning", "CliffWalking-v1", _TABLE_STEPS, -13.0, _CLIFF, -13.0),
    Task("sarsa", "CliffWalking-v1", _TABLE_STEPS, -17.0, _CLIFF, -15.0),
    *(
        Task(algorithm, "CartPole-v1", _CARTPOLE_STEPS, 475.0, _CARTPOLE)
        for algorithm in ("dqn", "actor_critic", "ppo", "a3c")
    ),
    *(
        Task(algorithm, "Pendulum-v1", _PENDULUM_STEPS, -200.0, _PENDULUM)
        for algorithm in ("ddpg", "sac", "td3")
    ),
]


@dataclass(frozen=True, slots=True)
class Run:
    """What a seed came to: the mean return of its greedy episodes, and the seconds it took."""

    seed: int
    score: float
    seconds: float


def learned(client: MnemeClient, task: Task, seed: int) -> Run:
    """Learn a task and play it greedily."""
    begun = time.perf_counter()
    session = f"{task.environment}-{task.algorithm}-{seed}"
    gym.start(client, session, task.environment, task.algorithm, seed=seed)
    with _progress(session, task.steps) as tell:
        gym.play(
            client,
            session,
            task.environment,
            steps=task.steps,
            actors=_ACTORS,
            seed=seed * _FIRST_SEED_OF_TESTS // 100,
            progress=tell,
        )
    score = _greedy(client, session, task.environment)
    return Run(seed, score, time.perf_counter() - begun)


def by_chance(environment: str, seed: int) -> float:
    """Return the mean return of random play."""
    made = gymnasium.make(environment)
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
    for aim in (50, 150, 500):
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


def _greedy(client: MnemeClient, session: str, environment: str) -> float:
    played = gym.play(
        client,
        session,
        environment,
        episodes=_EPISODES,
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


@contextmanager
def _progress(session: str, steps: int) -> Iterator[Callable[[gym.Played], None]]:
    def tell(played: gym.Played) -> None:
        if played.steps % 4_000 < _ACTORS:
            latest = played.returns[-100:]
            mean = f", {fmean(latest):.1f}" if latest else ""
            print(f"\r{session}: {played.steps}/{steps}{mean}   ", end="", file=sys.stderr)

    yield tell
    print(file=sys.stderr)


def _line(task: Task, runs: Sequence[Run], chance: float) -> list[str]:
    scores = [run.score for run in runs]
    middle, worst = median(scores), min(scores)
    goal = f"{task.low:g}" if task.low == task.high else f"≥ {task.low:g}"
    if task.low < task.high < float("inf"):
        goal = f"{task.low:g} to {task.high:g}"
    met = "met" if task.low <= middle <= task.high else "**missed**"
    seconds = fmean(run.seconds for run in runs)
    return [
        task.algorithm, task.environment, f"{task.steps:,}", f"{chance:.1f}", f"{middle:.1f}",
        f"{worst:.1f}", goal, met, f"{seconds:.0f} s", task.reference,
    ]  # fmt: skip


_HEADER = [
    "algorithm", "environment", "steps", "random", "median", "worst", "goal", "", "a seed took",
    "to compare",
]  # fmt: skip


def main() -> None:
    """Run the tasks, print the tables and write them to a file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", action="append", help="only this algorithm; may be repeated")
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds (default 3)")
    parser.add_argument("--steps", type=int, help="at most so many steps each")
    parser.add_argument("--report", type=Path, help="write the tables here, too")
    given = parser.parse_args()
    chosen = [t for t in TASKS if not given.only or t.algorithm in given.only]
    seeds = range(1, given.seeds + 1)
    page = [_TITLE, "", *(f"- {name}: {value}" for name, value in facts(ROOT).items()), ""]
    lines, told = [], []
    with TemporaryDirectory() as folder, Server(Path(folder) / "data") as server:
        client = server.tenant("learning", scopes=["learn"])
        for task in chosen:
            steps = min(task.steps, given.steps or task.steps)
            own = Task(task.algorithm, task.environment, steps, task.low, task.reference, task.high)
            runs = [learned(client, own, seed) for seed in seeds]
            lines.append(_line(own, runs, by_chance(task.environment, 0)))
            print(markdown_table(_HEADER, lines[-1:]), flush=True)
        if not given.only or "decision_transformer" in given.only:
            for seed in seeds:
                data, reached = transformed(client, seed)
                told.append(
                    [str(seed), f"{data:.0f}", *(f"{reached[aim]:.0f}" for aim in sorted(reached))]
                )
    page += ["", markdown_table(_HEADER, lines)] if lines else []
    if told:
        aims = ["aiming at 50", "at 150", "at 500"]
        page += ["", _TRANSFORMER, "", markdown_table(["seed", "recorded", *aims], told)]
    text = "\n".join(page) + "\n"
    print(text)
    if given.report is not None:
        given.report.write_text(text)


_TITLE = """\
# Learning

Made by `make bench-learning` (`python -m benchmarks.learning`): each algorithm with its default
config, through gRPC, the mean return of 100 greedy episodes after the given steps."""
_TRANSFORMER = """\
`decision_transformer` on CartPole-v1: the mean return of the 300 trajectories that it was told, and
of 50 episodes that aim at a return."""


if __name__ == "__main__":
    main()
