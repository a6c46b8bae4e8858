/** The client of Mneme, the memory of AI agents. */

export type { CallOptions, Items } from "./caller.js";
export {
  Choice,
  Chooser,
  type ChooserOptions,
  type Option,
  type Situation,
} from "./choosing.js";
export { createMneme, createMnemeOf, type MnemeOptions } from "./client.js";
export type { TlsOptions } from "./connection.js";
export { ConfigurationError, type FieldViolation, MnemeError, type StatusCode } from "./errors.js";
export * from "./gen/index.js";
export { toJson } from "./json.js";
export { ProofInvalid, verifyConsistency, verifyInclusion } from "./merkle.js";
export type { Connected, MethodsOf, ServiceMethods } from "./methods.js";
export type { Mneme } from "./mneme.js";
export { type Checkpoint, openCheckpoint, parseVerifierKey, type VerifierKey } from "./notes.js";
export type { ResultOptions, Started } from "./operations.js";
export {
  CertificateInvalid,
  type CertifiedItem,
  type Problem,
  type VerifiedCertificate,
  verifyCertificate,
} from "./proof.js";
export type { RecordAllOptions, Recorded } from "./recording.js";
export { Attempt, type AttemptOptions, tagsOf } from "./reflecting.js";
export { Stream } from "./stream.js";
export { toDate, toMilliseconds } from "./time.js";
