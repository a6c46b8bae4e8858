"""What the runtime shows as metrics, beside what capabilities show."""

from __future__ import annotations

from collections.abc import Sequence

from mneme_server.capability import Gauge
from mneme_server.runtime.runtime import Runtime


def gauges_of(runtime: Runtime) -> Sequence[Gauge]:
    """Return the gauges of a runtime."""
    open_tenants, cache = runtime.tenants.open_tenants, runtime.embedder.cache
    return [
        Gauge("mneme_open_tenants", "Tenants whose files are open.", lambda: len(open_tenants())),
        Gauge(
            "mneme_open_tenants_bytes",
            "Memory that open tenants take, as it is counted against MNEME_TENANT_MEMORY_BYTES.",
            lambda: runtime.tenants.held_bytes,
        ),
        Gauge(
            "mneme_embedding_queue_depth",
            "Texts waiting to be embedded, over the open tenants.",
            lambda: sum(tenant.pending for tenant in open_tenants()),
        ),
        Gauge(
            "mneme_index_vectors",
            "Vectors that are searched, over the open tenants.",
            lambda: sum(tenant.vector_count for tenant in open_tenants()),
        ),
        Gauge(
            "mneme_index_documents",
            "Documents that can be recalled, over the open tenants.",
            lambda: sum(tenant.recallable_count for tenant in open_tenants()),
        ),
        Gauge(
            "mneme_embedding_cache_hits",
            "Texts whose embedding was in the cache since the start.",
            lambda: cache.stats().hits,
        ),
        Gauge(
            "mneme_embedding_cache_misses",
            "Texts whose embedding was not in the cache since the start.",
            lambda: cache.stats().misses,
        ),
    ]
