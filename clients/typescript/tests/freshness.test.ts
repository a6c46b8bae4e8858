/** Reads show what the same client wrote: its newest token goes along. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Mneme } from "@mneme/client";
import { Server } from "./support/server.js";

let server: Server;
let client: Mneme;

before(async () => {
  server = await Server.start();
  client = await server.tenant();
});
after(() => server?.stop());

async function write(text: string): Promise<string> {
  await client.recordEvents({ events: [{ sessionId: "s", eventType: "message", text }] });
  return client.consistencyToken;
}

test("a write leaves a token, which a read keeps", async () => {
  assert.equal(client.consistencyToken, "");
  const first = await write("the heron stood");
  const second = await write("and flew away");
  assert.ok(first && first < second);
  const found = await client.recall({ query: "heron" });
  assert.equal(found.results[0]?.text, "the heron stood");
  assert.equal(client.consistencyToken, second);
});

test("a stream of writes ends with a token", async () => {
  const before = await write("a crane");
  for await (const _ of client.streamEvents([
    { sessionId: "s", eventType: "message", text: "a" },
  ])) {
    // Acknowledged.
  }
  assert.ok(client.consistencyToken > before);
});

test("a token whose state is lost is dropped", async () => {
  client.consistencyToken = `${"0".repeat(16)}-${"0".repeat(12)}-${"0".repeat(16)}`;
  await client.recall({ query: "heron" });
  assert.equal(client.consistencyToken, "");
});
