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
from mneme_server.features.learning.trust.estimates import ValueEstimate, student

Vector = NDArray[np.float64]

_LEAST_STATES = 20
"""Fewer states say nothing of how they are distributed."""
_LEAST_REWARDS = 5
"""Fewer rewards say nothing of what an action is worth."""
_BINS = 4
_GENERAL = 2.0
"""For how many rewards of an action in like states those in all states count."""
_SURE = 1.0
"""The width of an interval that tells agreement (1) from none (0)."""
_UNLIKE = 0.5
"""Agreement that is surely less is none."""


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
        rewards: how alike the rewards are: by how much the target's go up where those of the
            source do, from 0 to 1. None if that cannot be told.
        agreement: the same as it was measured, with its 95 % interval: below 0 where the target
            rewards what the source does not. None if nothing was measured.
        why: the same in sentences.
    """

    overall: float
    features: float | None
    actions: float | None
    states: float | None
    rewards: float | None
    agreement: ValueEstimate | None
    why: str

    @property
    def is_measured(self) -> bool:
        """Whether anything could be compared."""
        return any(
            one is not None for one in (self.features, self.actions, self.states, self.rewards)
        )

    @property
    def is_contradicted(self) -> bool:
        """Whether the target surely rewards other things than the source did."""
        agreement = self.agreement
        if agreement is None:
            return False
        return (agreement.value if agreement.high is None else agreement.high) < _UNLIKE


def similarity(source: ComparedTask, target: ComparedTask) -> Similarity:
    """Measure how alike two tasks are."""
    features = _shared(source.features, target.features)
    actions = _shared(set(source.actions.values()), set(target.actions.values()))
    states = _states(source, target)
    agreement = _rewards(source, target)
    rewards = _share(agreement)
    measured = [one for one in (features, actions, states, rewards) if one is not None]
    overall = math.prod(measured) ** (1 / len(measured)) if measured else 0.0
    found = Similarity(overall, features, actions, states, rewards, agreement, "")
    return replace(found, why=_told(found))


def _share(agreement: ValueEstimate | None) -> float | None:
    """Return an agreement as a share; None if it may as well be none as complete."""
    if agreement is None:
        return None
    if agreement.low is not None and agreement.high is not None:
        known = agreement.high - agreement.low <= _SURE or agreement.high < _UNLIKE
        if not known:
            return None
    return min(1.0, max(0.0, agreement.value))


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
    said = f"The tasks are {found.overall:.0%} alike: {', '.join(shares)}.{lacking}"
    return said + _contradiction(found)


def _contradiction(found: Similarity) -> str:
    agreement = found.agreement
    if agreement is None or not found.is_contradicted:
        return ""
    interval = ""
    if agreement.low is not None and agreement.high is not None:
        interval = f" ({agreement.low:.2g} to {agreement.high:.2g})"
    return (
        " Rewards speak against it: where an action brought 1 more in the source, it brings"
        f" {agreement.value:.2g}{interval} more in the target."
    )


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


def _rewards(source: ComparedTask, target: ComparedTask) -> ValueEstimate | None:
    """Return by how much the target's rewards go up where the source's mean does: the slope of a
    regression over the target's steps, 1 where they are the same; None if nothing can be said.

    A reward of the source is that of the same action in like states, or of the action where these
    are few. The slope is as uncertain as the rewards of either task vary around it.
    """
    transitions = (*source.transitions, *target.transitions)
    # As shares of the largest: the sum of some may be beyond the largest number there is.
    unit = max((abs(one.reward) for one in transitions), default=0.0) or 1.0
    known = _RewardMeans(source, unit)
    pairs = [
        (expected, one.reward / unit)
        for one in target.transitions
        if (expected := known.of(target, one)) is not None
    ]
    if len(pairs) < _LEAST_REWARDS:
        return None
    expected, rewards = np.array(pairs).T
    if np.ptp(expected) < 1e-9 and np.ptp(rewards) < 1e-9:
        apart = abs(float(expected.mean() - rewards.mean()))
        return ValueEstimate(1.0 if apart < 1e-9 else 0.0) if known.spread < 1e-9 else None
    return _slope(expected, rewards, known.noise)


def _slope(x: Vector, y: Vector, noise: float) -> ValueEstimate | None:
    """Return the slope of a line through points, and its 95 % interval; None if all are at the same
    place. `noise` is the least variance around it."""
    about = x - x.mean()
    squares = float(about @ about)
    if squares <= 1e-12 * len(x):
        return None
    slope = float(about @ y) / squares
    left = y - y.mean() - slope * about
    variance = max(float(left @ left) / (len(x) - 2), noise)
    reach = student(0.975, len(x) - 2) * math.sqrt(variance / squares)
    return ValueEstimate(slope, slope - reach, slope + reach)


class _RewardMeans:
    """What actions brought in a task, in like states.

    Args:
        task: the task.
        unit: in which rewards are told.
    """

    def __init__(self, task: ComparedTask, unit: float) -> None:
        cells: dict[tuple[str, str], list[float]] = defaultdict(list)
        actions: dict[str, list[float]] = defaultdict(list)
        for one in task.transitions:
            label = _label(task, one)
            if label is not None:
                cells[key_of(task.space, one.state, _BINS), label].append(one.reward / unit)
                actions[label].append(one.reward / unit)
        self._cells = {key: (sum(found), len(found)) for key, found in cells.items()}
        self._actions = {
            label: sum(found) / len(found)
            for label, found in actions.items()
            if len(found) >= _LEAST_REWARDS
        }
        several = [np.array(found) for found in cells.values() if len(found) > 1]
        freedom = sum(len(found) - 1 for found in several)
        left = sum(float(((found - found.mean()) ** 2).sum()) for found in several)
        self.noise = left / freedom if freedom else 0.0
        rewards = [reward for found in actions.values() for reward in found]
        self.spread = max(rewards) - min(rewards) if rewards else 0.0

    def of(self, task: ComparedTask, one: Transition) -> float | None:
        """Return what a step of another task would have brought here; None if that is not known."""
        label = _label(task, one)
        general = None if label is None else self._actions.get(label)
        if label is None or general is None:
            return None
        total, count = self._cells.get((key_of(task.space, one.state, _BINS), label), (0.0, 0))
        return (total + _GENERAL * general) / (count + _GENERAL)


def _label(task: ComparedTask, one: Transition) -> str | None:
    return task.actions.get(one.action) if isinstance(one.action, int) else None
