"""Deletions of tenants that a server's end cuts short, where other servers serve on."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import grpc
import pytest
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme_server.features.admin.store.tenant_files import TenantFiles
from support.api import Api
from support.folders import wait_until
from support.making import event, record
from support.operations import finished
from support.postgres import PostgresServer
from support.server import ServerProcess, local_server

PATIENCE_S = 60.0
DELETE = admin_pb.DeleteTenantRequest(tenant_id="acme-1")


def test_a_deletion_whose_server_is_killed_another_server_ends(
    tmp_path: Path, url: str, postgres: PostgresServer, database: str
) -> None:
    killed = ServerProcess(tmp_path / "killed", database_url=url, cut_at="remove")
    with local_server(tmp_path / "left", database_url=url) as left:
        record(killed.keys.tenant("acme"), event("The violin is in the harbour"))
        with suppress(grpc.RpcError):
            finished(killed.keys.admin, DELETE)
        assert killed.process.wait(timeout=PATIENCE_S) == -signal.SIGKILL, killed.log
        killed._release()
        wait_until(partial(is_made, left.keys.admin), "the id is free again", PATIENCE_S)
        rows = "SELECT count(*) FROM mneme.events WHERE tenant_id = 'acme-1'"
        assert postgres.execute(rows, database=database) == [(0,)]


def test_a_server_says_that_it_lives_while_it_ends_deletions_before_it_serves(
    tmp_path: Path,
    url: str,
    postgres: PostgresServer,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else it could take no lease for the second one, and would not start."""
    with local_server(tmp_path / "before", database_url=url) as before:
        for _ in range(2):
            before.keys.tenant("acme")
    marked = "UPDATE mneme_catalog.tenants SET state = 'deleting' WHERE id LIKE 'acme-%'"
    postgres.execute(marked, database=database)  # By one that is gone.

    def lives_until() -> tuple[object, bool]:
        rows = "SELECT alive_until, alive_until > clock_timestamp() FROM mneme.nodes"
        [(until, lives)] = postgres.execute(rows, database=database)
        return until, lives

    def takes_long(self: TenantFiles, tenant_id: str, require: Callable[[], object]) -> None:
        began = lives_until()
        wait_until(lambda: lives_until() != began, "its time is over, or renewed", PATIENCE_S)
        remove(self, tenant_id, require)

    remove = TenantFiles.remove
    monkeypatch.setattr(TenantFiles, "remove", takes_long)
    with local_server(tmp_path / "here", database_url=url) as here:
        assert is_made(here.keys.admin)


def is_made(admin: Api) -> bool:
    """Make a tenant of the same id; tell whether there was none any more."""
    try:
        admin.admin.CreateTenant(admin_pb.CreateTenantRequest(tenant_id="acme-1"))
    except grpc.RpcError as error:
        if error.code() != grpc.StatusCode.ALREADY_EXISTS:
            raise
        return False
    return True
