/** The API over HTTP, for browsers and wherever else there is `fetch` and no gRPC. */

import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import {
  type UniversalClientFn,
  universalClientResponseFromFetch,
} from "@connectrpc/connect/protocol";
import { createTransport } from "@connectrpc/connect/protocol-connect";
import type { Connection } from "./caller.js";
import { identified, tenantOf } from "./caller-headers.js";
import { ConfigurationError } from "./errors.js";
import { Freshness } from "./freshness.js";
import type { AllMethods } from "./gen/services/all.js";
import {
  type AnyMethods,
  type Connected,
  type MethodsOf,
  openedOn,
  type Patience,
} from "./methods.js";
import { type Mneme, mnemeOn } from "./mneme.js";
import { withTraceContext } from "./tracing.js";

export type { CallOptions, Items } from "./caller.js";
export { Choice, Chooser, type ChooserOptions, type Option, type Situation } from "./choosing.js";
export { ConfigurationError, type FieldViolation, MnemeError, type StatusCode } from "./errors.js";
export * from "./gen/index.js";
export { toJson } from "./json.js";
export type { Connected, MethodsOf, ServiceMethods } from "./methods.js";
export type { Mneme } from "./mneme.js";
export type { ResultOptions, Started } from "./operations.js";
export { Attempt, type AttemptOptions, tagsOf } from "./reflecting.js";
export { Stream } from "./stream.js";
export { toDate, toMilliseconds } from "./time.js";

const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
/** What does the same as an RPC whose requests are a stream, which HTTP does not carry. */
const INSTEAD: Readonly<Partial<Record<Capitalize<keyof AllMethods>, string>>> = {
  StreamEvents: "recordEvents",
  CreateMemories: "createMemory",
  RecordTrajectories: "recordExperience",
  Act: "predict and feedback",
};

/** Where the server is. */
export interface Place {
  /** The server's HTTP address, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  /** The secret "mn_…"; without it none is sent. */
  readonly apiKey?: string | undefined;
  /** What sends the requests; default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Whether what is read shows what was written over the same transport before. Default: true. */
  readonly readOwnWrites?: boolean | undefined;
  /**
   * The tenant that the key opens, where a balancer spreads calls over several servers: it is sent
   * as `x-mneme-tenant`, so that the tenant's calls meet the same one. That makes them faster, and
   * nothing else: which tenant answers, the key says alone.
   */
  readonly tenant?: string | undefined;
}

/** Where the server is, and how to call it. */
export interface HttpOptions extends Place {
  /** Milliseconds for a call that gives no time of its own; default: no limit. */
  readonly timeoutMs?: number | undefined;
}

/** Where the server is, and how patient to be with it. */
export interface HttpMnemeOptions extends Place, Patience {
  /** Allow an API key over plaintext to another machine. */
  readonly insecure?: boolean | undefined;
}

/**
 * Makes a client that speaks HTTP, in browsers, too: it is that of `@mneme/client`, and has a
 * method for every RPC. Streams of requests (`streamEvents`, `recordAll`, `createMemories`,
 * `recordTrajectories`, `act`) need gRPC: they fail with UNIMPLEMENTED before anything is sent.
 *
 * @throws ConfigurationError: the options cannot be used.
 */
export function createMneme(options: HttpMnemeOptions): Mneme {
  return mnemeOn(() => connectionOf(options), options);
}

/**
 * Makes a client like `createMneme`'s with the methods of a few services only, of which a page
 * loads nothing else: `createMnemeOf([recallMethods], { url })`.
 *
 * @throws ConfigurationError: the options cannot be used.
 */
export function createMnemeOf<S extends AnyMethods>(
  services: readonly S[],
  options: HttpMnemeOptions,
): Connected & MethodsOf<S> {
  return openedOn(() => connectionOf(options), services, options).client;
}

/**
 * A transport for `createClient` of @connectrpc/connect, which speaks Connect's protocol: unary
 * calls and streams of answers. Streams of requests need gRPC.
 */
export function connectOverHttp(options: HttpOptions): Transport {
  return transportOf(options, new Freshness(options.readOwnWrites ?? true), options.timeoutMs);
}

