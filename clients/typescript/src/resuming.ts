import type { Message } from "@bufbuild/protobuf";
import type { MnemeError } from "./errors.js";

export const FIRST_PAUSE_MS = 200;
export const LONGEST_PAUSE_MS = 5_000;
export const DEFAULT_PATIENCE_MS = 30_000;

/** Whether a stream that ended so may go on: it broke off, or is refused for a while. */
export function isPassing(error: MnemeError): boolean {
  return (
    error.code === "UNAVAILABLE" ||
    (error.code === "RESOURCE_EXHAUSTED" && error.retryAfterMs !== undefined)
  );
}

/** One stream, over all the calls that it takes. */
export class Resumption {
  readonly #fields: { readonly place: string; readonly after: string };
  readonly #request: Message;
  readonly #end: number | undefined;
  readonly #patienceMs: number;
  #begun = false;
  #resumed = false;
  #lostAt: number | undefined;
  #pauseMs = FIRST_PAUSE_MS;

  /**
   * @param fields the response's field that says where to go on, and the request's that takes it
   * @param request the request, which moves on with the stream
   * @param timeoutMs milliseconds for the stream; none: no limit
   * @param patienceMs after so long a stream that broke off is given up
   */
  constructor(
    fields: { readonly place: string; readonly after: string },
    request: Message,
    timeoutMs: number | null | undefined,
    patienceMs: number,
  ) {
    this.#fields = fields;
    this.#request = request;
    this.#end = typeof timeoutMs === "number" ? performance.now() + timeoutMs : undefined;
    this.#patienceMs = patienceMs;
  }

  /** Milliseconds until the deadline, at least 1; null without one. */
  timeLeft(): number | null {
    return this.#end === undefined ? null : Math.max(1, this.#end - performance.now());
  }

  /**
   * Notes how far the stream has come, and tells whether the message is for the caller: the first
   * one of a call that resumes only says from where.
   */
  isNews(message: Message): boolean {
    const greets = this.#resumed;
    this.#begun = true;
    this.#resumed = false;
    this.#lostAt = undefined;
    this.#pauseMs = FIRST_PAUSE_MS;
    const place = (message as Message & Record<string, unknown>)[this.#fields.place];
    (this.#request as Message & Record<string, unknown>)[this.#fields.after] = place;
    return !greets;
  }

  /** Milliseconds to wait before the next call; undefined when the error is final. */
  pauseAfter(error: MnemeError): number | undefined {
    // What the server cuts off is cancelled, too; whoever ends the stream here does not ask.
    if (!this.#begun || !(isPassing(error) || error.code === "CANCELLED")) {
      return undefined;
    }
    const now = performance.now();
    this.#lostAt ??= now;
    // Clients that lost the same server should not come back together.
    const pause = Math.max(error.retryAfterMs ?? 0, this.#pauseMs) * (1 + 0.2 * Math.random());
    this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS);
    const last = Math.min(this.#end ?? Number.POSITIVE_INFINITY, this.#lostAt + this.#patienceMs);
    if (now + pause >= last) {
      return undefined;
    }
    this.#resumed = true;
    return pause;
  }
}
