"""What a machine may do to a server: no call is lost for it, and the process lives on."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.making import event, list_events, record
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
