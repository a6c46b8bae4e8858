"""Administration: tenants, API keys, statistics, backups."""

from __future__ import annotations

from mneme.v1 import admin_service_pb2

from mneme_server.capability import Capability, Gauge, Host, Parts
from mneme_server.edge.grpc.service import Service
from mneme_server.engine.reindexing import Reindexer
from mneme_server.engine.tenants.reserve import Reserve
from mneme_server.features.admin.keys import ApiKeys
from mneme_server.features.admin.ports import ServerInfo
from mneme_server.features.admin.service import AdminServicer
from mneme_server.features.admin.store.tenant_files import BackupFiles, TenantFiles
from mneme_server.features.admin.tenant_operations import (
    DeleteTenant,
    EmbedTenant,
    MakeBackup,
    MoveTenant,
    Moving,
    RestoreBackup,
)
from mneme_server.features.admin.tenants import Tenants
from mneme_server.features.operations.messages import OperationKinds
from mneme_server.features.operations.operations import Operations


def _build(host: Host) -> Parts:
    files = host.get(TenantFiles)
    backups = host.get(BackupFiles)
    tenants = host.get(Tenants)
    tenants.also_delete(host.get(Operations).forget_tenant)
    descriptor = admin_service_pb2.DESCRIPTOR.services_by_name["AdminService"]
    operations = host.get(OperationKinds)
    operations.bring(
        descriptor,
        {
            "backup": MakeBackup(backups),
            "restore": RestoreBackup(backups),
            "delete_tenant": DeleteTenant(tenants),
            "reindex": EmbedTenant(host.get(Reindexer)),
            "move_tenant": MoveTenant(host.get(Moving)),
        },
    )
    reserve = host.get(Reserve)
    host.get(Operations).hold("delete_tenant", reserve.lent)
    servicer = AdminServicer(
        tenants,
        host.get(ApiKeys),
        statistics=files,
        backups=backups,
        server=host.get(ServerInfo),
        operations=operations,
        moving=host.get(Moving),
        lent=reserve.lent,
    )
    held = Gauge(
        "mneme_disk_reserve_bytes",
        "Room on the disk that is kept for revoking keys, deleting tenants and forgetting; less"
        " than MNEME_DISK_RESERVE_BYTES says that the disk is full.",
        lambda: reserve.held,
    )
    return Parts(services=[Service(descriptor, servicer)], gauges=[held])


CAPABILITY = Capability(name="admin", build=_build)
