"""AdminService over the wire, with the real catalog."""

from __future__ import annotations

from collections.abc import Callable

import grpc
import pytest
from mneme.v1 import admin_service_pb2 as pb
from mneme.v1 import auth_pb2, operation_pb2
from mneme_server.common.canonical import JsonObject
from mneme_server.common.identity import KeyScope
from mneme_server.edge.grpc.call import Call
from mneme_server.features.admin.ports import ServerInfo, TenantStats
from mneme_server.features.admin.service import AdminServicer
from mneme_server.features.admin.tenant_operations import Moving
from mneme_server.features.operations.model import Operation, OperationKey
from unit.edge.grpc.edge import Client, Edge


class Figures:
    """Statistics, backups and operations that remember whom they were asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.started: list[tuple[str, str]] = []

    def stats(self, tenant_id: str) -> TenantStats:
        self.asked.append(tenant_id)
        return TenantStats(1, 2, 3, 4, 5, 6, 7, 8, 9, "hnsw")

    def require_file(self, tenant_id: str) -> None:
        self.asked.append(tenant_id)

    def start(
        self,
        kind: str,
        tenant_id: str,
        operation_id: str,
        request: JsonObject,
        require: Callable[[], object],
        *,
        key_id: str,
    ) -> Operation:
        require()
        self.started.append((kind, tenant_id))
        key = OperationKey("", operation_id)
        return Operation(key, kind, tenant_id, KeyScope.ADMIN, {}, 1)

    def call_off_of(self, tenant_id: str) -> None:
        self.started.append(("call off", tenant_id))

    def answer(self, call: Call, started: Operation) -> operation_pb2.Operation:
        return operation_pb2.Operation(id=started.key.id, kind=started.kind)


@pytest.fixture
def figures(edge: Edge) -> Figures:
    figures = Figures()
    servicer = AdminServicer(
        edge.tenants,
        edge.keys,
        statistics=figures,
        backups=figures,
        server=ServerInfo("1.2.3", "some-model", 384, 1_700_000_000_123_456),
        operations=figures,
        moving=Moving(None),
    )
    for name in (
        "CreateTenant", "ListTenants", "DeleteTenant", "CreateApiKey", "ListApiKeys",
        "RevokeApiKey", "WhoAmI", "GetStats", "Backup",
    ):  # fmt: skip
        edge.on(f"AdminService/{name}", getattr(servicer, name))
    return figures


pytestmark = pytest.mark.usefixtures("figures")


def test_tenants_are_created_listed_by_pages_and_deleted(
    edge: Edge, client: Client, figures: Figures
) -> None:
    for n in range(4):
        created = client.call(
            "AdminService/CreateTenant",
            pb.CreateTenantRequest(tenant_id=f"t{n}", display_name=f"Tenant {n}"),
        )
        assert (created.tenant.id, created.tenant.display_name) == (f"t{n}", f"Tenant {n}")
        assert created.tenant.created_at.seconds > 1_700_000_000
    request = pb.DeleteTenantRequest(tenant_id="t2", operation_id="gone")
    assert client.call("AdminService/DeleteTenant", request).operation.id == "gone"
    assert figures.started == [("delete_tenant", "t2"), ("call off", "t2")]
    edge.tenants.delete("default", "t2", edge.tenants.require_deletable("default", "t2"))
    assert edge.folders.removed == ["t2"]
    pages, token = [], ""
    while True:
        page = client.call(
            "AdminService/ListTenants", pb.ListTenantsRequest(page_size=2, page_token=token)
        )
        pages.append([tenant.id for tenant in page.tenants])
        token = page.next_page_token
        if not token:
            break
    assert pages == [["default", "t0"], ["t1", "t3"]]


def test_a_key_is_created_used_listed_and_revoked(edge: Edge, client: Client) -> None:
    edge.tenants.create("acme", "")
    created = client.call(
        "AdminService/CreateApiKey",
        pb.CreateApiKeyRequest(
            tenant_id="acme", name="ci", scopes=[auth_pb2.KEY_SCOPE_READ], rate_limit=5
        ),
    )
    key = created.api_key
    assert created.secret.startswith(key.prefix)
    assert list(key.scopes) == [auth_pb2.KEY_SCOPE_READ]
    assert (key.tenant_id, key.name, key.rate_limit) == ("acme", "ci", 5)
    assert not key.HasField("last_used_at")
    theirs = edge.client(created.secret)
    theirs.call("AdminService/GetStats")
    edge.authenticator.flush()
    (listed,) = client.call(
        "AdminService/ListApiKeys", pb.ListApiKeysRequest(tenant_id="acme")
    ).api_keys
    assert listed.id == key.id
    assert listed.HasField("last_used_at")
    request = pb.RevokeApiKeyRequest(api_key_id=key.id)
    revoked = client.call("AdminService/RevokeApiKey", request).api_key
    assert revoked.HasField("revoked_at")
    assert theirs.refusal("AdminService/GetStats").reason == "API_KEY_INVALID"
    assert client.call("AdminService/RevokeApiKey", request).api_key == revoked


def test_no_listing_ever_holds_a_secret_or_its_hash(client: Client) -> None:
    names = {field.name for field in pb.ApiKey.DESCRIPTOR.fields}
    assert not names & {"secret", "key_hash", "hash"}
    created = client.call(
        "AdminService/CreateApiKey", pb.CreateApiKeyRequest(tenant_id="default", name="n")
    )
    listed = client.call("AdminService/ListApiKeys", pb.ListApiKeysRequest())
    assert created.secret not in str(listed)


@pytest.mark.parametrize(
    ("path", "request_", "code", "reason"),
    [
        (
            "CreateTenant",
            pb.CreateTenantRequest(tenant_id="default"),
            grpc.StatusCode.ALREADY_EXISTS,
            "ALREADY_EXISTS",
        ),
        (
            "DeleteTenant",
            pb.DeleteTenantRequest(tenant_id="nobody"),
            grpc.StatusCode.NOT_FOUND,
            "NOT_FOUND",
        ),
        (
            "DeleteTenant",
            pb.DeleteTenantRequest(tenant_id="default"),
            grpc.StatusCode.FAILED_PRECONDITION,
            "CONSTRAINT_VIOLATION",
        ),
        (
            "CreateApiKey",
            pb.CreateApiKeyRequest(tenant_id="nobody", name="n"),
            grpc.StatusCode.NOT_FOUND,
            "NOT_FOUND",
        ),
        (
            "ListApiKeys",
            pb.ListApiKeysRequest(tenant_id="nobody"),
            grpc.StatusCode.NOT_FOUND,
            "NOT_FOUND",
        ),
        (
            "RevokeApiKey",
            pb.RevokeApiKeyRequest(api_key_id="nobody"),
            grpc.StatusCode.NOT_FOUND,
            "NOT_FOUND",
        ),
        (
            "GetStats",
            pb.GetStatsRequest(tenant_id="nobody"),
            grpc.StatusCode.NOT_FOUND,
            "NOT_FOUND",
        ),
        (
            "ListTenants",
            pb.ListTenantsRequest(page_token="broken"),
            grpc.StatusCode.INVALID_ARGUMENT,
            "INVALID_FILTER",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_reason(
    client: Client, path: str, request_: object, code: grpc.StatusCode, reason: str
) -> None:
    refusal = client.refusal(f"AdminService/{path}", request_)
    assert (refusal.code, refusal.reason) == (code, reason)


def test_a_key_can_ask_whose_it_is_and_what_it_may_do(edge: Edge) -> None:
    created = edge.key("acme", {KeyScope.LEARN, KeyScope.READ})
    answer = edge.client(created.secret).call("AdminService/WhoAmI")
    assert (answer.tenant_id, answer.api_key_id, answer.api_key_name) == (
        "acme", created.key.id, created.key.name,
    )  # fmt: skip
    assert list(answer.scopes) == [KeyScope.READ, KeyScope.LEARN]


def test_figures_are_those_of_the_callers_tenant_unless_an_admin_names_another(
    edge: Edge, client: Client, figures: Figures
) -> None:
    answer = edge.client(edge.key("acme", {KeyScope.READ}).secret).call("AdminService/GetStats")
    assert (answer.tenant.tenant_id, answer.tenant.dense_index) == ("acme", "hnsw")
    counts = [
        getattr(answer.tenant, f"{name}_count")
        for name in (
            "event", "session", "agent", "lesson", "memory", "vector", "pending", "failed",
        )
    ]  # fmt: skip
    assert counts == [1, 2, 3, 4, 5, 6, 7, 8]
    assert answer.tenant.disk_bytes == 9
    assert (answer.server.version, answer.server.embedding_model) == ("1.2.3", "some-model")
    assert answer.server.started_at.ToMicroseconds() == 1_700_000_000_123_456
    client.call("AdminService/GetStats", pb.GetStatsRequest(tenant_id="acme"))
    client.call("AdminService/Backup", pb.BackupRequest(tenant_id="acme"))
    client.call("AdminService/Backup")
    assert figures.asked == ["acme", "acme", "acme", "default"]
    assert figures.started == [("backup", "acme"), ("backup", "default")]


def test_whoever_may_not_see_another_tenant_does_not_learn_whether_it_exists(
    edge: Edge, figures: Figures
) -> None:
    edge.tenants.create("exists", "")
    reader = edge.client(edge.key("acme", {KeyScope.READ}).secret)
    refusals = [
        reader.refusal("AdminService/GetStats", pb.GetStatsRequest(tenant_id=tenant))
        for tenant in ("exists", "does-not")
    ]
    assert refusals[0].message == refusals[1].message
    assert [r.reason for r in refusals] == ["SCOPE_MISSING"] * 2
    assert figures.asked == []
