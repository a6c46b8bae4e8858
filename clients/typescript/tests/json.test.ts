/** Free JSON on a real server: what is sent is what is read. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createMneme, type Mneme, toJson } from "@mneme/client";
import { Server } from "./support/server.js";

// As text: in an object's literal, the key sets the prototype.
const SENT = '{"__proto__":{"isAdmin":true,"__proto__":[1]},"constructor":{"prototype":2}}';

let server: Server;

before(async () => {
  server = await Server.startOverHttp();
});
after(() => server?.stop());

test("a key __proto__ is sent and read like any other, and sets no prototype", async () => {
  const apiKey = await server.newKey();
  const overGrpc = createMneme({ address: server.address, apiKey });
  const clients: Mneme[] = [overGrpc, server.client({ apiKey })];
  for (const [number, client] of clients.entries()) {
    const sessionId = `session-${number}`;
    const payload = JSON.parse(SENT);
    await client.recordEvents({ events: [{ sessionId, eventType: "custom", payload }] });
    const [stored] = (await client.listEvents({ sessionId })).events;
    assert.ok(stored);
    // It compares prototypes as well.
    assert.deepEqual(stored.payload, payload);
    assert.deepEqual(toJson(stored)["payload"], payload);
  }
  overGrpc.close();
});
