import type {
  DescMessage,
  DescMethodBiDiStreaming,
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  Message,
  MessageShape,
} from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { type Call, Caller, type CallOptions, type Connection, type Items } from "./caller.js";
import { Chooser, type ChooserOptions } from "./choosing.js";
import { ConfigurationError } from "./errors.js";
import type { Fields, FieldValue } from "./fields.js";
import { calls, walks } from "./gen/calls.js";
import type { Operation } from "./gen/mneme/v1/operation_pb.js";
import { type ResultOptions, resultOf } from "./operations.js";
import { type RecordAllOptions, type Recorded, recordAll } from "./recording.js";
import { type Attempt, type AttemptOptions, attempt } from "./reflecting.js";
import type { Stream } from "./stream.js";

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_RETRIES = 3;

/** How patient to be with the server. */
export interface Patience {
  /** Milliseconds for a unary call, retries included; null: no limit. Default: 30,000. */
  readonly timeoutMs?: number | null | undefined;
  /** How often a call may be sent again. Default: 3. */
  readonly retries?: number | undefined;
}

/** The methods of all RPCs, named as the RPCs are. */
export type Methods = { [K in keyof typeof calls]: MethodOf<(typeof calls)[K]> };

/** Walks over all pages of a list. */
export type Walks = { [K in keyof typeof walks]: WalkOf<(typeof walks)[K]> };

/** The fields of an RPC's request: `RequestOf<"recall">`. */
export type RequestOf<K extends keyof typeof calls> = RequestFields<(typeof calls)[K]>;

type AnyCall = (typeof calls)[keyof typeof calls];
type RequestFields<C extends AnyCall> = WithRequired<
  Fields<MessageShape<C["method"]["input"]>>,
  C["required"][number]
>;
type WithRequired<F, R extends string> = Omit<F, R> & {
  [K in R & keyof F]-?: Exclude<F[K], undefined>;
};
/** The request may be left out when nothing in it is required. */
type RequestArguments<C extends AnyCall> = C["required"] extends readonly []
  ? [request?: RequestFields<C>, options?: CallOptions]
  : [request: RequestFields<C>, options?: CallOptions];
type StreamedItem<C extends AnyCall> = C extends { item: infer Name }
  ? Name extends keyof MessageShape<C["method"]["input"]>
    ? FieldValue<NonNullable<MessageShape<C["method"]["input"]>[Name]>>
    : never
  : RequestFields<C>;
type MethodOf<C extends AnyCall> =
  C["method"] extends DescMethodUnary<infer _, infer O>
    ? (...given: RequestArguments<C>) => Promise<MessageShape<O>>
    : C["method"] extends DescMethodServerStreaming<infer _, infer O>
      ? (...given: RequestArguments<C>) => Stream<MessageShape<O>>
      : C["method"] extends DescMethodClientStreaming<infer _, infer O>
        ? (items: Items<StreamedItem<C>>, options?: CallOptions) => Promise<MessageShape<O>>
        : C["method"] extends DescMethodBiDiStreaming<infer _, infer O>
          ? (items: Items<StreamedItem<C>>, options?: CallOptions) => Stream<MessageShape<O>>
          : never;
type WalkOf<W extends { call: keyof typeof calls; items: string }> = (
  ...given: RequestArguments<(typeof calls)[W["call"]]>
) => AsyncGenerator<
  ItemOf<MessageShape<(typeof calls)[W["call"]]["method"]["output"]>, W["items"]>
>;
type ItemOf<M, Name extends string> = Name extends keyof M
  ? M[Name] extends readonly (infer Item)[]
    ? Item
    : never
  : never;

