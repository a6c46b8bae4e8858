import { Code, ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "./gen/google/rpc/error_details_pb.js";
import { toMilliseconds } from "./time.js";

/** The client's address, key or TLS settings cannot be used; the message says what to change. */
export class ConfigurationError extends Error {
  override readonly name = "ConfigurationError";
}

/** The gRPC status codes of failures. */
export type StatusCode =
  | "CANCELLED"
  | "UNKNOWN"
  | "INVALID_ARGUMENT"
  | "DEADLINE_EXCEEDED"
  | "NOT_FOUND"
  | "ALREADY_EXISTS"
  | "PERMISSION_DENIED"
  | "RESOURCE_EXHAUSTED"
  | "FAILED_PRECONDITION"
  | "ABORTED"
  | "OUT_OF_RANGE"
  | "UNIMPLEMENTED"
  | "INTERNAL"
  | "UNAVAILABLE"
  | "DATA_LOSS"
  | "UNAUTHENTICATED";

const NAMES: Readonly<Record<Code, StatusCode>> = {
  [Code.Canceled]: "CANCELLED",
  [Code.Unknown]: "UNKNOWN",
  [Code.InvalidArgument]: "INVALID_ARGUMENT",
  [Code.DeadlineExceeded]: "DEADLINE_EXCEEDED",
  [Code.NotFound]: "NOT_FOUND",
  [Code.AlreadyExists]: "ALREADY_EXISTS",
  [Code.PermissionDenied]: "PERMISSION_DENIED",
  [Code.ResourceExhausted]: "RESOURCE_EXHAUSTED",
  [Code.FailedPrecondition]: "FAILED_PRECONDITION",
  [Code.Aborted]: "ABORTED",
  [Code.OutOfRange]: "OUT_OF_RANGE",
  [Code.Unimplemented]: "UNIMPLEMENTED",
  [Code.Internal]: "INTERNAL",
  [Code.Unavailable]: "UNAVAILABLE",
  [Code.DataLoss]: "DATA_LOSS",
  [Code.Unauthenticated]: "UNAUTHENTICATED",
};

/** One field that breaks a rule. */
export interface FieldViolation {
  /** The field's path in the request as the schema writes it, e.g. `events[3].session_id`. */
  readonly field: string;
  /** What is wrong with it. */
  readonly description: string;
  /** The error reason, e.g. "OUT_OF_RANGE"; may be empty. */
  readonly reason: string;
}

/** What a `MnemeError` is made of. */
export interface ErrorFacts {
  readonly code: StatusCode;
  readonly reason?: string;
  readonly violations?: readonly FieldViolation[];
  readonly metadata?: Readonly<Record<string, string>>;
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/**
 * A call failed.
 *
 * Arguments that do not fit their fields at all are TypeError and RangeError instead, before
 * anything is sent.
 */
export class MnemeError extends Error {
  override readonly name = "MnemeError";
  /** The gRPC status code. */
  readonly code: StatusCode;
  /** Why, finer than the code: e.g. "SESSION_NOT_FOUND"; empty when no Mneme server answered. */
  readonly reason: string;
  /** The fields that break rules. */
  readonly violations: readonly FieldViolation[];
  /** Further facts for machines, e.g. `recorded` of a failed stream of events. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Milliseconds after which a retry may succeed; undefined when the server did not say. */
  readonly retryAfterMs: number | undefined;
  /** The server's own words, without the fields and the reason that `message` adds. */
  readonly rawMessage: string;

  constructor(message: string, facts: ErrorFacts) {
    super(messageWith(message, facts), { cause: facts.cause });
    this.rawMessage = message;
    this.code = facts.code;
    this.reason = facts.reason ?? "";
    this.violations = facts.violations ?? [];
    this.metadata = facts.metadata ?? {};
    this.retryAfterMs = facts.retryAfterMs;
  }

  /** The first field at fault, as a path; empty when no field is. */
  get field(): string {
    return this.violations[0]?.field ?? "";
  }

  /** The id under which the server's log holds a bug; empty for other errors. */
  get errorId(): string {
    return this.metadata["error_id"] ?? "";
  }
}

function messageWith(message: string, facts: ErrorFacts): string {
  const details = (facts.violations ?? [])
    .filter((one) => !message.includes(one.description))
    .map((one) => (one.field ? `${one.field}: ${one.description}` : one.description));
  return `${[message, ...details].join("; ")} [${facts.reason || facts.code}]`;
}

/**
 * The typed error behind a failed call.
 *
 * @param failure what Connect threw
 * @param address where the server is, for the message when nothing answered
 */
export function errorOf(failure: unknown, address: string): MnemeError {
  if (failure instanceof MnemeError) {
    return failure;
  }
  const error = ConnectError.from(failure);
  const [info] = error.findDetails(ErrorInfoSchema);
  const [request] = error.findDetails(BadRequestSchema);
  const [retry] = error.findDetails(RetryInfoSchema);
  const code = info === undefined && isLostConnection(error) ? "UNAVAILABLE" : NAMES[error.code];
  const isSilent = info === undefined && code === "UNAVAILABLE";
  const words = error.rawMessage.startsWith(LOST_STREAM)
    ? "the connection broke"
    : error.rawMessage;
  return new MnemeError(isSilent ? `no Mneme server answers at ${address}: ${words}` : words, {
    code,
    reason: info?.reason ?? "",
    violations: (request?.fieldViolations ?? []).map(({ field, description, reason }) => ({
      field,
      description,
      reason,
    })),
    metadata: info?.metadata ?? {},
    retryAfterMs: retry?.retryDelay && toMilliseconds(retry.retryDelay),
    cause: failure,
  });
}

/** What Node.js says when a connection breaks, which Connect calls aborted or internal. */
const LOST = new Set([
  "ECONNABORTED",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOENT",
  "EPIPE",
  "ERR_HTTP2_ERROR",
  "ERR_HTTP2_GOAWAY_SESSION",
  "ERR_HTTP2_INVALID_SESSION",
  "ERR_HTTP2_SESSION_ERROR",
  "ERR_HTTP2_STREAM_CANCEL",
]);

/** What Node.js says when TLS fails, e.g. a certificate that nobody trusts. */
const UNTRUSTED = /^ERR_TLS_|^ERR_SSL_|CERT|^UNABLE_TO_|^EPROTO$|^HOSTNAME_MISMATCH$/;

/**
 * What Connect says of streams that a broken connection took along. Who cancels a call is told so
 * before this is asked.
 */
const LOST_STREAM = "http/2 stream closed with error code CANCEL";

function isLostConnection(error: ConnectError): boolean {
  if (error.rawMessage.startsWith(LOST_STREAM)) {
    return true;
  }
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    const code = "code" in cause && typeof cause.code === "string" ? cause.code : "";
    if (LOST.has(code) || UNTRUSTED.test(code)) {
      return true;
    }
  }
  return false;
}
