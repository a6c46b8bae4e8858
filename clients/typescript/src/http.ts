/** The API over HTTP, for browsers and wherever else there is `fetch` and no gRPC. */

import type { Interceptor, Transport } from "@connectrpc/connect";
import {
  type UniversalClientFn,
  universalClientResponseFromFetch,
} from "@connectrpc/connect/protocol";
import { createTransport } from "@connectrpc/connect/protocol-connect";
import { Freshness } from "./freshness.js";

export * from "./gen/index.js";

const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

/** Where the server is, and how to call it. */
export interface HttpOptions {
  /** The server's HTTP address, such as `http://127.0.0.1:8080`. */
  readonly url: string;
  /** The secret "mn_…"; without it none is sent. */
  readonly apiKey?: string | undefined;
  /** Milliseconds for a call that gives no time of its own; default: no limit. */
  readonly timeoutMs?: number | undefined;
  /** What sends the requests; default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Whether what is read shows what was written over the same transport before. Default: true. */
  readonly readOwnWrites?: boolean | undefined;
}

/**
 * A transport for `createClient` of @connectrpc/connect, which speaks Connect's protocol: unary
 * calls and streams of answers. Streams of requests need gRPC.
 */
export function connectOverHttp(options: HttpOptions): Transport {
  const freshness = new Freshness(options.readOwnWrites ?? true);
  return createTransport({
    httpClient: sentWith(options.fetch ?? globalThis.fetch),
    baseUrl: options.url.replace(/\/+$/, ""),
    useBinaryFormat: false,
    interceptors: [withKey(options.apiKey ?? ""), freshness.interceptor],
    acceptCompression: [],
    sendCompression: null,
    compressMinBytes: 0,
    readMaxBytes: MAX_MESSAGE_BYTES,
    writeMaxBytes: MAX_MESSAGE_BYTES,
    ...(options.timeoutMs !== undefined && { defaultTimeoutMs: options.timeoutMs }),
  });
}

/** Sends requests whole: browsers stream none over HTTP/1.1, and none of them has to be. */
function sentWith(send: typeof globalThis.fetch): UniversalClientFn {
  return async ({ url, method, header, body, signal }) => {
    const parts: Uint8Array<ArrayBuffer>[] = [];
    for await (const part of body ?? []) {
      parts.push(new Uint8Array(part));
    }
    const request = { method, headers: header, body: new Blob(parts) };
    return universalClientResponseFromFetch(
      await send.call(globalThis, url, { ...request, ...(signal && { signal }) }),
    );
  };
}

function withKey(key: string): Interceptor {
  return (next) => (request) => {
    if (key) {
      request.header.set("authorization", `Bearer ${key}`);
    }
    return next(request);
  };
}
