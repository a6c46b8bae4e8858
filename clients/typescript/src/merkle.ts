import { createHash } from "node:crypto";

/** A proof or a signed note does not hold. */
export class ProofInvalid extends Error {
  override name = "ProofInvalid";
}

/**
 * Check that the leaf with that hash is at `index` in the tree of `size` leaves (RFC 9162, section
 * 2.1.3.2); else throw `ProofInvalid`.
 */
export function verifyInclusion(
  hash: Uint8Array,
  index: number,
  size: number,
  proof: readonly Uint8Array[],
  root: Uint8Array,
): void {
  requireHashes([hash, root, ...proof]);
  if (!Number.isSafeInteger(index) || index < 0 || index >= size) {
    throw new ProofInvalid(`there is no leaf ${index} in a tree of ${size}`);
  }
  const walk = new Walk(index, size - 1);
  let found: Uint8Array = hash;
  for (const sibling of proof) found = walk.isRight() ? node(sibling, found) : node(found, sibling);
  walk.end();
  if (!same(found, root)) throw new ProofInvalid("the proof does not lead to the head");
}

/**
 * Check that the newer tree begins with all leaves of the older one (RFC 9162, section 2.1.4.2);
 * else throw `ProofInvalid`.
 */
export function verifyConsistency(
  oldSize: number,
  oldRoot: Uint8Array,
  size: number,
  root: Uint8Array,
  proof: readonly Uint8Array[],
): void {
  requireHashes([oldRoot, root, ...proof]);
  if (!(oldSize >= 0 && oldSize <= size && Number.isSafeInteger(oldSize + size))) {
    throw new ProofInvalid(`a tree of ${size} leaves cannot come after one of ${oldSize}`);
  }
  if (oldSize === 0 || oldSize === size) {
    if (proof.length > 0) throw new ProofInvalid("the proof is too long");
    if (!same(oldRoot, oldSize === 0 ? sha256() : root)) {
      throw new ProofInvalid(
        oldSize === 0 ? "the older head is that of no empty tree" : "two heads of one size differ",
      );
    }
    return;
  }
  const isComplete = 2 ** Math.floor(Math.log2(oldSize)) === oldSize;
  const [start, ...path] = isComplete ? [oldRoot, ...proof] : proof;
  if (start === undefined) throw new ProofInvalid("the proof is too short");
  const walk = new Walk(oldSize - 1, size - 1);
  walk.skipComplete();
  let older: Uint8Array = start;
  let newer: Uint8Array = start;
  for (const sibling of path) {
    if (walk.isRight()) {
      older = node(sibling, older);
      newer = node(sibling, newer);
    } else {
      newer = node(newer, sibling);
    }
  }
  walk.end();
  if (!same(older, oldRoot)) throw new ProofInvalid("the proof does not lead to the older head");
  if (!same(newer, root)) throw new ProofInvalid("the proof does not lead to the newer head");
}

/** The way from a leaf up to the root: on which side each sibling is. */
class Walk {
  #first: number;
  #last: number;

  constructor(first: number, last: number) {
    this.#first = first;
    this.#last = last;
  }

  skipComplete(): void {
    while (this.#first % 2 === 1) this.#up();
  }

  isRight(): boolean {
    if (this.#last === 0) throw new ProofInvalid("the proof is too long");
    const right = this.#first % 2 === 1 || this.#first === this.#last;
    while (right && this.#first % 2 === 0 && this.#first > 0) this.#up();
    this.#up();
    return right;
  }

  end(): void {
    if (this.#last > 0) throw new ProofInvalid("the proof is too short");
  }

  #up(): void {
    this.#first = Math.floor(this.#first / 2);
    this.#last = Math.floor(this.#last / 2);
  }
}

/** Check that each of these is as long as a hash is; else throw `ProofInvalid`. */
export function requireHashes(hashes: readonly Uint8Array[]): void {
  if (hashes.some((one) => one.length !== 32)) {
    throw new ProofInvalid("a hash is not of 32 bytes");
  }
}

/** Return the SHA-256 of these, one behind the other. */
export function sha256(...parts: Uint8Array[]): Buffer {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
}

function node(left: Uint8Array, right: Uint8Array): Buffer {
  return sha256(Buffer.from([1]), left, right);
}

function same(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}
