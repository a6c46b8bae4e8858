"""Attribution of a choice to the parts of a state, by Shapley values (Shapley, 1953; Štrumbelj and
Kononenko, 2014; Lundberg and Lee, 2017): how much each part speaks for an action.

A part that is left out takes its value from a background of other states, and what is attributed
is how much more a score is than its mean over the background. The shares sum to that exactly: with
few parts they are Shapley's, over all subsets; with more they are means over permutations, of which
each sums to it (Castro, Gómez and Tejada, 2009), every second one the reverse of the one before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mneme_server.common.canonical import Json
from mneme_server.common.errors import InvalidArgument, Reason
from mneme_server.features.learning.algorithms.choice import AT_ONCE
from mneme_server.features.learning.spaces import Box, Dict, MultiDiscrete, Space

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Score: TypeAlias = Callable[[Sequence[Json]], Vector]
"""A number for each of some states, or a row of them."""
Path: TypeAlias = tuple[str | int, ...]
Parts: TypeAlias = Mapping[Path, Json]

MOST_PARTS = 512
"""Parts of a state: each is asked about, in states of as many parts, so that the time grows with
their square."""
_SURE = 1.96
_MOST_WORK = 2**16
"""Parts that the states asked about have in all, where the background has more than one state."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """What each part contributes.

    Args:
        shares: the contribution of each part.
        score: of the state.
        typical: the mean score of the background; `score` is it plus all shares.
        exact: whether all subsets were asked about, or permutations were drawn.
        reaches: how far each share may be off with 95 % confidence; empty if that is not known.
    """

    shares: Mapping[Path, float]
    score: float
    typical: float
    exact: bool
    reaches: Mapping[Path, float] = field(default_factory=dict)


def attribute(
    space: Space,
    state: Json,
    background: Sequence[Json],
    score: Score,
    *,
    budget: int,
    chance: np.random.Generator,
) -> Attribution:
    """Attribute a state's score to its parts.

    Args:
        space: of the states.
        state: the state.
        background: states to take the values of parts from that are left out; at least one. Where
            they have so many parts that asking about all takes too long, the first ones are used.
        score: what is attributed, or that and draws of what it may be as well, a column each. It
            is asked about a few states at a time.
        budget: about how many states may be asked about; where there are more parts, once for each
            part that differs in a state of the background.
        chance: draws permutations, if not all subsets can be asked about.

    Raises:
        InvalidArgument: the state, or one of the background, has more parts than `MOST_PARTS`.
    """
    there = _few(parts_of(space, state), "it")
    others = _used(there, [parts_of(space, one) for one in background])
    paths = sorted(set(there).union(*others), key=str)
    # Parts that are the same everywhere contribute nothing, and are not asked about.
    moving = [path for path in paths if any(_differs(there, other, path) for other in others)]
    ask = _MixedStates(state, there, moving, others, score)
    exact = 2 ** len(moving) * len(others) <= budget
    shares = _all_subsets(ask) if exact else _permutations(ask, budget, chance)
    found = ask.scores(iter([state, *(ask.mixed(moving, row) for row in range(len(others)))]))
    reaches: dict[Path, float] = {}
    if shares.shape[1] > 1:
        off = _SURE * shares[:, 1:].std(axis=1, ddof=1)
        reaches = dict.fromkeys(paths, 0.0) | dict(zip(moving, off.tolist(), strict=True))
    return Attribution(
        shares=dict.fromkeys(paths, 0.0) | dict(zip(moving, shares[:, 0].tolist(), strict=True)),
        score=float(found[0, 0]),
        typical=float(found[1:, 0].mean()),
        exact=exact,
        reaches=reaches,
    )


def _used(there: Parts, others: Sequence[Parts]) -> Sequence[Parts]:
    """Return the states of a background that there is time for, the first of them in any case."""
    work = 0
    used: list[Parts] = []
    for other in others:
        differing = sum(_differs(there, other, path) for path in {**there, **other})
        work += differing * max(len(there), len(other))
        if used and work > _MOST_WORK:
            break
        used.append(_few(other, "one that it is compared with"))
    return used


def _few(parts: Parts, which: str) -> Parts:
    if len(parts) > MOST_PARTS:
        raise InvalidArgument(
            f"state: {which} has {len(parts)} parts; of {MOST_PARTS} at most it can be told what"
            " each contributes",
            reason=Reason.OUT_OF_RANGE,
            field="state",
        )
    return parts


def _differs(there: Parts, other: Parts, path: Path) -> bool:
    return bool(there.get(path, ABSENT) != other.get(path, ABSENT))


class _MixedStates:
    """Scores of states of which some parts are the background's."""

    def __init__(
        self,
        state: Json,
        there: Parts,
        moving: Sequence[Path],
        others: Sequence[Parts],
        score: Score,
    ) -> None:
        self._state = state
        self._there = there
        self.moving = moving
        self.others = others
        self._score = score

    def scores(self, states: Iterator[Json]) -> Matrix:
        """Return the scores of states, of which few are in memory at once; a row each."""
        found = []
        while some := list(islice(states, AT_ONCE)):
            found.append(self._score(some).reshape(len(some), -1))
        return np.concatenate(found)

    def mixed(self, gone: Iterable[Path], row: int) -> Json:
        """Return the state with some parts of the background's state with a number."""
        other = self.others[row]
        return with_parts(self._state, {path: other.get(path, ABSENT) for path in gone})

    def moves(self, path: Path, row: int) -> bool:
        """Whether a part differs in the background's state with a number."""
        return _differs(self._there, self.others[row], path)

    def along(self, order: Sequence[Path], row: int) -> Iterator[Json]:
        """Yield the background's state, and it with one part more of the state after the other."""
        state = self.mixed(self.moving, row)
        yield state
        for path in order:
            state = with_parts(state, {path: self._there.get(path, ABSENT)})
            yield state


