/** Streams in both directions: their ends, errors and cancellation. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { type Mneme, NewEventSchema, RecordEventsRequestSchema } from "@mneme/client";
import { failure } from "./support/failing.js";
import { Server } from "./support/server.js";

let server: Server;
let client: Mneme;

before(async () => {
  server = await Server.start({ MNEME_MAX_STREAMS: "8" });
  client = await server.tenant();
});
after(() => server?.stop());

const said = (sessionId: string, text: string) => ({
  sessionId,
  eventType: "message" as const,
  text,
});

test("watched events arrive as they are recorded", async () => {
  const stream = client.watchEvents({ sessionId: "watched" });
  const begun = await stream.next();
  assert.equal(begun.value?.event, undefined);
  await client.recordEvents({ events: [said("other", "no"), said("watched", "yes")] });
  const message = await stream.next();
  assert.equal(message.value?.event?.text, "yes");
  stream.close();
  assert.equal((await stream.next()).done, true);
});

test("a stream that is closed while it waits ends without an error", async () => {
  const stream = client.watchEvents();
  await stream.next();
  const waiting = stream.next();
  stream.close();
  assert.equal((await waiting).done, true);
});

test("a signal ends a stream with CANCELLED", async () => {
  const controller = new AbortController();
  const stream = client.watchEvents({}, { signal: controller.signal });
  await stream.next();
  const waiting = failure(stream.next());
  controller.abort();
  assert.equal((await waiting).code, "CANCELLED");
});

test("a stream ends with its deadline", async () => {
  const stream = client.watchEvents({}, { timeoutMs: 2_000 });
  await stream.next();
  assert.equal((await failure(stream.next())).code, "DEADLINE_EXCEEDED");
});

test("an error of a stream reaches whoever reads it, and nobody else", async () => {
  const stream = client.watchEvents({ afterCursor: "x" });
  await client.listSessions();
  const error = await failure(stream.next());
  assert.equal(error.code, "INVALID_ARGUMENT");
  assert.equal(error.field, "after_cursor");
});

test("events are streamed from an async generator, with ids made on the way", async () => {
  async function* events() {
    for (let index = 0; index < 1200; index++) {
      yield said("streamed", `line ${index}`);
    }
  }
  const counts: bigint[] = [];
  for await (const { acknowledgedCount } of client.streamEvents(events())) {
    counts.push(acknowledgedCount);
  }
  assert.equal(counts.at(-1), 1200n);
  assert.ok(counts.length >= 3, "a batch holds 500 events at most");
  const { session } = await client.getSession({ sessionId: "streamed" });
  assert.equal(session?.eventCount, 1200n);
});

test("a message that is given again is recorded again, and left as it is", async () => {
  const event = create(NewEventSchema, { sessionId: "again", eventType: "message", text: "tick" });
  await client.recordEvents({ events: [event, event] });
  const request = create(RecordEventsRequestSchema, { events: [event] });
  await client.recordEvents(request);
  await client.recordEvents(request);
  for await (const _ of client.streamEvents([event, event])) {
    // Only its end matters.
  }
  await client.recordAll([event, event]);
  assert.equal((await client.getSession({ sessionId: "again" })).session?.eventCount, 8n);
  assert.equal(event.id, "");
});

test("whole requests may be streamed too", async () => {
  const answer = await client
    .streamEvents([{ event: said("wrapped", "hello") } as never])
    .next()
    .catch((error: Error) => error);
  assert.ok(answer instanceof TypeError, "an item is the event, not the request around it");
  assert.match(answer.message, /^event\.event: NewEvent has no such field/);
});

test("an error of the caller's own generator comes back as it is", async () => {
  const own = new Error("the file is not readable");
  async function* events() {
    yield said("broken", "one");
    throw own;
  }
  await assert.rejects(client.recordAll(events()), (error) => error === own);
});

test("a refused stream ends although its source still waits", async () => {
  const never = new Promise<never>(() => undefined);
  async function* events() {
    yield { ...said("refused", "one"), eventType: "" };
    yield await never;
  }
  const error = await failure(client.recordAll(events(), { timeoutMs: 20_000 }));
  assert.equal(error.code, "INVALID_ARGUMENT");
  assert.equal(error.metadata["recorded"], "0");
});

test("a stream of events that fails tells how many are safe", async () => {
  await client.recordEvents({ events: [{ id: "taken", ...said("counted", "first") }] });
  function* events() {
    for (let index = 0; index < 500; index++) {
      yield said("counted", `line ${index}`);
    }
    yield { id: "taken", ...said("counted", "other content") };
  }
  const error = await failure(client.recordAll(events()));
  assert.equal(error.code, "ALREADY_EXISTS");
  const recorded = Number(error.metadata["recorded"]); // By then: batches are cut by time, too.
  assert.ok(recorded <= 500);
  const { session } = await client.getSession({ sessionId: "counted" });
  assert.equal(session?.eventCount, BigInt(recorded + 1));
});

test("an exported stream is read to its end", async () => {
  const titles = Array.from({ length: 30 }, (_, index) => `lesson ${index}`);
  for (const title of titles) {
    await client.createLesson({ title, content: "something learnt" });
  }
  const found = new Set<string>();
  for await (const { lesson } of client.exportLessons()) {
    found.add(lesson?.title ?? "");
  }
  assert.deepEqual([...found].sort(), titles.sort());
});

test("leaving a loop ends the stream on the server too", async () => {
  // The server lets a stream go a moment after its caller did; until then the client is patient.
  for (let round = 0; round < 10; round++) {
    for await (const message of client.watchEvents()) {
      assert.ok(message.cursor);
      break;
    }
  }
});
