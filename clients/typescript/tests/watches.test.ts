/** More watches than one connection takes: each has a connection of its own. */

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
