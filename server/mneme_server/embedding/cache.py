"""Embeddings of texts that were embedded before."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mneme_server.embedding.port import Embedder

_Begin: TypeAlias = Callable[[Sequence[str]], Callable[[], NDArray[np.float32]]]

DEFAULT_MAX_BYTES = 50_000_000
# What an entry costs beside its vector: the 32-byte key as an object, the slot number and the
# dictionary's links.
_OVERHEAD_BYTES = 250


@dataclass(frozen=True)
class CacheStats:
    """Counts since the cache was made; `entries` and `max_entries` are of now (max 0 before the
    first vector).
    """

    hits: int
    misses: int
    evictions: int
    entries: int
    max_entries: int


class VectorCache:
    """The least recently used vectors, within a budget of bytes. Safe to share between threads and
    embedders.

    The vectors lie in one array that is allocated for the whole budget, but takes memory only as it
    fills.
    """

    def __init__(self, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._slots: OrderedDict[bytes, int] = OrderedDict()
        self._vectors = np.empty((0, 0), np.float32)
        self._hits = self._misses = self._evictions = 0

    def get_many(self, keys: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """Copies of the vectors that are there, by key; marks them as just used. Every key counts
        as hit or miss.
        """
        with self._lock:
            found = {}
            for key in keys:
                slot = self._slots.get(key)
                if slot is None:
                    self._misses += 1
                else:
                    self._slots.move_to_end(key)
                    self._hits += 1
                    found[key] = self._vectors[slot].copy()
            return found

    def put_many(self, keys: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Store row i of `vectors` under keys[i], dropping the least recently used beyond the
        budget.
        """
        with self._lock:
            self._allocate(vectors.shape[1])
            if not len(self._vectors):
                return
            for key, vector in zip(keys, vectors, strict=True):
                slot = self._slots.pop(key, None)
                if slot is None:
                    slot = self._free_slot()
                self._slots[key] = slot
                self._vectors[slot] = vector

    def holding(self, keys: Sequence[bytes]) -> list[bool]:
        """Return for each key whether its vector is there; no key counts as hit or miss."""
        with self._lock:
            return [key in self._slots for key in keys]

    def clear(self) -> None:
        """Forget every vector and give the memory back. The counts go on."""
        with self._lock:
            self._slots.clear()
            self._vectors = np.empty((0, 0), np.float32)

    def stats(self) -> CacheStats:
        """What happened so far."""
        with self._lock:
            return CacheStats(
                self._hits, self._misses, self._evictions, len(self._slots), len(self._vectors)
            )

    def _allocate(self, dimensions: int) -> None:
        if self._vectors.shape[1] != dimensions:
            self._slots.clear()
            entries = self._max_bytes // (dimensions * 4 + _OVERHEAD_BYTES)
            self._vectors = np.empty((entries, dimensions), np.float32)

    def _free_slot(self) -> int:
        # Slots are handed out in order and freed only by eviction, so the first `len` of them are
        # in use.
        if len(self._slots) < len(self._vectors):
            return len(self._slots)
        self._evictions += 1
        return self._slots.popitem(last=False)[1]


class CachedEmbedder:
    """An Embedder that embeds a text only when the cache does not hold it, and once per call if it
    occurs twice.

    With `asked` it is for questions, which have other vectors than texts: of both in one cache
    neither is taken for the other.
    """

    def __init__(
        self, embedder: Embedder, cache: VectorCache | None = None, *, asked: bool = False
    ) -> None:
        self._embedder = embedder
        self._purpose = b"\0question\0" if asked else b"\0"
        self._cache = VectorCache() if cache is None else cache
        # Some embedders can start and be waited for later; the others do all when they are asked.
        self._begin: _Begin = getattr(embedder, "begin", partial(partial, embedder.embed))

    @property
    def cache(self) -> VectorCache:
        """The cache this embedder uses."""
        return self._cache

    @property
    def model_id(self) -> str:
        """See Embedder."""
        return self._embedder.model_id

    @property
    def dimensions(self) -> int:
        """See Embedder."""
        return self._embedder.dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See Embedder. The rows are the caller's own copies."""
        return self.begin(texts)()

    def begin(self, texts: Sequence[str]) -> Callable[[], NDArray[np.float32]]:
        """Start what `embed` does. The function returned waits for the vectors and returns them; it
        is to be called once, by the thread that began. Both raise EmbeddingError.
        """
        if not texts:
            return self._begin(texts)
        keys = [self._key(text) for text in texts]
        distinct = dict(zip(keys, texts, strict=True))
        found = self._cache.get_many(list(distinct))
        missing = [key for key in distinct if key not in found]
        pending = self._begin([distinct[key] for key in missing]) if missing else None

        def result() -> NDArray[np.float32]:
            if pending is not None:
                vectors = pending()
                self._cache.put_many(missing, vectors)
                found.update(zip(missing, vectors, strict=True))
            return np.stack([found[key] for key in keys])

        return result

    def holds(self, texts: Sequence[str]) -> list[bool]:
        """Return for each text whether the cache holds its vector."""
        return self._cache.holding([self._key(text) for text in texts])

    def cached(self, texts: Sequence[str]) -> NDArray[np.float32] | None:
        """Return the vectors when the cache holds all of them."""
        keys = [self._key(text) for text in texts]
        found = self._cache.get_many(list(dict.fromkeys(keys)))
        return np.stack([found[key] for key in keys]) if all(key in found for key in keys) else None

    def close(self) -> None:
        """See Embedder."""
        self._embedder.close()
        self._cache.clear()

    def _key(self, text: str) -> bytes:
        # surrogatepass: a text the embedder will refuse must reach it, to be refused with its
        # message.
        content = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        return hashlib.sha256(self._embedder.model_id.encode() + self._purpose + content).digest()
