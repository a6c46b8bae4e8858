"""On a disk that is full keys are revoked, tenants deleted and things forgotten all the same."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mneme.v1 import admin_service_pb2 as admin_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme_server.engine.tenants.reserve import Reserve
from support.api import Api, grpc, refused
from support.folders import wait_until
from support.making import recall
from support.operations import finished
from support.server import LocalServer, local_server

_RESERVE = 8 * 1024 * 1024

pytestmark = pytest.mark.on_sqlite("it fills the disk of the databases")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 MB, in memory."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder)]
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("a small disk of its own can be mounted by root on Linux only")
    if subprocess.run(mounting, capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def server(disk: Path) -> Iterator[LocalServer]:
    with local_server(disk / "data", disk_reserve_bytes=_RESERVE) as running:
        yield running


def fill(disk: Path) -> Path:
    """Take all the room that there is."""
    taken = disk / "taken"
    with taken.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return taken


def remember(api: Api, memory_id: str, text: str) -> None:
    api.memory.CreateMemory(memory_pb.CreateMemoryRequest(memory_id=memory_id, text=text))


def test_revoking_deleting_and_forgetting_work_on_a_full_disk_and_the_room_is_taken_again(
    disk: Path, server: LocalServer
) -> None:
    reserve, admin = disk / "data" / "reserve", server.keys.admin
    assert reserve.stat().st_size == _RESERVE
    kept, gone = server.keys.tenant("kept"), server.keys.tenant("gone")
    for api in (kept, gone):
        remember(api, "secret", "Ann keeps the lighthouse")
        remember(api, "open", "The harbour is open")
    taken = fill(disk)
    with refused() as failure:
        for number in range(200):
            remember(kept, f"m{number}", f"{number} " + "words " * 5_000)
    assert (failure.code, failure.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED")

    keys = admin.admin.ListApiKeys(admin_pb.ListApiKeysRequest(tenant_id=kept.tenant_id)).api_keys
    admin.admin.RevokeApiKey(admin_pb.RevokeApiKeyRequest(api_key_id=keys[0].id))
    with refused() as failure:
        recall(kept, "harbour")
    assert failure.code == grpc.StatusCode.UNAUTHENTICATED
    fill(disk)
    forget = admin_pb.ForgetRequest(tenant_id=kept.tenant_id)
    forget.items.add(kind="memory", id="secret")
    assert finished(admin, forget).statement
    fill(disk)
    finished(admin, admin_pb.DeleteTenantRequest(tenant_id=gone.tenant_id))
    assert not (disk / "data" / "tenants" / gone.tenant_id).exists()

    taken.unlink()
    server.application._reserving.soon()
    wait_until(lambda: reserve.stat().st_size == _RESERVE, "the room is taken again")


def test_the_reserve_takes_what_there_is_and_goes_while_it_is_lent_on_a_full_disk(
    disk: Path,
) -> None:
    path = disk / "reserve"
    reserve = Reserve(path, _RESERVE)
    reserve.make()
    with reserve.lent():
        assert path.exists(), "there is room enough"
    fill(disk)
    with reserve.lent():
        assert (path.exists(), reserve.held) == (False, 0)
        (disk / "other").write_bytes(bytes(_RESERVE // 2))
    assert 0 < reserve.held < _RESERVE, "as much of it as is left"
    assert Reserve(path, _RESERVE).held == reserve.held, "one that was killed left it"
    (disk / "taken").unlink()
    reserve.make()
    assert reserve.held == path.stat().st_size == _RESERVE
    reserve.close()
    assert not path.exists()
