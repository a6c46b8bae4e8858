"""Reports of a tenant's memory: what it holds, and what it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

Counts = Sequence[tuple[str, int]]


class CacheKind(IntEnum):
    """What is kept to be faster. The numbers are those of `mneme.v1.CacheKind`."""

    EMBEDDINGS = 1
    SEARCH = 2
    PATTERNS = 3


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of a tenant's database with its log, of its indexes, and of its whole folder."""

    database: int
    indexes: int
    folder: int


@dataclass(frozen=True, slots=True)
class DatabaseReport:
    """What keeps a tenant, where its database is below the data folder, if it is there, what it
    takes, and of which schema it is."""

    tenant_id: str
    engine: str
    path: str
    sizes: Sizes
    schema: str


@dataclass(frozen=True, slots=True)
class Embeddings:
    """How texts become vectors, and what of that was saved for the tenant."""

    model: str
    dimensions: int
    cached: int
    hits: int
    misses: int


@dataclass(frozen=True, slots=True)
class Index:
    """How vectors are searched: "exact" or "hnsw"; bytes in memory, and those of them that vectors
    take; searches, and seconds that they took together."""

    mode: str
    memory_bytes: int
    vector_bytes: int
    searches: int
    searches_s: float


@dataclass(frozen=True, slots=True)
class Distribution:
    """The most frequent labels and keys of metadata of memories, and how many there are."""

    tags: Counts
    tag_count: int
    keys: Counts
    key_count: int


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """What a tenant's memory holds: counts and averages by name, the latter None of nothing."""

    database: DatabaseReport
    counts: Mapping[str, int]
    embeddings: Embeddings
    index: Index
    averages: Mapping[str, float | None]
    distribution: Distribution | None


@dataclass(frozen=True, slots=True)
class Cleared:
    """What was cleared: entries by cache; bytes that the database is smaller, None if it was not
    rewritten."""

    counts: Mapping[CacheKind, int]
    reclaimed: int | None
