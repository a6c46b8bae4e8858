/** The TypeScript client's verifier, as it is, in the browser. Loaded when it is first needed. */

import { Buffer } from "buffer";

/** What of a certificate is wrong. */
export interface Problem {
  readonly part: string;
  readonly message: string;
}

/** A certificate that holds, and what it proves. */
export interface Verified {
  readonly id: string;
  readonly signedBy: string;
  readonly checkpoint: { readonly origin: string; readonly size: number };
  readonly items: readonly {
    readonly sourceType: string;
    readonly sourceId: string;
    readonly leafIndex: number;
    readonly content: string;
    readonly score: number;
  }[];
}

/** Check a certificate here, without asking anybody: it holds, or these are its problems. */
export async function check(
  bytes: Uint8Array,
  keys: readonly string[],
): Promise<{ verified: Verified } | { problems: readonly Problem[] }> {
  // The verifier is written for Node.js, where this is there already.
  Object.assign(globalThis, { Buffer });
  const { CertificateInvalid, verifyCertificate } = await import("@mneme/verifier");
  try {
    return { verified: verifyCertificate(bytes, ...keys) };
  } catch (error) {
    if (error instanceof CertificateInvalid) return { problems: error.problems };
    throw error;
  }
}
