"""The similarity of two tasks: by their spaces and, where both have any, by their data.

Each part is from 0 (nothing in common) to 1 (the same), and the similarity is their geometric mean:
tasks that have nothing in common in one respect are not alike, however alike they are in others.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mneme_server.features.learning.algorithms.algorithm import Transition
from mneme_server.features.learning.features import facts, key_of
from mneme_server.features.learning.spaces import (
    Box,
    Dict,
    Discrete,
    MultiDiscrete,
    OpenLabels,
    OpenObject,
    Space,
)

Vector = NDArray[np.float64]

_LEAST_STATES = 20
"""Fewer states say nothing of how they are distributed."""
_LEAST_REWARDS = 3
"""Fewer rewards say nothing of what an action is worth."""
_BINS = 4


@dataclass(frozen=True, slots=True)
class ComparedTask:
    """What is known of a session's task.

    Args:
        space: of its states.
        features: the names of what its states tell apart ("complexity", "task_type").
        actions: what its actions are called.
        transitions: what was recorded, the newest; may be none.
    """

    space: Space
    features: Set[str]
    actions: Mapping[int, str]
    transitions: Sequence[Transition] = ()


@dataclass(frozen=True, slots=True)
class Similarity:
    """How alike two tasks are.

    Args:
        overall: the geometric mean of the parts that were measured.
        features: the share of features that both have, of those that either has; None if a session
            has an open space and has seen nothing yet.
        actions: the same of actions.
        states: how alike the distributions of the shared features are: 1 less the mean distance,
            which for numbers is Kolmogorov and Smirnov's, and for texts the total variation. None
            unless both have data.
        rewards: how alike the rewards are where both took the same action in like states: 1 less
            the mean difference, as a share of the range of rewards. None unless both have data.
        why: the same in a sentence.
    """

    overall: float
    features: float | None
    actions: float | None
    states: float | None
    rewards: float | None
    why: str


def similarity(source: ComparedTask, target: ComparedTask) -> Similarity:
    """Measure how alike two tasks are."""
    features = _shared(source.features, target.features)
    actions = _shared(set(source.actions.values()), set(target.actions.values()))
    states = _states(source, target)
    rewards = _rewards(source, target)
    measured = [one for one in (features, actions, states, rewards) if one is not None]
    overall = math.prod(measured) ** (1 / len(measured)) if measured else 0.0
    found = Similarity(overall, features, actions, states, rewards, "")
    return replace(found, why=_told(found))


def _told(found: Similarity) -> str:
    parts = {
        "features": found.features,
        "actions": found.actions,
        "distributions of states": found.states,
        "rewards": found.rewards,
    }
    shares = [f"{name} {share:.0%}" for name, share in parts.items() if share is not None]
    unknown = [name for name, share in parts.items() if share is None]
    if not shares:
        return "Nothing of the tasks can be compared yet: too little was recorded."
    lacking = f" Not known yet: {', '.join(unknown)}." if unknown else ""
    return f"The tasks are {found.overall:.0%} alike: {', '.join(shares)}.{lacking}"


def features_of(space: Space, transitions: Sequence[Transition]) -> set[str]:
    """Return the features that a space declares, or that occurred in transitions."""
    found = {name for one in transitions for name, _ in facts(space, one.state)}
    return {name.split("=", 1)[0] for name in found} | set(_declared(space, ""))


def _declared(space: Space, path: str) -> Iterator[str]:
    match space:
        case Dict():
            for key, inner in space.spaces.items():
                yield from _declared(inner, f"{path}.{key}" if path else key)
        case Box():
            yield from (f"{path}[{place}]" for place in range(len(space.low)))
        case MultiDiscrete():
            yield from (f"{path}[{place}]" for place in range(len(space.sizes)))
        case Discrete() | OpenLabels():
            yield path
        case OpenObject():
            return


def _shared(first: Set[str], second: Set[str]) -> float | None:
    if not first or not second:
        return None
    return len(first & second) / len(first | second)


def _states(source: ComparedTask, target: ComparedTask) -> float | None:
    if min(len(source.transitions), len(target.transitions)) < _LEAST_STATES:
        return None
    first, second = _columns(source), _columns(target)
    shared = first.keys() & second.keys()
    if not shared:
        return 0.0
    distances = [_distance(first[name], second[name]) for name in sorted(shared)]
    return max(0.0, 1 - sum(distances) / len(distances))  # Sums of shares may be above 1.


def _columns(task: ComparedTask) -> dict[str, list[str | float]]:
    """Return the values of each feature: numbers, or texts."""
    found: dict[str, list[str | float]] = defaultdict(list)
    for one in task.transitions:
        for name, number in facts(task.space, one.state):
            feature, is_text, text = name.partition("=")
            found[feature].append(text if is_text else number)
    return found


def _distance(first: Sequence[str | float], second: Sequence[str | float]) -> float:
    numbers = [_numbers(first), _numbers(second)]
    if len(numbers[0]) == len(first) and len(numbers[1]) == len(second):
        return _kolmogorov(np.sort(numbers[0]), np.sort(numbers[1]))
    counts = Counter(map(str, first)), Counter(map(str, second))
    shares = ({key: n / total.total() for key, n in total.items()} for total in counts)
    one, other = shares
    return 0.5 * sum(abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in one.keys() | other)


def _numbers(values: Sequence[str | float]) -> list[float]:
    return [one for one in values if not isinstance(one, str)]


def _kolmogorov(first: Vector, second: Vector) -> float:
    at = np.concatenate([first, second])
    below = [np.searchsorted(one, at, side="right") / len(one) for one in (first, second)]
    return float(np.abs(below[0] - below[1]).max())


def _rewards(source: ComparedTask, target: ComparedTask) -> float | None:
    transitions = (*source.transitions, *target.transitions)
    # As shares of the largest: the sum of some may be beyond the largest number there is.
    unit = max((abs(one.reward) for one in transitions), default=0.0) or 1.0
    first, second = _means(source, unit), _means(target, unit)
    shared = first.keys() & second.keys()
    if not shared:
        return None
    rewards = [one.reward / unit for one in transitions]
    spread = max(rewards) - min(rewards)
    if spread <= 0:
        return 1.0
    counts = {key: min(first[key][1], second[key][1]) for key in shared}
    apart = sum(abs(first[key][0] - second[key][0]) * counts[key] for key in shared)
    return max(0.0, 1 - apart / spread / sum(counts.values()))


def _means(task: ComparedTask, unit: float) -> dict[tuple[str, str], tuple[float, int]]:
    """Return the mean reward of each action in each kind of state, in a unit, and of how many it
    is."""
    rewards: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in task.transitions:
        if isinstance(one.action, int) and one.action in task.actions:
            key = key_of(task.space, one.state, _BINS)
            rewards[key, task.actions[one.action]].append(one.reward / unit)
    return {
        key: (sum(found) / len(found), len(found))
        for key, found in rewards.items()
        if len(found) >= _LEAST_REWARDS
    }
