import assert from "node:assert/strict";
import { MnemeError } from "@mneme/client";

/** The MnemeError with which a call fails. */
export async function failure(call: Promise<unknown>): Promise<MnemeError> {
  try {
    await call;
  } catch (error) {
    assert.ok(error instanceof MnemeError, `not a MnemeError: ${error}`);
    return error;
  }
  assert.fail("the call did not fail");
}
