import type { Message } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { type Call, Caller, type CallOptions, type Connection, type Items } from "./caller.js";
import { ConfigurationError } from "./errors.js";

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_RETRIES = 3;

/** How patient to be with the server. */
export interface Patience {
  /** Milliseconds for a unary call, retries included; null: no limit. Default: 30,000. */
  readonly timeoutMs?: number | null | undefined;
  /** How often a call may be sent again. Default: 3. */
  readonly retries?: number | undefined;
}

/** What the methods of a service are made of: `recallMethods`, for `createMnemeOf`. */
export interface ServiceMethods<M> {
  /** Its RPCs by the names of their methods. */
  readonly calls: { readonly [K in Exclude<keyof M, `iter${string}`>]: Call };
  /** Walks over all pages: whose pages, and the field that holds the items. */
  readonly walks: { readonly [K in Extract<keyof M, `iter${string}`>]: Walk };
}

interface Walk {
  readonly call: string;
  readonly items: string;
}

/** What the methods of any service are made of. */
export interface AnyMethods {
  readonly calls: Readonly<Record<string, Call>>;
  readonly walks: Readonly<Record<string, Walk>>;
}

/** The methods that are made of all of these. */
export type MethodsOf<S extends AnyMethods> = All<S extends ServiceMethods<infer M> ? M : never>;
type All<M> = (M extends unknown ? (one: M) => void : never) extends (all: infer A) => void
  ? A
  : never;

/** A connection to a Mneme server. */
export interface Connected {
  /** Where the server is; for a folder whose server was not joined yet, the folder. */
  readonly address: string;
  /** Connect's transport, which carries the API key: for `createClient` of @connectrpc/connect. */
  readonly transport: Transport;
  /**
   * The state that this client has written last, for others to read at least that; empty before its
   * first write. Set it to one that another client wrote to read at least that.
   */
  consistencyToken: string;
  /** Closes the connection; calls and streams that are still open fail, and later ones too. */
  close(): void;
}

/** A client, and what it calls with. */
export interface Opened<M> {
  readonly client: Connected & M;
  readonly caller: Caller;
  readonly patience: { readonly retries: number; readonly timeoutMs: number | null };
}

/**
 * A client on a connection, whatever that speaks, with the methods of these services.
 *
 * @throws ConfigurationError: the options cannot be used; nothing was connected.
 */
export function openedOn<S extends AnyMethods>(
  connect: () => Connection,
  services: readonly S[],
  options: Patience,
): Opened<MethodsOf<S>> {
  const { timeoutMs = DEFAULT_TIMEOUT_MS, retries = DEFAULT_RETRIES } = options;
  if (!Number.isInteger(retries) || retries < 0) {
    throw new ConfigurationError(`retries must be a whole number from 0, not ${retries}`);
  }
  if (timeoutMs !== null && !(timeoutMs > 0)) {
    throw new ConfigurationError(`timeoutMs must be above 0, not ${timeoutMs}; null: no limit`);
  }
  const connection = connect();
  const caller = new Caller(connection, retries, timeoutMs);
  const connected: Connected = {
    get address() {
      return connection.address;
    },
    get consistencyToken() {
      return connection.freshness.token;
    },
    set consistencyToken(token) {
      connection.freshness.token = token;
    },
    transport: connection.transport,
    close: () => caller.close(),
  };
  const methods = services.map((one) => methodsOf(caller, one) as MethodsOf<S>);
  const client = Object.assign(connected, ...methods);
  return { client, caller, patience: { retries, timeoutMs } };
}

function methodsOf(caller: Caller, { calls, walks }: AnyMethods): object {
  const methods = Object.entries(calls).map(([name, call]) => [name, methodOf(caller, call)]);
  const walked = Object.entries(walks).map(([name, walk]) => {
    return [name, walkOf(caller, calls[walk.call] as Call, walk.items)];
  });
  return Object.fromEntries([...methods, ...walked]);
}

function methodOf(caller: Caller, call: Call): unknown {
  switch (call.method.methodKind) {
    case "unary":
      return async (request = {}, options = {}) => caller.unary(call, request, options);
    case "server_streaming":
      return (request = {}, options = {}) => caller.serverStream(call, request, options);
    case "client_streaming":
      return async (items: Items<object>, options = {}) =>
        caller.clientStream(call, items, options);
    case "bidi_streaming":
      return (items: Items<object>, options = {}) => caller.bidirectional(call, items, options);
  }
}

function walkOf(caller: Caller, call: Call, items: string): unknown {
  return async function* (request: { pageToken?: string } = {}, options: CallOptions = {}) {
    let { pageToken = "" } = request;
    do {
      const page = await caller.unary(call, { ...request, pageToken }, options);
      const answer = page as Message & Record<string, unknown>;
      yield* answer[items] as unknown[];
      pageToken = answer["nextPageToken"] as string;
    } while (pageToken);
  };
}
