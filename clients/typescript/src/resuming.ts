import type { Message } from "@bufbuild/protobuf";
import type { MnemeError } from "./errors.js";

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5_000;
export const DEFAULT_PATIENCE_MS = 30_000;

/** Whether a stream that ended so may go on: it broke off, or is refused for a while. */
export function isPassing(error: MnemeError): boolean {
  return (
    error.code === "UNAVAILABLE" ||
    (error.code === "RESOURCE_EXHAUSTED" && error.retryAfterMs !== undefined)
  );
}

/** When to come back after a stream that broke off, and when to give it up. */
export class Backoff {
  readonly #patienceMs: number;
  readonly #end: number;
  #lostAt: number | undefined;
  #pauseMs = FIRST_PAUSE_MS;

  /**
   * @param patienceMs after so long it is given up, counted from when it broke off: before that
   *   there may have been nothing to say for long
   * @param timeoutMs milliseconds for all of it; none: no limit
   */
  constructor(patienceMs: number, timeoutMs: number | null | undefined) {
    this.#patienceMs = patienceMs;
    this.#end = performance.now() + (timeoutMs ?? Number.POSITIVE_INFINITY);
  }

  /** Milliseconds until the deadline, at least 1; null without one. */
  timeLeft(): number | null {
    const left = this.#end - performance.now();
    return left === Number.POSITIVE_INFINITY ? null : Math.max(1, left);
  }

  /** Milliseconds to wait before the next call; undefined when there is no time left for one. */
  pauseAfter(error: MnemeError): number | undefined {
    const now = performance.now();
    this.#lostAt ??= now;
    // Clients that lost the same server should not come back together.
    const pause = Math.max(error.retryAfterMs ?? 0, this.#pauseMs) * (1 + 0.2 * Math.random());
    this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS);
    return now + pause < Math.min(this.#end, this.#lostAt + this.#patienceMs) ? pause : undefined;
  }

  /** Begins anew: something came of it. */
  reset(): void {
    this.#lostAt = undefined;
    this.#pauseMs = FIRST_PAUSE_MS;
  }
}

/** One stream, over all the calls that it takes. */
export class Resumption {
  readonly #fields: { readonly place: string; readonly after: string };
  readonly #request: Message;
  readonly #backoff: Backoff;
  #begun = false;
  #resumed = false;

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
    this.#backoff = new Backoff(patienceMs, timeoutMs);
  }

  /** Milliseconds until the deadline, at least 1; null without one. */
  timeLeft(): number | null {
    return this.#backoff.timeLeft();
  }

  /**
   * Notes how far the stream has come, and tells whether the message is for the caller: the first
   * one of a call that resumes only says from where.
   */
  isNews(message: Message): boolean {
    const greets = this.#resumed;
    this.#begun = true;
    this.#resumed = false;
    this.#backoff.reset();
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
    const pause = this.#backoff.pauseAfter(error);
    this.#resumed = pause !== undefined;
    return pause;
  }
}
