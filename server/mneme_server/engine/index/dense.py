"""Nearest vectors: exact while they are few, a few graphs and a short exact tail later."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from mneme_server.engine.corpus.ports import Matrix, Rows, Scores, Selection
from mneme_server.engine.index.graph import Bits, Graph, Positions, bits_of, inner_products
from mneme_server.engine.index.rows import NO_ROW
from mneme_server.engine.index.settings import IndexSettings

_Array = TypeVar("_Array", NDArray[np.float32], NDArray[np.int32])

_SCAN_SHARE = 0.1
"""Of the vectors that may be found: so few are compared with all, not walked to."""
_AT_ONCE = 65_536
"""Vectors that one step of building takes at most: they are copied meanwhile, and a step that is
stopped is done again."""
_PICK_SHARE = 1 / 32
"""Of a graph's vectors that may be found: so few are compared one by one."""
_NO_ROWS: Rows = np.empty(0, np.int64)
_NO_SCORES: Scores = np.empty(0, np.float32)
NO_POSITION = -1
_BREADTHS = (2, 8, 32)
"""How many times as many vectors as rows a graph is asked for, one after another, until they are of
enough rows: the best may all be of one long text."""
_DEAD_SHARE = 0.3
_DEAD_MINIMUM = 1_000


class DenseIndex:
    """The vectors by row, one or several.

    They lie in a few graphs, of which only the last one grows, and a tail. A graph that is large
    enough stays as it is, so that additions, copies on the disk and the memory for a change depend
    on the size of a graph, not on the tenant's.

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
        self._allowed: dict[int, _AllowedVectors] = {}
        self._state = VectorPlaces(
            graphs=(),
            tail=np.empty((0, dimensions), np.float32),
            rows=np.empty(0, np.int32),
            size=0,
            position=np.empty(0, np.int32),
            many=np.empty(0, np.int32),
            dead=(0,),
        )

    def __len__(self) -> int:
        """Vectors that are there."""
        state = self._state
        return state.size - sum(state.dead)

    @property
    def rows_held(self) -> int:
        """Rows that have a vector or more."""
        return self._state.held

    @property
    def mode(self) -> str:
        """ "exact" or "hnsw"."""
        return "hnsw" if self._state.graphs else "exact"

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """The graphs."""
        return self._state.graphs

    @property
    def waiting(self) -> int:
        """Vectors that lie in no graph yet."""
        return len(self._state.tail_vectors)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        state = self._state
        graphs = sum(graph.nbytes for graph in state.graphs)
        places = state.rows.nbytes + state.position.nbytes + state.many.nbytes
        return graphs + state.tail.nbytes + places

    def add(self, rows: Rows, vectors: Matrix) -> None:
        """Give `rows` (n,) their vectors (n, d), instead of any they had. A row of several stands
        as often, one after the other, in the order of its vectors."""
        if not rows.size:
            return
        starts = run_starts(rows)
        distinct = rows if starts.size == rows.size else rows[starts]
        self.remove(distinct)
        state = self._state
        graphed, end = state.graphed, state.size + rows.size
        tail = with_room(state.tail, state.size - graphed, end - graphed)
        by_position = with_room(state.rows, state.size, end)
        room = int(distinct.max()) + 1
        position = with_room(state.position, state.position.size, room)
        many = with_room(state.many, state.many.size, room)
        tail[state.size - graphed : end - graphed] = vectors
        by_position[state.size : end] = rows
        many[distinct] = np.diff(starts, append=rows.size)
        position[distinct] = state.size + starts
        self._state = replace(
            state,
            tail=tail,
            rows=by_position,
            size=end,
            position=position,
            many=many,
            held=state.held + distinct.size,
            several=state.several or distinct.size < rows.size,
        )

    def remove(self, rows: Rows) -> None:
        """Remove the vectors of `rows`, as far as they have one."""
        state = self._state
        if not has_any(state, rows):
            return
        positions = all_positions(state, rows)[0]
        if positions.size:
            gone_rows = state.rows[positions]
            state.position[gone_rows] = NO_POSITION
            state.rows[positions] = NO_ROW
            held = state.held - run_starts(gone_rows).size
            parts = np.searchsorted(state.starts[1:], positions, side="right")
            gone = np.bincount(parts, minlength=len(state.dead)).tolist()
            dead = tuple(map(sum, zip(state.dead, gone, strict=True)))
            self._state = replace(state, dead=dead, held=held)

    def missing(self, rows: Rows) -> Rows:
        """Return those of `rows` that have no vector."""
        without: Rows = rows[positions_of(self._state, rows) == NO_POSITION]
        return without

    def search(self, query: Matrix, k: int, selection: Selection) -> tuple[Rows, Scores, Rows]:
        """Return candidates: rows, each once, scores, and those rows whose scores come from 8-bit
        codes. The score of a row of several vectors is the best of theirs.

        They hold the `k` best selected rows and may hold more, in no particular order.
        """
        state = self._state
        if k < 1 or not selection.count or not state.size:
            return _NO_ROWS, _NO_SCORES, _NO_ROWS
        chosen = None
        if not selection.everything and selection.count <= state.size * _SCAN_SHARE:
            chosen = all_positions(state, selection.rows)[0]
        asked = _VectorQuery(query, k, selection, chosen)
        tail_rows, tail_scores = _search_tail(state, asked)
        found, scores = [_NO_ROWS], [_NO_SCORES]
        for part, start in enumerate(state.starts[:-1]):
            rows, theirs = self._rows_of_graph(state, part, start, asked)
            found.append(rows)
            scores.append(theirs)
        graphed = np.concatenate(found)
        if selection.everything and bool((graphed >= selection.mask.size).any()):
            return self.search(query, k, replace(selection, everything=False))  # Some came since.
        rows = np.concatenate([graphed, tail_rows])
        every = np.concatenate([*scores, tail_scores])
        if not state.several or not state.graphs:
            return rows, every, graphed
        rows, every = best_of_each(rows, every)  # One may have some of its vectors in each part.
        coded = np.isin(rows, graphed)
        order = np.argsort(~coded, kind="stable")
        return rows[order], every[order], rows[coded]

    def similarities(self, query: Matrix, rows: Rows) -> Scores:
        """Return the inner product of `query` (d,) with the vector of each row, the best where it
        has several; NaN without one."""
        state = self._state
        if not state.several:
            return _products(state, query, positions_of(state, rows))
        positions, owners = all_positions(state, rows)
        scores = np.full(rows.shape, np.nan, np.float32)
        if positions.size:
            starts = run_starts(owners)
            products = _products(state, query, positions)
            scores[owners[starts]] = np.maximum.reduceat(products, starts)
        return scores

    def each_similarity(self, query: Matrix, row: int) -> Scores:
        """Return the inner product of `query` (d,) with each vector (n,) of a row, in order."""
        state = self._state
        return _products(state, query, all_positions(state, np.array([row], np.int64))[0])

    def wants_build(self) -> bool:
        """Whether `build` has something to do."""
        state = self._state
        if wasteful(state) is not None:
            return True
        if not state.graphs:
            return len(self) > self._settings.exact_limit
        least = max(self._settings.merge_at, state.graphs[-1].size * self._settings.merge_share)
        return len(state.tail_vectors) >= least

    def build(self, stop: threading.Event) -> bool:
        """Take the next step in building graphs, beside searches and additions, and swap it in.

        Takes long; call it without the lock. Returns false when `stop` was set before it was done.
        """
        with self._lock:
            start = self._state
            rows = start.rows[: start.size].copy()
        part = wasteful(start)
        if part is not None and part < len(start.graphs):
            change = self._compacted(start, rows, part, stop)
        else:
            change = self._merged(start, rows, stop)
        if change is None:
            return False
        with self._lock:
            self._swap(start, change)
        return True

    def purge(self) -> None:
        """Keep nothing of vectors that were removed, neither in graphs nor behind them.

        Takes long; call it without the lock.
        """
        never = threading.Event()
        while any(self._state.dead):
            with self._lock:
                start = self._state
                rows = start.rows[: start.size].copy()
            graphs = len(start.graphs)
            part = next((n for n, dead in enumerate(start.dead) if dead), graphs)
            if part < graphs:
                change = self._compacted(start, rows, part, never)
            else:
                first = start.graphed
                kept = np.flatnonzero(rows[first:] != NO_ROW) + first
                change = _GraphChange(first, kept, start.graphs)
            assert change is not None
            with self._lock:
                self._swap(start, change)

    def export(self) -> tuple[tuple[Graph, ...], NDArray[np.int32], Matrix]:
        """Return the graphs, the row of each position, and the vectors behind the graphs.

        Call it with the lock; what it returns does not change.
        """
        state = self._state
        return state.graphs, state.rows[: state.size].copy(), state.tail_vectors

    def restore(self, graphs: Sequence[Graph], rows: Rows, tail: Matrix) -> None:
        """Take over what `export` gave, by the rows of today; -1 for what is gone."""
        self._allowed = {}
        self._state = counted(tuple(graphs), tail, rows.astype(np.int32))

    def _rows_of_graph(
        self, state: VectorPlaces, part: int, start: int, asked: _VectorQuery
    ) -> tuple[Rows, Scores]:
        """Return the `k` best rows of a graph, or more, each once."""
        for times in _BREADTHS if state.several else (1,):
            wider = asked._replace(k=asked.k * times)
            positions, scores = self._search_graph(state, part, start, wider)
            all_there = positions.size < wider.k
            rows = state.rows[start + positions].astype(np.int64)
            keep = rows != NO_ROW
            rows, scores = rows[keep], scores[keep]
            if not state.several:
                break
            rows, scores = best_of_each(rows, scores)
            if all_there or rows.size >= asked.k:
                break
        return rows, scores

    def _search_graph(
        self, state: VectorPlaces, part: int, start: int, asked: _VectorQuery
    ) -> tuple[Positions, Scores]:
        graph, breadth = state.graphs[part], self._settings.ef_search
        query, k, selection, chosen = asked
        if chosen is not None:
            within = chosen[(chosen >= start) & (chosen < start + graph.size)] - start
            if within.size <= graph.size * _PICK_SHARE:
                scores = graph.similarities(query, within)
                best = _best(scores, k)
                return within[best], scores[best]
        if selection.everything and not state.dead[part]:
            return graph.search(query, k, breadth, None)
        allowed = self._allowed_of(state, part, start, selection)
        if not allowed.found:
            return _NO_ROWS, _NO_SCORES
        if allowed.found <= max(self._settings.exact_selected, graph.size * _SCAN_SHARE):
            return graph.scan(query, k, allowed.bits)
        return graph.search(query, k, breadth * graph.size // allowed.found, allowed.bits)

    def _allowed_of(
        self, state: VectorPlaces, part: int, start: int, selection: Selection
    ) -> _AllowedVectors:
        """Return which vectors of a graph may be found: what the last search knew, if it asked for
        the same."""
        graph, known = state.graphs[part], self._allowed.get(part)
        asked = None if selection.everything else selection
        if (
            known is not None
            and known.selection is asked
            and known.graph() is graph
            and known.dead == state.dead[part]
        ):
            return known
        rows = state.rows[start : start + graph.size]
        mask = rows != NO_ROW if asked is None else _allowed(rows, selection)
        count = int(np.count_nonzero(mask))
        known = _AllowedVectors(asked, weakref.ref(graph), state.dead[part], count, bits_of(mask))
        self._allowed[part] = known
        return known

    def _merged(
        self, start: VectorPlaces, rows: NDArray[np.int32], stop: threading.Event
    ) -> _GraphChange | None:
        """Add the tail to the last graph, or begin the next one with it."""
        first, settings = start.graphed, self._settings
        kept = np.flatnonzero(rows[first:] != NO_ROW) + first
        vectors = start.tail[kept[:_AT_ONCE] - first]
        graphs = start.graphs
        grown: Graph | None
        if not kept.size:
            return _GraphChange(first, kept, graphs)
        if not graphs:
            if kept.size <= settings.exact_limit:
                return _GraphChange(first, kept, ())
            grown = Graph.build(vectors, settings, stop)
        elif graphs[-1].size < self._graph_limit(start):
            grown, graphs = graphs[-1].grown(vectors, stop), graphs[:-1]
        else:
            grown = graphs[-1].another(vectors, stop)
        return None if grown is None else _GraphChange(first, kept, (*graphs, grown))

    def _compacted(
        self, start: VectorPlaces, rows: NDArray[np.int32], part: int, stop: threading.Event
    ) -> _GraphChange | None:
        """Build one of the graphs again without what was removed, or have the one before take what
        is left of it."""
        graphs, first = start.graphs, start.starts[part]
        graph = graphs[part]
        end = first + graph.size
        within = np.flatnonzero(rows[first:end] != NO_ROW)
        kept = np.concatenate([within + first, np.arange(end, start.size)])
        before, after = graphs[:part], graphs[part + 1 :]
        if not within.size:
            return _GraphChange(first, kept, before + after)
        if before and before[-1].size + within.size <= self._graph_limit(start):
            built = before[-1].joined(graph, within, stop)
            before = before[:-1]
        else:
            built = graph.kept(within, stop)
        return None if built is None else _GraphChange(first, kept, (*before, built, *after))

    def _graph_limit(self, state: VectorPlaces) -> float:
        """Return how many vectors a graph takes until another is begun."""
        return max(self._settings.graph_limit, state.size * self._settings.graph_share)

    def _swap(self, start: VectorPlaces, change: _GraphChange) -> None:
        """Replace the state by one that has what was built since the `start`."""
        now, first = self._state, change.first
        moved = np.concatenate([change.kept, np.arange(start.size, now.size)])
        rows = np.concatenate([now.rows[:first], now.rows[moved]])
        graphed = sum(graph.size for graph in change.graphs)
        tail = now.tail[moved[graphed - first :] - now.graphed]
        self._allowed = {}
        self._state = counted(change.graphs, tail, rows)


class _VectorQuery(NamedTuple):
    """What a search is for; `chosen` are the positions that may be found, where they are few."""

    query: Matrix
    k: int
    selection: Selection
    chosen: Positions | None


class _AllowedVectors(NamedTuple):
    """Which vectors of a graph a selection lets through, kept for the next search."""

    selection: Selection | None
    graph: weakref.ref[Graph]
    dead: int
    found: int
    bits: Bits


class _GraphChange(NamedTuple):
    """What `build` made: positions before `first` stay what they are, of the others only `kept`
    stay, and those that came meanwhile; `graphs` hold the first ones of them."""

    first: int
    kept: Positions
    graphs: tuple[Graph, ...]


def _search_tail(state: VectorPlaces, asked: _VectorQuery) -> tuple[Rows, Scores]:
    graphed, selection = state.graphed, asked.selection
    if graphed == state.size:
        return _NO_ROWS, _NO_SCORES
    rows = state.rows[graphed : state.size]
    if asked.chosen is not None:
        positions = asked.chosen[asked.chosen >= graphed] - graphed
        found, vectors = rows[positions], state.tail[positions]
    else:
        found, vectors = rows, state.tail_vectors
    scores = inner_products(asked.query, vectors)
    allowed = _allowed(found, selection)
    if not allowed.all():
        found, scores = found[allowed], scores[allowed]
    if state.several and found.size:
        starts = run_starts(found)
        found, scores = found[starts], np.maximum.reduceat(scores, starts)
    best = _best(scores, asked.k)
    return found[best].astype(np.int64), scores[best]


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


@dataclass(frozen=True, slots=True)
class VectorPlaces:
    """Where vectors lie, in graphs and in the tail behind them: what a search reads, replaced as a
    whole.

    A vector's position is its place in `rows`, which names the row it belongs to, -1 when it was
    removed. The first positions lie in the graphs, one after the other, the others in `tail`. The
    vectors of a row lie one after the other: `position` has the first, and `many` how many there
    are. `dead` counts the removed ones of each graph, and at last those of the tail. `held` rows
    have a vector; `several` tells whether one of them may have more than one.
    """

    graphs: tuple[Graph, ...]
    tail: Matrix
    rows: NDArray[np.int32]
    size: int
    position: NDArray[np.int32]
    many: NDArray[np.int32]
    dead: tuple[int, ...]
    held: int = 0
    several: bool = False

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


def counted(graphs: tuple[Graph, ...], tail: Matrix, rows: NDArray[np.int32]) -> VectorPlaces:
    """Return a state without spare room, its removed vectors counted."""
    alive = np.flatnonzero(rows != NO_ROW)
    starts = run_starts(rows[alive])
    distinct = rows[alive[starts]]
    room = int(distinct.max(initial=NO_ROW)) + 1
    position, many = np.full(room, NO_POSITION, np.int32), np.zeros(room, np.int32)
    position[distinct] = alive[starts]
    many[distinct] = np.diff(starts, append=alive.size)
    held, several = distinct.size, distinct.size < alive.size
    state = VectorPlaces(graphs, tail, rows, rows.size, position, many, (), held, several)
    ends = [*state.starts[1:], rows.size]
    dead = [
        int(np.count_nonzero(rows[start:end] == NO_ROW))
        for start, end in zip(state.starts, ends, strict=True)
    ]
    return replace(state, dead=tuple(dead))


def wasteful(state: VectorPlaces) -> int | None:
    """Return which part holds many removed vectors; None when none does."""
    for part, (dead, size) in enumerate(zip(state.dead, state.sizes(), strict=True)):
        if dead > _DEAD_MINIMUM and dead > size * _DEAD_SHARE:
            return part
    return None


def has_any(state: VectorPlaces, rows: Rows) -> bool:
    """Tell whether one of these rows, which are no less than 0, has a vector."""
    known = rows[rows < state.position.size]
    return bool((state.position[known] != NO_POSITION).any())


def positions_of(state: VectorPlaces, rows: Rows) -> Positions:
    """Return the position of each row's first vector; -1 without one."""
    if not state.position.size:
        return np.full(rows.shape, NO_POSITION, np.int64)
    inside = (rows >= 0) & (rows < state.position.size)
    positions = state.position[np.where(inside, rows, 0)].astype(np.int64)
    positions[~inside] = NO_POSITION
    # A row that was replaced after this state was taken may point behind its end.
    positions[positions >= state.size] = NO_POSITION
    return positions


