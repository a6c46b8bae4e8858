"""Forgetting: erasing what is kept of somebody, and saying what was erased."""

from __future__ import annotations

from pathlib import Path

from mneme.v1 import admin_service_pb2

from mneme_server.admin.store.backups import BackupFiles
from mneme_server.admin.tenants import Tenants
from mneme_server.capability import Capability, Host, Parts
from mneme_server.forgetting.erasing import FORGET, Erase, Signing
from mneme_server.forgetting.forgetting import Forget
from mneme_server.forgetting.service import ForgettingCalls
from mneme_server.forgetting.store.catalog import SqlForgettingCatalog
from mneme_server.forgetting.store.forgettings import FORGETS, SqlForgettings
from mneme_server.operations.messages import OperationKinds
from mneme_server.operations.operations import Operations
from mneme_server.runtime.scrubbing import Scrubber
from mneme_server.storage.database import Database
from mneme_server.transport.service import Service


def _build(host: Host) -> Parts:
    tenants, backups = host.get(Tenants), host.get(BackupFiles)
    kinds, operations = host.get(OperationKinds), host.get(Operations)
    catalog = SqlForgettingCatalog(host.get(Database))
    forget = Forget(host.tenants, catalog, host.forgetting)
    tenants.also_delete(catalog.drop)
    backups.also_apply(forget.apply)
    erase = Erase(
        forget,
        Scrubber(host.runtime.tenants),
        backups,
        host.get(Signing),
        [
            lambda _tenant: host.runtime.embedder.cache.clear(),
            operations.forget_results,
            lambda _tenant: catalog.scrub(),
        ],
    )
    descriptor = admin_service_pb2.DESCRIPTOR.services_by_name["AdminService"]
    kinds.bring(descriptor, {FORGET: erase})
    calls = ForgettingCalls(tenants, forget, kinds, operations)
    return Parts(calls=[Service(descriptor, calls)], resume=calls.go_on)


CAPABILITY = Capability(
    name="forgetting",
    build=_build,
    repositories={"forgettings": SqlForgettings},
    forgets=FORGETS,
    migrations=Path(__file__).parent / "migrations",
    catalog_migrations=Path(__file__).parent / "catalog_migrations",
)
