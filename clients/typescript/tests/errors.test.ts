/** What calls fail with: codes, reasons, fields, and arguments that never leave the process. */

import assert from "node:assert/strict";
import { createServer } from "node:http2";
import { after, before, test } from "node:test";
import { createMneme, type Mneme, type NewEventInit, toMilliseconds } from "@mneme/client";
import { failure } from "./support/failing.js";
import { Server } from "./support/server.js";

let server: Server;
let client: Mneme;

before(async () => {
  server = await Server.start();
  client = await server.tenant();
});
after(() => server?.stop());

test("a broken rule names the field and the reason", async () => {
  const error = await failure(client.recall({ query: "x", limit: 1000 }));
  assert.equal(error.code, "INVALID_ARGUMENT");
  assert.equal(error.reason, "OUT_OF_RANGE");
  assert.equal(error.field, "limit");
  assert.equal(error.violations.length, 1);
  assert.match(error.message, /limit.*\[OUT_OF_RANGE\]$/);
});

test("every broken field is listed", async () => {
  const events = [{ sessionId: "s" } as NewEventInit, { eventType: "message" } as NewEventInit];
  const error = await failure(client.recordEvents({ events }));
  const fields = error.violations.map((violation) => violation.field);
  assert.ok(fields.includes("events[0].event_type"), fields.join());
  assert.ok(fields.includes("events[1].session_id"), fields.join());
});

test("a missing thing is NOT_FOUND, with the reason", async () => {
  const error = await failure(client.getSession({ sessionId: "nowhere" }));
  assert.equal(error.code, "NOT_FOUND");
  assert.equal(error.reason, "SESSION_NOT_FOUND");
  assert.equal(error.retryAfterMs, undefined);
});

test("an id with other content is ALREADY_EXISTS", async () => {
  await client.createLesson({ lessonId: "l", title: "a", content: "one" });
  const error = await failure(client.createLesson({ lessonId: "l", title: "a", content: "two" }));
  assert.equal(error.code, "ALREADY_EXISTS");
});

test("an archived lesson cannot be changed", async () => {
  const { lesson } = await client.createLesson({ title: "old", content: "soon gone" });
  await client.archiveLesson({ lessonId: lesson?.id ?? "" });
  const error = await failure(
    client.updateLesson({ lesson: { id: lesson?.id ?? "", title: "new" } }),
  );
  assert.equal(error.code, "FAILED_PRECONDITION");
  assert.equal(error.reason, "CONSTRAINT_VIOLATION");
});

test("a call without a key is refused", async () => {
  const error = await failure(server.client({ apiKey: "" }).recall({ query: "x" }));
  assert.equal(error.code, "UNAUTHENTICATED");
  assert.equal(error.reason, "API_KEY_MISSING");
});

test("a wrong key is refused", async () => {
  const error = await failure(server.client({ apiKey: "mn_wrong" }).recall({ query: "x" }));
  assert.equal(error.code, "UNAUTHENTICATED");
  assert.equal(error.reason, "API_KEY_INVALID");
});

test("a revoked key is refused", async () => {
  const apiKey = await server.newKey();
  const revoked = server.client({ apiKey });
  await revoked.recall({ query: "x" });
  const admin = server.admin();
  for await (const key of admin.iterApiKeys()) {
    if (apiKey.startsWith(key.prefix)) {
      await admin.revokeApiKey({ apiKeyId: key.id });
    }
  }
  assert.equal((await failure(revoked.recall({ query: "x" }))).reason, "API_KEY_INVALID");
});

test("a key without the scope is refused, for single calls and for streams", async () => {
  const reader = server.client({ apiKey: await server.newKey({ scopes: ["read"] }) });
  await reader.recall({ query: "x" });
  const error = await failure(reader.createLesson({ title: "a", content: "b" }));
  assert.equal(error.code, "PERMISSION_DENIED");
  assert.equal(error.reason, "SCOPE_MISSING");
  const streamed = reader.streamEvents([{ sessionId: "s", eventType: "message", text: "hi" }]);
  assert.equal((await failure(streamed.next())).reason, "SCOPE_MISSING");
  const writer = server.client({ apiKey: await server.newKey({ scopes: ["write"] }) });
  assert.equal((await failure(writer.watchEvents().next())).reason, "SCOPE_MISSING");
});

test("a tenant's things are NOT_FOUND for another tenant", async () => {
  await client.startSession({ sessionId: "mine" });
  const other = await server.tenant();
  assert.equal((await failure(other.getSession({ sessionId: "mine" }))).code, "NOT_FOUND");
});

test("a used up key is refused with a delay", async () => {
  const apiKey = await server.newKey({ rateLimit: 1 });
  const hasty = server.client({ apiKey, retries: 0 });
  let error = await failure(
    (async () => {
      for (;;) {
        await hasty.getStats();
      }
    })(),
  );
  assert.equal(error.code, "RESOURCE_EXHAUSTED");
  assert.equal(error.reason, "RATE_LIMITED");
  assert.ok(error.retryAfterMs && error.retryAfterMs > 0);
  // A delay that is longer than the call's time is not waited for.
  error = await failure(server.client({ apiKey, retries: 3 }).getStats({}, { timeoutMs: 5_000 }));
  assert.equal(error.code, "RESOURCE_EXHAUSTED");
});