def all_positions(state: VectorPlaces, rows: Rows) -> tuple[Positions, Positions]:
    """Return the positions of all vectors of `rows`, row by row, and of each the place of its row
    in `rows`."""
    firsts = positions_of(state, rows)
    there = np.flatnonzero(firsts != NO_POSITION)
    firsts = firsts[there]
    if not state.several:
        return firsts, there
    many = state.many[rows[there]].astype(np.int64)
    owners = np.repeat(there, many)
    # How far each is behind the first of its row.
    behind = np.arange(owners.size) - np.repeat(np.cumsum(many) - many, many)
    positions = np.repeat(firsts, many) + behind
    inside = positions < state.size
    inside &= state.rows[np.where(inside, positions, 0)] == rows[owners]  # Else it was replaced.
    return (positions, owners) if inside.all() else (positions[inside], owners[inside])


def run_starts(values: NDArray[Any]) -> Positions:
    """Return where each run of equal values begins."""
    if values.size < 2:
        return np.arange(values.size)
    return np.append(0, np.flatnonzero(values[1:] != values[:-1]) + 1)


def best_of_each(rows: Rows, scores: Scores) -> tuple[Rows, Scores]:
    """Return each row once, with the best of its scores."""
    order = np.lexsort((-scores, rows))
    firsts = order[run_starts(rows[order])]
    return rows[firsts], scores[firsts]


def _products(state: VectorPlaces, query: Matrix, positions: Positions) -> Scores:
    """Return the inner product of `query` (d,) with the vector at each position; NaN at -1."""
    scores = np.full(positions.shape, np.nan, np.float32)
    starts = state.starts
    for graph, start in zip(state.graphs, starts, strict=False):
        within = (positions >= start) & (positions < start + graph.size)
        if within.any():
            scores[within] = graph.similarities(query, positions[within] - start)
    if starts[-1] == state.size:
        return scores
    behind = positions >= starts[-1]
    scores[behind] = inner_products(query, state.tail[positions[behind] - starts[-1]])
    return scores


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
