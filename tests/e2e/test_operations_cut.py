"""The server is killed in the middle of an operation, and what it left is one state or the other.

After the next start the operation goes on to its end, or says why it failed.
"""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

import grpc
import pytest
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import operation_pb2 as pb
from support.api import Api
from support.forgetting import counts, spellings, traces
from support.making import event, ids_of, list_events, recall, record, struct, verify
from support.operations import ended, finished, response
from support.server import ServerProcess, server_process

OLD, NEW = ["old"], ["old", "new"]


def start(api: Api, kind: str, **fields: str) -> pb.Operation:
    request = getattr(admin_pb, f"{kind}Request")(operation_id="cut", **fields)
    answer = getattr(api.admin, kind)(request)
    operation: pb.Operation = answer.operation
    return operation


def cut(data: Path, point: str, kind: str, **fields: str) -> None:
    """Start an operation on a server that is gone when it comes to this point."""
    server = ServerProcess(data, cut_at=point)
    with suppress(grpc.RpcError):  # It may be gone before it answers; the operation is there.
        start(server.keys.admin, kind, **fields)
    assert server.process.wait(timeout=60) == -signal.SIGKILL, server.log
    server._release()


@pytest.mark.parametrize("point", ["note+", "hiding", "scrub+", "finish"])
def test_what_was_asked_to_be_forgotten_is_erased_whenever_the_server_dies(
    data: Path, point: str
) -> None:
    """Also where the request came to nothing but a note in the catalog."""
    with server_process(data) as server:
        record(server.keys.admin, event("An unheard-of zyxquorl", id="anns", session="anns",
                                        metadata=struct(user_id="ann-of-the-attic")))  # fmt: skip
    cut(data, point, "Forget", user_id="ann-of-the-attic")
    with server_process(data) as server:
        admin = server.keys.admin
        receipt = response(ended(admin, "cut"))
        assert counts(receipt) == {"event": 1, "session": 1}
        assert receipt.HasField("erased_at")
        assert events(admin) == NEW
        checked = verify(admin)
        assert (checked.valid, checked.events_forgotten) == (True, 1)
    needles = [*spellings("zyxquorl"), *spellings("ann-of-the-attic")]
    assert not traces(data / "tenants" / "default", needles, ["zyxquorl"])


def events(api: Api) -> list[str]:
    return [stored.id for stored in list_events(api)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder in which the tenant `default` has a backup of OLD, and holds NEW."""
    folder = tmp_path_factory.mktemp("made") / "data"
    with server_process(folder) as server:
        admin = server.keys.admin
        admin.admin.CreateTenant(admin_pb.CreateTenantRequest(tenant_id="gone"))
        record(admin, event("The violin is in the harbour", id="old"))
        made = Path(finished(admin, admin_pb.BackupRequest()).path)
        made.rename(made.with_name("old.db"))
        record(admin, event("A glacier of pepper", id="new"))
    return folder


@pytest.fixture
def data(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(made, tmp_path / "data"))


@pytest.mark.parametrize("point", ["keep+", "copying", "finish"])
def test_a_backup_is_made_once_and_whole(data: Path, point: str) -> None:
    cut(data, point, "Backup")
    with server_process(data) as server:
        admin = server.keys.admin
        done = ended(admin, "cut")
        made = Path(response(done).path)
        assert done.attempts == 2
        files = {file.name for file in made.parent.iterdir()}
        assert files == {"old.db", made.name}
        finished(admin, admin_pb.RestoreRequest(backup=made.name))
        assert events(admin) == NEW


@pytest.mark.parametrize(
    ("point", "kept"),
    [
        ("checking", True),
        ("commit", True),
        ("commit+", False),
        ("finish", False),
    ],
)
def test_a_restored_tenant_is_the_old_or_the_new_one(data: Path, point: str, kept: bool) -> None:
    """`kept`: what was there is there still when the server starts. What is recorded once it was
    replaced, before the operation has ended, is not lost."""
    cut(data, point, "Restore", backup="old.db")
    with server_process(data) as server:
        admin = server.keys.admin
        if not kept:
            assert events(admin) == OLD
            record(admin, event("The lantern is lit", id="since"))
        replaced = response(ended(admin, "cut"))
        assert events(admin) == (OLD if kept else ["old", "since"])
        assert ids_of(recall(admin, "violin"))[0] == "old"
        assert not [f for f in (data / "backups/default").iterdir() if f.name.startswith(".")]
        before = Path(replaced.replaced_path).name
        finished(admin, admin_pb.RestoreRequest(backup=before))
        assert events(admin) == NEW


@pytest.mark.parametrize("point", ["commit+", "finish"])
def test_a_tenant_is_deleted_or_there(data: Path, point: str) -> None:
    cut(data, point, "DeleteTenant", tenant_id="gone")
    with server_process(data) as server:
        admin = server.keys.admin
        response(ended(admin, "cut"))
        tenants = admin.admin.ListTenants(admin_pb.ListTenantsRequest()).tenants
        assert [tenant.id for tenant in tenants] == ["default"]
        assert not (data / "tenants/gone").exists()


@pytest.mark.parametrize("point", ["commit+", "embedding"])
def test_what_is_embedded_again_is_embedded_whole(data: Path, point: str) -> None:
    cut(data, point, "Reindex")
    with server_process(data) as server:
        admin = server.keys.admin
        assert response(ended(admin, "cut")).memory_count == 2
        stats = admin.admin.GetStats(admin_pb.GetStatsRequest()).tenant
        assert (stats.vector_count, stats.pending_count) == (2, 0)
        assert events(admin) == NEW


def test_work_that_ends_the_server_again_and_again_is_given_up(data: Path) -> None:
    cut(data, "copying", "Backup")
    for _ in range(4):
        try:
            again = ServerProcess(data, cut_at="copying")
        except AssertionError:  # It was gone before it said that it serves.
            continue
        assert again.process.wait(timeout=60) == -signal.SIGKILL
        again._release()
    with server_process(data) as server:
        done = ended(server.keys.admin, "cut")
    assert done.state == pb.OPERATION_STATE_FAILED
    assert done.error.code == grpc.StatusCode.ABORTED.value[0]
    assert "stopped 5 times" in done.error.message
    assert os.listdir(data / "backups/default") == ["old.db"]
