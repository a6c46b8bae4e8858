"""An HNSW graph over 8-bit vectors: the part of FAISS that a large index uses.

FAISS reads the number of OpenMP threads per calling thread. Every entry below sets it to one for
its caller: with a query per serving thread, a team of threads for each would only fight for cores.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import faiss as _typed_faiss
import numpy as np
from numpy.typing import NDArray

from mneme_server.engine.corpus.ports import Matrix, Scores
from mneme_server.engine.index.settings import IndexSettings

Positions = NDArray[np.int64]
Bits = NDArray[np.uint8]
"""Which positions are meant: a bit each, `bits_of` a mask."""

faiss: Any = _typed_faiss  # Its type hints describe C++ constructors, not the Python ones.

_STEP = 1_000
_GATHERED = 128
"""Vectors decoded at once: they stay in the processor's cache."""
_LEVELS = 255.0
_threads = threading.local()


class _Scratch(threading.local):
    """Where a thread decodes vectors. Kept: malloc takes arrays of this size from the system each
    time, and the faults of fresh pages cost more than decoding."""

    floats: Matrix = np.empty((_GATHERED, 0), np.float32)

    def vectors(self, count: int, dimensions: int) -> Matrix:
        """Return room for `count` vectors, `_GATHERED` at most."""
        if self.floats.shape[1] != dimensions:
            self.floats = np.empty((_GATHERED, dimensions), np.float32)
        return self.floats[:count]


_scratch = _Scratch()


def single_threaded() -> None:
    """Let FAISS use only the calling thread for what this thread asks of it."""
    if not getattr(_threads, "single", False):
        faiss.omp_set_num_threads(1)
        _threads.single = True