test("arguments that do not fit are refused before anything is sent", async () => {
  const nowhere = createMneme({ address: "127.0.0.1:9" });
  const wrong: [string, object, RegExp][] = [
    ["recall", { query: 3 }, /^query: expected text, got the number 3$/],
    ["recall", { query: "x", limit: 1.5 }, /^limit: expected a whole number/],
    [
      "recall",
      { query: "x", limitt: 3 },
      /^limitt: RecallRequest has no such field; it has query,/,
    ],
    ["recall", { query: "x", mode: "dens" }, /^mode: "dens" is none of hybrid, dense, lexical/],
    ["recall", { query: "x", scopes: "event" }, /^scopes: expected an array/],
    [
      "recall",
      { query: "x", startTime: "today" },
      /^startTime: expected an object, got the string/,
    ],
    ["recall", { query: "x", startTime: new Date("x") }, /^startTime: an invalid Date/],
    [
      "recordEvents",
      { events: [{ payload: { at: new Date(0) } }] },
      /payload\.at: Date is not JSON/,
    ],
    ["recordEvents", { events: [{ payload: { n: Number.NaN } }] }, /payload\.n: NaN is not a JSON/],
    [
      "recordEvents",
      { events: [{ payload: { ids: [1, 123456789012345680] } }] },
      /payload\.ids\[1\]: 123456789012345680 does not fit a JSON number exactly/,
    ],
    ["recordEvents", { events: [{ payload: { n: 2n ** 70n } }] }, /payload\.n: 11805.* as text/],
    ["recall", { query: "cut \ud83d" }, /^query: text with half a surrogate pair is not Unicode$/],
    [
      "recordEvents",
      { events: [{ payload: { texts: ["\u{1f600}", "\ude00"] } }] },
      /payload\.texts\[1\]: text with half a surrogate pair/,
    ],
    [
      "recordEvents",
      { events: [{ payload: { "\ud83d": 1 } }] },
      /payload: text with half a surrogate pair/,
    ],
    [
      "recordEvents",
      { events: [{ inputTokens: 2 ** 60 }] },
      /inputTokens: expected a whole number/,
    ],
    ["recordEvents", { events: [{ inputTokens: 2n ** 63n }] }, /inputTokens: .* out of range$/],
    ["recordEvents", { events: [{ duration: 1e300 }] }, /duration: .* are no duration$/],
    ["listSessions", { pageSize: 2 ** 31 }, /^pageSize: 2147483648 is out of range$/],
    ["recordEvents", { events: [null] }, /^events\[0\]: expected an object, got null$/],
  ];
  for (const [method, request, message] of wrong) {
    const call = nowhere[method as "recall"](request as never);
    await assert.rejects(call, (error: Error) => {
      assert.ok(error instanceof TypeError || error instanceof RangeError, `${error}`);
      assert.match(error.message, message);
      return true;
    });
  }
});

test("a filter that is blank is refused, and none is not", async () => {
  for (const userId of ["", " "]) {
    const error = await failure(client.recall({ query: "x", userId }));
    assert.equal(error.reason, "INVALID_FILTER");
    const other = await failure(client.deleteMemories({ filter: { userId, tags: ["x"] } }));
    assert.equal(other.reason, "INVALID_FILTER");
  }
  assert.ok((await client.recall({ query: "x", userId: undefined })).results);
});

test("a question or a text in which nothing is to be seen is refused", async () => {
  for (const blank of [" ", "\u200b", "\u3164"]) {
    const asked = await failure(client.recall({ query: blank }));
    assert.equal(asked.reason, "INVALID_PARAMETER");
    const told = await failure(client.createMemory({ text: blank }));
    assert.equal(told.reason, "INVALID_PARAMETER");
  }
});

test("undefined and null leave a field out", async () => {
  const answer = await client.recall({ query: "x", project: undefined, limit: null as never });
  assert.ok(answer.results);
});

test("a duration that is a whole second but for its last digits is none that is refused", async () => {
  const durations = [0.1, 999.9999999, 1999.99999999, 2000.0000000001];
  const made = durations.map((duration, n) => {
    return { id: `d${n}`, sessionId: "d", eventType: "message" as const, duration };
  });
  assert.equal((await client.recordEvents({ events: made })).recordedCount, 4);
  const { events } = await client.listEvents({ sessionId: "d" });
  const kept = events.map(({ duration }) => duration && toMilliseconds(duration));
  assert.deepEqual(kept, [0.1, 1000, 2000, 2000]);
});

test("what is no Mneme server is told apart from one", async () => {
  const other = createServer();
  other.on("stream", (stream) => {
    stream.respond({ ":status": 404 });
    stream.end("not here");
  });
  await new Promise<void>((ready) => other.listen(0, "127.0.0.1", ready));
  const { port } = other.address() as { port: number };
  const stranger = createMneme({ address: `127.0.0.1:${port}` });
  const error = await failure(stranger.getStats());
  assert.equal(error.code, "UNIMPLEMENTED");
  assert.equal(error.reason, "");
  stranger.close();
  other.close();
});