def _all_subsets(ask: _MixedStates) -> Matrix:
    size = len(ask.moving)
    subsets = list(product((False, True), repeat=size))
    mixtures = (
        ask.mixed([path for path, keep in zip(ask.moving, subset, strict=True) if not keep], row)
        for subset in subsets
        for row in range(len(ask.others))
    )
    found = ask.scores(mixtures)
    scores = found.reshape(len(subsets), len(ask.others), -1)
    worth = dict(zip(subsets, scores.mean(axis=1), strict=True))
    shares = np.zeros((size, found.shape[1]))
    for subset in subsets:
        weight = 1 / (size * math.comb(size - 1, sum(subset))) if sum(subset) < size else 0.0
        for place in range(size):
            if not subset[place]:
                joined = (*subset[:place], True, *subset[place + 1 :])
                shares[place] += weight * (worth[joined] - worth[subset])
    return shares


def _permutations(ask: _MixedStates, budget: int, chance: np.random.Generator) -> Matrix:
    size, rows = len(ask.moving), len(ask.others)
    # Each state of the background equally often, so that the shares sum to what they should.
    rounds = max(1, budget // ((size + 1) * rows))
    shares, order = None, np.arange(size)
    for n in range(rounds * rows):
        order = order[::-1] if n % 2 else chance.permutation(size)
        # A part that is the same in both states moves nothing.
        moved = [place for place in order.tolist() if ask.moves(ask.moving[place], n % rows)]
        path = [ask.moving[place] for place in moved]
        scores = ask.scores(ask.along(path, n % rows))
        if shares is None:
            shares = np.zeros((size, scores.shape[1]))
        shares[moved] += np.diff(scores, axis=0)
    assert shares is not None
    found: Matrix = shares / (rounds * rows)
    return found


class Absent:
    """What a state has where it lacks a part."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT = Absent()
Part: TypeAlias = "Json | Absent"


def parts_of(space: Space | None, state: Json, path: Path = ()) -> dict[Path, Json]:
    """Return the parts of a state, each with where it is.

    A list inside an object that nobody declared is one part: in which order its items stand
    means nothing.
    """
    if isinstance(state, Mapping):
        inner = space.spaces if isinstance(space, Dict) else {}
        found: dict[Path, Json] = {}
        for key in sorted(state):
            found |= parts_of(inner.get(key), state[key], (*path, key))
        return found
    if isinstance(space, Box | MultiDiscrete) and isinstance(state, Sequence):
        return {(*path, place): one for place, one in enumerate(state)}
    return {path: state}


def with_parts(state: Json, changes: Mapping[Path, Part]) -> Json:
    """Return a state with other parts, or without some."""
    for path, part in changes.items():
        state = _with(state, path, part)
    return state


def name_of(path: Path) -> str:
    """Return what a part is called: "task.type", "position[2]"; "state" if it is all there is."""
    name = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in path)
    return name.removeprefix(".") if path and path[0] != "" else "state"


def _with(state: Any, path: Path, part: Part) -> Any:
    if not path:
        return state if isinstance(part, Absent) else part
    first, rest = path[0], path[1:]
    if isinstance(first, int):
        return [_with(one, rest, part) if n == first else one for n, one in enumerate(state)]
    inner = state if isinstance(state, Mapping) else {}
    if not rest and isinstance(part, Absent):
        return {key: one for key, one in inner.items() if key != first}
    if rest and isinstance(part, Absent) and first not in inner:
        return state
    return {**inner, first: _with(inner.get(first, {}), rest, part)}
