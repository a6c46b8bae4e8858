/** `clients/typescript/src/proof.ts`; Node's types, which it is written with, are not known here. */
declare module "@mneme/verifier" {
  export class CertificateInvalid extends Error {
    readonly problems: readonly { part: string; message: string }[];
  }
  export function verifyCertificate(
    text: Uint8Array,
    ...keys: string[]
  ): {
    id: string;
    signedBy: string;
    checkpoint: { origin: string; size: number };
    items: {
      sourceType: string;
      sourceId: string;
      leafIndex: number;
      content: string;
      score: number;
    }[];
  };
}
