"""Counterfactuals: what would have to differ for a policy to choose another action.

The values that a part had in other states are tried, nearest first, one part at a time; then, if no
single part is enough, two at a time. A number is moved back towards what it is as far as the other
action stays chosen. Each counterfactual is a state that the policy was asked about.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations, product

from mneme_server.common.canonical import Json, canonical_json
from mneme_server.features.learning.algorithms.algorithm import Action, ActionQuestion, Choice
from mneme_server.features.learning.explanation.attribution import (
    ABSENT,
    Part,
    Path,
    parts_of,
    with_parts,
)
from mneme_server.features.learning.spaces import Space
from mneme_server.features.learning.trust.blocks import Ask

_VALUES = 8
"""Values of a part that are tried alone, the nearest; half as many in pairs."""
_ALONE = 64
"""Parts that are changed alone, those that speak most for or against the action."""
_PAIRED = 4
"""Parts that are changed in pairs, those that speak most for the action."""
_MOST = 3
"""Counterfactuals that are returned."""
_HALVINGS = 5
_NOTICEABLE = 0.1
"""Of continuous actions, whose coordinates are of about 1: smaller differences are none."""


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """A state in which another action is chosen.

    Args:
        changes: the parts that differ, with what they would have to be.
        state: the state.
        choice: what the policy chooses there.
        distance: how large the change is: 1 for each text, and for each number its share of the
            range that was seen.
    """

    changes: Mapping[Path, Part]
    state: Json
    choice: Choice
    distance: float


def counterfactuals(
    space: Space,
    question: ActionQuestion,
    chosen: Action,
    policy: Ask,
    *,
    seen: Sequence[Json],
    order: Sequence[Path],
) -> list[Counterfactual]:
    """Return the smallest changes that were found, at most one for each set of parts.

    Args:
        space: of the states.
        question: whose state is changed.
        chosen: what the policy chooses in it.
        policy: the policy; asked the same twice, it must answer the same.
        seen: states that were observed.
        order: the parts, those that matter most first.
    """
    order = order[:_ALONE]
    there, values = parts_of(space, question.state), _values(space, seen, set(order))
    search = _CounterfactualSearch(question, chosen, policy, there, values)
    found = search.flipping([{path: value} for path in order for value in search.near(path)])
    if not found:
        pairs = combinations(order[:_PAIRED], 2)
        found = search.flipping(
            [
                {first: x, second: y}
                for first, second in pairs
                for x, y in product(
                    search.near(first)[: _VALUES // 2], search.near(second)[: _VALUES // 2]
                )
            ]
        )
    return search.closest(found)


def _values(
    space: Space, seen: Sequence[Json], paths: Set[Path]
) -> Mapping[Path, Mapping[str, Json]]:
    found: dict[Path, dict[str, Json]] = {}
    for state in seen:
        parts = parts_of(space, state)
        for path in paths & parts.keys():
            found.setdefault(path, {})[canonical_json(parts[path])] = parts[path]
    return found


class _CounterfactualSearch:
    """Looks for changes that are enough.

    Args:
        question: whose state is changed.
        chosen: what the policy chooses in it.
        policy: the policy.
        there: the parts of the state.
        values: those that parts had, by their canonical JSON.
    """

    def __init__(
        self,
        question: ActionQuestion,
        chosen: Action,
        policy: Ask,
        there: Mapping[Path, Json],
        values: Mapping[Path, Mapping[str, Json]],
    ) -> None:
        self._question = question
        self._chosen = chosen
        self._policy = policy
        self._there = there
        self._values = values
        self._ranges = {path: _range(list(had.values())) for path, had in values.items()}

    def near(self, path: Path) -> list[Json]:
        """Return other values that a part had, the nearest first."""
        now = self._there.get(path, ABSENT)
        others = [value for value in self._values.get(path, {}).values() if value != now]
        others.sort(key=lambda value: self._distance(path, value))
        if len(others) > _VALUES and _is_number(now):
            # The nearest on each side, and some all over the range.
            step = len(others) / _VALUES
            others = [others[int(n * step)] for n in range(_VALUES)]
        return others[:_VALUES]

    def flipping(self, changes: Sequence[Mapping[Path, Part]]) -> list[Counterfactual]:
        """Return the changes with which another action is chosen."""
        if not changes:
            return []
        states = [with_parts(self._question.state, one) for one in changes]
        choices = self._policy([replace(self._question, state=state) for state in states])
        return [
            Counterfactual(change, state, choice, self._size(change))
            for change, state, choice in zip(changes, states, choices, strict=True)
            if _differs(choice.action, self._chosen)
        ]

    def closest(self, found: Sequence[Counterfactual]) -> list[Counterfactual]:
        """Return the smallest change for each set of parts, made smaller where they are numbers."""
        best: dict[frozenset[Path], Counterfactual] = {}
        for one in sorted(found, key=lambda one: one.distance):
            best.setdefault(frozenset(one.changes), one)
        first = list(best.values())[:_MOST]
        return sorted(map(self._smaller, first), key=lambda one: one.distance)

    def _smaller(self, found: Counterfactual) -> Counterfactual:
        """Move a change half of the way back, again and again, as long as it is enough."""
        low, high = 0.0, 1.0
        best = found
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            moved = {path: self._between(path, to, middle) for path, to in found.changes.items()}
            if moved == found.changes:
                break
            closer = self.flipping([moved])
            low, high = (low, middle) if closer else (middle, high)
            best = closer[0] if closer else best
        return self._rounded(best, found)

    def _rounded(self, best: Counterfactual, found: Counterfactual) -> Counterfactual:
        """Move a change away from the edge at which another action is chosen, to a number that can
        be said: 0.49, not 0.4997, where the edge is 0.5."""
        moved = {path: self._plain(path, to) for path, to in best.changes.items()}
        if moved == best.changes:
            return best
        return next(iter(self.flipping([moved])), found)

    def _plain(self, path: Path, to: Part) -> Part:
        now = self._there.get(path, ABSENT)
        if not (isinstance(now, float) and isinstance(to, float)) or to == now:
            return to
        digits = 2 - round(math.log10(self._ranges[path]))  # A hundredth of the range.
        step = 10.0**-digits
        away = math.ceil(to / step - 1e-9) if to > now else math.floor(to / step + 1e-9)
        plain = round(away * step, max(0, digits))
        had = [one for one in self._values[path].values() if isinstance(one, int | float)]
        return plain if min(had) <= plain <= max(had) else to

    def _between(self, path: Path, to: Part, share: float) -> Part:
        now = self._there.get(path, ABSENT)
        if not (isinstance(now, float) and _is_number(to)):
            return to  # Whole numbers may be numbers of something: values that were seen stay.
        assert isinstance(to, int | float)
        return now + (to - now) * share

    def _size(self, changes: Mapping[Path, Part]) -> float:
        return sum(self._distance(path, value) for path, value in changes.items())

    def _distance(self, path: Path, value: Part) -> float:
        now = self._there.get(path, ABSENT)
        if not (_is_number(now) and _is_number(value)):
            return 1.0
        assert isinstance(now, int | float)
        assert isinstance(value, int | float)
        return abs(value - now) / self._ranges[path]


def _is_number(value: Part) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _range(values: Sequence[Json]) -> float:
    numbers = [one for one in values if isinstance(one, int | float)]
    return (max(numbers) - min(numbers)) or 1.0 if numbers else 1.0


def _differs(action: Action, other: Action) -> bool:
    if isinstance(action, int) or isinstance(other, int):
        return action != other
    return max(abs(x - y) for x, y in zip(action, other, strict=True)) > _NOTICEABLE
