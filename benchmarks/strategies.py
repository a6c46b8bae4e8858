"""How soon an agent knows which strategy works, through gRPC alone, with default configs.

    python -m benchmarks.strategies [--only linucb] [--seeds 3] [--report benchmarks/strategies.md]

Tasks are JSON objects with a `task_type` and a `complexity`; on both depends which strategy is the
best. A reward is 1 or 0: whether the strategy worked. There are three strategies at first, and a
fourth one later, which is the best for some of the tasks. Nothing is declared: states are any
objects, and actions are the labels that a question allows.

Printed is what the policy earns without exploring, as a share of what the best choice would: first
with three strategies, then, after as many rewards again, with four. `linucb` and `thompson` get 300
rewards each time, the other algorithms 10,000. Beside it stands what choosing at random earns.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from statistics import fmean, median
from tempfile import TemporaryDirectory

from mneme import MnemeClient
from mneme.v1 import learning_pb2
from mneme.v1 import learning_service_pb2 as pb

from benchmarks.machine import facts
from benchmarks.report import markdown_table
from benchmarks.server import ROOT, Server

KINDS = ("auth", "ui", "db", "infra")
STRATEGIES = ("ask_first", "write_tests", "search_code", "just_do_it")
"""The last one is new halfway through."""
_FIRST = len(STRATEGIES) - 1
_JUDGED = 400
"""Tasks of which the share is the mean."""
_SEED_OF_JUDGED = 1_000_003


@dataclass(frozen=True, slots=True)
class AgentTask:
    """What an agent is to do."""

    kind: int
    complexity: float

    @property
    def state(self) -> learning_pb2.State:
        """The task as the agent describes it."""
        made = learning_pb2.State()
        made.json.update({"task_type": KINDS[self.kind], "complexity": self.complexity})
        return made


def drawn(chance: random.Random) -> AgentTask:
    """Return a task."""
    return AgentTask(chance.randrange(len(KINDS)), round(chance.random(), 3))


def _by_type(task: AgentTask, strategy: int) -> float:
    simple = task.complexity < 0.5
    return (0.9 if simple else 0.75) if strategy == task.kind else (0.3 if simple else 0.2)


def _crossing(task: AgentTask, strategy: int) -> float:
    base = (0.2 + 0.7 * task.complexity, 0.9 - 0.7 * task.complexity, 0.5, 0.45)[strategy]
    return base + (0.1 if strategy == task.kind else 0.0)


def _by_both(task: AgentTask, strategy: int) -> float:
    best = (task.kind + (2 if task.complexity > 0.5 else 0)) % len(STRATEGIES)
    return 0.85 if strategy == best else 0.25


def _close(task: AgentTask, strategy: int) -> float:
    best = (task.kind + (1 if task.complexity > 0.6 else 0)) % len(STRATEGIES)
    return 0.7 if strategy == best else 0.45


World = Callable[[AgentTask, int], float]
"""With which probability a strategy succeeds at a task."""
WORLDS: Mapping[str, World] = {
    "by type": _by_type,
    "lines that cross": _crossing,
    "by type and complexity": _by_both,
    "close to each other": _close,
}


@dataclass(frozen=True, slots=True)
class Goal:
    """What an algorithm is asked: the share of the best, and within how many rewards.

    Args:
        rewards: with each number of strategies.
        together: how many tasks are asked about at once.
        share: to reach.
    """

    rewards: int
    together: int
    share: float


_SOON, _LATER = Goal(300, 1, 0.9), Goal(10_000, 50, 0.8)
GOALS: Mapping[str, Goal] = {
    **dict.fromkeys(("linucb", "thompson"), _SOON),
    **dict.fromkeys(("q_learning", "sarsa", "dqn", "actor_critic", "ppo", "a3c"), _LATER),
}


class Chooser:
    """A session that is asked and told over one stream."""

    def __init__(self, client: MnemeClient, algorithm: str, session_id: str, seed: int) -> None:
        client.start_learning_session(algorithm, session_id=session_id, seed=seed)
        self._client = client
        self._session_id = session_id

    @contextmanager
    def stream(self) -> Iterator[Callable[[pb.ActRequest], Sequence[learning_pb2.Prediction]]]:
        """Lend a function that sends a message and returns its predictions."""
        requests: SimpleQueue[pb.ActRequest | None] = SimpleQueue()
        with self._client.act(iter(requests.get, None)) as answers:

            def send(request: pb.ActRequest) -> Sequence[learning_pb2.Prediction]:
                request.session_id = self._session_id
                requests.put(request)
                return next(answers).raw.predictions

            try:
                yield send
                requests.put(None)
                for _ in answers:
                    pass
            finally:
                requests.put(None)


def _asked(tasks: Iterable[AgentTask], strategies: int) -> list[pb.ActState]:
    allowed = [learning_pb2.Action(label=label) for label in STRATEGIES[:strategies]]
    return [pb.ActState(state=task.state, allowed_actions=allowed) for task in tasks]


def shares(
    client: MnemeClient, algorithm: str, world: World, session_id: str, seed: int, goal: Goal
) -> list[float]:
    """Learn with the first strategies, then with all; return which share of the best is earned."""
    chance, found = random.Random(seed), []
    chooser = Chooser(client, algorithm, session_id, seed)
    for strategies in (_FIRST, len(STRATEGIES)):
        with chooser.stream() as send:
            told: Sequence[learning_pb2.Experience] = ()
            for _ in range(goal.rewards // goal.together):
                tasks = [drawn(chance) for _ in range(goal.together)]
                asked = _asked(tasks, strategies)
                made = send(pb.ActRequest(feedback=told, states=asked, explore=True))
                told = _told(world, tasks, made, chance)
            send(pb.ActRequest(feedback=told))
            found.append(_share(send, world, strategies))
    return found


def _told(
    world: World,
    tasks: Sequence[AgentTask],
    made: Sequence[learning_pb2.Prediction],
    chance: random.Random,
) -> list[learning_pb2.Experience]:
    return [
        learning_pb2.Experience(
            prediction_id=one.prediction_id,
            reward=float(chance.random() < world(task, STRATEGIES.index(one.action.label))),
        )
        for task, one in zip(tasks, made, strict=True)
    ]


def _share(
    send: Callable[[pb.ActRequest], Sequence[learning_pb2.Prediction]],
    world: World,
    strategies: int,
) -> float:
    tasks = judged()
    made = send(pb.ActRequest(states=_asked(tasks, strategies), without_feedback=True))
    got = (
        world(task, STRATEGIES.index(one.action.label))
        for task, one in zip(tasks, made, strict=True)
    )
    return sum(got) / _best(world, tasks, strategies)


def judged() -> list[AgentTask]:
    """Return the tasks of which the share is the mean."""
    chance = random.Random(_SEED_OF_JUDGED)
    return [drawn(chance) for _ in range(_JUDGED)]


def _best(world: World, tasks: Sequence[AgentTask], strategies: int) -> float:
    return sum(max(world(task, n) for n in range(strategies)) for task in tasks)


def by_chance(world: World, strategies: int) -> float:
    """Return which share of the best is earned by choosing at random."""
    tasks = judged()
    got = sum(fmean(world(task, n) for n in range(strategies)) for task in tasks)
    return got / _best(world, tasks, strategies)


def row(client: MnemeClient, algorithm: str, name: str, seeds: int) -> list[str]:
    """Return a row of the table: an algorithm in a world."""
    goal, world = GOALS[algorithm], WORLDS[name]
    found = [
        shares(client, algorithm, world, f"{algorithm}-{name}-{seed}".replace(" ", "-"), seed, goal)
        for seed in range(1, seeds + 1)
    ]
    before, after = zip(*found, strict=True)
    met = min(median(before), median(after)) >= goal.share
    return [
        algorithm, name, f"{goal.rewards:,}",
        *(f"{by_chance(world, n):.2f}" for n in (_FIRST, len(STRATEGIES))),
        *(f"{median(one):.2f} ({min(one):.2f})" for one in (before, after)),
        f"{goal.share:.2f}", "met" if met else "**missed**",
    ]  # fmt: skip


_HEADER = [
    "algorithm", "the best depends", "rewards", "at random", "with the new one", "median (worst)",
    "with the new one", "goal", "",
]  # fmt: skip


def main() -> None:
    """Measure, print the table, and write it to a file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", action="append", choices=GOALS, help="may be repeated")
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds (default 3)")
    parser.add_argument("--report", type=Path, help="write the table here, too")
    given = parser.parse_args()
    rows = []
    with TemporaryDirectory() as folder, Server(Path(folder) / "data") as server:
        client = server.tenant("strategies", scopes=["learn"])
        for algorithm in given.only or GOALS:
            for name in WORLDS:
                rows.append(row(client, algorithm, name, given.seeds))
                print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    known = [f"- {name}: {value}" for name, value in facts(ROOT).items()]
    text = "\n".join([_TITLE, "", *known, "", markdown_table(_HEADER, rows), "", _NOTE, ""])
    print(text)
    if given.report is not None:
        given.report.write_text(text)


_TITLE = """# Choosing a strategy

Made by `python -m benchmarks.strategies` (`make bench-learning`): what an agent's choice earns once
it has learned, as a share of what the best choice would, through gRPC, with default configs."""
_NOTE = """In the first world the best strategy is that of the type; in the second one it changes
with complexity along lines that cross; in the third one it is another one for each type, and again
for simple and for complex tasks: 0.85 succeed with it, 0.25 with others. In the last one it is as
in the third, but 0.7 succeed with it and 0.45 with others."""


if __name__ == "__main__":
    main()
