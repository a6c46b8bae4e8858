import { MnemeError } from "./errors.js";

const FIRST_BACKOFF_MS = 200;
const MAX_BACKOFF_MS = 5000;
const BACKOFF_FACTOR = 3;
// What a timer can hold; longer is as good as no limit.
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The attempts of one call: what is left of its time, and when to try again. */
export class Attempts {
  readonly #repeatable: boolean;
  readonly #end: number;
  readonly #retries: number;
  #used = 0;

  /**
   * @param repeatable whether the call has the effect of one when it is sent twice
   * @param retries how often it may be sent again
   * @param timeoutMs milliseconds for all attempts together; null: no limit
   */
  constructor(repeatable: boolean, retries: number, timeoutMs: number | null) {
    this.#repeatable = repeatable;
    this.#retries = retries;
    this.#end = timeoutMs === null ? Number.POSITIVE_INFINITY : performance.now() + timeoutMs;
  }

  /**
   * Milliseconds until the deadline, for the next attempt; undefined without one.
   *
   * @throws MnemeError: there are none left.
   */
  timeLeft(): number | undefined {
    const left = this.#end - performance.now();
    if (left <= 0) {
      throw new MnemeError("the time for the call is over", { code: "DEADLINE_EXCEEDED" });
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
    const pause = this.#pauseAfter(error, isPassing);
    if (pause === undefined || performance.now() + pause >= this.#end) {
      throw error;
    }
    this.#used += 1;
    await pauseFor(pause, signal);
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
    // Callers that were refused together should not come back together.
    const asked = error.retryAfterMs ?? backoff;
    return (isPassing ? Math.min(asked, backoff) : asked) * (1 + 0.2 * Math.random());
  }
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

/** The error of a call that its caller gave up. */
export function cancelled(signal: AbortSignal | undefined): MnemeError {
  return new MnemeError("the call was cancelled", { code: "CANCELLED", cause: signal?.reason });
}
