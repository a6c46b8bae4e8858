"""The gauges that the runtime shows as metrics, beside those of capabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mneme_server.capability import Gauge
from mneme_server.common.lending import Lending
from mneme_server.engine.cluster.cluster import Cluster
from mneme_server.engine.corpus.freshness import FOLLOWED_S
from mneme_server.engine.corpus.tenant import OpenTenant
from mneme_server.engine.runtime import Runtime


def gauges_of(runtime: Runtime, lending: Sequence[Lending]) -> Sequence[Gauge]:
    """Return the gauges of a runtime.

    Args:
        runtime: the server's.
        lending: how connections to a database are lent; empty where there is none.
    """
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
        *(_of_connections(lending) if lending else ()),
        *(_of_servers(runtime, servers) if isinstance(servers := runtime.servers, Cluster) else ()),
    ]


def _of_connections(lending: Sequence[Lending]) -> Iterator[Gauge]:
    yield Gauge(
        "mneme_database_connections_in_use",
        "Connections to the database that a transaction has.",
        lambda: sum(pool.in_use for pool in lending),
    )
    yield Gauge(
        "mneme_database_pool_waits",
        "Transactions that found no connection free since the start.",
        lambda: sum(pool.waits for pool in lending),
    )
    yield Gauge(
        "mneme_database_pool_wait_seconds",
        "Time that they waited for one, together.",
        lambda: sum(pool.waited_s for pool in lending),
    )


def _of_servers(runtime: Runtime, cluster: Cluster) -> Iterator[Gauge]:
    def most(value: Callable[[OpenTenant], float]) -> float:
        in_use = runtime.tenants.in_use(FOLLOWED_S)
        return max((value(one) for one in in_use if one.is_followed_closely), default=0.0)

    leases = cluster.leases
    yield Gauge(
        "mneme_feed_lag_rows",
        "Rows of its feed that the index of a tenant that is searched often has yet to follow, of"
        " the one that has most.",
        lambda: most(lambda tenant: tenant.index_lag),
    )
    yield Gauge(
        "mneme_index_age_seconds",
        "Since the index of a tenant that is searched often held all that there was, of the one"
        " that is oldest.",
        lambda: most(lambda tenant: tenant.index_age_s),
    )
    yield Gauge(
        "mneme_servers_alive",
        "Servers that serve from the database, with this one, by its last word from there.",
        lambda: cluster.alive,
    )
    yield Gauge(
        "mneme_heartbeat_age_seconds",
        "Since the database was told that this server lives.",
        lambda: cluster.silent_s,
    )
    yield Gauge(
        "mneme_leases_held",
        "Tenants whose work in the background is this server's.",
        lambda: len(leases.held()),
    )
    yield Gauge("mneme_leases_taken", "Leases taken since the start.", lambda: leases.taken)
    yield Gauge(
        "mneme_leases_lost",
        "Leases that another server took over since the start.",
        lambda: leases.lost_count,
    )
