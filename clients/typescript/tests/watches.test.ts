/** More calls and watches at once than one connection takes; and watches that nobody reads. */

import assert from "node:assert/strict";
import { type AddressInfo, connect, createServer, type Server as Relay } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { failure } from "./support/failing.js";
import { Server } from "./support/server.js";

const WATCHES = 40;
let server: Server;
let relay: Relay;
let open = 0;

before(async () => {
  server = await Server.start({ MNEME_MAX_STREAMS: "160", MNEME_WORKERS: "240" });
  const port = Number(server.address.split(":").at(-1));
  relay = createServer((near) => {
    open += 1;
    const far = connect(port, "127.0.0.1");
    near.pipe(far).pipe(near);
    near.on("error", () => far.destroy());
    far.on("error", () => near.destroy());
    near.on("close", () => {
      open -= 1;
      far.destroy();
    });
  });
  await new Promise<void>((done) => relay.listen(0, "127.0.0.1", done));
});
after(async () => {
  await server?.stop();
  relay?.close();
});

async function untilOpen(count: number): Promise<void> {
  const end = performance.now() + 20_000;
  while (open !== count) {
    assert.ok(performance.now() < end, `${open} connections are open, not ${count}`);
    await sleep(20);
  }
}

test("calls are answered beside more watches than one connection takes", async () => {
  const address = `127.0.0.1:${(relay.address() as AddressInfo).port}`;
  const client = server.client({ address, apiKey: await server.newKey(), timeoutMs: 20_000 });
  const watches = Array.from({ length: WATCHES }, () => client.watchEvents());
  await Promise.all(watches.map((watch) => watch.next()));
  await client.recordEvents({ events: [{ sessionId: "s", eventType: "message", text: "served" }] });
  for (const watch of watches) {
    assert.equal((await watch.next()).value?.event?.text, "served");
  }
  assert.equal(open, WATCHES + 1);
  watches[0]?.close();
  await untilOpen(WATCHES);
  const refused = await failure(client.watchEvents({ afterCursor: "x" }).next());
  assert.equal(refused.code, "INVALID_ARGUMENT");
  await untilOpen(WATCHES);
  const waiting = watches.slice(1).map((watch) => failure(watch.next()));
  client.close();
  for (const error of await Promise.all(waiting)) {
    assert.equal(error.code, "CANCELLED");
  }
  await untilOpen(0);
});

test("however many calls are made at once, each is answered, and so is a neighbour's", async () => {
  const client = server.client({ apiKey: await server.newKey(), timeoutMs: 240_000 });
  await client.remember({ text: "The mill is closed on Mondays." });
  const neighbour = await server.tenant({ retries: 0 });
  const calls = Array.from({ length: 10_000 }, () => client.listMemories());
  let isBusy = true;
  const all = Promise.all(calls).finally(() => {
    isBusy = false;
  });
  while (isBusy) {
    await neighbour.getStats();
  }
  for (const { memories } of await all) {
    assert.equal(memories.length, 1);
  }
});

test("a watch that was not read for too long goes on where it was", async () => {
  const narrow = await Server.start({ MNEME_MAX_STREAMS: "2" }); // One for a tenant.
  try {
    const client = narrow.client({ apiKey: await narrow.newKey(), timeoutMs: 60_000 });
    const unread = client.watchEvents();
    await unread.next();
    const texts = Array.from({ length: 60 }, (_, n) => `${n} ${"x".repeat(60_000)}`);
    for (const text of texts) {
      await client.recordEvents({ events: [{ sessionId: "s", eventType: "message", text }] });
    }
    const another = client.watchEvents({}, { timeoutMs: 60_000 });
    await another.next(); // There is a place for it: the one that nobody reads was cut off.
    another.close();
    for (const text of texts) {
      assert.equal((await unread.next()).value?.event?.text, text);
    }
    unread.close();
  } finally {
    await narrow.stop();
  }
});
