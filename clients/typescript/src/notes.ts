import { createPublicKey, verify } from "node:crypto";
import { ProofInvalid, requireHashes, sha256 } from "./merkle.js";

/** A public key, by its name. As text: `name+id+key`, C2SP's and Go's spelling. */
export interface VerifierKey {
  name: string;
  id: string;
  public: Buffer;
}

/** The head of a log, as a signed note states it. */
export interface Checkpoint {
  origin: string;
  size: number;
  root: Buffer;
}

const MARK = "\u2014 ";
const ED25519 = 1;
const MOST_SIGNATURES = 16;
/** What stands before the 32 bytes of such a key in DER (RFC 8410). */
const ED25519_DER = Buffer.from("302a300506032b6570032100", "hex");

/** Read a key. Throws `ProofInvalid` where it is none, or its id is not its own. */
export function parseVerifierKey(text: string): VerifierKey {
  const [name, id, ...rest] = text.trim().split("+");
  const encoded = decoded(rest.join("+"), "the key");
  if (!name || /\s/.test(name) || encoded[0] !== ED25519 || encoded.length !== 33) {
    throw new ProofInvalid("a key is written NAME+ID+KEY; see `mneme proof keys`");
  }
  const expected = sha256(Buffer.from(`${name}\n`), encoded)
    .subarray(0, 4)
    .toString("hex");
  if (expected !== id) throw new ProofInvalid("the key's id is not that of its name and its bytes");
  return { name, id, public: encoded.subarray(1) };
}

/** Return the head that a note states which one of the keys signed; else throw `ProofInvalid`. */
export function openCheckpoint(note: string, ...keys: (string | VerifierKey)[]): Checkpoint {
  const text = openNote(
    note,
    keys.map((key) => (typeof key === "string" ? parseVerifierKey(key) : key)),
  );
  const [origin, size, root, ...rest] = text.split("\n");
  if (!origin || !/^(0|[1-9][0-9]{0,15})$/.test(size ?? "") || rest.join("\n") !== "") {
    throw new ProofInvalid("it is no head of a log: origin, size and root hash, a line each");
  }
  return { origin, size: Number(size), root: hashOf(root ?? "", "the root hash") };
}

function openNote(note: string, keys: readonly VerifierKey[]): string {
  const end = note.lastIndexOf("\n\n");
  const text = note.slice(0, end + 1);
  const lines = note.slice(end + 2).split("\n");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a note may not hold.
  if (end < 0 || lines.pop() !== "" || lines.length === 0 || /[\x00-\x09\x0b-\x1f]/.test(note)) {
    throw new ProofInvalid("it is no signed note");
  }
  if (lines.length > MOST_SIGNATURES) throw new ProofInvalid("it has too many signatures");
  let isSigned = false;
  for (const line of lines) {
    const [name, encoded, ...rest] = line.slice(MARK.length).split(" ");
    if (!line.startsWith(MARK) || !name || !encoded || rest.length > 0) {
      throw new ProofInvalid("a line of signatures is none");
    }
    const raw = decoded(encoded, "a signature");
    const id = raw.subarray(0, 4).toString("hex");
    for (const key of keys) {
      if (key.name !== name || key.id !== id) continue;
      if (!holds(key, raw.subarray(4), Buffer.from(text))) {
        throw new ProofInvalid(`the signature of ${name} does not hold`);
      }
      isSigned = true;
    }
  }
  if (!isSigned) throw new ProofInvalid("no key that was given signed it");
  return text;
}

/** Return whether the key's owner signed this. */
export function holds(key: VerifierKey, signature: Buffer, data: Buffer): boolean {
  const der = Buffer.concat([ED25519_DER, key.public]);
  return verify(null, data, createPublicKey({ key: der, format: "der", type: "spki" }), signature);
}

/** Return what base64 text holds, spelled in the one way; else throw `ProofInvalid`. */
export function decoded(text: string, what: string): Buffer {
  const found = Buffer.from(text, "base64");
  if (found.toString("base64") !== text) throw new ProofInvalid(`${what} is not base64`);
  return found;
}

/** Return the hash that base64 text holds; else throw `ProofInvalid`. */
export function hashOf(text: string, what: string): Buffer {
  const found = decoded(text, what);
  requireHashes([found]);
  return found;
}
