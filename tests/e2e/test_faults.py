"""What a machine may do to a server: no call is lost for it, and the process lives on."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from support.api import refused
from support.making import event, list_events, record, verify
from support.server import server_process

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_a_log_that_cannot_be_written_fails_no_call(tmp_path: Path) -> None:
    (tmp_path / "data.log").symlink_to(FULL)
    with server_process(
        tmp_path / "data", log_path=tmp_path / "data.log", log_level="info"
    ) as server:
        api = server.keys.tenant()
        record(api, event("kept", id="e"), wait=True)
        assert [found.id for found in list_events(api)] == ["e"]
        assert server.stop() == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    if shutil.which("mount") is None:
        pytest.skip("needs mount")
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("may not mount a small tmpfs here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_refuses_writes_loses_nothing_and_heals_by_itself(
    tmp_path: Path, small_disk: Path
) -> None:
    acknowledged: list[str] = []
    with server_process(small_disk / "data", log_path=tmp_path / "log") as server:
        api = server.keys.tenant()

        def write() -> None:
            name = f"e{len(acknowledged)}"
            record(api, event(name, id=name, searchable=False, payload={"body": "x" * 200_000}))
            acknowledged.append(name)

        with refused() as failure:
            while True:
                write()
        assert (failure.code, failure.reason) == (
            grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED",
        )  # fmt: skip
        assert failure.retry_after_s
        assert [found.id for found in list_events(api)] == acknowledged
        subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
        write()
        assert len(list_events(api)) == len(acknowledged)
        assert verify(api).valid
        assert server.stop() == 0
        assert "internal error" not in server.log
