"""The verifier: what is right verifies, what is wrong does not, as in every client."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from contextlib import nullcontext
from typing import Any

import pytest
import rfc8785
from cryptography.exceptions import InvalidSignature
from mneme.proof import (
    CertificateInvalid,
    NoteInvalid,
    ProofInvalid,
    VerifierKey,
    inspect_certificate,
    open_checkpoint,
    verify_certificate,
    verify_consistency,
    verify_inclusion,
)
from mneme.proof.merkle import commitment_of, leaf_hash
from support.server import REPOSITORY

VECTORS = json.loads((REPOSITORY / "tests/fixtures/proof_vectors.json").read_text())
CERTIFICATES = VECTORS["certificates"]


def hashes(texts: list[str]) -> list[bytes]:
    return [*map(base64.b64decode, texts)]


def test_a_certificate_that_the_server_made_verifies() -> None:
    found = verify_certificate(CERTIFICATES["valid"], CERTIFICATES["key"])
    assert found.id == CERTIFICATES["id"]
    assert len(found.items) == 3


@pytest.mark.parametrize("wrong", CERTIFICATES["wrong"], ids=lambda one: one["part"])
def test_a_certificate_that_was_changed_names_the_part(wrong: dict[str, str]) -> None:
    with pytest.raises(CertificateInvalid):
        verify_certificate(wrong["json"], CERTIFICATES["key"])
    _, problems = inspect_certificate(wrong["json"], CERTIFICATES["key"])
    assert wrong["part"] in {problem.part for problem in problems}


@pytest.mark.parametrize("forged", CERTIFICATES["forged"], ids=lambda one: one["part"] or "none")
def test_what_one_tenants_key_signs_proves_nothing_of_anothers(forged: dict[str, Any]) -> None:
    _, problems = inspect_certificate(forged["json"], *forged["keys"])
    parts = {problem.part for problem in problems}
    assert (forged["part"] in parts) if forged["part"] else not parts


def test_a_verifier_that_is_written_from_the_page_alone_says_the_same() -> None:
    page = (REPOSITORY / "docs/certificate-format.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, "certificate-format.md", "exec"), names)
    verify, key = names["verify"], CERTIFICATES["key"]
    body, signer = verify(CERTIFICATES["valid"].encode(), [key])
    found = verify_certificate(CERTIFICATES["valid"], key)
    assert (body, signer) == (found.body, f"{found.signed_by.name}+{found.signed_by.id.hex()}")
    for one in (*CERTIFICATES["wrong"], *CERTIFICATES["forged"]):
        wrong = pytest.raises((ValueError, LookupError, InvalidSignature))
        with wrong if one["part"] else nullcontext():
            verify(one["json"].encode(), one.get("keys", [key]))
    salt, content = bytes(range(16)), '{"id":"m1","kind":"memory","text":"Zoë","timestamp":"0"}'
    leaf = leaf_hash(commitment_of(salt, content))
    root = hashlib.sha256(b"\x01" + leaf + leaf)
    for hash_ in (commitment_of(salt, content).hex(), leaf.hex(), root.hexdigest()):
        assert f"`{hash_}`" in page


@pytest.mark.parametrize(
    "content", ["[]", "5", "null", '""', "[" * 100_000], ids=lambda text: text[:6]
)
def test_content_that_is_no_items_is_named_and_breaks_nothing(content: str) -> None:
    certificate = json.loads(CERTIFICATES["valid"])
    certificate["body"]["results"][0]["content"] = content
    found, problems = inspect_certificate(rfc8785.dumps(certificate), CERTIFICATES["key"])
    assert found is None
    assert "results[0].content" in {problem.part for problem in problems}


@pytest.mark.parametrize("one", VECTORS["inclusion"])
def test_inclusion_holds_or_does_not_as_it_should(one: dict[str, Any]) -> None:
    leaf, root, proof = *hashes([one["leaf"], one["root"]]), hashes(one["proof"])
    with nullcontext() if one["valid"] else pytest.raises(ProofInvalid):
        verify_inclusion(leaf, one["index"], one["size"], proof, root)


@pytest.mark.parametrize("one", VECTORS["consistency"])
def test_consistency_holds_or_does_not_as_it_should(one: dict[str, Any]) -> None:
    old, root, proof = *hashes([one["old_root"], one["root"]]), hashes(one["proof"])
    with nullcontext() if one["valid"] else pytest.raises(ProofInvalid):
        verify_consistency(one["old_size"], old, one["size"], root, proof)


# RFC 6962's known tree of eight leaves, and proofs in it that other implementations give.
ROOT_8 = "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"
ROOT_3 = "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"
LEAF_0 = "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
INCLUSION_0_OF_8 = [
    "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
    "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
    "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
]


def test_the_known_proof_of_rfc_6962_verifies() -> None:
    leaf, root = bytes.fromhex(LEAF_0), bytes.fromhex(ROOT_8)
    proof = [*map(bytes.fromhex, INCLUSION_0_OF_8)]
    verify_inclusion(leaf, 0, 8, proof, root)
    for broken in (proof[:2], [*proof, root], proof[::-1]):
        with pytest.raises(ProofInvalid):
            verify_inclusion(leaf, 0, 8, broken, root)


def test_a_note_of_another_implementation_opens() -> None:
    key = VerifierKey.parse("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")
    note = (
        "If you think cryptography is the answer to your problem,\n"
        "then you don't know what your problem is.\n"
        "\n"
        "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdng"
        "otpRZb6KE6RyyBwJnAM=\n"
    )
    from mneme.proof.notes import open_note

    assert open_note(note, [key]).startswith("If you think")
    with pytest.raises(NoteInvalid, match="does not hold"):
        open_note(note.replace("answer", "problem"), [key])
    with pytest.raises(NoteInvalid, match="no head of a log"):
        open_checkpoint(note, [key])


@pytest.mark.parametrize("note", ["", "text", "a\n\n", "a\n\n— b\n", "a\n\n— b c=\n", "\n\n\n"])
def test_what_is_no_note_is_refused(note: str) -> None:
    with pytest.raises(NoteInvalid):
        open_checkpoint(note, [])
