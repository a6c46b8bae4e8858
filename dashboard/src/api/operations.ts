/** Operations that a page has started, waited for. */

import type { OperationJson } from "@mneme/client/http";
import { errorOf } from "./errors";
import { operations } from "./services";

const PAUSE_MS = 500;

/**
 * What an operation comes to: the message in its `response`.
 *
 * @param started what the call that started it answered.
 * @throws ApiError: it failed, or cannot be followed.
 */
export async function resultOf<T>(started: { operation?: OperationJson }): Promise<T> {
  let { operation = {} } = started;
  while (!operation.done) {
    const asked = { operationId: operation.id ?? "" };
    ({ operation = {} } = await operations.waitOperation(asked));
    if (!operation.done) await new Promise((go) => setTimeout(go, PAUSE_MS));
  }
  if (operation.error) throw errorOf(operation.error, 0, "");
  return (operation.response ?? {}) as T;
}
