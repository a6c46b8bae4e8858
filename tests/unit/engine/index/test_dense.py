"""Nearest vectors."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mneme_server.engine.corpus.ports import Matrix, Rows, Selection
from mneme_server.engine.index.dense import DenseIndex
from mneme_server.engine.index.graph import Graph
from mneme_server.engine.index.settings import IndexSettings
from unit.engine.index.memory_source import DIMENSIONS, units

SMALL = IndexSettings(
    exact_limit=30, merge_at=8, ef_construction=200, ef_search=200, exact_selected=15
)
MANY_GRAPHS = replace(SMALL, exact_limit=20, graph_limit=25, graph_share=0.1)


def everything(count: int) -> Selection:
    return Selection(np.ones(count, bool), count, everything=True)


def only(rows: list[int], size: int) -> Selection:
    mask = np.zeros(size, bool)
    mask[rows] = True
    return Selection(mask, len(rows), everything=False)


def filled(count: int, options: IndexSettings = SMALL) -> tuple[DenseIndex, Matrix]:
    dense = DenseIndex(DIMENSIONS, options, threading.Lock())
    vectors = units(count)
    dense.add(np.arange(count), vectors)
    return dense, vectors


def best(dense: DenseIndex, query: Matrix, k: int, selection: Selection) -> list[int]:
    rows, scores, _ = dense.search(query, k, selection)
    found: list[int] = rows[np.argsort(-scores, kind="stable")][:k].tolist()
    return found


def nearest(vectors: Matrix, query: Matrix, k: int, rows: list[int]) -> list[int]:
    order = np.argsort(-(vectors[rows] @ query), kind="stable")[:k]
    return [rows[place] for place in order.tolist()]


def test_an_exact_search_finds_the_nearest_of_all() -> None:
    dense, vectors = filled(25)
    query = units(1, seed=9)[0]
    assert dense.mode == "exact"
    assert best(dense, query, 10, everything(25)) == nearest(vectors, query, 10, list(range(25)))


@pytest.mark.parametrize("count", [5, 25, 200, 1000])
@pytest.mark.parametrize("share", [0.01, 0.2, 0.9])
def test_a_filter_never_lets_another_row_through(count: int, share: float) -> None:
    dense, vectors = filled(count)
    dense.build(threading.Event())
    rows = np.flatnonzero(np.random.default_rng(3).random(count) < share).tolist() or [0]
    query = units(1, seed=4)[0]
    found = best(dense, query, 10, only(rows, count))
    wanted = nearest(vectors, query, 10, rows)
    assert set(found) <= set(rows)
    assert len(found) == len(wanted)
    assert len(set(found) & set(wanted)) >= 0.9 * len(wanted)


def test_a_graph_finds_nearly_what_an_exact_search_finds() -> None:
    dense, vectors = filled(2_000)
    assert dense.wants_build()
    assert dense.build(threading.Event())
    assert dense.mode == "hnsw"
    queries = units(50, seed=5)
    hits = [
        len(
            set(best(dense, query, 10, everything(2_000)))
            & set(nearest(vectors, query, 10, list(range(2_000))))
        )
        for query in queries
    ]
    assert sum(hits) >= 0.95 * 500


def test_similarities_come_from_the_codes_with_little_error_and_are_nan_without_a_vector() -> None:
    dense, vectors = filled(500)
    dense.build(threading.Event())
    dense.add(np.array([500, 502]), units(2, seed=8))
    query = units(1, seed=6)[0]
    got = dense.similarities(query, np.array([3, 500, 501, 499, -1, 10_000]))
    assert np.isnan(got[[2, 4, 5]]).all()
    expected = [vectors[3] @ query, units(2, seed=8)[0] @ query, vectors[499] @ query]
    assert got[[0, 1, 3]] == pytest.approx(expected, abs=0.01)


def test_vectors_added_after_the_graph_was_built_are_found_before_and_after_the_merge() -> None:
    dense, vectors = filled(100)
    dense.build(threading.Event())
    late = units(10, seed=11)
    dense.add(np.arange(100, 110), late)
    for _ in range(2):
        for i, vector in enumerate(late):
            assert best(dense, vector, 1, everything(110)) == [100 + i]
        assert best(dense, vectors[50], 1, everything(110)) == [50]
        dense.build(threading.Event())
    assert not dense.wants_build()


def test_a_replaced_vector_is_found_at_its_new_place_only() -> None:
    dense, vectors = filled(100)
    dense.build(threading.Event())
    dense.add(np.array([7]), -vectors[[7]])
    assert best(dense, -vectors[7], 1, everything(100)) == [7]
    assert best(dense, vectors[7], 1, everything(100)) != [7]
    assert len(dense) == 100


def test_a_graph_with_many_removed_vectors_is_built_anew_from_its_codes() -> None:
    dense, vectors = filled(4_000)
    dense.build(threading.Event())
    before = dense.nbytes
    dense.remove(np.arange(0, 4_000, 2))
    assert dense.wants_build()
    dense.build(threading.Event())
    assert dense.nbytes < before * 0.6
    assert not dense.wants_build()
    assert len(dense) == 2_000
    selection = only(list(range(1, 4_000, 2)), 4_000)
    assert all(best(dense, vectors[row], 1, selection) == [row] for row in range(1, 400, 2))


def test_an_index_whose_vectors_all_went_starts_again_without_a_graph() -> None:
    dense, _ = filled(2_000)
    dense.build(threading.Event())
    dense.remove(np.arange(2_000))
    dense.build(threading.Event())
    assert (dense.mode, len(dense)) == ("exact", 0)
    late = units(3, seed=2)
    dense.add(np.array([2_000, 2_001, 2_002]), late)
    assert best(dense, late[1], 1, everything(2_003)) == [2_001]


def test_a_build_that_is_stopped_leaves_the_index_as_it_was() -> None:
    dense, vectors = filled(2_000)
    stop = threading.Event()
    stop.set()
    assert not dense.build(stop)
    assert dense.mode == "exact"
    assert best(dense, vectors[9], 1, everything(2_000)) == [9]


def test_additions_and_removals_while_a_graph_is_built_are_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lock = threading.Lock()
    dense = DenseIndex(DIMENSIONS, SMALL, lock)
    vectors = units(400)
    dense.add(np.arange(200), vectors[:200])
    build = Graph.build

    def build_while_others_write(*args: object) -> Graph | None:
        with lock:
            dense.add(np.arange(200, 300), vectors[200:300])
            dense.remove(np.arange(0, 50))
            dense.add(np.array([60]), vectors[[300]])
        return build(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(Graph, "build", build_while_others_write)
    dense.build(threading.Event())
    assert dense.mode == "hnsw"
    assert len(dense) == 250
    alive = only(list(range(50, 300)), 300)
    for row in [*range(50, 60), *range(61, 300)]:
        assert best(dense, vectors[row], 1, alive) == [row]
    assert best(dense, vectors[300], 1, alive) == [60]
    assert not set(best(dense, vectors[3], 50, everything(300))) & set(range(50))


def grown(count: int, options: IndexSettings) -> tuple[DenseIndex, Matrix]:
    """Add vectors some at a time, and build whenever it is wanted."""
    dense, vectors = DenseIndex(DIMENSIONS, options, threading.Lock()), units(count)
    for start in range(0, count, 10):
        dense.add(np.arange(start, start + 10), vectors[start : start + 10])
        while dense.wants_build():
            dense.build(threading.Event())
    return dense, vectors


def test_a_graph_that_is_large_enough_stays_as_it_is_and_another_begins() -> None:
    dense, vectors = grown(200, replace(MANY_GRAPHS, graph_limit=50))
    first, *others = dense.export()[0]
    assert 50 <= first.size < 70
    assert len(others) >= 2
    dense.add(np.arange(200, 260), units(60, seed=7))
    dense.build(threading.Event())
    assert dense.export()[0][0] is first
    for row in range(0, 200, 7):
        assert best(dense, vectors[row], 1, everything(260)) == [row]


def test_graphs_grow_with_the_index_so_that_they_stay_few() -> None:
    dense, _ = grown(3_000, replace(MANY_GRAPHS, graph_share=0.25))
    sizes = [graph.size for graph in dense.export()[0]]
    assert len(sizes) < 25
    assert sizes[-2] > 10 * sizes[0]


@pytest.mark.parametrize("share", [0.01, 0.2, 0.9])
def test_a_filter_holds_in_many_graphs(share: float) -> None:
    dense, vectors = grown(600, replace(MANY_GRAPHS, exact_limit=100, graph_limit=150))
    rows = np.flatnonzero(np.random.default_rng(3).random(600) < share).tolist()
    for seed in range(5):
        query = units(1, seed=seed)[0]
        found = best(dense, query, 10, only(rows, 600))
        wanted = nearest(vectors, query, 10, rows)
        assert set(found) <= set(rows)
        assert len(set(found) & set(wanted)) >= 0.9 * len(wanted)


def test_of_many_graphs_only_the_one_with_many_removed_vectors_is_built_again() -> None:
    dense, vectors = grown(6_000, replace(MANY_GRAPHS, exact_limit=500, graph_limit=2_000))
    before = dense.export()[0]
    dense.remove(np.arange(2_200, 3_600))
    assert dense.wants_build()
    while dense.wants_build():
        dense.build(threading.Event())
    after = dense.export()[0]
    assert after[0] is before[0]
    assert sum(graph.size for graph in after) < sum(graph.size for graph in before) - 1_000
    alive = only([*range(2_200), *range(3_600, 6_000)], 6_000)
    for row in [0, 2_000, 2_199, 3_600, 5_000, 5_999]:
        assert best(dense, vectors[row], 1, alive) == [row]


def test_what_is_left_of_a_graph_joins_the_one_before() -> None:
    dense, vectors = grown(4_000, replace(MANY_GRAPHS, exact_limit=500, graph_limit=2_000))
    graphs = len(dense.export()[0])
    dense.remove(np.arange(2_050, 3_990))
    while dense.wants_build():
        dense.build(threading.Event())
    assert len(dense.export()[0]) < graphs or dense.export()[0][-1].size < 1_000
    alive = only([*range(2_050), *range(3_990, 4_000)], 4_000)
    for row in [0, 2_000, 2_049, 3_990, 3_999]:
        assert best(dense, vectors[row], 1, alive) == [row]


@pytest.mark.slow
def test_searches_run_beside_additions_and_builds() -> None:
    lock = threading.Lock()
    dense = DenseIndex(DIMENSIONS, SMALL, lock)
    vectors = units(3_000)
    dense.add(np.arange(100), vectors[:100])
    errors: list[BaseException] = []
    done = threading.Event()

    def search(seed: int) -> None:
        random = np.random.default_rng(seed)
        try:
            while not done.is_set():
                row = int(random.integers(0, 100))
                assert best(dense, vectors[row], 1, everything(3_000)) == [row]
        except BaseException as error:
            errors.append(error)

    def build() -> None:
        while not done.is_set():
            if dense.wants_build():
                dense.build(threading.Event())

    threads = [threading.Thread(target=search, args=(i,)) for i in range(3)]
    threads.append(threading.Thread(target=build))
    for thread in threads:
        thread.start()
    for start in range(100, 3_000, 20):
        with lock:
            dense.add(np.arange(start, start + 20), vectors[start : start + 20])
    done.set()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(dense) == 3_000


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.booleans(), st.sets(st.integers(0, 60), min_size=1, max_size=20)), max_size=15
    ),
    st.booleans(),
    st.integers(1, 12),
    st.sampled_from([SMALL, MANY_GRAPHS]),
)
def test_any_additions_and_removals_end_as_a_plain_dictionary_does(
    steps: list[tuple[bool, set[int]]], built: bool, k: int, options: IndexSettings
) -> None:
    dense = DenseIndex(DIMENSIONS, options, threading.Lock())
    vectors = units(2_000, seed=1)
    live: dict[int, int] = {}
    used = 0
    for added, chosen in steps:
        rows: Rows = np.array(sorted(chosen))
        if added:
            dense.add(rows, vectors[used : used + rows.size])
            live |= {int(row): used + i for i, row in enumerate(rows)}
            used += rows.size
        else:
            dense.remove(rows)
            live = {row: place for row, place in live.items() if row not in chosen}
        if built and dense.wants_build():
            dense.build(threading.Event())
    query = units(1, seed=2)[0]
    order = sorted(live, key=lambda row: -float(vectors[live[row]] @ query))
    found = best(dense, query, k, everything(61))
    if dense.mode == "exact":
        assert found == order[:k]
    else:
        assert set(found) <= set(live)
    assert len(dense) == len(live)
    similar = dense.similarities(query, np.arange(61))
    assert {row for row in range(61) if not np.isnan(similar[row])} == set(live)


def test_what_was_graphed_after_a_selection_of_all_is_not_found_by_it() -> None:
    dense, vectors = filled(100)
    selection = everything(100)
    late = units(10, seed=11)
    dense.add(np.arange(100, 110), late)
    assert dense.build(threading.Event())
    assert dense.waiting == 0
    for vector in late:
        assert best(dense, vector, 1, selection) == nearest(vectors, vector, 1, list(range(100)))


class Several:
    """Rows of one vector or several, and what a search of them all finds."""

    def __init__(self, options: IndexSettings) -> None:
        self.index = DenseIndex(DIMENSIONS, options, threading.Lock())
        self.held: dict[int, Matrix] = {}

    def add(self, counts: dict[int, int], seed: int) -> None:
        vectors = units(sum(counts.values()), seed=seed)
        rows = np.repeat(list(counts), list(counts.values()))
        self.index.add(rows, vectors)
        for row in counts:
            self.held[row] = vectors[rows == row]

    def remove(self, rows: list[int]) -> None:
        self.index.remove(np.array(rows, np.int64))
        for row in rows:
            self.held.pop(row, None)

    def check(self, query: Matrix, size: int) -> None:
        best = {row: float((vectors @ query).max()) for row, vectors in self.held.items()}
        assert self.index.rows_held == len(best)
        assert len(self.index) == sum(map(len, self.held.values()))
        rows = np.arange(size)
        found = self.index.similarities(query, rows)
        assert {row for row in rows.tolist() if not np.isnan(found[row])} == set(best)
        for row, cosine in best.items():
            assert found[row] == pytest.approx(cosine, abs=0.02)
            each = self.index.each_similarity(query, row)
            assert each == pytest.approx(self.held[row] @ query, abs=0.02)
        wanted = [row for row in best if row % 3]
        for selection, among in ((everything(size), list(best)), (only(wanted, size), wanted)):
            hits, scores, _ = self.index.search(query, 5, selection)
            assert len(set(hits.tolist())) == len(hits)
            assert set(hits.tolist()) <= set(among)
            assert len(hits) >= min(5, len(among))
            first = max((best[row] for row in among), default=None)
            assert first is None or max(scores) == pytest.approx(first, abs=0.02)


@given(
    st.lists(
        st.one_of(
            st.tuples(
                st.just("add"),
                st.dictionaries(st.integers(0, 39), st.integers(1, 12), min_size=1, max_size=9),
            ),
            st.tuples(st.just("remove"), st.lists(st.integers(0, 39), min_size=1, unique=True)),
            st.tuples(st.sampled_from(["build", "purge", "copy"]), st.none()),
        ),
        max_size=12,
    ),
    st.sampled_from([SMALL, MANY_GRAPHS]),
)
@settings(deadline=None)
def test_rows_of_several_vectors_are_found_by_the_nearest_of_theirs(
    steps: list[tuple[str, Any]], options: IndexSettings
) -> None:
    several = Several(options)
    for seed, (step, given_) in enumerate(steps):
        if step == "add":
            several.add(given_, seed)
        elif step == "remove":
            several.remove(given_)
        elif step == "build":
            several.index.build(threading.Event())
        elif step == "purge":
            several.index.purge()
        else:
            graphs, rows, tail = several.index.export()
            several.index.restore(graphs, rows.astype(np.int64), tail)
        several.check(units(1, seed=99)[0], 40)


def test_a_text_of_very_many_passages_leaves_room_for_others() -> None:
    dense = DenseIndex(DIMENSIONS, SMALL, threading.Lock())
    query = units(1, seed=9)[0]
    near = query + 0.01 * units(400, seed=10)
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    vectors = np.vstack([near, units(30, seed=11)]).astype(np.float32)
    dense.add(np.array([0] * 400 + [*range(1, 31)]), vectors)
    dense.build(threading.Event())
    rows = best(dense, query, 10, everything(31))
    assert (rows[0], len(rows)) == (0, 10)
