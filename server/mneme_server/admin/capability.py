"""Administration: tenants, API keys, statistics, backups."""

from __future__ import annotations

from mneme.v1 import admin_service_pb2

from mneme_server.admin.keys import ApiKeys
from mneme_server.admin.ports import ServerInfo
from mneme_server.admin.service import AdminServicer
from mneme_server.admin.store.tenant_files import TenantFiles
from mneme_server.admin.tenants import Tenants
from mneme_server.capability import Capability, Host, Parts
from mneme_server.transport.service import Service


def _build(host: Host) -> Parts:
    files = host.get(TenantFiles)
    servicer = AdminServicer(
        host.get(Tenants),
        host.get(ApiKeys),
        statistics=files,
        backups=files,
        server=host.get(ServerInfo),
    )
    return Parts(
        services=[
            Service(
                admin_service_pb2.DESCRIPTOR.services_by_name["AdminService"],
                servicer,
            )
        ]
    )


CAPABILITY = Capability(name="admin", build=_build)
