/** Streams that follow each other, at a server that is slow to see that one was left. */

import assert from "node:assert/strict";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { createMneme, EventService, WatchEventsResponseSchema } from "@mneme/client";
import { ErrorInfoSchema, RetryInfoSchema } from "../src/gen/google/rpc/error_details_pb.js";
import { failure } from "./support/failing.js";

/** Refuses these calls of WatchEvents, counted from 0, and asks for an hour's patience. */
async function refusing(...calls: number[]) {
  let count = 0;
  const server = createServer(
    connectNodeAdapter({
      routes: (router) => {
        router.service(EventService, {
          async *watchEvents() {
            const call = count++;
            if (calls.includes(call)) {
              throw new ConnectError("too many", Code.ResourceExhausted, undefined, [
                { desc: ErrorInfoSchema, value: { reason: "TOO_MANY_STREAMS" } },
                { desc: RetryInfoSchema, value: { retryDelay: { seconds: 3600n } } },
              ]);
            }
            yield create(WatchEventsResponseSchema, { cursor: String(call) });
          },
        });
      },
    }),
  );
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = createMneme({ address, retries: 3 });
  const close = () => {
    client.close();
    server.close();
  };
  return { client, close };
}

test("a stream after one that was left does not wait as long as for those of others", async () => {
  const { client, close } = await refusing(1, 2);
  for (const cursor of ["0", "3"]) {
    for await (const message of client.watchEvents({}, { timeoutMs: 60_000 })) {
      assert.equal(message.cursor, cursor);
      break;
    }
  }
  close();
});

test("a stream that others leave no room for waits as the server asks", async () => {
  const { client, close } = await refusing(0);
  const error = await failure(client.watchEvents({}, { timeoutMs: 60_000 }).next());
  assert.equal(error.reason, "TOO_MANY_STREAMS");
  close();
});

test("a process ends although its stream, which was left, had time until tomorrow", async () => {
  const { client, close } = await refusing();
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  const before = timers();
  for await (const message of client.watchEvents({}, { timeoutMs: 86_400_000 })) {
    assert.ok(timers() > before, message.cursor);
    break;
  }
  close();
  while (timers() > before) {
    await new Promise(setImmediate);
  }
});
