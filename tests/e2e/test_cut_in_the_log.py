"""The server is killed between the row, the leaf and the index: all of them are there, or none."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import grpc
import pytest
from mneme.proof import (
    open_checkpoint,
    verify_certificate,
    verify_consistency,
    verify_inclusion,
)
from mneme.proof.notes import Checkpoint, VerifierKey
from mneme.v1 import certificate_pb2 as cert_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import proof_service_pb2 as proof_pb
from support.api import Api
from support.cutting import LAST
from support.making import event, ids_of, recall, record
from support.making import verify as verify_chain
from support.server import ServerProcess, server_process


def store(api: Api, kind: str, name: str, text: str) -> None:
    if kind == "event":
        record(api, event(text, "s", id=name))
    else:
        api.memory.CreateMemory(memory_pb.CreateMemoryRequest(memory_id=name, text=text))


def head_of(api: Api) -> Checkpoint:
    said = api.proof.GetCheckpoint(proof_pb.GetCheckpointRequest())
    return open_checkpoint(said.note, [VerifierKey.parse(said.verifier_key)])


def require_grown(api: Api, old: Checkpoint, by: int) -> Checkpoint:
    """Check that the log has so many more leaves behind those that it had; return its head."""
    new = head_of(api)
    assert (new.origin, new.size) == (old.origin, old.size + by)
    request = proof_pb.GetConsistencyProofRequest(old_size=old.size, new_size=new.size)
    hashes = [] if by == 0 else list(api.proof.GetConsistencyProof(request).hashes)
    verify_consistency(old.size, old.root, new.size, new.root, hashes)
    return new


def certified(api: Api, kind: str, question: str) -> Any:
    made = api.recall.RecallWithCertificate(
        cert_pb.RecallWithCertificateRequest(query=question, scopes=[kind])
    ).certificate
    key = api.proof.ListLogKeys(proof_pb.ListLogKeysRequest()).keys[-1].verifier_key
    return [item.source_id for item in verify_certificate(made.json, key).items]


@pytest.mark.parametrize("kind", ["event", "memory"])
@pytest.mark.parametrize("point", ["leaf", "leaf+", "apply"])
def test_after_a_kill_row_leaf_and_index_agree(kind: str, point: str, tmp_path: Path) -> None:
    data, is_there = tmp_path / "data", point == "apply"
    server = ServerProcess(data, cut_at=point)
    api = server.keys.tenant()
    secret = api.secret
    store(api, kind, "first", "the heron stood in the reeds")
    before = head_of(api)
    with pytest.raises(grpc.RpcError):
        store(api, kind, LAST, "the kingfisher dived from the bridge")
    assert server.process.wait(timeout=60) == -signal.SIGKILL, server.log
    server._release()
    with server_process(data) as server:
        api = server.keys.api(secret)
        head = require_grown(api, before, int(is_there))
        found = [LAST] if is_there else []
        assert [one for one in ids_of(recall(api, "kingfisher", scopes=[kind])) if one == LAST] == (
            found
        )
        assert (LAST in certified(api, kind, "kingfisher from the bridge")) == is_there
        assert verify_chain(api).valid
        if not is_there:  # Sent again, as a client does that had no answer.
            store(api, kind, LAST, "the kingfisher dived from the bridge")
            head = require_grown(api, before, 1)
        included = api.proof.GetInclusionProof(
            proof_pb.GetInclusionProofRequest(source_type=kind, source_id=LAST)
        )
        assert included.leaf_index == before.size
        verify_inclusion(
            included.leaf_hash, included.leaf_index, head.size, list(included.hashes), head.root
        )
        assert LAST in certified(api, kind, "kingfisher from the bridge")
        assert LAST in ids_of(recall(api, "kingfisher", scopes=[kind]))
