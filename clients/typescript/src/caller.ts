import type {
  DescMethod,
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodStreaming,
  DescMethodUnary,
  Message,
} from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { Attempts, cancelled, pauseFor } from "./attempts.js";
import { errorOf, MnemeError } from "./errors.js";
import { messageOf, withIds } from "./fields.js";
import type { Freshness } from "./freshness.js";
import { DEFAULT_PATIENCE_MS, Resumption } from "./resuming.js";
import { Stream } from "./stream.js";

/** What a call may be given beside its request. */
export interface CallOptions {
  /**
   * Milliseconds for the call, retries included; null: no limit. Default: the client's, and no
   * limit for streams.
   */
  readonly timeoutMs?: number | null | undefined;
  /** Gives the call up when it is aborted. */
  readonly signal?: AbortSignal | undefined;
}

/** What the schemas say of an RPC. */
export interface Call {
  /** Its descriptor. */
  readonly method: DescMethod;
  /** Whether sending it twice has the effect of once. */
  readonly repeatable: boolean;
  /** Whether its stream stays open until someone ends it. */
  readonly longLived?: boolean;
  /** The fields of response and request by which a stream that broke off goes on. */
  readonly resumedBy?: { readonly place: string; readonly after: string };
  /** Paths of the ids that the client makes when they are left empty. */
  readonly madeIds: readonly (readonly string[])[];
  /** The resource of which a call changes the fields that its `updateMask` names. */
  readonly update?: string;
  /** The only field of a stream's requests: what is streamed fills it. */
  readonly item?: string;
}

/** An open connection. */
export interface Connection {
  /** Where the server is. */
  readonly address: string;
  /** Connect's transport, which carries the API key with every call. */
  readonly transport: Transport;
  /** What was written last. */
  readonly freshness: Freshness;
  /** Another connection to the same server: calls on this one do not wait for those on that. */
  apart(): Connection;
  /** Closes the connection; calls and streams that are still open fail. */
  close(): void;
}

/** Items of a stream to the server. */
export type Items<T> = Iterable<T> | AsyncIterable<T>;

// How long a server may take to see that a stream was left. Until then it counts the stream.
const LEAVING_MS = 5_000;

/**
 * Makes calls: requests of plain values, deadlines, retries and typed errors.
 *
 * A server takes a bounded number of calls on one connection. A stream that stays open has a
 * connection of its own, so that other calls do not wait for it.
 */
export class Caller {
  readonly #connection: Connection;
  readonly #apart = new Set<Connection>();
  readonly #retries: number;
  readonly #timeoutMs: number | null;
  #closed = false;
  #leftAt = Number.NEGATIVE_INFINITY;

  constructor(connection: Connection, retries: number, timeoutMs: number | null) {
    this.#connection = connection;
    this.#retries = retries;
    this.#timeoutMs = timeoutMs;
  }

  /** Closes the connections; later calls fail. */
  close(): void {
    this.#closed = true;
    for (const connection of [...this.#apart, this.#connection]) {
      connection.close();
    }
    this.#apart.clear();
  }

  /** One request, one answer. */
  async unary(call: Call, fields: object, options: CallOptions): Promise<Message> {
    const method = call.method as DescMethodUnary;
    const message = requestOf(call, fields);
    const attempts = this.#attempts(call, options, this.#timeoutMs);
    for (;;) {
      this.#check(options.signal);
      try {
        const response = await this.#connection.transport.unary(
          method,
          options.signal,
          attempts.timeLeft(),
          undefined,
          message,
        );
        return response.message;
      } catch (failure) {
        await attempts.pauseAfter(this.#errorOf(failure, options.signal), options.signal);
      }
    }
  }

  /** Many requests, one answer. */
  async clientStream(call: Call, items: Items<object>, options: CallOptions): Promise<Message> {
    const source = new Source(call, items);
    // What was streamed cannot be sent again from here: it is not kept.
    const attempts = this.#attempts(call, options, null);
    this.#check(options.signal);
    try {
      const response = await this.#connection.transport.stream(
        call.method as DescMethodClientStreaming,
        options.signal,
        attempts.timeLeft(),
        undefined,
        source.messages(),
      );
      let answer: Message | undefined;
      for await (const message of response.message) {
        answer = message;
      }
      if (answer === undefined) {
        throw new MnemeError("the server ended the call without an answer", { code: "INTERNAL" });
      }
      return answer;
    } catch (failure) {
      source.throwOwnError();
      throw this.#errorOf(failure, options.signal);
    }
  }

  /** One request, many messages. */
  serverStream(call: Call, fields: object, options: CallOptions): Stream<Message> {
    const message = requestOf(call, fields);
    return this.#stream(call, message, options);
  }

  /** Many requests, many messages, in both directions at once. */
  bidirectional(call: Call, items: Items<object>, options: CallOptions): Stream<Message> {
    return this.#stream(call, new Source(call, items), options);
  }

