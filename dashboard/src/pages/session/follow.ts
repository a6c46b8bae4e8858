/** A session's events: those that are there, page by page, and those that come while it runs. */

import type { EventJson } from "@mneme/client/http";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, asApiError, isAbort } from "../../api/errors";
import { events } from "../../api/services";
import { num } from "../../format";

const PAGE = 300;
// A link into a session may lead far behind its first page; so many are turned to find the place.
const TURNED = 20;
const RETRY_MS = 3000;

/** What is known of a session's events. */
export interface Followed {
  readonly events: readonly EventJson[] | undefined;
  readonly error: ApiError | undefined;
  readonly loading: boolean;
  /** Whether what is recorded now appears by itself. */
  readonly live: boolean;
  readonly more: (() => void) | undefined;
}

/** Load a session's events up to the one that is asked for, and follow it while it runs. */
export function useEvents(sessionId: string, active: boolean, wanted: string): Followed {
  const known = useRef(new Map<string, EventJson>());
  const [next, setNext] = useState("");
  const [state, setState] = useState<Omit<Followed, "more">>(NOTHING);
  const chosen = useRef(wanted);
  chosen.current = wanted;

  const show = useCallback((change: Partial<Omit<Followed, "more">>): void => {
    const ordered = [...known.current.values()].sort((a, b) => num(a.sequence) - num(b.sequence));
    setState((before) => ({ ...before, events: ordered, ...change }));
  }, []);

  const turn = useCallback(
    async (token: string, signal?: AbortSignal): Promise<string> => {
      const page = await events.listEvents(
        { sessionId, pageSize: PAGE, pageToken: token },
        { signal },
      );
      for (const event of page.events ?? []) known.current.set(event.id ?? "", event);
      setNext(page.nextPageToken ?? "");
      return page.nextPageToken ?? "";
    },
    [sessionId],
  );

  const load = useCallback(
    async (signal: AbortSignal): Promise<void> => {
      known.current.clear();
      let token = await turn("", signal);
      for (let turned = 1; token && turned < TURNED; turned++) {
        if (!chosen.current || known.current.has(chosen.current)) break;
        token = await turn(token, signal);
      }
    },
    [turn],
  );

  useEffect(() => {
    const ending = new AbortController();
    setState(NOTHING);
    load(ending.signal).then(
      () => show({ loading: false, error: undefined }),
      (error: unknown) => {
        if (!isAbort(error)) show({ loading: false, error: asApiError(error) });
      },
    );
    return () => ending.abort();
    // What is chosen later is among what is shown.
  }, [sessionId]);

  useEffect(() => {
    if (!active) return;
    const ending = new AbortController();
    follow(sessionId, ending.signal, {
      begun: async (again) => {
        // The server may have come back with other data than before.
        if (again) await load(ending.signal);
        show({ live: true, ...(again && { loading: false, error: undefined }) });
      },
      came: (event) => {
        known.current.set(event.id ?? "", event);
        show({});
      },
      broke: () => show({ live: false }),
    });
    return () => {
      ending.abort();
      setState((before) => ({ ...before, live: false }));
    };
  }, [sessionId, active]);

  const more = (): void => {
    show({ loading: true, error: undefined });
    turn(next).then(
      () => show({ loading: false }),
      (error: unknown) => show({ loading: false, error: asApiError(error) }),
    );
  };
  return { ...state, more: next ? more : undefined };
}

const NOTHING = { events: undefined, error: undefined, loading: true, live: false };

/** Watch until the signal ends it; a stream that breaks begins again. */
async function follow(
  sessionId: string,
  signal: AbortSignal,
  told: {
    begun: (again: boolean) => Promise<void>;
    came: (event: EventJson) => void;
    broke: () => void;
  },
): Promise<void> {
  for (let again = false; !signal.aborted; again = true) {
    try {
      for await (const { event } of events.watchEvents({ sessionId }, { signal })) {
        if (event) told.came(event);
        else {
          await told.begun(again);
          // What was recorded before the stream began is read once it has.
          await catchUp(sessionId, signal, told.came);
        }
      }
    } catch (error) {
      if (isAbort(error) || signal.aborted) return;
    }
    told.broke();
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

async function catchUp(
  sessionId: string,
  signal: AbortSignal,
  came: (event: EventJson) => void,
): Promise<void> {
  const page = await events.listEvents({ sessionId, descending: true, pageSize: PAGE }, { signal });
  for (const event of page.events ?? []) came(event);
}
