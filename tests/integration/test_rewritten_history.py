"""Who can write every database but holds no key cannot have the server sign another history."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import pytest
from mneme.proof.notes import VerifierKey, checkpoint_text, open_checkpoint, signature_line
from mneme.v1 import certificate_pb2 as cert_pb
from mneme.v1 import memory_service_pb2 as memory_pb
from mneme.v1 import proof_service_pb2 as proof_pb
from structlog.testing import capture_logs
from support.api import Api, grpc, refused
from support.behind import Behind
from support.server import LocalServer


def remember(api: Api, memory_id: str, text: str) -> None:
    api.memory.CreateMemory(memory_pb.CreateMemoryRequest(memory_id=memory_id, text=text))


def checkpoint(api: Api) -> Any:
    return api.proof.GetCheckpoint(proof_pb.GetCheckpointRequest())


def certify(api: Api) -> Any:
    request = cert_pb.RecallWithCertificateRequest(query="invoices by post", scopes=["memory"])
    return api.recall.RecallWithCertificate(request)


def rotate(server: LocalServer, api: Api) -> Any:
    request = proof_pb.RotateLogKeyRequest(tenant_id=api.tenant_id)
    return server.keys.admin.proof.RotateLogKey(request).key


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Return the root over leaves, as RFC 9162 defines it."""
    if len(leaves) < 2:
        return leaves[0] if leaves else sha256().digest()
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return sha256(b"\x01" + root_of(leaves[:split]) + root_of(leaves[split:])).digest()


@pytest.fixture
def api(server: LocalServer) -> Api:
    made = server.keys.tenant("history")
    for number in range(3):
        remember(made, f"m{number}", f"Ann wants invoice {number} by post")
    checkpoint(made)
    return made


@pytest.fixture
def behind(server: LocalServer, api: Api) -> Behind:
    return Behind(server, api.tenant_id)


