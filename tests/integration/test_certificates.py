"""Certificates: made, checked offline and by the server, and refused when anything was changed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mneme.proof import (
    CertificateInvalid,
    ProofInvalid,
    inspect_certificate,
    open_checkpoint,
    verify_certificate,
    verify_consistency,
    verify_inclusion,
)
from mneme.proof.notes import VerifierKey
from mneme.v1 import certificate_pb2 as cert_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import proof_service_pb2 as proof_pb
from mneme_server.features.proof import certification
from support.api import Api, grpc, refused
from support.making import create_edge, episode, event, record, skill
from support.server import LocalServer

State = cert_pb.CertifiedStateKind


def remember(api: Api, memory_id: str, text: str, **fields: Any) -> None:
    api.memory.CreateMemory(memory_pb.CreateMemoryRequest(memory_id=memory_id, text=text, **fields))


def fill(api: Api) -> None:
    remember(api, "post", "Ann prefers her invoices by post")
    remember(api, "mail", "The warehouse wants delivery notes by email")
    episode(api, "send the invoice to Ann", episode_id="sent", latency_ms=1000)
    skill(api, "send_invoice", skill_id="send", description="how to send an invoice")
    record(api, event("Ann called about her invoice", "s", id="called"))


def certify(api: Api, query: str = "how does Ann get her invoice", **fields: Any) -> Any:
    return api.recall.RecallWithCertificate(
        cert_pb.RecallWithCertificateRequest(query=query, **fields)
    )


def key_of(api: Api) -> str:
    return api.proof.ListLogKeys(proof_pb.ListLogKeysRequest()).keys[-1].verifier_key


def verify(api: Api, text: str) -> Any:
    return api.recall.VerifyCertificate(cert_pb.VerifyCertificateRequest(json=text))


def states(api: Api, text: str) -> dict[str, str]:
    found = verify(api, text)
    assert found.valid, found.problems
    return {
        one.source_id: State.Name(one.state).removeprefix("CERTIFIED_STATE_KIND_")
        for one in found.results
    }


def rotate(server: LocalServer, api: Api) -> Any:
    request = proof_pb.RotateLogKeyRequest(tenant_id=api.tenant_id)
    return server.keys.admin.proof.RotateLogKey(request).key


@pytest.fixture
def api(server: LocalServer) -> Api:
    made = server.keys.tenant("proof")
    fill(made)
    return made


def test_a_certificate_verifies_offline_and_says_what_was_asked_and_answered(api: Api) -> None:
    answer = certify(api, tags=[], limit=3)
    found = verify_certificate(answer.certificate.json, key_of(api))
    assert found.id == answer.certificate.id
    assert [item.source_id for item in found.items] == [r.source_id for r in answer.results]
    assert found.body["query"]["text"] == "how does Ann get her invoice"
    assert found.body["access_level"] == "internal"
    assert found.body["model"]["dimensions"] == 384
    assert found.checkpoint.origin.startswith(f"mneme/{api.tenant_id}/")
    first = json.loads(found.items[0].content)
    assert first["text"] == answer.results[0].text
    stored = api.recall.GetCertificate(
        cert_pb.GetCertificateRequest(certificate_id=answer.certificate.id)
    )
    assert stored.certificate == answer.certificate


def test_memories_episodes_and_skills_are_recalled_and_on_request_events(api: Api) -> None:
    assert {r.source_type for r in certify(api).results} == {"memory", "episode", "skill"}
    answer = certify(api, scopes=["EVENT"])
    assert [r.source_id for r in answer.results] == ["called"]
    found = verify_certificate(answer.certificate.json, key_of(api))
    assert json.loads(found.items[0].content)[0] == "called"


def test_scores_are_made_of_similarity_uplift_and_latency(api: Api) -> None:
    for result in certify(api).results:
        expected = 0.7 * result.similarity + 0.2 * result.uplift - 0.1 * result.latency
        assert result.score == pytest.approx(expected)
    before = {r.source_id: r for r in certify(api, alpha=0.0, beta=0.0, gamma=1.0).results}
    assert before["sent"].latency == 0.5
    assert before["sent"].score == -0.5
    assert not certify(api).uplift_known
    create_edge(api, "memory:mail", "success", 0.9)
    answer = certify(api, alpha=0.0, beta=1.0, gamma=0.0)
    assert answer.uplift_known
    assert answer.results[0].source_id == "mail"
    assert answer.results[0].reason == cert_pb.RECALL_REASON_CAUSAL_LINK
    assert answer.results[0].path


def test_what_replaced_a_memory_comes_before_it_though_the_old_one_is_closer(api: Api) -> None:
    question = "is Ann a vegetarian who eats no fish"
    remember(api, "old", "Ann is a vegetarian who eats no fish", user_id="ann")
    remember(api, "between", "Ann is a vegetarian of late", user_id="ann", supersedes=["old"])
    remember(api, "new", "Trout and beef are welcome again", user_id="ann", supersedes=["between"])
    remember(api, "other", "Ann is allergic to nuts", user_id="ann")
    scores = {r.source_id: r.score for r in certify(api, question, user_id="ann").results}
    assert scores["old"] > scores["between"] > scores["other"] > scores["new"]
    assert list(scores) == ["new", "old", "between", "other"]
    (only,) = certify(api, question, user_id="ann", limit=1).results
    assert only.source_id == "new"


def test_the_smallest_set_that_covers_the_query_is_named(api: Api) -> None:
    answer = certify(api, "invoice by post, delivery notes by email", scopes=["memory"])
    assert {r.source_id for r in answer.results if r.minimal} == {"post", "mail"}
    assert answer.completeness == 1
    assert answer.redundancy == 0
    assert all(r.necessity > 0 for r in answer.results)
    one = certify(api, "invoice", limit=3)
    assert sum(r.minimal for r in one.results) == 1
    assert one.redundancy == pytest.approx(2 / 3)


def test_what_became_of_results_is_told(api: Api) -> None:
    text = certify(api).certificate.json
    assert set(states(api, text).values()) == {"UNCHANGED"}
    api.memory.DeleteMemories(memory_pb.DeleteMemoriesRequest(memory_ids=["mail"]))
    skill(api, "another", skill_id="another")
    remember(api, "new", "Ann wants invoices by pigeon")
    api.memory.UpdateMemory(
        memory_pb.UpdateMemoryRequest(
            memory=memory_pb.Memory(id="post", text="Ann has no wishes"),
            update_mask={"paths": ["text"]},
        )
    )
    assert states(api, text) == {
        "post": "CHANGED", "mail": "REMOVED", "sent": "UNCHANGED", "send": "UNCHANGED",
    }  # fmt: skip


def test_another_spelling_of_a_certificate_is_refused(api: Api) -> None:
    text, key = certify(api).certificate.json, key_of(api)
    for spelled in (text + "\n", json.dumps(json.loads(text)), text.replace(":0.", ":0.0", 1)):
        with pytest.raises(CertificateInvalid, match=r"format|JSON"):
            verify_certificate(spelled, key)
        assert not verify(api, spelled).valid


@pytest.fixture(scope="module")
def made(server: LocalServer) -> tuple[str, str]:
    api = server.keys.tenant("proof")
    fill(api)
    return certify(api).certificate.json, key_of(api)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_any_flipped_bit_of_a_certificate_is_found(
    made: tuple[str, str], place: float, bit: int
) -> None:
    raw = bytearray(made[0].encode())
    raw[int(place * len(raw))] ^= 1 << bit
    _, problems = inspect_certificate(bytes(raw), made[1])
    assert problems
    assert all(problem.part and problem.message for problem in problems)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 6))
def test_any_flipped_bit_of_the_key_is_found(made: tuple[str, str], place: float, bit: int) -> None:
    raw = bytearray(made[1].encode())
    raw[int(place * len(raw))] ^= 1 << bit
    _, problems = inspect_certificate(made[0], raw.decode())
    assert any(problem.part == "key" for problem in problems)


@pytest.mark.parametrize(
    ("path", "part"),
    [
        (["results", 1, "content"], "results[1].proof"),
        (["results", 0, "salt"], "results[0].proof"),
        (["results", 2, "proof", 0], "results[2].proof"),
        (["checkpoint"], "checkpoint"),
        (["query", "text"], "signature"),
    ],
)
def test_the_part_that_was_changed_is_named(
    made: tuple[str, str], path: list[Any], part: str
) -> None:
    import rfc8785

    certificate = json.loads(made[0])
    at = certificate["body"]
    for name in path[:-1]:
        at = at[name]
    old = at[path[-1]]
    another = "C" if old.startswith("B") else "B"  # The last one of base64 is not all data.
    at[path[-1]] = old.replace("voice", "vioce", 1) if "voice" in old else another + old[1:]
    _, problems = inspect_certificate(rfc8785.dumps(certificate), made[1])
    assert part in {problem.part for problem in problems}
    assert "signature" in {problem.part for problem in problems}


def test_a_certificate_of_another_tenant_is_not_this_ones(server: LocalServer, api: Api) -> None:
    rival = server.keys.tenant("rival")
    fill(rival)
    found = verify(api, certify(rival).certificate.json)
    assert not found.valid
    assert {problem.part for problem in found.problems} >= {"key", "checkpoint"}
    with refused() as failure:
        api.recall.GetCertificate(
            cert_pb.GetCertificateRequest(certificate_id=certify(rival).certificate.id)
        )
    assert failure.code == grpc.StatusCode.NOT_FOUND


def test_heads_are_joined_by_proofs_and_leaves_lead_to_them(api: Api) -> None:
    key = VerifierKey.parse(key_of(api))
    old = open_checkpoint(checkpoint(api).note, [key])
    record(api, *(event(f"words {number}", "s2") for number in range(300)))
    new = open_checkpoint(checkpoint(api).note, [key])
    assert new.size > old.size
    proof = consistency(api, old.size, new.size)
    verify_consistency(old.size, old.root, new.size, new.root, proof)
    with pytest.raises(ProofInvalid):
        verify_consistency(old.size, new.root, new.size, new.root, proof)
    included = api.proof.GetInclusionProof(
        proof_pb.GetInclusionProofRequest(source_type="EVENT", source_id="called", size=new.size)
    )
    hashes = list(included.hashes)
    verify_inclusion(included.leaf_hash, included.leaf_index, new.size, hashes, new.root)
    by_place = proof_pb.GetInclusionProofRequest(leaf_index=included.leaf_index, size=new.size)
    assert api.proof.GetInclusionProof(by_place) == included


def checkpoint(api: Api) -> Any:
    return api.proof.GetCheckpoint(proof_pb.GetCheckpointRequest())


def consistency(api: Api, old: int, new: int) -> list[bytes]:
    request = proof_pb.GetConsistencyProofRequest(old_size=old, new_size=new)
    return list(api.proof.GetConsistencyProof(request).hashes)


@pytest.mark.parametrize(
    "request_",
    [
        proof_pb.GetInclusionProofRequest(leaf_index=10**6),
        proof_pb.GetInclusionProofRequest(leaf_index=1, size=10**6),
        proof_pb.GetConsistencyProofRequest(old_size=10**6),
        proof_pb.GetConsistencyProofRequest(old_size=3, new_size=2),
    ],
    ids=str,
)
def test_a_size_or_a_leaf_that_never_was_is_refused(api: Api, request_: Any) -> None:
    method = type(request_).__name__.removesuffix("Request")
    with refused() as failure:
        getattr(api.proof, method)(request_)
    assert (failure.code, failure.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "OUT_OF_RANGE")
    assert failure.field


def test_what_is_certified_while_the_key_is_rotated_is_to_be_asked_again(
    server: LocalServer, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old key's private half is destroyed by then: nothing is lost by that."""
    signed_bytes = certification.signed_bytes

    def rotated_before(body: str) -> bytes:
        monkeypatch.setattr(certification, "signed_bytes", signed_bytes)
        rotate(server, api)
        return signed_bytes(body)

    monkeypatch.setattr(certification, "signed_bytes", rotated_before)
    with refused() as failure:
        certify(api)
    assert (failure.code, failure.retry_after_s) == (grpc.StatusCode.UNAVAILABLE, 0.1)
    verify_certificate(certify(api).certificate.json, key_of(api))


def test_a_key_is_rotated_and_the_old_one_names_the_new(server: LocalServer, api: Api) -> None:
    before = certify(api).certificate.json
    made = rotate(server, api)
    keys = api.proof.ListLogKeys(proof_pb.ListLogKeysRequest()).keys
    assert [key.number for key in keys] == [1, 2]
    assert keys[0].HasField("retired_at")
    assert made == keys[1]
    from mneme.proof.notes import open_note

    introduced = open_note(made.introduction, [VerifierKey.parse(keys[0].verifier_key)])
    assert made.verifier_key in introduced
    after = certify(api).certificate.json
    verify_certificate(after, made.verifier_key)
    verify_certificate(before, keys[0].verifier_key)
    with pytest.raises(CertificateInvalid):
        verify_certificate(after, keys[0].verifier_key)
    assert set(states(api, before).values()) == {"UNCHANGED"}
    with refused() as failure:
        api.proof.RotateLogKey(proof_pb.RotateLogKeyRequest())
    assert failure.code == grpc.StatusCode.PERMISSION_DENIED
