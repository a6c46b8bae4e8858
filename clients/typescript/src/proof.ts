import { ProofInvalid, sha256, verifyInclusion } from "./merkle.js";
import {
  type Checkpoint,
  decoded,
  hashOf,
  holds,
  openCheckpoint,
  parseVerifierKey,
  type VerifierKey,
} from "./notes.js";

/** Something that is wrong with a certificate: which part, and what. */
export interface Problem {
  part: string;
  message: string;
}

/** The certificate does not verify; `problems` says which parts. */
export class CertificateInvalid extends Error {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(problems.map((one) => `${one.part}: ${one.message}`).join("; "));
    this.name = "CertificateInvalid";
    this.problems = problems;
  }
}

/** A result that a certificate proves. `content` is what was committed to. */
export interface CertifiedItem {
  sourceType: string;
  sourceId: string;
  leafIndex: number;
  content: string;
  score: number;
}

/**
 * A certificate that holds. `id` is the SHA-256 of its text, in hex; `body` what was signed; `signedBy`
 * the name and the id of the key, as `name+id`.
 */
export interface VerifiedCertificate {
  id: string;
  body: Record<string, unknown>;
  checkpoint: Checkpoint;
  items: CertifiedItem[];
  signedBy: string;
}

const FORMAT = "mneme.certificate.v1";
const SALT_BYTES = 16;
const MOST_BYTES = 16 * 1024 * 1024;

/**
 * Check a certificate offline: its spelling, its signature, its head, each result's proof, and that
 * they are of one tenant: none of several that are trusted signs for another.
 *
 * It shows what was stored and returned when it was made, and not that nothing better or newer was
 * left out. Throws `CertificateInvalid`, which says what is wrong.
 *
 * @param text the certificate, byte for byte as it was given out
 * @param keys the keys that are trusted, as `mneme proof keys` prints them
 */
export function verifyCertificate(
  text: string | Uint8Array,
  ...keys: string[]
): VerifiedCertificate {
  const problems: Problem[] = [];
  const trusted = readKeys(keys, problems);
  let read: Envelope;
  try {
    read = envelopeOf(text);
  } catch (error) {
    throw new CertificateInvalid([...problems, { part: "format", message: messageOf(error) }]);
  }
  const key = trusted.find((one) => `${one.name}+${one.id}` === read.key);
  // Its head is signed by the key that signs it: others may be trusted for other tenants.
  const checkpoint = attempt(problems, "checkpoint", () =>
    openCheckpoint(read.checkpoint, ...(key === undefined ? trusted : [key])),
  );
  const items = read.results.map((result, place) => itemOf(result, place, checkpoint, problems));
  problems.push(...untied(read, checkpoint));
  if (key === undefined) {
    problems.push({ part: "key", message: `it is signed by ${read.key}, which is not trusted` });
  } else if (!holds(key, read.signature, Buffer.from(`${FORMAT}\n${canonical(read.body)}`))) {
    problems.push({ part: "signature", message: "what it says is not what the key signed" });
  }
  if (problems.length > 0 || checkpoint === undefined) throw new CertificateInvalid(problems);
  const proved = items.filter((one) => one !== undefined);
  return {
    id: sha256(read.raw).toString("hex"),
    body: read.body,
    checkpoint,
    items: proved,
    signedBy: read.key,
  };
}

/** Return what does not belong together: tenant, key, log, query and the query's id. */
function untied(read: Envelope, checkpoint: Checkpoint | undefined): Problem[] {
  const owner = `mneme/${read.tenant}`;
  const problems: Problem[] = [];
  if (read.key.split("+")[0] !== owner) {
    const message = `it is signed by ${read.key}, which is no key of ${read.tenant}`;
    problems.push({ part: "key", message });
  }
  if (checkpoint !== undefined && !isLogOf(checkpoint.origin, owner)) {
    const message = `it is the head of ${checkpoint.origin}, which is no log of ${read.tenant}`;
    problems.push({ part: "checkpoint", message });
  }
  if (sha256(Buffer.from(canonical(read.query))).toString("hex") !== read.queryId) {
    problems.push({ part: "query_id", message: "it is not that of the query" });
  }
  return problems;
}

function isLogOf(origin: string, owner: string): boolean {
  return origin.startsWith(`${owner}/`) && /^[0-9a-f]{32}$/.test(origin.slice(owner.length + 1));
}

