/**
 * What the verifier takes from `node:crypto`, for browsers: hashes and signatures at once, where
 * the browser's own would only promise them, and not at all on pages that came unencrypted.
 */

import { ed25519 } from "@noble/curves/ed25519.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { Buffer } from "buffer";

const KEY_BYTES = 32;

/** A hash that is fed piece by piece. */
export function createHash(name: string): { update(part: Uint8Array): void; digest(): Buffer } {
  if (name !== "sha256") throw new Error(`there is no hash ${name} here`);
  const hash = sha256.create();
  return {
    update: (part) => void hash.update(new Uint8Array(part)),
    digest: () => Buffer.from(hash.digest()),
  };
}

/** The bytes of an Ed25519 key in DER: its last. */
export function createPublicKey({ key }: { key: Uint8Array }): Uint8Array {
  return new Uint8Array(key.subarray(key.length - KEY_BYTES));
}

/** Whether the key signed the data. */
export function verify(_: null, data: Uint8Array, key: Uint8Array, signature: Uint8Array): boolean {
  try {
    const plain = { zip215: false };
    return ed25519.verify(new Uint8Array(signature), new Uint8Array(data), key, plain);
  } catch {
    return false;
  }
}