def rewrite(api: Api, behind: Behind) -> tuple[int, bytes]:
    """Change a memory, its leaf, and the tree over it; return the size and the root of that."""
    tenant, (text,) = api.tenant_id, {"Eve gets all of Ann's money"}
    of = "tenant_id = ? AND source_id = ?"
    ((salt, content),) = behind.tenant(
        f"SELECT salt, content FROM log_leaves WHERE {of}", tenant, "m1"
    )
    told = json.loads(content) | {"text": text}
    written = json.dumps(told, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
    commitment = sha256(bytes(salt) + written.encode()).digest()
    behind.tenant(f"UPDATE documents SET text = ? WHERE {of}", text, tenant, "m1")
    behind.tenant(
        f"UPDATE log_leaves SET content = ?, commitment = ? WHERE {of}",
        written, commitment, tenant, "m1",
    )  # fmt: skip
    tile = "tenant_id = ? AND level = 0 AND number = 0"
    ((hashes,),) = behind.tenant(f"SELECT hashes FROM log_tiles WHERE {tile}", tenant)
    ((leaf,),) = behind.tenant(f"SELECT leaf FROM log_leaves WHERE {of}", tenant, "m1")
    leaves = [bytes(hashes)[at : at + 32] for at in range(0, len(hashes), 32)]
    leaves[leaf] = sha256(b"\x00" + commitment).digest()
    behind.tenant(f"UPDATE log_tiles SET hashes = ? WHERE {tile}", b"".join(leaves), tenant)
    return len(leaves), root_of(leaves)


def refuses(api: Api, said: str) -> None:
    for call in (checkpoint, certify):
        with refused() as failure:
            call(api)
        assert (failure.code, failure.reason) == (grpc.StatusCode.DATA_LOSS, "LOG_CHANGED")
        assert said in failure.message


def test_a_history_that_was_rewritten_with_its_root_is_not_signed(api: Api, behind: Behind) -> None:
    before = certify(api).certificate.json
    _, root = rewrite(api, behind)
    behind.catalog("UPDATE log_heads SET root = ? WHERE tenant_id = ?", root, api.tenant_id)
    remember(api, "next", "which adds a leaf")
    with capture_logs() as logs:
        refuses(api, "its head has 3 leaves, and what was signed is")
    assert {one["tenant"] for one in logs if one["event"] == "log not signed"} == {api.tenant_id}
    told = api.recall.VerifyCertificate(cert_pb.VerifyCertificateRequest(json=before))
    assert {one.part for one in told.problems} == {"log"}


def test_nor_when_what_it_is_called_or_counts_is_changed_with_it(api: Api, behind: Behind) -> None:
    size, root = rewrite(api, behind)
    mine = "WHERE tenant_id = ?"
    behind.catalog(f"UPDATE log_heads SET root = ?, size = 0 {mine}", root, api.tenant_id)
    refuses(api, "its head has 0 leaves")
    behind.catalog(f"UPDATE log_heads SET size = ?, note = 'none' {mine}", size, api.tenant_id)
    refuses(api, "its head in the catalog does not hold")


def test_nor_when_its_head_was_taken_away(api: Api, behind: Behind) -> None:
    rewrite(api, behind)
    behind.catalog("DELETE FROM log_heads WHERE tenant_id = ?", api.tenant_id)
    remember(api, "next", "which adds a leaf")
    refuses(api, "no head of it is in the catalog")


def test_nor_with_the_head_of_another_tenants_log(
    server: LocalServer, api: Api, behind: Behind
) -> None:
    rival = server.keys.tenant("rival")
    remember(rival, "m1", "what Eve wrote")
    note = checkpoint(rival).note
    rewrite(api, behind)
    behind.catalog("UPDATE log_heads SET note = ? WHERE tenant_id = ?", note, api.tenant_id)
    refuses(api, "no key that was given signed it")


def signed_by_eve(origin: str, size: int, root: bytes, name: str) -> tuple[bytes, str]:
    """Return the public half of a key that somebody made, and a head that it signed."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.generate()
    key = VerifierKey(name, private.public_key().public_bytes_raw())
    text = checkpoint_text(origin, size, root)
    return key.public, f"{text}\n{signature_line(key, private.sign(text.encode()))}"


@pytest.mark.parametrize("of", ["the key that signs", "one before it"])
def test_nor_with_a_head_that_a_key_signed_which_somebody_put_in_the_catalog(
    server: LocalServer, api: Api, behind: Behind, of: str
) -> None:
    if of == "one before it":
        rotate(server, api)
    origin = checkpoint(api).origin
    size, root = rewrite(api, behind)
    public, note = signed_by_eve(origin, size, root, f"mneme/{api.tenant_id}")
    behind.catalog(
        "UPDATE log_keys SET public_key = ? WHERE tenant_id = ? AND number = 1",
        public, api.tenant_id,
    )  # fmt: skip
    behind.catalog(
        "UPDATE log_heads SET note = ?, root = ? WHERE tenant_id = ?", note, root, api.tenant_id
    )
    if of == "the key that signs":
        refuses(api, "key 1 of tenant")
    else:
        refuses(api, "no key that was given signed it")


def test_a_catalog_that_lost_a_key_destroys_none(api: Api, behind: Behind) -> None:
    key = checkpoint(api).verifier_key
    behind.catalog("DELETE FROM log_keys WHERE tenant_id = ?", api.tenant_id)
    remember(api, "next", "which adds a leaf")
    assert checkpoint(api).verifier_key == key


def test_a_new_key_signs_the_head_that_the_old_one_did_and_none_that_it_did_not(
    server: LocalServer, api: Api, behind: Behind
) -> None:
    before = checkpoint(api)
    made = rotate(server, api)
    after = checkpoint(api)
    assert (after.size, after.root_hash) == (before.size, before.root_hash)
    assert open_checkpoint(after.note, [VerifierKey.parse(made.verifier_key)]).size == before.size
    _, root = rewrite(api, behind)
    behind.catalog("UPDATE log_heads SET root = ? WHERE tenant_id = ?", root, api.tenant_id)
    rotate(server, api)
    refuses(api, "has another root")


def test_what_an_old_key_signed_stays_true_and_what_another_one_did_does_not(
    server: LocalServer, api: Api, behind: Behind
) -> None:
    before = certify(api).certificate.json
    rotate(server, api)
    rotate(server, api)
    check = cert_pb.VerifyCertificateRequest(json=before)
    assert api.recall.VerifyCertificate(check).valid
    # An old key that no newer one names: somebody added it.
    behind.catalog(
        "UPDATE log_keys SET introduction = '' WHERE tenant_id = ? AND number = 2", api.tenant_id
    )
    found = api.recall.VerifyCertificate(check)
    assert {one.part for one in found.problems} >= {"key"}
