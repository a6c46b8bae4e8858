/** Why a call failed, in words for people. */

/** A call that failed. Its message is a sentence that can be shown. */
export class ApiError extends Error {
  /**
   * @param code as Connect's protocol names it, such as "not_found"; "unreachable" when there was
   *   no answer.
   * @param message what happened.
   * @param reason Mneme's own name for it, such as "SESSION_NOT_FOUND"; empty without one.
   * @param requestId what the server's log knows the call by; may be empty.
   */
  constructor(
    readonly code: string,
    message: string,
    readonly reason = "",
    readonly requestId = "",
  ) {
    super(message);
    this.name = "ApiError";
  }

  /** What to do about it; empty when there is nothing to say. */
  get advice(): string {
    return ADVICE[this.code] ?? "";
  }
}

const ADVICE: Readonly<Record<string, string>> = {
  unreachable: "Check that the server is running, then try again.",
  unauthenticated: "Sign in with a key of this server.",
  permission_denied: "Sign in with a key that has the scope the call needs.",
  unavailable: "The server is starting, stopping or overloaded. Try again in a moment.",
  deadline_exceeded: "Ask for less at once: a shorter time, or one agent.",
  resource_exhausted: "Wait a moment, then try again.",
  internal: "The server's log explains it under the request's id.",
};

/** Whether a call ended because nobody waits for it any more. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** Make an error of whatever was thrown. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError("unknown", error instanceof Error ? error.message : String(error));
}

interface Detail {
  readonly type?: string;
  readonly debug?: { readonly reason?: string; readonly requestId?: string };
}

interface Body {
  readonly code?: string | number;
  /** As REST names the code; what is refused before it is a call is told like that. */
  readonly status?: string;
  readonly message?: string;
  readonly details?: readonly Detail[];
  readonly error?: Body;
}

/** Read the body of an error as Connect's protocol has it, or as REST does. */
export function errorOf(body: unknown, status: number, requestId: string): ApiError {
  const outer = (typeof body === "object" && body ? body : {}) as Body;
  const { code, status: name, message, details } = outer.error ?? outer;
  const reason = details?.find((detail) => detail.debug?.reason)?.debug?.reason ?? "";
  const text = message || `the server answered with HTTP status ${status}`;
  const known = typeof code === "string" ? code : name?.toLowerCase();
  return new ApiError(known ?? codeOf(status), sentence(text), reason, requestId);
}

function codeOf(status: number): string {
  if (status === 401) return "unauthenticated";
  if (status === 403) return "permission_denied";
  if (status === 404) return "not_found";
  return status >= 502 && status <= 504 ? "unavailable" : "unknown";
}

/** Messages of the API begin in lower case and end without a stop. */
function sentence(message: string): string {
  const text = message.charAt(0).toUpperCase() + message.slice(1);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
