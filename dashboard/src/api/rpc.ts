/**
 * Calls over Connect's protocol in JSON. The whole runtime of protobuf and Connect would be larger
 * than everything else that the first page loads; their types cost nothing.
 */

import { ApiError, asApiError, errorOf, isAbort } from "./errors";
import { key, signInNeeded } from "./key";
import type { CallOptions, Calls } from "./types";

const TOKEN = "mneme-consistency-token";
const AT_LEAST_AS_FRESH = "mneme-at-least-as-fresh";
const END = 2;
const PREFIX = 5;

// The newest token that a write was answered with: what is read afterwards shows it.
let freshness = "";
// Whose that is: another key may be another tenant's.
let freshnessOf = "";

/**
 * A service's calls: `service<typeof EventService>("EventService")`. Its requests and answers are
 * plain objects in protobuf's JSON, where what is empty is left out and int64 is a string.
 */
export function service<S>(name: string): Calls<S> {
  const calls = new Proxy({} as Record<string, unknown>, {
    get: (_target, method: string) => (request: unknown, options?: CallOptions) => {
      const path = `/mneme.v1.${name}/${method.charAt(0).toUpperCase()}${method.slice(1)}`;
      return new Call(path, request, options?.signal);
    },
  });
  return calls as Calls<S>;
}

/** A call that is sent when it is awaited, or as a stream when it is iterated. */
class Call implements PromiseLike<unknown>, AsyncIterable<unknown> {
  readonly #path: string;
  readonly #request: unknown;
  readonly #signal: AbortSignal | undefined;

  constructor(path: string, request: unknown, signal: AbortSignal | undefined) {
    this.#path = path;
    this.#request = request;
    this.#signal = signal;
  }

  // biome-ignore lint/suspicious/noThenProperty: it is awaited like a promise.
  then<A, B>(
    done?: ((value: unknown) => A | PromiseLike<A>) | null,
    failed?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#unary().then(done, failed);
  }

  catch<B>(failed: (reason: unknown) => B | PromiseLike<B>): Promise<unknown> {
    return this.#unary().catch(failed);
  }

  finally(after: () => void): Promise<unknown> {
    return this.#unary().finally(after);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<unknown> {
    const body = JSON.stringify(this.#request);
    const payload = new TextEncoder().encode(body);
    const framed = new Uint8Array(PREFIX + payload.length);
    new DataView(framed.buffer).setUint32(1, payload.length);
    framed.set(payload, PREFIX);
    const response = await send(this.#path, "application/connect+json", framed, this.#signal);
    if (!response.ok || !response.body) throw await failure(response);
    for await (const [flags, message] of frames(response.body.getReader())) {
      const value: unknown = JSON.parse(new TextDecoder().decode(message));
      if ((flags & END) === 0) {
        yield value;
        continue;
      }
      const { error } = value as { error?: unknown };
      if (error) throw noted(errorOf(error, 200, requestIdOf(response)));
      return;
    }
    throw new ApiError("unreachable", "The connection broke before the stream had ended.");
  }

  async #unary(): Promise<unknown> {
    const body = JSON.stringify(this.#request);
    const response = await send(this.#path, "application/json", body, this.#signal);
    if (!response.ok) throw await failure(response);
    freshness = response.headers.get(`trailer-${TOKEN}`) || freshness;
    try {
      return await response.json();
    } catch (error) {
      if (isAbort(error)) throw error;
      throw new ApiError("unreachable", "The answer did not arrive whole.");
    }
  }
}

async function send(
  path: string,
  type: string,
  body: BodyInit,
  signal: AbortSignal | undefined,
): Promise<Response> {
  const headers: Record<string, string> = { "content-type": type, "connect-protocol-version": "1" };
  if (key.value) headers["authorization"] = `Bearer ${key.value}`;
  if (freshnessOf !== key.value) freshness = "";
  freshnessOf = key.value;
  if (freshness) headers[AT_LEAST_AS_FRESH] = freshness;
  try {
    return await fetch(path, { method: "POST", headers, body, signal: signal ?? null });
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new ApiError("unreachable", "The server does not answer.");
  }
}

async function failure(response: Response): Promise<ApiError> {
  const body: unknown = await response.json().catch(() => null);
  return noted(errorOf(body, response.status, requestIdOf(response)));
}

function noted(error: ApiError): ApiError {
  if (error.code === "unauthenticated") signInNeeded.value = true;
  return error;
}

function requestIdOf(response: Response): string {
  return response.headers.get("x-request-id") ?? "";
}

async function* frames(
  reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<[number, Uint8Array]> {
  let held = new Uint8Array(0);
  try {
    for (;;) {
      while (held.length >= PREFIX) {
        const end = PREFIX + new DataView(held.buffer, held.byteOffset).getUint32(1);
        if (held.length < end) break;
        yield [held[0] ?? 0, held.subarray(PREFIX, end)];
        held = held.slice(end);
      }
      const { done, value } = await reader.read();
      if (done) return;
      const joined = new Uint8Array(held.length + value.length);
      joined.set(held);
      joined.set(value, held.length);
      held = joined;
    }
  } catch (error) {
    if (isAbort(error)) throw error;
    throw asApiError(
      error instanceof ApiError ? error : new ApiError("unreachable", "The connection broke."),
    );
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