class Graph:
    """Vectors that never change, searched approximately. Positions count from 0 as added.

    Immutable once built, so any number of threads may search it; more vectors mean a new graph
    (`grown`, `another`). A vector takes its dimensions in bytes, and about 4 · 2 · M bytes of
    links.
    """

    def __init__(self, index: Any) -> None:
        self._index = index
        self._storage = faiss.downcast_index(index.storage)
        self.size: int = index.ntotal
        self.dimensions: int = index.d
        # A view of FAISS's own memory: valid while `_index` lives and nothing is added to it.
        self._codes: NDArray[np.uint8] = faiss.rev_swig_ptr(
            self._storage.codes.data(), self.size * self.dimensions
        ).reshape(self.size, self.dimensions)
        trained = faiss.vector_to_array(self._storage.sq.trained)
        self._lowest, self._range = trained[: self.dimensions], trained[self.dimensions :]

    @property
    def nbytes(self) -> int:
        """Bytes of the codes and links."""
        links = self._index.hnsw.neighbors.size() * 4
        return int(self._codes.nbytes + links)

    def search(
        self, query: Matrix, k: int, breadth: int, bits: Bits | None
    ) -> tuple[Positions, Scores]:
        """Walk the graph for the `k` nearest; `bits` restrict what may be returned."""
        single_threaded()
        if bits is None:
            parameters = _walk(max(breadth, k))
        else:
            selector = faiss.IDSelectorBitmap(bits)
            parameters = faiss.SearchParametersHNSW(efSearch=max(breadth, k), sel=selector)
        return _found(self._index.search(query[None, :], min(k, self.size), params=parameters))

    def scan(self, query: Matrix, k: int, bits: Bits) -> tuple[Positions, Scores]:
        """Compare with every vector that `bits` let through."""
        single_threaded()
        selector = faiss.IDSelectorBitmap(bits)
        parameters = faiss.SearchParameters(sel=selector)
        return _found(self._storage.search(query[None, :], min(k, self.size), params=parameters))

    def similarities(self, query: Matrix, positions: Positions) -> Scores:
        """Return the inner product of `query` (d,) with the vectors at `positions`.

        A code c stands for lowest + range · (c + ½) / 255 in its dimension, so the product is one
        of the codes with a scaled query, and a constant.
        """
        scaled = np.ascontiguousarray(query * self._range / _LEVELS, np.float32)
        constant = query @ self._lowest + scaled.sum() / 2
        products = np.empty(positions.size, np.float32)
        for start in range(0, positions.size, _GATHERED):
            codes = self._codes.take(positions[start : start + _GATHERED], axis=0)
            floats = _scratch.vectors(*codes.shape)
            floats[:] = codes
            _multiply(scaled, floats, products[start : start + _GATHERED])
        products += np.float32(constant)
        clipped: Scores = np.clip(products, -1.0, 1.0, out=products)
        return clipped

    def vectors(self, positions: Positions) -> Matrix:
        """Return the vectors at `positions` as the codes hold them."""
        decoded = self._codes[positions].astype(np.float32)
        decoded += 0.5
        decoded *= self._range / _LEVELS
        decoded += self._lowest
        return decoded

    def grown(self, vectors: Matrix, stop: threading.Event) -> Graph | None:
        """Return a copy of the graph with `vectors` added; None when `stop` was set midway."""
        return self._grown(vectors.__getitem__, len(vectors), stop)

    def joined(self, other: Graph, positions: Positions, stop: threading.Event) -> Graph | None:
        """Return a copy with the vectors of another graph added, as its codes hold them."""
        return self._grown(lambda step: other.vectors(positions[step]), positions.size, stop)

    def kept(self, positions: Positions, stop: threading.Event) -> Graph | None:
        """Return a graph of only the vectors at `positions`; their codes stay as they are."""
        return _filled(
            self._empty(), lambda step: self.vectors(positions[step]), positions.size, stop
        )

    def another(self, vectors: Matrix, stop: threading.Event) -> Graph | None:
        """Return a graph of other vectors, coded as these are."""
        return _filled(self._empty(), vectors.__getitem__, len(vectors), stop)

    def arrays(self) -> list[NDArray[Any]]:
        """Return what `from_arrays` makes the same graph of: the codes' ranges, the levels, the
        links and the codes, as views of FAISS's own memory.

        They are valid while the graph lives, and must not be written to.
        """
        hnsw = self._index.hnsw
        return [
            np.concatenate([self._lowest, self._range]),
            faiss.rev_swig_ptr(hnsw.levels.data(), hnsw.levels.size()),
            faiss.rev_swig_ptr(hnsw.neighbors.data(), hnsw.neighbors.size()),
            self._codes.reshape(-1),
        ]

    def _grown(
        self, vectors: Callable[[slice], Matrix], count: int, stop: threading.Event
    ) -> Graph | None:
        single_threaded()
        return _filled(faiss.clone_index(self._index), vectors, count, stop)

    def _empty(self) -> Any:
        index = _empty(self.dimensions, self.neighbours, self._index.hnsw.efConstruction)
        _train(index, np.concatenate([self._lowest, self._range]))
        return index

    @property
    def entry(self) -> int:
        """The position where every search begins."""
        return int(self._index.hnsw.entry_point)

    @property
    def breadth(self) -> int:
        """Of the search for links while vectors are added."""
        return int(self._index.hnsw.efConstruction)

    @property
    def neighbours(self) -> int:
        """HNSW's M: links per vector and layer."""
        return int(self._index.hnsw.nb_neighbors(1))

    @classmethod
    def from_arrays(
        cls,
        read: Callable[[NDArray[Any]], object],
        *,
        size: int,
        dimensions: int,
        neighbours: int,
        entry: int,
        breadth: int,
    ) -> Graph:
        """Make the graph whose `arrays` `read` writes, one after the other, into what it is given.

        The rest are its properties.

        Raises:
            ValueError: they are no graph of this size.
        """
        index = _empty(dimensions, neighbours, breadth)
        hnsw, storage = index.hnsw, faiss.downcast_index(index.storage)
        ranges = np.empty(2 * dimensions, np.float32)
        read(ranges)
        _train(index, ranges)
        levels = np.empty(size, np.int32)
        read(levels)
        most = hnsw.cum_nneighbor_per_level.size() - 1
        if not size or not 1 <= levels.min() <= levels.max() <= most:
            raise ValueError("the levels of a graph are not those of one")
        if not 0 <= entry < size or levels[entry] != levels.max():
            raise ValueError("a graph does not begin at its highest level")
        # Two times M links at the lowest level, M at every other.
        offsets = np.zeros(size + 1, np.uint64)
        np.cumsum(neighbours * (levels.astype(np.uint64) + np.uint64(1)), out=offsets[1:])
        faiss.copy_array_to_vector(levels, hnsw.levels)
        faiss.copy_array_to_vector(offsets, hnsw.offsets)
        count = int(offsets[-1])
        hnsw.neighbors.resize(count)
        links = faiss.rev_swig_ptr(hnsw.neighbors.data(), count)
        read(links)
        if links.min() < -1 or links.max() >= size:
            raise ValueError("a graph links vectors that it does not hold")
        storage.codes.resize(size * dimensions)
        read(faiss.rev_swig_ptr(storage.codes.data(), size * dimensions))
        hnsw.entry_point, hnsw.max_level = entry, int(levels[entry]) - 1
        storage.ntotal = index.ntotal = size
        return cls(index)

    @classmethod
    def build(cls, vectors: Matrix, settings: IndexSettings, stop: threading.Event) -> Graph | None:
        """Train the quantiser on `vectors` (n, d) and link them; None when `stop` was set."""
        single_threaded()
        index = _empty(vectors.shape[1], settings.graph_neighbours, settings.ef_construction)
        index.train(vectors)
        return _filled(index, vectors.__getitem__, len(vectors), stop)


