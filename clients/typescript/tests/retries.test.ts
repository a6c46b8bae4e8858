/** Servers that stop, restart, say nothing or ask for patience. */

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server as NetServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { BackupResultSchema, createMneme } from "@mneme/client";
import { failure } from "./support/failing.js";
import { Server } from "./support/server.js";

let folder: string;
let server: Server;

before(async () => {
  // Not a port: while no server runs, it could become another's.
  folder = await mkdtemp(join(tmpdir(), "mneme-ts-"));
  server = await Server.start({ MNEME_LISTEN: `unix:${join(folder, "mneme.sock")}` });
});
after(async () => {
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

test("a repeatable call outlives a restart of the server", async () => {
  const client = await server.tenant({ retries: 30, timeoutMs: 120_000 });
  await client.recordEvents({ events: [{ sessionId: "s", eventType: "message", text: "before" }] });
  await server.kill();
  const found = client.getSession({ sessionId: "s" });
  await server.restart();
  assert.equal((await found).session?.eventCount, 1n);
});

test("a write with an id of the client's own making happens once, whatever is sent twice", async () => {
  const client = await server.tenant({ retries: 30, timeoutMs: 120_000 });
  await client.startSession({ sessionId: "s" });
  await server.kill();
  const recorded = client.recordEvents({
    events: [{ sessionId: "s", eventType: "message", text: "meanwhile" }],
  });
  await server.restart();
  assert.equal((await recorded).receipts.length, 1);
  assert.equal((await client.getSession({ sessionId: "s" })).session?.eventCount, 1n);
});

test("a call that would have two effects is not sent again", async () => {
  const admin = server.admin({ retries: 30 });
  await admin.listTenants();
  await server.kill();
  const error = await failure(admin.createTenant({ tenantId: "once" }));
  assert.equal(error.code, "UNAVAILABLE");
  await server.restart();
});

test("an open watch goes on where it was when the server is back", async () => {
  const client = await server.tenant({ retries: 30, timeoutMs: 120_000 });
  const event = { sessionId: "s", eventType: "message" as const };
  const stream = client.watchEvents();
  assert.equal((await stream.next()).value?.event, undefined);
  for (const text of ["one", "two", "three"]) {
    await client.recordEvents({ events: [{ ...event, text }] });
    assert.equal((await stream.next()).value?.event?.text, text);
    const waiting = stream.next();
    await server.kill();
    await server.restart();
    await client.recordEvents({ events: [{ ...event, text: `${text} and a half` }] });
    assert.equal((await waiting).value?.event?.text, `${text} and a half`);
  }
  stream.close();
});

test("an open watch of a client without retries fails, and can be resumed at its cursor", async () => {
  const client = await server.tenant({ retries: 0 });
  const event = { sessionId: "s", eventType: "message" as const };
  const stream = client.watchEvents();
  await stream.next();
  await client.recordEvents({ events: [{ ...event, text: "one" }] });
  const { value } = await stream.next();
  assert.equal(value?.event?.text, "one");
  const waiting = failure(stream.next());
  await server.kill();
  assert.equal((await waiting).code, "UNAVAILABLE");
  await server.restart();
  await client.recordEvents({ events: [{ ...event, text: "two" }] });
  for await (const message of client.watchEvents({ afterCursor: value?.cursor ?? "" })) {
    if (message.event) {
      assert.equal(message.event.text, "two");
      break;
    }
  }
});

test("a stream that has not begun is sent again", async () => {
  const client = await server.tenant({ retries: 30 });
  await client.createLesson({ title: "kept", content: "over the restart" });
  await server.kill();
  const stream = client.exportLessons();
  await server.restart();
  assert.equal((await stream.next()).value?.lesson?.title, "kept");
  stream.close();
});

test("what is refused with a delay is sent again after it", async () => {
  const apiKey = await server.newKey({ rateLimit: 600 });
  const counted = server.client({ apiKey, retries: 0 });
  let refused = 0;
  for (let call = 0; refused === 0 && call < 5000; call++) {
    refused += await counted.getStats().then(
      () => 0,
      (error) => (error.code === "RESOURCE_EXHAUSTED" ? 1 : Promise.reject(error)),
    );
  }
  assert.equal(refused, 1, "the limit was never reached");
  const patient = server.client({ apiKey, retries: 20 });
  await Promise.all(Array.from({ length: 5 }, () => patient.getStats()));
});

test("without a server the error says where none answers, after the retries", async () => {
  const closed = await listening(() => undefined);
  const address = addressOf(closed);
  await new Promise((done) => closed.close(done));
  const error = await failure(createMneme({ address, retries: 1 }).getStats());
  assert.equal(error.code, "UNAVAILABLE");
  assert.match(error.message, new RegExp(`^no Mneme server answers at ${address}: `));
});

test("a server that says nothing costs no more than the deadline", async () => {
  const sockets: Socket[] = [];
  const mute = await listening((socket) => sockets.push(socket));
  const client = createMneme({ address: addressOf(mute), timeoutMs: 300 });
  assert.equal((await failure(client.getStats())).code, "DEADLINE_EXCEEDED");
  assert.equal((await failure(client.getStats({}, { timeoutMs: 100 }))).code, "DEADLINE_EXCEEDED");
  const stream = client.watchEvents({}, { timeoutMs: 100 });
  assert.equal((await failure(stream.next())).code, "DEADLINE_EXCEEDED");
  const given = client.getStats({}, { signal: AbortSignal.timeout(50), timeoutMs: null });
  assert.equal((await failure(given)).code, "CANCELLED");
  const patient = createMneme({ address: addressOf(mute), timeoutMs: null });
  const result = patient.resultOf("id", BackupResultSchema, { timeoutMs: 100 });
  assert.match((await failure(result)).message, /^the operation has not ended in time/);
  patient.close();
  client.close();
  for (const socket of sockets) {
    socket.destroy();
  }
  mute.close();
});

test("a deadline covers the retries", async () => {
  const closed = await listening(() => undefined);
  const address = addressOf(closed);
  await new Promise((done) => closed.close(done));
  const error = await failure(createMneme({ address, retries: 1000, timeoutMs: 1_500 }).getStats());
  assert.equal(error.code, "UNAVAILABLE");
});

test("an aborted signal ends the wait for a retry", async () => {
  const closed = await listening(() => undefined);
  const address = addressOf(closed);
  await new Promise((done) => closed.close(done));
  const controller = new AbortController();
  const client = createMneme({ address, retries: 1000, timeoutMs: null });
  const call = failure(client.getStats({}, { signal: controller.signal }));
  setTimeout(() => controller.abort(), 100);
  assert.equal((await call).code, "CANCELLED");
  const late = failure(client.getStats({}, { signal: controller.signal }));
  assert.equal((await late).code, "CANCELLED");
});

test("a closed client makes no more calls", async () => {
  const client = await server.tenant();
  await client.recall({ query: "x" });
  const stream = client.watchEvents();
  await stream.next();
  const waiting = failure(stream.next());
  client.close();
  assert.equal((await waiting).code, "CANCELLED");
  const error = await failure(client.recall({ query: "x" }));
  assert.match(error.message, /the client is closed/);
});

test("a call's own limits must make sense", async () => {
  const client = await server.tenant();
  await assert.rejects(client.getStats({}, { timeoutMs: 0 }), RangeError);
});

async function listening(onConnection: (socket: Socket) => void): Promise<NetServer> {
  const listener = createServer(onConnection);
  await new Promise<void>((ready) => listener.listen(0, "127.0.0.1", ready));
  return listener;
}

function addressOf(listener: NetServer): string {
  return `127.0.0.1:${(listener.address() as { port: number }).port}`;
}