function connectionOf(options: HttpMnemeOptions): Connection {
  const { apiKey = "", insecure = false } = options;
  if (/[^\x21-\x7e]/.test(apiKey)) {
    throw new ConfigurationError("the API key holds characters that no key has; copy it again");
  }
  const url = urlOf(options.url);
  if (apiKey && url.protocol === "http:" && !isLocal(url.hostname) && !insecure) {
    throw new ConfigurationError(
      `the API key would cross the network to ${url.host} in the clear: use https, or say that ` +
        "the network is trusted (insecure: true)",
    );
  }
  const freshness = new Freshness(options.readOwnWrites ?? true);
  return opened(url.host, transportOf(options, freshness, undefined), freshness);
}

/** A connection: HTTP has none to share, so that closing it gives its own calls up. */
function opened(address: string, transport: Transport, freshness: Freshness): Connection {
  const closing = new AbortController();
  const until = (signal: AbortSignal | undefined) =>
    signal ? AbortSignal.any([signal, closing.signal]) : closing.signal;
  return {
    address,
    freshness,
    transport: {
      unary: (method, signal, ...others) => transport.unary(method, until(signal), ...others),
      stream: (method, signal, ...others) => transport.stream(method, until(signal), ...others),
    },
    apart: () => opened(address, transport, freshness),
    close: () => closing.abort(),
  };
}

function urlOf(given: string): URL {
  try {
    const url = new URL(given);
    if (url.protocol === "http:" || url.protocol === "https:") {
      return url;
    }
  } catch {
    // It is said below.
  }
  throw new ConfigurationError(`${JSON.stringify(given)} is not an address: give http://HOST:PORT`);
}

/** Whether what is sent stays on this machine. */
function isLocal(host: string): boolean {
  const isName = host === "localhost" || host.endsWith(".localhost");
  return isName || host === "[::1]" || /^127(\.\d+){3}$/.test(host);
}

function transportOf(place: Place, freshness: Freshness, timeoutMs: number | undefined): Transport {
  const caller = { key: place.apiKey ?? "", tenant: tenantOf(place.tenant) };
  const transport = createTransport({
    httpClient: sentWith(place.fetch ?? globalThis.fetch),
    baseUrl: place.url.replace(/\/+$/, ""),
    // JSON would need to know every message that an operation may end with.
    useBinaryFormat: true,
    interceptors: [identified(caller), withTraceContext, freshness.interceptor],
    acceptCompression: [],
    sendCompression: null,
    compressMinBytes: 0,
    readMaxBytes: MAX_MESSAGE_BYTES,
    writeMaxBytes: MAX_MESSAGE_BYTES,
    ...(timeoutMs !== undefined && { defaultTimeoutMs: timeoutMs }),
  });
  return {
    unary: transport.unary,
    stream: async (method, ...others) => {
      requireOneRequest(method);
      return transport.stream(method, ...others);
    },
  };
}

/**
 * @throws ConnectError: browsers send requests whole, so that a stream of them would never begin.
 */
function requireOneRequest(method: DescMethod): void {
  if (method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming") {
    const instead = INSTEAD[method.name as keyof typeof INSTEAD];
    throw new ConnectError(
      `${method.name} takes a stream of requests, which needs gRPC` +
        `${instead ? `; over HTTP there is ${instead}` : ""}`,
      Code.Unimplemented,
    );
  }
}

/** Sends requests whole: browsers stream none over HTTP/1.1, and none of them has to be. */
function sentWith(send: typeof globalThis.fetch): UniversalClientFn {
  return async ({ url, method, header, body, signal }) => {
    const parts: Uint8Array<ArrayBuffer>[] = [];
    for await (const part of body ?? []) {
      parts.push(new Uint8Array(part));
    }
    const request = { method, headers: header, body: new Blob(parts) };
    try {
      const response = universalClientResponseFromFetch(
        await send.call(globalThis, url, { ...request, ...(signal && { signal }) }),
      );
      return { ...response, body: received(response.body) };
    } catch (failure) {
      throw lost(failure);
    }
  };
}

async function* received(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (failure) {
    throw lost(failure);
  }
}

/** What `fetch` says of a connection that failed or broke is a TypeError, and nothing else is. */
function lost(failure: unknown): unknown {
  if (!(failure instanceof TypeError)) {
    return failure;
  }
  const why = failure.cause instanceof Error ? failure.cause.message : failure.message;
  return new ConnectError(why || failure.message, Code.Unavailable, undefined, undefined, failure);
}