/** A connection to a Mneme server, with a method for every RPC. */
export interface Mneme extends Methods, Walks {
  /** Where the server is; for a folder whose server was not joined yet, the folder. */
  readonly address: string;
  /** Connect's transport, which carries the API key: for `createClient` of @connectrpc/connect. */
  readonly transport: Transport;
  /**
   * The state that this client has written last, for others to read at least that; empty before its
   * first write. Set it to one that another client wrote to read at least that.
   */
  consistencyToken: string;
  /**
   * An attempt at a task: loads past lessons, does the work, and stores a reflection: a success,
   * or, with the error's text, a failure, whose error goes on.
   *
   * @throws MnemeError: the lessons could not be loaded or the reflection not stored; an
   *   AggregateError of both when the work itself had failed.
   */
  attempt<T>(
    task: string,
    options: AttemptOptions,
    work: (attempt: Attempt) => T | Promise<T>,
  ): Promise<T>;
  /**
   * Something that chooses among options by what worked, and learns what works.
   *
   * @param sessionId the learning session; started when it is first needed, and gone on with if it
   *   exists.
   */
  chooser(sessionId: string, options?: ChooserOptions): Chooser;
  /**
   * Records any number of events by `streamEvents`, and resumes when the stream breaks off. What the
   * server has not acknowledged is kept (2,000 events at most) and sent again under the ids that
   * the events have or are given here, so that nothing is lost or doubled.
   *
   * @param options `timeoutMs` is for all of it. A broken stream is resumed for as long as the
   *   client waits for a call, counted from the last acknowledgement.
   */
  recordAll(
    events: Items<StreamedItem<(typeof calls)["streamEvents"]>>,
    options?: RecordAllOptions,
  ): Promise<Recorded>;
  /**
   * Waits until an operation has ended, also through a restart of the server, and returns what it
   * came to.
   *
   * @param operation the operation, or its id, e.g. of what `startBackup` answers
   * @param schema what it ends with, e.g. `BackupResponseSchema`
   * @throws MnemeError: it failed or was cancelled; or it has not ended in time, and goes on.
   */
  resultOf<D extends DescMessage>(
    operation: Operation | string,
    schema: D,
    options?: ResultOptions,
  ): Promise<MessageShape<D>>;
  /** Closes the connection; calls and streams that are still open fail, and later ones too. */
  close(): void;
}

/**
 * The client on a connection, whatever that speaks.
 *
 * @throws ConfigurationError: the options cannot be used; nothing was connected.
 */
export function mnemeOn(connect: () => Connection, options: Patience): Mneme {
  const { timeoutMs = DEFAULT_TIMEOUT_MS, retries = DEFAULT_RETRIES } = options;
  if (!Number.isInteger(retries) || retries < 0) {
    throw new ConfigurationError(`retries must be a whole number from 0, not ${retries}`);
  }
  if (timeoutMs !== null && !(timeoutMs > 0)) {
    throw new ConfigurationError(`timeoutMs must be above 0, not ${timeoutMs}; null: no limit`);
  }
  const connection = connect();
  const caller = new Caller(connection, retries, timeoutMs);
  const methods = methodsOf(caller);
  return {
    ...methods,
    ...walksOf(caller),
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
    attempt: (task, about, work) => attempt(methods, task, about, work),
    chooser: (sessionId, about = {}) => new Chooser(methods, sessionId, about),
    recordAll: (events, about = {}) =>
      recordAll(caller, calls.streamEvents, events, { retries, timeoutMs }, about),
    resultOf: (operation, schema, about = {}) =>
      resultOf(methods.waitOperation, operation, schema, about),
    close: () => caller.close(),
  };
}

function methodsOf(caller: Caller): Methods {
  const methods = Object.entries(calls).map(([name, call]) => [name, methodOf(caller, call)]);
  return Object.fromEntries(methods) as Methods;
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

function walksOf(caller: Caller): Walks {
  const all = Object.entries(walks).map(([name, walk]) => [name, walkOf(caller, walk)]);
  return Object.fromEntries(all) as Walks;
}

function walkOf(caller: Caller, walk: (typeof walks)[keyof typeof walks]): unknown {
  return async function* (request: { pageToken?: string } = {}, options: CallOptions = {}) {
    let { pageToken = "" } = request;
    do {
      const page = await caller.unary(calls[walk.call], { ...request, pageToken }, options);
      const answer = page as Message & Record<string, unknown>;
      yield* answer[walk.items] as unknown[];
      pageToken = answer["nextPageToken"] as string;
    } while (pageToken);
  };
}
