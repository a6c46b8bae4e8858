"""Worlds of episodes of which it is known what changes how they end, and what Discover says."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import astuple, dataclass

import numpy as np
from mneme_server.features.causal.discovery import testable, tested
from mneme_server.features.causal.episode_table import EpisodeTable
from mneme_server.features.causal.estimation import Problem
from mneme_server.features.causal.model import DiscoveryChange, DiscoveryQuestion
from mneme_server.features.skills.model import Episode

Chance = np.random.Generator
NIGHTS = 60
_A_NIGHT = 10
_DIRECTIONS = 24
_TAGS = ("short", "urgent", "night", "import", "beta")
_STRATEGIES = ("plan", "direct", "review")
QUESTION = DiscoveryQuestion(min_success_rate=0)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One episode, with the direction of its task."""

    task: int
    won: bool
    tools: tuple[str, ...]
    tags: tuple[str, ...]
    strategy: str


def _tags(chance: Chance, likes: np.ndarray | float = 0.3) -> tuple[str, ...]:
    had = chance.random(len(_TAGS)) < likes
    return tuple(tag for tag, has in zip(_TAGS, had, strict=True) if has)


def _strategy(chance: Chance) -> str:
    return _STRATEGIES[chance.integers(len(_STRATEGIES))]


def _sigmoid(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds))


def nothing(chance: Chance, count: int) -> list[Attempt]:
    """Nothing changes how an episode ends."""
    return [
        Attempt(n, bool(chance.random() < 0.7), ("read", "edit"), _tags(chance), _strategy(chance))
        for n in range(count)
    ]


def crashes(chance: Chance, count: int) -> list[Attempt]:
    """A fifth of the attempts crash anywhere, and call nothing more: these fail."""
    found = []
    steps = ("search", "read", "edit", "test", "commit")
    for n in range(count):
        crashed = chance.random() < 0.2
        came = int(chance.integers(1, len(steps))) if crashed else len(steps)
        won = bool(not crashed and chance.random() < 0.8)
        found.append(Attempt(n, won, steps[:came], _tags(chance), _strategy(chance)))
    return found


def consequences(chance: Chance, count: int) -> list[Attempt]:
    """Who succeeds commits; who fails asks."""
    return [
        Attempt(one.task, one.won, ("read", "commit" if one.won else "ask"), one.tags, one.strategy)
        for one in nothing(chance, count)
    ]


def repeated(chance: Chance, count: int, tasks: int = 40) -> list[Attempt]:
    """Tasks are tried again and again; how hard they are and what is labelled so go by the task,
    each for itself."""
    hard = chance.normal(0.6, 1.5, tasks)
    likes = chance.beta(0.6, 1.2, (tasks, len(_TAGS)))
    found = []
    for n in range(count):
        task = n % tasks
        won = bool(chance.random() < _sigmoid(hard[task]))
        found.append(Attempt(task, won, ("read",), _tags(chance, likes[task]), _strategy(chance)))
    return found


def confounded(chance: Chance, count: int, tasks: int = 40) -> list[Attempt]:
    """Hard tasks are tried with "review", easy ones with "direct", mostly."""
    hard = chance.normal(0.3, 1.5, tasks)
    found = []
    for n in range(count):
        task = n % tasks
        won = bool(chance.random() < _sigmoid(hard[task]))
        usual = "review" if hard[task] < 0 else "direct"
        strategy = usual if chance.random() < 0.7 else _strategy(chance)
        found.append(Attempt(task, won, ("read",), _tags(chance), strategy))
    return found


def helps(chance: Chance, count: int) -> list[Attempt]:
    """Hard tasks are tried with "review", which adds 25 points."""
    return [
        Attempt(
            one.task,
            one.won or (one.strategy == "review" and chance.random() < 0.5),
            one.tools,
            one.tags,
            one.strategy,
        )
        for one in confounded(chance, count)
    ]


World = Callable[[Chance, int], list[Attempt]]
NULL: tuple[World, ...] = (nothing, crashes, consequences, repeated, confounded)


def edges(
    attempts: list[Attempt], seed: int, question: DiscoveryQuestion = QUESTION
) -> dict[tuple[str, str], float]:
    """Return the edges that Discover would keep, with their uplifts."""
    directions = np.random.default_rng([seed, 1]).normal(size=(10_000, _DIRECTIONS))
    table = EpisodeTable((), lambda _names: {}, with_tools=question.include_tools)
    episodes = [
        Episode(
            id=f"e{n}",
            task=f"task {one.task}",
            reward=float(one.won),
            success=one.won,
            tools=one.tools,
            tags=one.tags,
            metadata_json=json.dumps({"strategy": one.strategy}),
            occurred_us=n,
        )
        for n, one in enumerate(attempts)
    ]
    vectors = {
        e.id: directions[a.task].astype(np.float32) for e, a in zip(episodes, attempts, strict=True)
    }
    table.add(episodes, vectors)
    causes, _ = testable(table.causes(), table.count, question)
    features, _ = table.features()
    problem = Problem(features, table.outcomes(), table.tasks())
    estimated = []
    for cause in causes:
        treated = np.zeros(table.count, bool)
        treated[table.causes()[cause]] = True
        one = problem.estimate(treated)
        each = one.estimates and [e and astuple(e) for e in one.estimates]
        estimated.append([one.overlap, one.treated, one.control, each])
    success = float(table.outcomes()[:, 1].mean())
    findings, _ = tested(causes, estimated, question, success)
    return {
        (one.cause, one.outcome): one.uplift
        for one in findings
        if one.change is DiscoveryChange.CREATED
    }


def any_night(world: World, seed: int) -> bool:
    """Tell whether any of sixty nights, each with a few more episodes, finds an edge."""
    attempts = world(np.random.default_rng(seed), NIGHTS * _A_NIGHT)
    return any(edges(attempts[: _A_NIGHT * night], seed) for night in range(6, NIGHTS + 1))
