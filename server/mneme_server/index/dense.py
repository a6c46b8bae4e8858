"""Nearest vectors: exact while they are few, a graph and a short exact tail later."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from mneme_server.corpus.ports import Matrix, Rows, Scores, Selection
from mneme_server.index.graph import Graph, Positions, inner_products
from mneme_server.index.settings import IndexSettings

_Array = TypeVar("_Array", NDArray[np.float32], NDArray[np.int32])

NO_POSITION = -1
NO_ROW = -1
_SCAN_SHARE = 0.1
_DEAD_SHARE = 0.3
_DEAD_MINIMUM = 1_000
_GATHER_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class _State:
    """What a search reads, replaced as a whole.

    A vector's position is its place in `rows`, which names the row it belongs to, -1 when it was
    removed. Positions below the graph's size lie in the graph, the others in `tail`.
    """

    graph: Graph | None
    tail: Matrix
    rows: NDArray[np.int32]
    size: int
    position: NDArray[np.int32]
    dead: int

    @property
    def graphed(self) -> int:
        return self.graph.size if self.graph else 0

    @property
    def tail_vectors(self) -> Matrix:
        return self.tail[: self.size - self.graphed]


class DenseIndex:
    """The vectors by row.

    One writer at a time (the caller's lock; `build` takes it when it swaps the result in);
    searches need no lock, as a state is never changed but for rows that are marked as removed.

    Args:
        dimensions: the vectors' length d.
        settings: see `IndexSettings`.
        lock: the lock that the caller holds while it writes.
    """

    def __init__(self, dimensions: int, settings: IndexSettings, lock: threading.Lock) -> None:
        self.dimensions = dimensions
        self._settings = settings
        self._lock = lock
        self._state = _State(
            graph=None,
            tail=np.empty((0, dimensions), np.float32),
            rows=np.empty(0, np.int32),
            size=0,
            position=np.empty(0, np.int32),
            dead=0,
        )

    def __len__(self) -> int:
        state = self._state
        return state.size - state.dead

    @property
    def mode(self) -> str:
        """ "exact" or "hnsw"."""
        return "hnsw" if self._state.graph else "exact"

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        state = self._state
        graph = state.graph.nbytes if state.graph else 0
        return graph + state.tail.nbytes + state.rows.nbytes + state.position.nbytes

    def add(self, rows: Rows, vectors: Matrix) -> None:
        """Give `rows` (n,), distinct, their vectors (n, d), instead of any they had."""
        if not rows.size:
            return
        self.remove(rows)
        state = self._state
        end = state.size + rows.size
        tail = _with_room(state.tail, state.size - state.graphed, end - state.graphed)
        by_position = _with_room(state.rows, state.size, end)
        position = _with_room(state.position, state.position.size, int(rows.max()) + 1)
        tail[state.size - state.graphed : end - state.graphed] = vectors
        by_position[state.size : end] = rows
        position[rows] = np.arange(state.size, end)
        self._state = replace(state, tail=tail, rows=by_position, size=end, position=position)

    def remove(self, rows: Rows) -> None:
        """Remove the vectors of `rows`, as far as they have one."""
        state = self._state
        positions = _positions(state, rows)
        positions = positions[positions != NO_POSITION]
        if positions.size:
            state.position[state.rows[positions]] = NO_POSITION
            state.rows[positions] = NO_ROW
            self._state = replace(state, dead=state.dead + positions.size)

    def missing(self, rows: Rows) -> Rows:
        """Return those of `rows` that have no vector."""
        without: Rows = rows[_positions(self._state, rows) == NO_POSITION]
        return without

    def search(self, query: Matrix, k: int, selection: Selection) -> tuple[Rows, Scores, Rows]:
        """Return candidates: rows, scores, and those rows whose scores come from 8-bit codes.

        They hold the `k` best selected rows and may hold more, in no particular order.
        """
        state = self._state
        if k < 1 or not selection.count or not state.size:
            return _NO_ROWS, _NO_SCORES, _NO_ROWS
        rows, scores = self._search_tail(state, query, k, selection)
        if state.graph is None:
            return rows, scores, _NO_ROWS
        positions, approximate = self._search_graph(state, state.graph, query, k, selection)
        graphed = state.rows[positions].astype(np.int64)
        keep = graphed != NO_ROW
        graphed, approximate = graphed[keep], approximate[keep]
        return np.concatenate([graphed, rows]), np.concatenate([approximate, scores]), graphed

    def similarities(self, query: Matrix, rows: Rows) -> Scores:
        """Return the inner product of `query` (d,) with the vector of each row; NaN without one."""
        state = self._state
        positions = _positions(state, rows)
        scores = np.full(rows.shape, np.nan, np.float32)
        if state.graph is not None:
            within = (positions != NO_POSITION) & (positions < state.graphed)
            scores[within] = state.graph.similarities(query, positions[within])
        behind = positions >= state.graphed
        scores[behind] = inner_products(query, state.tail[positions[behind] - state.graphed])
        return scores

    def wants_build(self) -> bool:
        """Whether `build` has something to do."""
        state = self._state
        if _wasteful(state):
            return True
        if state.graph is None:
            return state.size - state.dead > self._settings.exact_limit
        return state.size - state.graphed >= self._settings.merge_at

    def build(self, stop: threading.Event) -> bool:
        """Build or extend the graph beside the searches and additions, then swap it in.

        Takes long; call it without the lock. Returns false when `stop` was set before it was done.
        """
        with self._lock:
            start = self._state
            rows = start.rows[: start.size].copy()
        kept = np.flatnonzero(rows != NO_ROW)
        if start.graph is not None and not _wasteful(start):
            kept = np.union1d(kept, np.arange(start.graphed))
        graph = self._build_graph(start, kept, stop)
        if stop.is_set():
            return False
        with self._lock:
            self._swap(start, kept, graph)
        return True

    def export(self) -> tuple[Graph | None, NDArray[np.int32], Matrix]:
        """Return the graph, the row of each position, and the vectors behind the graph.

        Call it with the lock; what it returns does not change.
        """
        state = self._state
        return state.graph, state.rows[: state.size].copy(), state.tail_vectors

    def restore(self, graph: Graph | None, rows: Rows, tail: Matrix) -> None:
        """Take over what `export` gave, by the rows of today; -1 for what is gone."""
        alive = np.flatnonzero(rows != NO_ROW)
        position = np.full(int(rows.max(initial=NO_ROW)) + 1, NO_POSITION, np.int32)
        position[rows[alive]] = alive
        self._state = _State(
            graph=graph,
            tail=tail,
            rows=rows.astype(np.int32),
            size=rows.size,
            position=position,
            dead=rows.size - alive.size,
        )

    def _search_tail(
        self, state: _State, query: Matrix, k: int, selection: Selection
    ) -> tuple[Rows, Scores]:
        rows = state.rows[state.graphed : state.size]
        if not selection.everything and selection.count < rows.size * _GATHER_SHARE:
            positions = _positions(state, np.flatnonzero(selection.mask))
            positions = positions[positions >= state.graphed] - state.graphed
            found, vectors = rows[positions], state.tail[positions]
        else:
            found, vectors = rows, state.tail_vectors
        scores = inner_products(query, vectors)
        allowed = _allowed(found, selection)
        if not allowed.all():
            found, scores = found[allowed], scores[allowed]
        best = _best(scores, k)
        return found[best].astype(np.int64), scores[best]

    def _search_graph(
        self, state: _State, graph: Graph, query: Matrix, k: int, selection: Selection
    ) -> tuple[Positions, Scores]:
        breadth = self._settings.ef_search
        if selection.everything and not state.dead:
            return graph.search(query, k, breadth, None)
        allowed = _allowed(state.rows[: graph.size], selection)
        count = int(np.count_nonzero(allowed))
        if not count:
            return _NO_ROWS, _NO_SCORES
        if count <= max(self._settings.exact_selected, graph.size * _SCAN_SHARE):
            return graph.scan(query, k, allowed)
        return graph.search(query, k, breadth * graph.size // count, allowed)

    def _build_graph(self, start: _State, kept: Positions, stop: threading.Event) -> Graph | None:
        within = kept[kept < start.graphed]
        tail = start.tail[kept[within.size :] - start.graphed]
        if start.graph is None or not within.size:
            if len(tail) <= self._settings.exact_limit:
                return None
            return Graph.build(tail, self._settings, stop)
        graph: Graph | None = start.graph
        if within.size < start.graphed:
            graph = start.graph.kept(within, stop)
        return graph.grown(tail, stop) if graph is not None and len(tail) else graph

    def _swap(self, start: _State, kept: Positions, graph: Graph | None) -> None:
        """Replace the state by one whose first positions are `kept` of those at the `start`."""
        now = self._state
        arrived = now.tail[start.size - start.graphed : now.size - now.graphed]
        if graph is None:
            tail = np.concatenate([now.tail[kept - start.graphed], arrived])
        else:
            tail = arrived.copy()
        rows = np.concatenate([now.rows[kept], now.rows[start.size : now.size]])
        position = np.full_like(now.position, NO_POSITION)
        alive = np.flatnonzero(rows != NO_ROW)
        position[rows[alive]] = alive
        self._state = _State(
            graph=graph,
            tail=tail,
            rows=rows,
            size=rows.size,
            position=position,
            dead=rows.size - alive.size,
        )


_NO_ROWS: Rows = np.empty(0, np.int64)
_NO_SCORES: Scores = np.empty(0, np.float32)


def _wasteful(state: _State) -> bool:
    return state.dead > _DEAD_MINIMUM and state.dead > state.size * _DEAD_SHARE


def _positions(state: _State, rows: Rows) -> Positions:
    """Return each row's position; -1 without a vector."""
    if not state.position.size:
        return np.full(rows.shape, NO_POSITION, np.int64)
    inside = (rows >= 0) & (rows < state.position.size)
    positions = state.position[np.where(inside, rows, 0)].astype(np.int64)
    positions[~inside] = NO_POSITION
    # A row that was replaced after this state was taken may point behind its end.
    positions[positions >= state.size] = NO_POSITION
    return positions


def _allowed(rows: NDArray[np.int32], selection: Selection) -> NDArray[np.bool_]:
    """Return which of `rows` are selected; -1 never is, nor what came after the selection."""
    if selection.everything and int(rows.max(initial=NO_ROW)) < selection.mask.size:
        alive: NDArray[np.bool_] = rows != NO_ROW
        return alive
    inside = (rows >= 0) & (rows < selection.mask.size)
    return inside & selection.mask[np.where(inside, rows, 0)]


def _best(scores: Scores, k: int) -> Positions:
    """Return the places of the `k` best scores and of all that tie with the last of them."""
    if scores.size <= k:
        return np.arange(scores.size)
    limit = np.partition(scores, scores.size - k)[scores.size - k]
    return np.flatnonzero(scores >= limit)


def _with_room(array: _Array, used: int, wanted: int) -> _Array:
    """Return `array`, or a larger copy of its first `used` items when `wanted` do not fit."""
    if wanted <= len(array):
        return array
    capacity = max(wanted, used + used // 2, 64)
    larger = np.empty((capacity, *array.shape[1:]), array.dtype)
    larger[:used] = array[:used]
    larger[used:] = NO_ROW
    return cast(_Array, larger)
