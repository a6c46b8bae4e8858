"""The command `mneme-server reindex`: embeds every memory again while no server runs."""

from __future__ import annotations

from collections.abc import Callable

from mneme_server.app import Opened
from mneme_server.edge.grpc.logging import configure_logging
from mneme_server.engine.reindexing import reindex_tenant
from mneme_server.engine.settings import ServerSettings
from mneme_server.features.admin.store.catalog import Catalog


def reindex(
    settings: ServerSettings, tenant_id: str | None, progress: Callable[[str], None]
) -> int:
    """Embed every memory again with the configured model; return the exit code.

    The queue is durable, so what was interrupted goes on when it is run again, or when the
    server starts.

    Raises:
        FailedPrecondition: a server is running on the data folder.
        NotFound: there is no such tenant.
    """
    configure_logging("warning", settings.log_format)
    opened = Opened(settings, progress=progress)
    runtime = opened.runtime
    try:
        runtime.servers.require_alone()
        tenants = [tenant_id] if tenant_id else _all_tenants(opened.catalog)
        for name in tenants:
            opened.catalog.tenants.get(name)
            reindex_tenant(
                name,
                folder=settings.data_dir / "tenants" / name,
                stores=runtime.stores,
                model=runtime.model,
                registry=runtime.tenants,
                pipeline=runtime.pipeline,
                progress=progress,
            )
    except KeyboardInterrupt:
        progress("interrupted; run it again to go on")
        return 130
    finally:
        opened.close()
    return 0


def _all_tenants(catalog: Catalog) -> list[str]:
    found: list[str] = []
    while page := catalog.tenants.list(found[-1] if found else "", 1000):
        found += [tenant.id for tenant in page]
    return found
