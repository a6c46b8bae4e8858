"""Translation between the messages of upkeep and the domain."""

from __future__ import annotations

from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import memory_stats_pb2 as pb

from mneme_server.features.memory.upkeep.model import (
    Cleared,
    Counts,
    DatabaseReport,
    Distribution,
    Embeddings,
    Index,
    MemoryReport,
)

_MS = 1_000


def database(given: DatabaseReport) -> pb.DatabaseInfo:
    """Return the message of where a tenant's memory is."""
    return pb.DatabaseInfo(
        tenant_id=given.tenant_id,
        engine=given.engine,
        path=given.path,
        size_bytes=given.sizes.database,
        folder_bytes=given.sizes.folder,
        wal_mode=True,  # A database that cannot is not opened.
        schema_version=given.schema,
    )


def counts(report: MemoryReport) -> pb.MemoryCounts:
    """Return the message of what there is."""
    known = pb.MemoryCounts.DESCRIPTOR.fields_by_name
    return pb.MemoryCounts(**{name: n for name, n in report.counts.items() if name in known})


def embeddings(given: Embeddings) -> pb.EmbeddingStats:
    """Return the message of how texts become vectors."""
    asked = given.hits + given.misses
    return pb.EmbeddingStats(
        model=given.model,
        dimension=given.dimensions,
        cache_size=given.cached,
        cache_hits=given.hits,
        cache_misses=given.misses,
        cache_hit_rate=given.hits / asked if asked else None,
    )


def index(given: Index, disk_bytes: int) -> memory_pb.IndexStats:
    """Return the message of how vectors are searched."""
    return memory_pb.IndexStats(
        kind=f"VECTOR_INDEX_KIND_{given.mode.upper()}",
        memory_bytes=given.memory_bytes,
        vector_bytes=given.vector_bytes,
        disk_bytes=disk_bytes,
        average_search_ms=given.searches_s / given.searches * _MS if given.searches else None,
        search_count=given.searches,
    )


def stats(
    report: MemoryReport, took_s: float, *, quality: bool
) -> memory_pb.GetMemoryStatsResponse:
    """Return the message of statistics."""
    return memory_pb.GetMemoryStatsResponse(
        database=database(report.database),
        counts=counts(report),
        embeddings=embeddings(report.embeddings),
        index=index(report.index, report.database.sizes.indexes),
        distribution=None if report.distribution is None else _distribution(report.distribution),
        quality=pb.MemoryQuality(**report.averages) if quality else None,
        took_ms=took_s * _MS,
    )


def _distribution(given: Distribution) -> pb.MemoryDistribution:
    return pb.MemoryDistribution(
        tags=_named(given.tags),
        tag_count=given.tag_count,
        metadata_keys=_named(given.keys),
        metadata_key_count=given.key_count,
    )


def _named(given: Counts) -> list[pb.NamedCount]:
    return [pb.NamedCount(name=name, count=count) for name, count in given]


def cleared(given: Cleared, took_s: float) -> pb.ClearCacheResponse:
    """Return the message of what was cleared."""
    return pb.ClearCacheResponse(
        cleared=[
            pb.ClearedCache(cache=f"CACHE_KIND_{cache.name}", count=count)
            for cache, count in given.counts.items()
        ],
        vacuumed=given.reclaimed is not None,
        reclaimed_bytes=given.reclaimed or 0,
        took_ms=took_s * _MS,
    )