  #stream(call: Call, request: Message | Source, options: CallOptions): Stream<Message> {
    return new Stream((closing) => {
      const signal = options.signal ? AbortSignal.any([closing, options.signal]) : closing;
      return call.longLived
        ? this.#messagesApart(call, request, options, signal)
        : this.#messages(this.#connection, call, request, options, signal);
    });
  }

  /**
   * The messages of a stream that stays open. One that can be resumed goes on where it was when it
   * breaks off, for as long as the client waits for a call.
   */
  async *#messagesApart(
    call: Call,
    request: Message | Source,
    options: CallOptions,
    signal: AbortSignal,
  ): AsyncGenerator<Message, void, undefined> {
    if (call.resumedBy === undefined || request instanceof Source || this.#retries === 0) {
      yield* this.#messagesOfOneCall(call, request, options, signal);
      return;
    }
    this.#attempts(call, options, null); // Looks at what was given.
    const patienceMs = this.#timeoutMs ?? DEFAULT_PATIENCE_MS;
    const resumption = new Resumption(call.resumedBy, request, options.timeoutMs, patienceMs);
    for (;;) {
      try {
        const timeoutMs = resumption.timeLeft();
        const messages = this.#messagesOfOneCall(call, request, { ...options, timeoutMs }, signal);
        for await (const message of messages) {
          if (resumption.isNews(message)) {
            yield message;
          }
        }
        return;
      } catch (failure) {
        const pause = failure instanceof MnemeError ? resumption.pauseAfter(failure) : undefined;
        if (pause === undefined || this.#closed || signal.aborted) {
          throw failure;
        }
        await pauseFor(pause, signal);
      }
    }
  }

  /** The messages of a call with a connection of its own, which is closed when it ends. */
  async *#messagesOfOneCall(
    call: Call,
    request: Message | Source,
    options: CallOptions,
    signal: AbortSignal,
  ): AsyncGenerator<Message, void, undefined> {
    this.#check(signal);
    const connection = this.#connection.apart();
    this.#apart.add(connection);
    const free = () => {
      this.#apart.delete(connection);
      connection.close();
    };
    const leave = () => {
      this.#leftAt = performance.now();
      free();
    };
    // Who ends the stream may never ask for another message.
    signal.addEventListener("abort", leave, { once: true });
    try {
      yield* this.#messages(connection, call, request, options, signal);
    } finally {
      signal.removeEventListener("abort", leave);
      free();
    }
  }

  /** The messages of a stream. One that was not fed begins anew while nothing has arrived. */
  async *#messages(
    connection: Connection,
    call: Call,
    request: Message | Source,
    options: CallOptions,
    signal: AbortSignal,
  ): AsyncGenerator<Message, void, undefined> {
    const attempts = this.#attempts(call, options, null);
    for (;;) {
      this.#check(signal);
      let arrived = false;
      try {
        const response = await connection.transport.stream(
          call.method as DescMethodStreaming as DescMethodServerStreaming,
          signal,
          attempts.timeLeft(),
          undefined,
          request instanceof Source ? request.messages() : only(request),
        );
        for await (const message of response.message) {
          arrived = true;
          yield message;
        }
        return;
      } catch (failure) {
        if (request instanceof Source) {
          request.throwOwnError();
        }
        const error = this.#errorOf(failure, signal);
        if (arrived || request instanceof Source) {
          throw error;
        }
        await attempts.pauseAfter(error, signal, this.#hasJustLeft(error));
      }
    }
  }

  /** Whether a stream is refused because of one that this client has only just left. */
  #hasJustLeft(error: MnemeError): boolean {
    return error.reason === "TOO_MANY_STREAMS" && performance.now() - this.#leftAt < LEAVING_MS;
  }

  #attempts(call: Call, options: CallOptions, otherwise: number | null): Attempts {
    const { timeoutMs = otherwise } = options;
    if (timeoutMs !== null && !(timeoutMs > 0)) {
      throw new RangeError(`timeoutMs must be above 0, not ${timeoutMs}; null means no limit`);
    }
    return new Attempts(call.repeatable, this.#retries, timeoutMs);
  }

  #check(signal: AbortSignal | undefined): void {
    if (this.#closed) {
      throw new MnemeError("the client is closed", { code: "CANCELLED" });
    }
    if (signal?.aborted) {
      throw cancelled(signal);
    }
  }

  #errorOf(failure: unknown, signal: AbortSignal | undefined): MnemeError {
    this.#check(signal);
    return errorOf(failure, this.#connection.address);
  }
}

/** The request of plain values, with the ids and the update mask that the caller left out. */
function requestOf(call: Call, fields: object): Message {
  const message = messageOf(call.method.input, withUpdateMask(call, fields)) as Message;
  return withIds(message, call.madeIds);
}

/** What an update says of the resource beside its new values. */
const NOT_CHANGED: ReadonlySet<string> = new Set(["id", "etag"]);

function withUpdateMask(call: Call, fields: object): object {
  const given = fields as Record<string, unknown>;
  const resource = call.update === undefined ? undefined : given[call.update];
  if (typeof resource !== "object" || resource === null || given["updateMask"] !== undefined) {
    return fields;
  }
  const schema = call.method.input.field[call.update as string]?.message;
  const paths = Object.entries(resource)
    .filter(
      ([name, value]) => !NOT_CHANGED.has(name) && !name.startsWith("$") && value !== undefined,
    )
    .map(([name]) => schema?.field[name]?.name ?? name);
  return { ...given, updateMask: paths };
}

/** The requests of a stream; remembers what the caller's own items threw. */
class Source {
  readonly #call: Call;
  readonly #items: Items<object>;
  #error: { thrown: unknown } | undefined;

  constructor(call: Call, items: Items<object>) {
    this.#call = call;
    this.#items = items;
  }

  async *messages(): AsyncGenerator<Message> {
    const { item, method, madeIds } = this.#call;
    try {
      for await (const one of this.#items) {
        const isRequest = item === undefined || isOf(one, method.input.typeName);
        const message = messageOf(method.input, isRequest ? one : { [item]: one }) as Message;
        yield withIds(message, madeIds);
      }
    } catch (error) {
      this.#error = { thrown: error };
      throw error;
    }
  }

  /** Throws what the items threw, if they did. */
  throwOwnError(): void {
    if (this.#error) {
      throw this.#error.thrown;
    }
  }
}

function isOf(value: object, typeName: string): boolean {
  return "$typeName" in value && value.$typeName === typeName;
}

async function* only(message: Message): AsyncGenerator<Message> {
  yield message;
}
