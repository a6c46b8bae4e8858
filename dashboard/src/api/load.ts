/** How components load what they show. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, asApiError, isAbort } from "./errors";

/** What is known of something that is loaded. */
export interface Loaded<T> {
  /** What was loaded last; stays while it is loaded anew. */
  readonly data: T | undefined;
  /** Why the last attempt failed. */
  readonly error: ApiError | undefined;
  readonly loading: boolean;
  /** Load it once more. */
  readonly reload: () => void;
}

/**
 * Load something when the component is there, and again when one of `inputs` changes; what is
 * still under way then is ended, so answers never come in the wrong order.
 */
export function useLoad<T>(
  load: (signal: AbortSignal) => PromiseLike<T>,
  inputs: readonly unknown[],
): Loaded<T> {
  const [state, setState] = useState<Omit<Loaded<T>, "reload">>(NOTHING);
  const [round, setRound] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    const ending = new AbortController();
    setState((before) => ({ ...before, loading: true }));
    Promise.resolve(latest.current(ending.signal)).then(
      (data) => {
        if (!ending.signal.aborted) setState({ data, error: undefined, loading: false });
      },
      (error: unknown) => {
        if (ending.signal.aborted || isAbort(error)) return;
        setState((before) => ({ ...before, error: asApiError(error), loading: false }));
      },
    );
    return () => ending.abort();
  }, [...inputs, round]);
  const reload = useCallback(() => setRound((before) => before + 1), []);
  return { ...state, reload };
}

const NOTHING = { data: undefined, error: undefined, loading: true };

/** A page of a list, as every listing call answers. */
export interface PageOf<T> {
  readonly items: readonly T[];
  /** Asks for the next page; empty on the last. */
  readonly next?: string | undefined;
  /** Items over all pages, where the call tells. */
  readonly total?: number | undefined;
}

/** A list that grows by pages. */
export interface Paged<T> extends Omit<Loaded<readonly T[]>, "data"> {
  readonly items: readonly T[] | undefined;
  readonly total: number | undefined;
  /** Whether the items are those of an earlier answer: what was asked for last could not be had. */
  readonly stale: boolean;
  /** Loads the next page; undefined on the last. */
  readonly more: (() => void) | undefined;
}

/** Load a list page by page; a change of `inputs` begins it anew. */
export function usePages<T>(
  load: (token: string, signal: AbortSignal) => PromiseLike<PageOf<T>>,
  inputs: readonly unknown[],
): Paged<T> {
  const [later, setLater] = useState<{ pages: readonly PageOf<T>[]; of: unknown }>(EMPTY);
  const [turning, setTurning] = useState(false);
  const [failed, setFailed] = useState<{ error?: ApiError; of: unknown }>(EMPTY);
  const first = useLoad((signal) => load("", signal), inputs);
  const current = useRef<unknown>(undefined);
  current.current = first.data;
  const pages = later.of === first.data ? later.pages : [];
  const last = pages.at(-1) ?? first.data;
  const more = (): void => {
    if (turning || !last?.next) return;
    setTurning(true);
    setFailed(EMPTY);
    const of = first.data;
    Promise.resolve(load(last.next, new AbortController().signal))
      .then(
        (page) => {
          if (current.current === of) setLater({ pages: [...pages, page], of });
        },
        (error: unknown) => setFailed({ error: asApiError(error), of }),
      )
      .finally(() => setTurning(false));
  };
  return {
    items: first.data && [first.data, ...pages].flatMap((page) => page.items),
    total: last?.total,
    stale: first.error !== undefined,
    // Of a list that is another by now, it says nothing.
    error: first.error ?? (failed.of === first.data ? failed.error : undefined),
    loading: first.loading || turning,
    reload: first.reload,
    more: last?.next ? more : undefined,
  };
}

const EMPTY = { pages: [], of: undefined };