def bits_of(mask: NDArray[np.bool_]) -> Bits:
    """Pack a mask (size,) for a search."""
    return np.packbits(mask, bitorder="little")


def inner_products(query: Matrix, vectors: Matrix) -> Scores:
    """Return `vectors` (n, d) times `query` (d,) without the threads of a BLAS."""
    out = np.empty(len(vectors), np.float32)
    if out.size:
        query = np.ascontiguousarray(query, np.float32)
        _multiply(query, np.ascontiguousarray(vectors, np.float32), out)
    return out


def _multiply(query: Matrix, vectors: Matrix, out: Scores) -> None:
    """Write the products into `out`; all three are contiguous floats of 32 bits."""
    faiss.fvec_inner_products_ny(
        faiss.swig_ptr(out), faiss.swig_ptr(query), faiss.swig_ptr(vectors),
        vectors.shape[1], len(vectors),
    )  # fmt: skip


@cache
def _walk(breadth: int) -> Any:
    return faiss.SearchParametersHNSW(efSearch=breadth)


def _empty(dimensions: int, neighbours: int, breadth: int) -> Any:
    index = faiss.IndexHNSWSQ(
        dimensions, faiss.ScalarQuantizer.QT_8bit, neighbours, faiss.METRIC_INNER_PRODUCT
    )
    index.hnsw.efConstruction = breadth
    return index


def _train(index: Any, ranges: NDArray[np.float32]) -> None:
    """Give the codes the least values and the ranges of another graph's, one behind the other."""
    storage = faiss.downcast_index(index.storage)
    faiss.copy_array_to_vector(ranges, storage.sq.trained)
    storage.is_trained = index.is_trained = True


def _filled(
    index: Any, vectors: Callable[[slice], Matrix], count: int, stop: threading.Event
) -> Graph | None:
    single_threaded()
    for start in range(0, count, _STEP):
        if stop.is_set():
            return None
        index.add(vectors(slice(start, min(start + _STEP, count))))
    return Graph(index)


def _found(result: tuple[NDArray[np.float32], Positions]) -> tuple[Positions, Scores]:
    scores, positions = result[0][0], result[1][0]
    hit = positions >= 0
    return positions[hit], scores[hit]
