"""An index that fails to take a change is caught up; the caller's change is safe."""

from __future__ import annotations

import time
from pathlib import Path
from unittest import mock

from structlog.testing import capture_logs
from support.making import event, record
from support.server import local_server


def test_an_index_that_missed_a_change_is_opened_anew_and_finds_it(tmp_path: Path) -> None:
    from mneme.v1 import recall_service_pb2 as recall_pb
    from mneme_server.index.tenant_index import TenantIndex

    with capture_logs() as logged, local_server(tmp_path / "data") as server:
        api = server.keys.tenant()
        record(api, event("the first message"), wait=True)
        with mock.patch.object(TenantIndex, "add_documents", side_effect=OSError("no space")):
            (receipt,) = record(api, event("the heron stood in the reeds"))
        assert receipt.sequence == 2
        request = recall_pb.RecallRequest(query="heron in the reeds")
        deadline = time.monotonic() + 20
        while True:
            found = [result.text for result in api.recall.Recall(request).results]
            if "the heron stood in the reeds" in found or time.monotonic() > deadline:
                break
            time.sleep(0.05)
    assert "the heron stood in the reeds" in found
    assert any("missed a change" in entry["event"] for entry in logged)
