import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import {
  CertificateInvalid,
  ProofInvalid,
  verifyCertificate,
  verifyConsistency,
  verifyInclusion,
} from "@mneme/client";

/** What the verifiers of all languages are tested with. */
const VECTORS = JSON.parse(readFileSync("../../tests/fixtures/proof_vectors.json", "utf8"));

const bytes = (text: string): Buffer => Buffer.from(text, "base64");

test("a certificate that was made by the server verifies, as text and as bytes", () => {
  const { valid, id, key } = VECTORS.certificates;
  for (const text of [valid, Buffer.from(valid)]) {
    const found = verifyCertificate(text, key);
    assert.equal(found.id, id);
    assert.equal(found.items.length, 3);
    assert.ok(found.checkpoint.origin.startsWith("mneme/default/"));
  }
});

test("a certificate that was changed names the part", () => {
  const { wrong, key } = VECTORS.certificates;
  assert.ok(wrong.length > 10);
  for (const { part, json } of wrong) {
    assert.throws(
      () => verifyCertificate(json, key),
      (error: unknown) => {
        assert.ok(error instanceof CertificateInvalid);
        assert.ok(
          error.problems.some((one) => one.part === part),
          `${part}: ${error.message}`,
        );
        return true;
      },
    );
  }
});

test("what one tenant's key signs proves nothing of another's", () => {
  const { forged } = VECTORS.certificates;
  assert.ok(forged.length > 10);
  for (const { part, json, keys } of forged) {
    if (part === "") {
      assert.equal(verifyCertificate(json, ...keys).signedBy.split("+")[0], "mneme/ann");
      continue;
    }
    assert.throws(
      () => verifyCertificate(json, ...keys),
      (error: unknown) =>
        error instanceof CertificateInvalid && error.problems.some((one) => one.part === part),
      part,
    );
  }
});

test("a certificate whose every byte is changed in turn never verifies", () => {
  const { valid, key } = VECTORS.certificates;
  const raw = Buffer.from(valid);
  for (let place = 0; place < raw.length; place += 13) {
    const changed = Buffer.from(raw);
    changed[place] = (changed[place] ?? 0) ^ 1;
    assert.throws(() => verifyCertificate(changed, key), CertificateInvalid);
  }
});

test("a key that was changed, or none, is not trusted", () => {
  const { valid, key } = VECTORS.certificates;
  for (const keys of [[], [key.replace("default", "another")], ["nonsense"], [`${key}=`]]) {
    assert.throws(() => verifyCertificate(valid, ...keys), CertificateInvalid);
  }
});

test("proofs of inclusion hold or do not, as they should", () => {
  for (const { leaf, index, size, proof, root, valid } of VECTORS.inclusion) {
    const check = () => verifyInclusion(bytes(leaf), index, size, proof.map(bytes), bytes(root));
    if (valid) check();
    else assert.throws(check, ProofInvalid);
  }
});

test("proofs of consistency hold or do not, as they should", () => {
  for (const one of VECTORS.consistency) {
    const check = () =>
      verifyConsistency(
        one.old_size,
        bytes(one.old_root),
        one.size,
        bytes(one.root),
        one.proof.map(bytes),
      );
    if (one.valid) check();
    else assert.throws(check, ProofInvalid, JSON.stringify(one));
  }
});
