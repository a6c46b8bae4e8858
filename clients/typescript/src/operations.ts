import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { type Code, ConnectError } from "@connectrpc/connect";
import { pauseFor } from "./attempts.js";
import type { CallOptions } from "./caller.js";
import { errorOf, MnemeError } from "./errors.js";
import type { Status } from "./gen/google/rpc/status_pb.js";
import type { Operation } from "./gen/mneme/v1/operation_pb.js";
import type {
  WaitOperationRequest,
  WaitOperationResponse,
} from "./gen/mneme/v1/operation_service_pb.js";

/** How an operation is waited for. */
export interface ResultOptions {
  /** Milliseconds in all; null: no limit, which is the default. */
  readonly timeoutMs?: number | null | undefined;
  /** Ends the waiting when it is aborted; the operation goes on. */
  readonly signal?: AbortSignal | undefined;
  /** The tenant whose it is, where that is neither the administrator nor the caller's tenant. */
  readonly tenantId?: string | undefined;
  /** Told how far it is, about once a second. */
  readonly onUpdate?: ((operation: Operation) => void) | undefined;
}

/** An operation, as the call that started it answered, or its id. */
export type Started = string | Operation | { readonly operation?: Operation | undefined };

/** Asks for an operation, and waits for its end for a while. */
export type Waits = (
  request: Pick<WaitOperationRequest, "operationId" | "tenantId"> & { maxWait: number },
  options: CallOptions,
) => Promise<WaitOperationResponse>;

const WAIT_MS = 20_000;
const UPDATE_MS = 1_000;
/** Between two questions, when the server has no room for calls that wait. */
const SHORTEST_MS = 500;
/** How much longer than it was asked to wait a server may take to answer. */
const ANSWER_MS = 10_000;
/** The same once the time is up; one that says nothing costs no more. */
const GRACE_MS = 1_000;
/** How long a server may be away meanwhile: operations survive its restart. */
const RESTART_MS = 60_000;

/** Waits until an operation has ended, and returns what it came to. */
export async function resultOf<D extends DescMessage>(
  wait: Waits,
  started: Started,
  schema: D,
  options: ResultOptions,
): Promise<MessageShape<D>> {
  const seen = typeof started === "string" || "outcome" in started ? started : started.operation;
  if (seen === undefined) {
    throw new TypeError("there is no operation to wait for");
  }
  const isDone = typeof seen === "object" && seen.done;
  const id = typeof seen === "string" ? seen : seen.id;
  const ended = isDone ? seen : await endOf(wait, id, options);
  const { case: kind, value } = ended.outcome;
  if (kind === "error") {
    throw errorIn(value);
  }
  const response = kind === "response" ? anyUnpack(value, schema) : undefined;
  if (response === undefined) {
    throw new TypeError(`operation ${ended.id} (${ended.kind}) did not end with ${schema.name}`);
  }
  return response;
}

async function endOf(wait: Waits, operationId: string, options: ResultOptions): Promise<Operation> {
  const { timeoutMs = null, signal, tenantId = "", onUpdate } = options;
  const end = timeoutMs === null ? Number.POSITIVE_INFINITY : performance.now() + timeoutMs;
  const every = onUpdate === undefined ? WAIT_MS : UPDATE_MS;
  let awaySince: number | undefined;
  for (;;) {
    const asked = performance.now();
    const maxWait = Math.max(0, Math.min(every, end - asked));
    try {
      const limit = Math.min(maxWait + ANSWER_MS, end - asked + GRACE_MS);
      const request = { operationId, tenantId, maxWait };
      const { operation } = await wait(request, { timeoutMs: limit, signal });
      awaySince = undefined;
      if (operation !== undefined) {
        onUpdate?.(operation);
        if (operation.done) {
          return operation;
        }
      }
    } catch (failure) {
      awaySince ??= asked;
      const isAway = failure instanceof MnemeError && failure.code === "UNAVAILABLE";
      const now = performance.now();
      if (now < end && (!isAway || now - awaySince > RESTART_MS)) {
        throw failure;
      }
    }
    const left = end - performance.now();
    if (left <= 0) {
      throw new MnemeError("the operation has not ended in time; it goes on", {
        code: "DEADLINE_EXCEEDED",
      });
    }
    const pause = Math.min(left, Math.max(0, SHORTEST_MS - (performance.now() - asked)));
    await pauseFor(pause, signal);
  }
}

/** The error that an operation failed with. */
function errorIn(status: Status): MnemeError {
  const error = new ConnectError(status.message, status.code as Code);
  error.details = status.details.map(({ typeUrl, value }) => ({
    type: typeUrl.slice(typeUrl.lastIndexOf("/") + 1),
    value,
  }));
  return errorOf(error, "");
}
