/** The shapes of the API in JSON, derived from the code that is generated from the protos. */

import type { DescMessage, MessageJsonType } from "@bufbuild/protobuf";
import type { GenService } from "@bufbuild/protobuf/codegenv2";

/** What may go along with a call. */
export interface CallOptions {
  /** Ends the call when what it was for is gone. */
  readonly signal?: AbortSignal | undefined;
}

type Method = { methodKind: string; input: DescMessage; output: DescMessage };

type Unary<M extends Method> = (
  request: MessageJsonType<M["input"]>,
  options?: CallOptions,
) => Promise<MessageJsonType<M["output"]>>;

type Streaming<M extends Method> = (
  request: MessageJsonType<M["input"]>,
  options?: CallOptions,
) => AsyncIterable<MessageJsonType<M["output"]>>;

type Methods<S> = S extends GenService<infer M> ? M : never;

type CallOf<M> = M extends Method
  ? M["methodKind"] extends "unary"
    ? Unary<M>
    : Streaming<M>
  : never;

/** A service's calls, by the names that TypeScript gives them. Streams of requests need gRPC. */
export type Calls<S> = {
  readonly [K in keyof Methods<S> as Methods<S>[K] extends {
    methodKind: "unary" | "server_streaming";
  }
    ? K
    : never]: CallOf<Methods<S>[K]>;
};
