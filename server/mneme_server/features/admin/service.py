"""AdminService, but for forgetting."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeAlias

from mneme.v1 import admin_service_pb2 as pb

from mneme_server.common.identity import KeyScope
from mneme_server.edge.grpc.call import Call
from mneme_server.edge.grpc.conversions import to_timestamp
from mneme_server.edge.grpc.paging import Pages
from mneme_server.features.admin.keys import ApiKeys
from mneme_server.features.admin.model import ApiKey, Tenant
from mneme_server.features.admin.ports import KeyFilter, ServerInfo, TenantBackups, TenantStatistics
from mneme_server.features.admin.tenant_operations import Moving
from mneme_server.features.admin.tenants import Tenants
from mneme_server.features.operations.messages import OperationKinds

Lent: TypeAlias = Callable[[], AbstractContextManager[object]]
"""Lends room on a full disk for what always has to work."""


class AdminServicer:
    """Serves `mneme.v1.AdminService`, but for forgetting."""

    def __init__(
        self,
        tenants: Tenants,
        keys: ApiKeys,
        *,
        statistics: TenantStatistics,
        backups: TenantBackups,
        server: ServerInfo,
        operations: OperationKinds,
        moving: Moving,
        lent: Lent = nullcontext,
    ) -> None:
        self._tenants = tenants
        self._keys = keys
        self._statistics = statistics
        self._backups = backups
        self._server = server
        self._operations = operations
        self._moving = moving
        self._lent = lent

    def CreateTenant(self, request: pb.CreateTenantRequest, call: Call) -> pb.CreateTenantResponse:
        """Create a tenant."""
        tenant = self._tenants.create(request.tenant_id, request.display_name)
        return pb.CreateTenantResponse(tenant=_tenant(tenant, ""))

    def ListTenants(self, request: pb.ListTenantsRequest, call: Call) -> pb.ListTenantsResponse:
        """List tenants."""
        pages = Pages(request)
        after = pages.after(str)
        tenants = self._tenants.list(after[0] if after else "", pages.size + 1)
        page, token = pages.cut(tenants, lambda last: (last.id,))
        places = self._moving.places_of([tenant.id for tenant in page])
        return pb.ListTenantsResponse(
            tenants=[_tenant(tenant, places.get(tenant.id, "")) for tenant in page],
            next_page_token=token,
        )

    def DeleteTenant(self, request: pb.DeleteTenantRequest, call: Call) -> pb.DeleteTenantResponse:
        """Delete a tenant."""
        with self._lent():
            started = self._operations.start(
                "delete_tenant",
                request.tenant_id,
                request.operation_id,
                {"caller_tenant": call.tenant},
                # Another may have its id by the time that it runs.
                lambda: {
                    "created_us": self._tenants.require_deletable(call.tenant, request.tenant_id)
                },
                key_id=call.key_id,
            )
            if not started.done:
                self._operations.call_off_of(request.tenant_id)
        return pb.DeleteTenantResponse(operation=self._operations.answer(call, started))

    def CreateApiKey(self, request: pb.CreateApiKeyRequest, call: Call) -> pb.CreateApiKeyResponse:
        """Create a key."""
        created = self._keys.create(
            request.tenant_id,
            request.name,
            frozenset(KeyScope(scope) for scope in request.scopes),
            request.rate_limit,
        )
        return pb.CreateApiKeyResponse(api_key=_api_key(created.key), secret=created.secret)

    def ListApiKeys(self, request: pb.ListApiKeysRequest, call: Call) -> pb.ListApiKeysResponse:
        """List keys."""
        pages = Pages(request)
        keys = self._keys.list(
            KeyFilter(request.tenant_id, request.include_revoked),
            pages.after(int, str),
            pages.size + 1,
        )
        page, token = pages.cut(keys, lambda last: (last.created_at_us, last.id))
        return pb.ListApiKeysResponse(
            api_keys=[_api_key(key) for key in page], next_page_token=token
        )

    def RevokeApiKey(self, request: pb.RevokeApiKeyRequest, call: Call) -> pb.RevokeApiKeyResponse:
        """Revoke a key."""
        with self._lent():
            revoked = self._keys.revoke(request.api_key_id)
        return pb.RevokeApiKeyResponse(api_key=_api_key(revoked))

    def WhoAmI(self, request: pb.WhoAmIRequest, call: Call) -> pb.WhoAmIResponse:
        """Say who is calling."""
        caller = call.caller
        return pb.WhoAmIResponse(
            tenant_id=caller.tenant_id,
            api_key_id=caller.key_id,
            api_key_name=self._keys.name_of(caller.key_id) if caller.key_id else "",
            scopes=[f"KEY_SCOPE_{scope.name}" for scope in sorted(caller.scopes)],
            rate_limit=caller.rate_limit,
        )

    def GetStats(self, request: pb.GetStatsRequest, call: Call) -> pb.GetStatsResponse:
        """Count what a tenant holds."""
        tenant_id = self._tenants.asked_for(call.caller, request.tenant_id)
        found = self._statistics.stats(tenant_id)
        return pb.GetStatsResponse(
            tenant=pb.TenantStats(
                tenant_id=tenant_id,
                event_count=found.event_count,
                session_count=found.session_count,
                agent_count=found.agent_count,
                lesson_count=found.lesson_count,
                memory_count=found.memory_count,
                vector_count=found.vector_count,
                pending_count=found.pending_count,
                failed_count=found.failed_count,
                disk_bytes=found.disk_bytes,
                dense_index=found.dense_index,
            ),
            server=pb.ServerInfo(
                version=self._server.version,
                embedding_model=self._server.embedding_model,
                embedding_dimensions=self._server.embedding_dimensions,
                started_at=to_timestamp(self._server.started_at_us),
                http_address=self._server.http_address(),
            ),
        )

    def Backup(self, request: pb.BackupRequest, call: Call) -> pb.BackupResponse:
        """Copy a tenant's database."""
        tenant_id = self._tenants.asked_for(call.caller, request.tenant_id)
        started = self._operations.start(
            "backup",
            tenant_id,
            request.operation_id,
            {},
            lambda: self._backups.require_file(tenant_id),
            key_id=call.key_id,
        )
        return pb.BackupResponse(operation=self._operations.answer(call, started))

    def Restore(self, request: pb.RestoreRequest, call: Call) -> pb.RestoreResponse:
        """Put a backup in the place of what a tenant holds."""
        tenant_id = self._tenants.asked_for(call.caller, request.tenant_id)
        started = self._operations.start(
            "restore",
            tenant_id,
            request.operation_id,
            {"backup": request.backup},
            lambda: self._backups.require(tenant_id, request.backup),
            key_id=call.key_id,
        )
        return pb.RestoreResponse(operation=self._operations.answer(call, started))

    def Reindex(self, request: pb.ReindexRequest, call: Call) -> pb.ReindexResponse:
        """Embed a tenant again."""
        tenant_id = self._tenants.asked_for(call.caller, request.tenant_id)
        started = self._operations.start(
            "reindex", tenant_id, request.operation_id, {}, key_id=call.key_id
        )
        return pb.ReindexResponse(operation=self._operations.answer(call, started))

    def MoveTenant(self, request: pb.MoveTenantRequest, call: Call) -> pb.MoveTenantResponse:
        """Move a tenant."""
        tenant_id = self._tenants.asked_for(call.caller, request.tenant_id)
        started = self._operations.start(
            "move_tenant",
            tenant_id,
            request.operation_id,
            {"database": request.database},
            lambda: self._moving.require(tenant_id, request.database),
            key_id=call.key_id,
        )
        return pb.MoveTenantResponse(operation=self._operations.answer(call, started))


def _tenant(tenant: Tenant, database: str) -> pb.Tenant:
    return pb.Tenant(
        id=tenant.id,
        display_name=tenant.display_name,
        created_at=to_timestamp(tenant.created_at_us),
        database=database,
    )


def _api_key(key: ApiKey) -> pb.ApiKey:
    message = pb.ApiKey(
        id=key.id,
        tenant_id=key.tenant_id,
        name=key.name,
        scopes=[f"KEY_SCOPE_{scope.name}" for scope in sorted(key.scopes)],
        rate_limit=key.rate_limit,
        prefix=key.prefix,
        created_at=to_timestamp(key.created_at_us),
    )
    if key.last_used_at_us is not None:
        message.last_used_at.CopyFrom(to_timestamp(key.last_used_at_us))
    if key.revoked_at_us is not None:
        message.revoked_at.CopyFrom(to_timestamp(key.revoked_at_us))
    return message
