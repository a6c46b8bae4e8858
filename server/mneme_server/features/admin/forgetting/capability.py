"""Forgetting: erasing what is kept of somebody, and saying what was erased."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from mneme.v1 import admin_service_pb2

from mneme_server.capability import Capability, Host, Parts
from mneme_server.common.clock import DAY_US
from mneme_server.common.errors import FailedPrecondition, Reason
from mneme_server.edge.grpc.service import Service
from mneme_server.engine.corpus.forgetting import Items
from mneme_server.engine.corpus.tenant_store import TenantStores
from mneme_server.engine.settings import ServerSettings
from mneme_server.engine.store.connections import Database
from mneme_server.engine.store.unit import Unit
from mneme_server.engine.tenants.registry import Scrubber
from mneme_server.engine.tenants.reserve import Reserve
from mneme_server.features.admin.forgetting.erasure import FORGET, Erase, Signing
from mneme_server.features.admin.forgetting.forgetting import POLICY, Forget
from mneme_server.features.admin.forgetting.service import ForgettingCalls
from mneme_server.features.admin.forgetting.store import (
    FORGETS,
    SqlForgettingCatalog,
    SqlForgettings,
)
from mneme_server.features.admin.store.tenant_files import BackupFiles
from mneme_server.features.admin.tenants import Tenants
from mneme_server.features.operations.messages import OperationKinds
from mneme_server.features.operations.operations import Operations


def _build(host: Host) -> Parts:
    tenants, backups = host.get(Tenants), host.get(BackupFiles)
    kinds, operations = host.get(OperationKinds), host.get(Operations)
    database = host.get(Database)
    catalog = SqlForgettingCatalog(database)
    settings = host.settings(ServerSettings)
    kept = partial(_kept_elsewhere, database.shared or settings.databases is not None, settings)
    servers = host.runtime.servers

    def drop(tenant_id: str, found: Items) -> None:
        host.runtime.embedder.cache.clear()
        for purge in host.purges:
            purge(tenant_id, found)

    servers.also_drop(partial(_drop_here, host.runtime.stores, drop))
    signing = host.get(Signing)
    forget = Forget(host.tenants, catalog, signing, host.forgetting, kept)
    tenants.also_delete(catalog.drop)
    backups.also_apply(forget.apply)
    erase = Erase(
        forget,
        Scrubber(host.runtime.tenants),
        backups,
        signing,
        [
            lambda tenant: drop(tenant, {}),
            operations.forget_results,
            lambda _tenant: catalog.scrub(),
        ],
        kept,
        servers.erasures,
    )
    descriptor = admin_service_pb2.DESCRIPTOR.services_by_name["AdminService"]
    kinds.bring(descriptor, {FORGET: erase})
    reserve = host.get(Reserve)
    operations.hold(FORGET, reserve.lent)
    calls = ForgettingCalls(tenants, forget, erase, kinds, lent=reserve.lent)
    return Parts(calls=[Service(descriptor, calls)], resume=calls.go_on)


def _drop_here(
    stores: TenantStores[Unit],
    drop: Callable[[str, Items], object],
    tenant_id: str,
    forgetting_id: str,
) -> None:
    """Drop what this server holds, besides an index, of what another one has erased."""
    store = stores.open(tenant_id)
    try:
        with store.read() as unit:
            known = unit.get(SqlForgettings).get(forgetting_id)
    finally:
        store.close()
    drop(tenant_id, {} if known is None else {POLICY: set(known.outcome.policies)})


def _kept_elsewhere(shared: bool, settings: ServerSettings) -> int:
    """Return for how long what PostgreSQL was given stays in what it keeps besides its tables."""
    if not shared:
        return 0
    if settings.database_kept_days is None:
        raise FailedPrecondition(
            "how long the database's backups and log are kept has to be said before anything is"
            " forgotten: set MNEME_DATABASE_KEPT_DAYS",
            reason=Reason.DATABASE_ERROR,
        )
    return settings.database_kept_days * DAY_US


CAPABILITY = Capability(
    name="forgetting",
    build=_build,
    forgets=FORGETS,
    migrations=Path(__file__).parent / "migrations",
    catalog_migrations=Path(__file__).parent / "catalog_migrations",
)
