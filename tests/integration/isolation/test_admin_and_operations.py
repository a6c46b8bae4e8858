"""Tenants without scope admin learn nothing of other tenants, nor of operations on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import operation_service_pb2 as operations_pb
from support.api import grpc, refused
from support.isolation import ABSENT, OTHER, Checks, World, not_found, outcome
from support.making import ids_of, list_events, recall, session_of

isolates = Checks()


@isolates("mneme.v1.AdminService/WhoAmI")
def _(world: World) -> None:
    told = world.ours.admin.WhoAmI(admin_pb.WhoAmIRequest())
    assert told.tenant_id == world.ours.tenant_id != world.theirs.tenant_id


@isolates("mneme.v1.AdminService/GetStats")
def _(world: World) -> None:
    mine = world.ours.admin.GetStats(admin_pb.GetStatsRequest()).tenant
    counts = (
        mine.event_count, mine.session_count, mine.agent_count, mine.lesson_count,
        mine.memory_count, mine.vector_count, mine.pending_count,
    )  # fmt: skip
    assert counts == (3, 1, 1, 1, 4, 4, 0)
    _refused_whether_it_exists_or_not(
        world, "GetStats", lambda tenant: admin_pb.GetStatsRequest(tenant_id=tenant)
    )


def _refused_whether_it_exists_or_not(
    world: World, method: str, request: Callable[[str], Message]
) -> None:
    """Check that a key without scope admin does not even learn whether there is such a tenant."""
    rpc = f"mneme.v1.AdminService/{method}"
    outcomes = [
        outcome(world.ours, rpc, request(tenant), tenant)
        for tenant in (world.theirs.tenant_id, "no-such-tenant")
    ]
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][:2] == (grpc.StatusCode.PERMISSION_DENIED, "SCOPE_MISSING")


_ADMIN_REQUESTS: dict[str, Callable[[str], Message]] = {
    "CreateTenant": lambda tenant: admin_pb.CreateTenantRequest(tenant_id=tenant),
    "ListTenants": lambda _: admin_pb.ListTenantsRequest(),
    "DeleteTenant": lambda tenant: admin_pb.DeleteTenantRequest(tenant_id=tenant),
    "CreateApiKey": lambda tenant: admin_pb.CreateApiKeyRequest(tenant_id=tenant, name="x"),
    "ListApiKeys": lambda tenant: admin_pb.ListApiKeysRequest(tenant_id=tenant),
    "RevokeApiKey": lambda tenant: admin_pb.RevokeApiKeyRequest(api_key_id=tenant),
    "Backup": lambda tenant: admin_pb.BackupRequest(tenant_id=tenant),
    "Restore": lambda tenant: admin_pb.RestoreRequest(tenant_id=tenant, backup="x.db"),
    "Reindex": lambda tenant: admin_pb.ReindexRequest(tenant_id=tenant),
    "MoveTenant": lambda tenant: admin_pb.MoveTenantRequest(tenant_id=tenant),
    "Forget": lambda tenant: admin_pb.ForgetRequest(tenant_id=tenant, user_id="ann"),
}
for _method, _request in _ADMIN_REQUESTS.items():

    @isolates(f"mneme.v1.AdminService/{_method}")
    def _(world: World, method: str = _method, request: Any = _request) -> None:
        _refused_whether_it_exists_or_not(world, method, request)


_OPERATIONS = "mneme.v1.OperationService"
_OPERATION_REQUESTS: dict[str, Any] = {
    "GetOperation": operations_pb.GetOperationRequest,
    "WaitOperation": operations_pb.WaitOperationRequest,
    "CancelOperation": operations_pb.CancelOperationRequest,
}
for _method, _request in _OPERATION_REQUESTS.items():

    @isolates(f"{_OPERATIONS}/{_method}")
    def _(world: World, method: str = _method, request: Any = _request) -> None:
        """The administrator's operation on a tenant is nobody else's, not even that tenant's."""
        for tenant in (world.ours, world.theirs):
            asked = admin_pb.ReindexRequest(tenant_id=tenant.tenant_id)
            there = world.administrator.admin.Reindex(asked).operation.id
            rpc = f"{_OPERATIONS}/{method}"
            outcomes = [
                outcome(world.ours, rpc, request(operation_id=asked_for), asked_for)
                for asked_for in (there, ABSENT)
            ]
            assert outcomes[0] == outcomes[1]
            assert not_found(outcomes[0])


@isolates(f"{_OPERATIONS}/ListOperations")
def _(world: World) -> None:
    for tenant in (world.ours, world.theirs):
        world.administrator.admin.Reindex(admin_pb.ReindexRequest(tenant_id=tenant.tenant_id))
    listed = world.ours.operation.ListOperations(operations_pb.ListOperationsRequest())
    assert not listed.operations
    rpc = f"{_OPERATIONS}/ListOperations"
    request = operations_pb.ListOperationsRequest(tenant_id=world.theirs.tenant_id)
    assert outcome(world.ours, rpc, request, "")[:2] == (
        grpc.StatusCode.PERMISSION_DENIED,
        "SCOPE_MISSING",
    )


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_of(rpc: str, world: World) -> None:
    isolates.run(rpc, world)


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_over_rest_of(rpc: str, over_rest: World) -> None:
    isolates.run(rpc, over_rest)


def test_an_administrators_key_reaches_the_memories_of_its_own_tenant_only(world: World) -> None:
    assert [found.id for found in list_events(world.administrator)] == [
        found.id for found in list_events(world.ours)
    ]
    with refused() as failure:
        session_of(world.administrator, OTHER)
    assert failure.code == grpc.StatusCode.NOT_FOUND
    assert OTHER not in ids_of(recall(world.administrator, "the payment was refused"))
