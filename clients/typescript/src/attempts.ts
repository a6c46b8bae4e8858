import { MnemeError } from "./errors.js";

const FIRST_BACKOFF_MS = 200;
const MAX_BACKOFF_MS = 2000;
const BACKOFF_FACTOR = 3;
const FIRST_REFUSED_MS = 20;
/** How long is tried again where neither a time nor a number of attempts ends it. */
export const DEFAULT_PATIENCE_MS = 30_000;
// What a timer can hold; longer is as good as no limit.
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The attempts of one call: what is left of its time, and when to try again. */
export class Attempts {
  readonly #repeatable: boolean;
  readonly #end: number;
  readonly #patience: number;
  readonly #retries: number;
  #used = 0;
  #refused = 0;

  /**
   * @param repeatable whether the call has the effect of one when it is sent twice
   * @param retries how often it may be sent again; null: as often as its time allows
   * @param timeoutMs milliseconds for all attempts together; null: no limit
   */
  constructor(repeatable: boolean, retries: number | null, timeoutMs: number | null) {
    const now = performance.now();
    this.#repeatable = repeatable;
    this.#retries = retries ?? Number.POSITIVE_INFINITY;
    this.#end = timeoutMs === null ? Number.POSITIVE_INFINITY : now + timeoutMs;
    this.#patience = now + (timeoutMs ?? DEFAULT_PATIENCE_MS);
  }

  /**
   * Milliseconds until the deadline, for the next attempt; undefined without one.
   *
   * @throws MnemeError: there are none left.
   */
  timeLeft(): number | undefined {
    const left = this.#end - performance.now();
    if (left <= 0) {
      throw timeIsOver();
    }
    return left > MAX_TIMER_MS ? undefined : Math.ceil(left);
  }

  /**
   * Waits until the call may be sent again.
   *
   * @param error why it failed
   * @param signal gives the call up
   * @param isPassing whether what the server refuses it for is about to pass, so that its delay is
   *   longer than need be
   * @throws the error itself: it is final.
   */
  async pauseAfter(
    error: MnemeError,
    signal: AbortSignal | undefined,
    isPassing = false,
  ): Promise<void> {
    const pause = error.unprocessed ? this.#pauseRefused() : this.#pauseAfter(error, isPassing);
    const isBounded = !error.unprocessed && Number.isFinite(this.#retries);
    const end = isBounded ? this.#end : this.#patience;
    if (pause === undefined || performance.now() + pause >= end) {
      throw error;
    }
    await pauseFor(pause, signal);
  }

  /** To no server was it a first time: it counts for nothing. */
  #pauseRefused(): number {
    const pause = Math.min(FIRST_REFUSED_MS * BACKOFF_FACTOR ** this.#refused, MAX_BACKOFF_MS);
    this.#refused += 1;
    return spread(pause);
  }

  #pauseAfter(error: MnemeError, isPassing: boolean): number | undefined {
    const isRefused = error.retryAfterMs !== undefined;
    // What is refused with a delay is refused before anything was written, whatever the RPC.
    const mayRepeat =
      error.code === "UNAVAILABLE"
        ? this.#repeatable || isRefused
        : error.code === "RESOURCE_EXHAUSTED" && isRefused;
    if (!mayRepeat || this.#used >= this.#retries) {
      return undefined;
    }
    const backoff = Math.min(FIRST_BACKOFF_MS * BACKOFF_FACTOR ** this.#used, MAX_BACKOFF_MS);
    this.#used += 1;
    const asked = error.retryAfterMs ?? backoff;
    return spread(isPassing ? Math.min(asked, backoff) : asked);
  }
}

/** Callers that were refused together should not come back together. */
function spread(pause: number): number {
  return pause * (1 + 0.2 * Math.random());
}

/**
 * Waits, in milliseconds.
 *
 * @throws MnemeError: the caller gave up meanwhile.
 */
export async function pauseFor(pause: number, signal: AbortSignal | undefined): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const giveUp = () => {
      clearTimeout(timer);
      reject(cancelled(signal));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", giveUp);
      resolve();
    }, pause);
    if (signal?.aborted) {
      giveUp();
    } else {
      signal?.addEventListener("abort", giveUp, { once: true });
    }
  });
}

/** The error of a call that its caller gave up, or whose `AbortSignal.timeout()` is over. */
export function cancelled(signal: AbortSignal | undefined): MnemeError {
  const cause: unknown = signal?.reason;
  return cause instanceof Error && cause.name === "TimeoutError"
    ? timeIsOver(cause)
    : new MnemeError("the call was cancelled", { code: "CANCELLED", cause });
}

/** The error of a call whose time was not enough. */
export function timeIsOver(cause?: unknown): MnemeError {
  return new MnemeError("the time for the call is over", { code: "DEADLINE_EXCEEDED", cause });
}
