import { cancelled, timeIsOver } from "./attempts.js";

/** Lets so many in at once, and the others in the order in which they came. */
export class Gate {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(most: number) {
    this.#free = most;
  }

  /**
   * Returns when there is a place, which `leave` gives back.
   *
   * @param timeMs milliseconds that there are to wait; undefined: no limit
   * @param signal gives it up
   * @throws MnemeError: the time is over, or it was given up.
   */
  async enter(timeMs: number | undefined, signal: AbortSignal | undefined): Promise<void> {
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", giveUp);
        this.#waiting.delete(enter);
      };
      const enter = () => {
        end();
        resolve();
      };
      const giveUp = () => {
        end();
        reject(cancelled(signal));
      };
      const tooLate = () => {
        end();
        reject(timeIsOver());
      };
      const timer = timeMs === undefined ? undefined : setTimeout(tooLate, timeMs);
      signal?.addEventListener("abort", giveUp, { once: true });
      this.#waiting.add(enter);
    });
  }

  /** Gives the place to whoever has waited the longest. */
  leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free += 1;
    } else {
      next();
    }
  }
}
