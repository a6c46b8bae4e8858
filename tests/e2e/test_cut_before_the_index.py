"""The server is killed when an event is committed and no index knows of it yet."""

from __future__ import annotations

import signal
from pathlib import Path

import grpc
import pytest
from mneme.v1 import recall_service_pb2 as recall_pb
from support.cutting import LAST
from support.making import event, ids_of, recall, record
from support.server import ServerProcess, server_process

LEXICAL, DENSE = recall_pb.RECALL_MODE_LEXICAL, recall_pb.RECALL_MODE_DENSE


def test_an_event_whose_commit_no_index_was_told_of_is_found_after_the_next_start(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    with server_process(data) as server:  # What the indexes write when it stops lacks the rest.
        api = server.keys.tenant()
        secret = api.secret
        record(api, *[event(f"heron {n} stood in the reeds", id=f"h{n}") for n in range(30)],
               wait=True)  # fmt: skip
    server = ServerProcess(data, cut_at="apply")
    api = server.keys.api(secret)
    record(api, event("a pelican sat on the pier", id="pelican"), wait=True)
    with pytest.raises(grpc.RpcError):
        record(api, event("a kingfisher dived from the bridge", id=LAST))
    assert server.process.wait(timeout=60) == -signal.SIGKILL, server.log
    server._release()
    with server_process(data) as server:
        api = server.keys.api(secret)
        assert ids_of(recall(api, "kingfisher", mode=LEXICAL)) == [LAST]
        assert ids_of(recall(api, "pelican", mode=LEXICAL)) == ["pelican"]
        record(api, event("the tide came in", id="tide"), wait=True)  # And those before it.
        assert LAST in ids_of(recall(api, "a bird that dives", mode=DENSE, limit=50))
        found = recall(api, "heron kingfisher pelican tide", limit=50)
        assert set(ids_of(found)) >= {LAST, "pelican", "tide", "h0"}
        assert all(result.HasField("similarity") for result in found.results)
