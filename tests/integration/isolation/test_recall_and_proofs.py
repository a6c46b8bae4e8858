"""Tenants recall nothing of each other, and their certificates and proofs are their own."""

from __future__ import annotations

from typing import Any

from mneme.v1 import certificate_pb2 as certificate_pb
from mneme.v1 import proof_service_pb2 as proof_pb
from mneme.v1 import recall_service_pb2 as recall_pb
from support.api import Api, grpc, refused
from support.isolation import OTHER, TOPIC, Checks, World, answered_as_absent
from support.making import ids_of, recall

isolates = Checks()


@isolates("mneme.v1.RecallService/Recall")
def _(world: World) -> None:
    query = "the payment was refused by the bank"
    for api in (world.ours, world.alone):
        # The words of both lie on the disk then: BM25 rounds the lengths of texts there.
        world.server.close_tenant(api.tenant_id)
    modes = (
        recall_pb.RECALL_MODE_HYBRID, recall_pb.RECALL_MODE_DENSE, recall_pb.RECALL_MODE_LEXICAL
    )  # fmt: skip
    for mode in modes:
        mine, lonely = (recall(api, query, mode=mode) for api in (world.ours, world.alone))
        assert OTHER not in ids_of(mine)
        assert "event-4" not in ids_of(mine)
        # Not even the statistics that rank are shared.
        assert mine == lonely
        for field in ("agent_id", "session_id", "user_id", "project", "tags"):
            answer = answered_as_absent(
                world.ours,
                "mneme.v1.RecallService/Recall",
                lambda asked, field=field, mode=mode: recall_pb.RecallRequest(
                    query=query,
                    mode=mode,
                    only_own=True,
                    **{field: [asked] if field == "tags" else asked},
                ),
            )
            assert answer == ["outcome: RECALL_OUTCOME_NOTHING_MATCHES_FILTERS\nconfidence: 0\n"], (
                field
            )


def _certified(api: Api, **fields: Any) -> Any:
    asked = certificate_pb.RecallWithCertificateRequest(query=TOPIC, **fields)
    return api.recall.RecallWithCertificate(asked)


@isolates("mneme.v1.RecallService/RecallWithCertificate")
def _(world: World) -> None:
    for fields in ({}, {"scopes": ["event", "lesson"]}):
        answer = _certified(world.ours, **fields)
        assert OTHER not in str(answer)
        assert "event-4" not in str(answer)
    for field in ("agent_id", "session_id", "user_id", "project", "tags"):
        given = {field: [OTHER] if field == "tags" else OTHER}
        assert not _certified(world.ours, scopes=["event", "memory"], **given).results


@isolates("mneme.v1.RecallService/GetCertificate")
def _(world: World) -> None:
    theirs = _certified(world.theirs).certificate.id
    with refused() as failure:
        world.ours.recall.GetCertificate(
            certificate_pb.GetCertificateRequest(certificate_id=theirs)
        )
    assert failure.code == grpc.StatusCode.NOT_FOUND


@isolates("mneme.v1.RecallService/VerifyCertificate")
def _(world: World) -> None:
    theirs = _certified(world.theirs).certificate.json
    found = world.ours.recall.VerifyCertificate(
        certificate_pb.VerifyCertificateRequest(json=theirs)
    )
    assert not found.valid
    assert not found.results


@isolates("mneme.v1.ProofService/GetCheckpoint")
def _(world: World) -> None:
    asked = proof_pb.GetCheckpointRequest()
    mine, other = (api.proof.GetCheckpoint(asked) for api in (world.ours, world.theirs))
    assert mine.origin.startswith(f"mneme/{world.ours.tenant_id}/")
    assert mine.root_hash != other.root_hash
    assert mine.verifier_key != other.verifier_key


@isolates("mneme.v1.ProofService/GetConsistencyProof")
def _(world: World) -> None:
    size = world.theirs.proof.GetCheckpoint(proof_pb.GetCheckpointRequest()).size
    with refused() as failure:
        world.ours.proof.GetConsistencyProof(
            proof_pb.GetConsistencyProofRequest(old_size=1, new_size=size + 1_000)
        )
    assert failure.reason == "OUT_OF_RANGE"


@isolates("mneme.v1.ProofService/GetInclusionProof")
def _(world: World) -> None:
    answered_as_absent(
        world.ours,
        "mneme.v1.ProofService/GetInclusionProof",
        lambda asked: proof_pb.GetInclusionProofRequest(source_type="lesson", source_id=asked),
    )


@isolates("mneme.v1.ProofService/ListLogKeys")
def _(world: World) -> None:
    asked = proof_pb.ListLogKeysRequest()
    mine, other = (api.proof.ListLogKeys(asked).keys for api in (world.ours, world.theirs))
    assert not {key.verifier_key for key in mine} & {key.verifier_key for key in other}


@isolates("mneme.v1.ProofService/RotateLogKey")
def _(world: World) -> None:
    before = world.theirs.proof.ListLogKeys(proof_pb.ListLogKeysRequest())
    world.administrator.proof.RotateLogKey(proof_pb.RotateLogKeyRequest())
    assert world.theirs.proof.ListLogKeys(proof_pb.ListLogKeysRequest()) == before


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_of(rpc: str, world: World) -> None:
    isolates.run(rpc, world)


@isolates.each_rpc
def test_another_tenants_data_is_out_of_reach_over_rest_of(rpc: str, over_rest: World) -> None:
    isolates.run(rpc, over_rest)
