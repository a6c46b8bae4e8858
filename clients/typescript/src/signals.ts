/** What gives the calls up that have a signal. */
const waiting = new WeakMap<AbortSignal, Set<AbortController>>();

/** A signal of a call's own, and what lets go of it when the call has ended. */
export interface OwnSignal {
  readonly signal: AbortSignal | undefined;
  release(): void;
}

/**
 * A signal that is aborted when the caller's is, for one call. However many calls have the same
 * signal, it has one listener: Node.js takes more than ten for a leak and says so.
 */
export function ownSignal(given: AbortSignal | undefined): OwnSignal {
  if (given === undefined || given.aborted) {
    return { signal: given, release: () => undefined };
  }
  const own = new AbortController();
  const others = waiting.get(given);
  if (others !== undefined) {
    others.add(own);
  } else {
    follow(given, new Set([own]));
  }
  return {
    signal: own.signal,
    release: () => waiting.get(given)?.delete(own),
  };
}

function follow(given: AbortSignal, controllers: Set<AbortController>): void {
  waiting.set(given, controllers);
  const abort = () => {
    for (const controller of controllers) {
      controller.abort(given.reason);
    }
    controllers.clear();
  };
  given.addEventListener("abort", abort, { once: true });
}
