"""The keys of tenants' logs: made with the tenant, and for tenants from before there were keys."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import proof_service_pb2 as proof_pb
from mneme_server.common.errors import FailedPrecondition
from support.api import Api, grpc, refused
from support.operations import finished
from support.server import local_server

SECRET = "a secret of more than sixteen bytes\n"


def create(api: Api, tenant_id: str) -> None:
    api.admin.CreateTenant(admin_pb.CreateTenantRequest(tenant_id=tenant_id))


def keys_of(api: Api) -> list[str]:
    listed = api.proof.ListLogKeys(proof_pb.ListLogKeysRequest()).keys
    return [key.verifier_key for key in listed]


def stored_keys(data: Path, tenant_id: str) -> list[str]:
    """Return the names of the keys that are kept of a tenant: public halves that have a private
    one."""
    with closing(sqlite3.connect(data / "catalog.db")) as catalog:
        query = "SELECT number FROM log_keys WHERE tenant_id = ?"
        numbers = [number for (number,) in catalog.execute(query, (tenant_id,))]
    files = {path.name for path in (data / "keys" / tenant_id).glob("*")}
    assert files == {f"{number}.pem" for number in numbers}
    return sorted(files)


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_a_tenant_is_made_with_its_key(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with local_server(data) as server:
        assert stored_keys(data, "default") == ["1.pem"]
        admin = server.keys.admin
        create(admin, "acme")
        assert stored_keys(data, "acme") == ["1.pem"]
        assert len(keys_of(server.keys.key("acme"))) == 1
        before = keys_of(admin)
        finished(admin, admin_pb.DeleteTenantRequest(tenant_id="acme"))
        assert stored_keys(data, "acme") == []
    with local_server(data) as server:
        assert keys_of(server.keys.admin) == before


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_a_tenant_from_before_there_were_keys_gets_its_key_when_it_is_needed(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    with local_server(data) as server:
        create(server.keys.admin, "older")
    for tenant_id in ("default", "older"):
        with closing(sqlite3.connect(data / "catalog.db", isolation_level=None)) as catalog:
            catalog.execute("DELETE FROM log_keys WHERE tenant_id = ?", (tenant_id,))
        (data / "keys" / tenant_id / "1.pem").unlink()
    with local_server(data) as server:
        assert stored_keys(data, "default") == stored_keys(data, "older") == []
        assert len(keys_of(server.keys.admin)) == 1
        assert len(keys_of(server.keys.key("older"))) == 1
        assert stored_keys(data, "default") == stored_keys(data, "older") == ["1.pem"]


@pytest.mark.on_sqlite("it looks into a tenant's file, or the catalog's")
def test_without_the_secret_of_keys_no_tenant_is_made(tmp_path: Path) -> None:
    data, secret = tmp_path / "data", tmp_path / "secret"
    with (
        pytest.raises(FailedPrecondition, match="MNEME_KEY_FILE: No such file"),
        local_server(data, key_file=secret),
    ):
        pass
    secret.write_text(SECRET)
    with local_server(data, key_file=secret) as server:
        admin = server.keys.admin
        secret.unlink()
        with refused() as failure:
            create(admin, "acme")
        assert failure.code == grpc.StatusCode.FAILED_PRECONDITION
        listed = admin.admin.ListTenants(admin_pb.ListTenantsRequest()).tenants
        assert [tenant.id for tenant in listed] == ["default"]
        assert stored_keys(data, "acme") == []
        secret.write_text(SECRET)
        create(admin, "acme")
        assert b"ENCRYPTED" in (data / "keys/acme/1.pem").read_bytes()


def test_no_server_starts_with_another_secret_than_keys_were_encrypted_with(
    tmp_path: Path,
) -> None:
    data, secret = tmp_path / "data", tmp_path / "secret"
    secret.write_text(SECRET)
    with local_server(data, key_file=secret) as server:
        create(server.keys.admin, "acme")
    secret.write_text("another secret of as many bytes\n")
    for _ in range(2):  # The first did not leave its own behind.
        with (
            pytest.raises(FailedPrecondition, match="MNEME_KEY_FILE holds another secret"),
            local_server(data, key_file=secret),
        ):
            pass
    secret.write_text(SECRET)
    with local_server(data, key_file=secret) as server:
        assert server.keys.key("acme").proof.GetCheckpoint(proof_pb.GetCheckpointRequest()).note
