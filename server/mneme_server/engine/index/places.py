"""Where vectors lie: positions in graphs and in the tail behind them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from mneme_server.engine.corpus.ports import Matrix, Rows
from mneme_server.engine.index.graph import Graph, Positions

_Array = TypeVar("_Array", NDArray[np.float32], NDArray[np.int32])

NO_POSITION = -1
NO_ROW = -1
_DEAD_SHARE = 0.3
_DEAD_MINIMUM = 1_000


@dataclass(frozen=True, slots=True)
class Places:
    """What a search reads, replaced as a whole.

    A vector's position is its place in `rows`, which names the row it belongs to, -1 when it was
    removed. The first positions lie in the graphs, one after the other, the others in `tail`.
    `dead` counts the removed ones of each graph, and at last those of the tail.
    """

    graphs: tuple[Graph, ...]
    tail: Matrix
    rows: NDArray[np.int32]
    size: int
    position: NDArray[np.int32]
    dead: tuple[int, ...]

    @property
    def starts(self) -> list[int]:
        """The first position of each graph, and of the tail."""
        return list(accumulate((graph.size for graph in self.graphs), initial=0))

    @property
    def graphed(self) -> int:
        """How many positions lie in graphs."""
        return sum(graph.size for graph in self.graphs)

    @property
    def tail_vectors(self) -> Matrix:
        """The vectors behind the graphs."""
        return self.tail[: self.size - self.graphed]

    def sizes(self) -> list[int]:
        """Return how many positions each graph has, and the tail."""
        return [*(graph.size for graph in self.graphs), self.size - self.graphed]


def counted(
    graphs: tuple[Graph, ...], tail: Matrix, rows: NDArray[np.int32], position: NDArray[np.int32]
) -> Places:
    """Return a state without spare room, its removed vectors counted."""
    state = Places(graphs, tail, rows, rows.size, position, ())
    ends = [*state.starts[1:], rows.size]
    dead = [
        int(np.count_nonzero(rows[start:end] == NO_ROW))
        for start, end in zip(state.starts, ends, strict=True)
    ]
    return replace(state, dead=tuple(dead))


def wasteful(state: Places) -> int | None:
    """Return which part holds many removed vectors; None when none does."""
    for part, (dead, size) in enumerate(zip(state.dead, state.sizes(), strict=True)):
        if dead > _DEAD_MINIMUM and dead > size * _DEAD_SHARE:
            return part
    return None


def has_any(state: Places, rows: Rows) -> bool:
    """Tell whether one of these rows, which are no less than 0, has a vector."""
    known = rows[rows < state.position.size]
    return bool((state.position[known] != NO_POSITION).any())


def positions_of(state: Places, rows: Rows) -> Positions:
    """Return each row's position; -1 without a vector."""
    if not state.position.size:
        return np.full(rows.shape, NO_POSITION, np.int64)
    inside = (rows >= 0) & (rows < state.position.size)
    positions = state.position[np.where(inside, rows, 0)].astype(np.int64)
    positions[~inside] = NO_POSITION
    # A row that was replaced after this state was taken may point behind its end.
    positions[positions >= state.size] = NO_POSITION
    return positions


def with_room(array: _Array, used: int, wanted: int) -> _Array:
    """Return `array`, or a larger copy of its first `used` items when `wanted` do not fit."""
    if wanted <= len(array):
        return array
    capacity = max(wanted, used + used // 2, 64)
    larger = np.empty((capacity, *array.shape[1:]), array.dtype)
    larger[:used] = array[:used]
    if array.ndim == 1:  # Of vectors nothing is read behind the last one: they take no memory yet.
        larger[used:] = NO_ROW
    return cast(_Array, larger)
