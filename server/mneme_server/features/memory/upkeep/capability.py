"""Upkeep of a tenant's memory: beginning, counting, clearing what is kept to be faster."""

from __future__ import annotations

from mneme.v1 import memory_service_pb2

from mneme_server.capability import Capability, Host, Parts
from mneme_server.edge.grpc.service import Service
from mneme_server.engine.embedding.cache import Owner, VectorCache
from mneme_server.engine.settings import ServerSettings
from mneme_server.engine.store.connections import Database
from mneme_server.engine.store.migrate import newest_versions
from mneme_server.features.admin.store.tenant_files import BackupFiles
from mneme_server.features.admin.tenant_operations import Moving
from mneme_server.features.memory.patterns.matchers import KeptMatchers
from mneme_server.features.memory.search import SearchMemories
from mneme_server.features.memory.upkeep.model import CacheKind
from mneme_server.features.memory.upkeep.service import UpkeepCalls
from mneme_server.features.memory.upkeep.upkeep import (
    BeginMemory,
    ClearCaches,
    FolderSizes,
    ReportMemory,
)


class _TenantVectorCache:
    """Tells of a tenant's part of the cache of vectors."""

    def __init__(self, cache: VectorCache) -> None:
        self._cache = cache

    def of(self, tenant_id: str) -> tuple[int, int, int]:
        """Return entries, hits and misses."""
        stats = self._cache.stats_of(tenant_id)
        return stats.entries, stats.hits, stats.misses


def _build(host: Host) -> Parts:
    runtime = host.runtime
    cache, kept = runtime.embedder.cache, host.get(KeptMatchers)
    shared, moving = host.get(Database).shared, host.get(Moving)
    folders = FolderSizes(
        host.settings(ServerSettings).data_dir,
        lambda tenant: shared or bool(moving.place_of(tenant)),
        runtime.stores.shared_bytes,
    )
    report = ReportMemory(
        host.tenants,
        host.figures,
        folders,
        host.get(SearchMemories),
        _TenantVectorCache(cache),
        runtime.model.model_id,
        runtime.model.dimensions,
        ",".join(newest_versions(*runtime.schema.migrations)),
    )
    clear = ClearCaches(
        host.tenants,
        folders,
        {
            CacheKind.EMBEDDINGS: lambda tenant, age_s: cache.clear_of(Owner(tenant), age_s),
            CacheKind.SEARCH: lambda tenant, age_s: cache.clear_of(
                Owner(tenant, asked=True), age_s
            ),
            CacheKind.PATTERNS: kept.clear,
        },
    )
    begin = BeginMemory(report, host.get(BackupFiles))
    descriptor = memory_service_pb2.DESCRIPTOR.services_by_name["MemoryService"]
    return Parts(
        calls=[Service(descriptor, UpkeepCalls(begin, report, clear, host.services))],
        offers=[report],
    )


CAPABILITY = Capability(name="upkeep", build=_build)
