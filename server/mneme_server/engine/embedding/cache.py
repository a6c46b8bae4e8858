"""Embeddings of texts that were embedded before."""

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mneme_server.common import fairness
from mneme_server.common.begun import Begun
from mneme_server.common.texts import composed
from mneme_server.engine.embedding.port import Embedder

_Begin: TypeAlias = Callable[[Sequence[str]], Begun[NDArray[np.float32]]]

DEFAULT_MAX_BYTES = 50_000_000
# What an entry costs beside its vector: the 32-byte key as an object, where it lies, whose it is,
# and the links of the dictionary.
_OVERHEAD_BYTES = 400


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


class Owner(NamedTuple):
    """Whose a vector is: a tenant's, empty for the server's own; of a question or of a text."""

    tenant_id: str = ""
    asked: bool = False


_NOBODY = Owner()


@dataclass(frozen=True, slots=True)
class _Entry:
    """Where a vector lies, whose it is, and when it came there, in seconds since 1970."""

    slot: int
    owner: Owner
    since_s: float


class VectorCache:
    """The least recently used vectors, within a budget of bytes. Safe to share between threads and
    embedders. Tenants share the room, and nothing else: a key is its owner's.

    The vectors lie in one array that is allocated for the whole budget, but takes memory only as it
    fills.
    """

    def __init__(
        self, max_bytes: int = DEFAULT_MAX_BYTES, clock: Callable[[], float] = time.time
    ) -> None:
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._clock = clock
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        self._free: list[int] = []  # Slots below the number of those ever used.
        self._used = 0
        self._of_tenants: dict[str, tuple[int, int]] = {}  # Hits and misses.
        self._vectors = np.empty((0, 0), np.float32)
        self._hits = self._misses = self._evictions = 0

    def get_many(
        self, keys: Sequence[bytes], owner: Owner = _NOBODY
    ) -> dict[bytes, NDArray[np.float32]]:
        """Copies of the vectors that are there, by key; marks them as just used. Every key counts
        as hit or miss.
        """
        with self._lock:
            found = {}
            for key in keys:
                entry = self._entries.get(key)
                if entry is not None:
                    self._entries.move_to_end(key)
                    found[key] = self._vectors[entry.slot].copy()
            hits, misses = len(found), len(keys) - len(found)
            self._hits += hits
            self._misses += misses
            before = self._of_tenants.get(owner.tenant_id, (0, 0))
            self._of_tenants[owner.tenant_id] = (before[0] + hits, before[1] + misses)
            return found

    def put_many(
        self, keys: Sequence[bytes], vectors: NDArray[np.float32], owner: Owner = _NOBODY
    ) -> None:
        """Store row i of `vectors` under keys[i], dropping the least recently used beyond the
        budget.
        """
        with self._lock:
            self._allocate(vectors.shape[1])
            if not len(self._vectors):
                return
            for key, vector in zip(keys, vectors, strict=True):
                known = self._entries.pop(key, None)
                slot = self._free_slot() if known is None else known.slot
                self._entries[key] = _Entry(slot, owner, self._clock())
                self._vectors[slot] = vector

    def holding(self, keys: Sequence[bytes]) -> list[bool]:
        """Return for each key whether its vector is there; no key counts as hit or miss."""
        with self._lock:
            return [key in self._entries for key in keys]

    def clear_of(self, owner: Owner, older_s: float = 0.0) -> int:
        """Forget the owner's vectors that came at least so many seconds ago; return how many."""
        latest = self._clock() - older_s
        with self._lock:
            gone = [
                key
                for key, entry in self._entries.items()
                if entry.owner == owner and entry.since_s <= latest
            ]
            self._free += [self._entries.pop(key).slot for key in gone]
        return len(gone)

    def stats_of(self, tenant_id: str) -> CacheStats:
        """What happened so far for a tenant; evictions are not told apart by tenants."""
        with self._lock:
            hits, misses = self._of_tenants.get(tenant_id, (0, 0))
            mine = sum(one.owner.tenant_id == tenant_id for one in self._entries.values())
            return CacheStats(hits, misses, 0, mine, len(self._vectors))

    def clear(self) -> None:
        """Forget every vector and give the memory back. The counts go on."""
        with self._lock:
            self._forget_all()
            self._vectors = np.empty((0, 0), np.float32)

    def stats(self) -> CacheStats:
        """What happened so far."""
        with self._lock:
            return CacheStats(
                self._hits, self._misses, self._evictions, len(self._entries), len(self._vectors)
            )

    def _allocate(self, dimensions: int) -> None:
        if self._vectors.shape[1] != dimensions:
            self._forget_all()
            entries = self._max_bytes // (dimensions * 4 + _OVERHEAD_BYTES)
            self._vectors = np.empty((entries, dimensions), np.float32)

    def _free_slot(self) -> int:
        if self._free:
            return self._free.pop()
        if self._used < len(self._vectors):
            self._used += 1
            return self._used - 1
        self._evictions += 1
        return self._entries.popitem(last=False)[1].slot

    def _forget_all(self) -> None:
        self._entries.clear()
        self._free.clear()
        self._used = 0


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
        self._asked = asked
        self._purpose = b"\0question\0" if asked else b"\0"
        self._cache = VectorCache() if cache is None else cache
        # Some embedders can start and be waited for later; the others do all when they are asked.
        self._begin: _Begin = getattr(embedder, "begin", partial(_begin_at_its_end, embedder))

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
        return self._begun(texts, partial(_begin_at_its_end, self._embedder))()

    def begin(self, texts: Sequence[str]) -> Begun[NDArray[np.float32]]:
        """Start what `embed` does, and wait for the vectors where what is returned is called. Both
        raise EmbeddingError.
        """
        return self._begun(texts, self._begin)

    def _begun(self, texts: Sequence[str], begin: _Begin) -> Begun[NDArray[np.float32]]:
        if not texts:
            return begin(texts)
        texts = [*map(composed, texts)]  # What is one text to a reader has one vector.
        keys = [self._key(text) for text in texts]
        distinct = dict(zip(keys, texts, strict=True))
        owner = self._owner()
        found = self._cache.get_many(list(distinct), owner)
        missing = [key for key in distinct if key not in found]
        pending = begin([distinct[key] for key in missing]) if missing else None

        def result() -> NDArray[np.float32]:
            if pending is not None:
                vectors = pending()
                self._cache.put_many(missing, vectors, owner)
                found.update(zip(missing, vectors, strict=True))
            return np.stack([found[key] for key in keys])

        return Begun(result) if pending is None else Begun(result, pending.is_ready)

    def holds(self, texts: Sequence[str]) -> list[bool]:
        """Return for each text whether the cache holds its vector."""
        return self._cache.holding([self._key(text) for text in texts])

    def cached(self, texts: Sequence[str]) -> NDArray[np.float32] | None:
        """Return the vectors when the cache holds all of them."""
        keys = [self._key(text) for text in texts]
        found = self._cache.get_many(list(dict.fromkeys(keys)), self._owner())
        return np.stack([found[key] for key in keys]) if all(key in found for key in keys) else None

    def close(self) -> None:
        """See Embedder."""
        self._embedder.close()
        self._cache.clear()

    def _key(self, text: str) -> bytes:
        # surrogatepass: a text the embedder will refuse must reach it, to be refused with its
        # message.
        content = hashlib.sha256(composed(text).encode("utf-8", "surrogatepass")).digest()
        # A tenant's own: whether a text is at hand must not tell what another tenant stored.
        tenant = fairness.on_behalf_of().encode() + b"\0"
        model = self._embedder.model_id.encode()
        return hashlib.sha256(tenant + model + self._purpose + content).digest()

    def _owner(self) -> Owner:
        return Owner(fairness.on_behalf_of(), self._asked)


def _begin_at_its_end(embedder: Embedder, texts: Sequence[str]) -> Begun[NDArray[np.float32]]:
    return Begun(partial(embedder.embed, texts), lambda: False)