interface Envelope {
  raw: Buffer;
  body: Record<string, unknown>;
  signature: Buffer;
  key: string;
  checkpoint: string;
  results: unknown[];
  tenant: string;
  query: Record<string, unknown>;
  queryId: string;
}

function envelopeOf(text: string | Uint8Array): Envelope {
  const raw = Buffer.from(text as Uint8Array);
  if (raw.length > MOST_BYTES) throw new ProofInvalid("it is longer than any certificate");
  const spelled = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(raw);
  const read = objectOf(JSON.parse(spelled));
  if (canonical(read) !== spelled) {
    throw new ProofInvalid("it is not canonical JSON (RFC 8785): it was changed, or spelled anew");
  }
  const body = objectOf(fieldOf(read, "body"));
  const results = fieldOf(body, "results");
  if (fieldOf(body, "format") !== FORMAT) {
    throw new ProofInvalid(`it is no certificate of the format ${FORMAT}`);
  }
  if (Object.keys(read).sort().join() !== "body,key,signature") {
    throw new ProofInvalid("it has more parts than a certificate has");
  }
  if (!Array.isArray(results)) throw new ProofInvalid("it has no results");
  return {
    raw,
    body,
    signature: decoded(textOf(read, "signature"), "the signature"),
    key: textOf(read, "key"),
    checkpoint: textOf(body, "checkpoint"),
    results,
    tenant: textOf(body, "tenant"),
    query: objectOf(fieldOf(body, "query")),
    queryId: textOf(body, "query_id"),
  };
}

function itemOf(
  given: unknown,
  place: number,
  checkpoint: Checkpoint | undefined,
  problems: Problem[],
): CertifiedItem | undefined {
  let proof: Buffer[] = [];
  let hash: Buffer = Buffer.alloc(0);
  const item = attempt(problems, `results[${place}].content`, () => {
    const result = objectOf(given);
    const content = textOf(result, "content");
    const salt = decoded(textOf(result, "salt"), "the salt");
    if (salt.length !== SALT_BYTES) {
      throw new ProofInvalid(`the salt has ${salt.length} bytes, and not ${SALT_BYTES}`);
    }
    const found = {
      sourceType: textOf(result, "kind"),
      sourceId: textOf(result, "id"),
      leafIndex: numberOf(result, "leaf"),
      content,
      score: numberOf(result, "score"),
    };
    requireNamed(found);
    hash = sha256(Buffer.from([0]), sha256(salt, Buffer.from(content)));
    const hashes = fieldOf(result, "proof");
    if (!Array.isArray(hashes)) throw new ProofInvalid("it has no proof");
    proof = hashes.map((one) => hashOf(String(one), "a hash"));
    return found;
  });
  if (item !== undefined && checkpoint !== undefined) {
    attempt(problems, `results[${place}].proof`, () =>
      verifyInclusion(hash, item.leafIndex, checkpoint.size, proof, checkpoint.root),
    );
  }
  return item;
}

function requireNamed(item: CertifiedItem): void {
  const content = JSON.parse(item.content);
  const [kind, id] = Array.isArray(content) ? ["event", content[0]] : [content.kind, content.id];
  if (kind !== item.sourceType || id !== item.sourceId) {
    throw new ProofInvalid("its content is another item's");
  }
}

function readKeys(keys: readonly string[], problems: Problem[]): VerifierKey[] {
  return keys
    .map((key) => attempt(problems, "key", () => parseVerifierKey(key)))
    .filter((key) => key !== undefined);
}

function attempt<T>(problems: Problem[], part: string, make: () => T): T | undefined {
  try {
    return make();
  } catch (error) {
    problems.push({ part, message: messageOf(error) });
    return undefined;
  }
}

/** Spell a value as RFC 8785 does. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${fields.map(([name, inner]) => `${JSON.stringify(name)}:${canonical(inner)}`).join(",")}}`;
}

function objectOf(value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new ProofInvalid("it is no object");
  }
  return value as Record<string, unknown>;
}

function fieldOf(found: Record<string, unknown>, name: string): unknown {
  return found[name];
}

function textOf(found: Record<string, unknown>, name: string): string {
  const value = found[name];
  if (typeof value !== "string") throw new ProofInvalid(`${name} is missing, or no text`);
  return value;
}

function numberOf(found: Record<string, unknown>, name: string): number {
  const value = found[name];
  if (typeof value !== "number") throw new ProofInvalid(`${name} is missing, or no number`);
  return value;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
