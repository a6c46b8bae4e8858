/** The server's HTTP port, as any client of Connect's protocol finds it. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { EventService, LearnService } from "@mneme/client";
import { connectOverHttp } from "@mneme/client/http";
import { Server } from "./support/server.js";

let server: Server;

before(async () => {
  server = await Server.start({ MNEME_HTTP_LISTEN: "127.0.0.1:0" });
});
after(async () => {
  await server?.stop();
});

async function transport(useBinaryFormat: boolean): Promise<Transport> {
  const key = await server.newKey();
  return createConnectTransport({
    baseUrl: server.httpAddress,
    httpVersion: "1.1",
    useBinaryFormat,
    interceptors: [
      (next) => (request) => {
        request.header.set("authorization", `Bearer ${key}`);
        return next(request);
      },
    ],
  });
}

for (const binary of [true, false]) {
  const form = binary ? "binary" : "JSON";

  test(`unary calls are answered in ${form}`, async () => {
    const lessons = createClient(LearnService, await transport(binary));
    const { lesson } = await lessons.createLesson({ title: "Tokens", content: "Refresh them" });
    const found = await lessons.getLesson({ lessonId: lesson?.id ?? "" });
    assert.equal(found.lesson?.title, "Tokens");
    assert.equal(found.lesson?.accessCount, 1n);
  });

  test(`errors carry their code and details in ${form}`, async () => {
    const lessons = createClient(LearnService, await transport(binary));
    await assert.rejects(lessons.getLesson({ lessonId: "nope" }), (error) => {
      assert.ok(error instanceof ConnectError);
      assert.equal(error.code, Code.NotFound);
      assert.equal(error.details.length, 2);
      return true;
    });
  });

  test(`streams of answers come in ${form}, and end when they are left`, async () => {
    const events = createClient(EventService, await transport(binary));
    const seen: string[] = [];
    for await (const { event } of events.watchEvents({})) {
      if (!event) {
        // It is open: what is recorded now is seen.
        await events.recordEvents({
          events: [{ sessionId: "s", eventType: "message", text: "one" }],
        });
        continue;
      }
      seen.push(event.text);
      break;
    }
    assert.deepEqual(seen, ["one"]);
  });
}

test("a transport over fetch calls, watches and reads what it wrote", async () => {
  const over = connectOverHttp({ url: `${server.httpAddress}/`, apiKey: await server.newKey() });
  const lessons = createClient(LearnService, over);
  await lessons.createLesson({ title: "Tokens", content: "Refresh them" });
  assert.equal((await lessons.listLessons({})).totalSize, 1n);
  const titles: string[] = [];
  for await (const { lesson } of lessons.exportLessons({})) {
    titles.push(lesson?.title ?? "");
  }
  assert.deepEqual(titles, ["Tokens"]);
});

test("a call over fetch ends with its time", async () => {
  const apiKey = await server.newKey();
  const over = connectOverHttp({ url: server.httpAddress, apiKey, timeoutMs: 200 });
  const events = createClient(EventService, over);
  const watched = (async () => {
    for await (const { cursor } of events.watchEvents({})) {
      assert.ok(cursor);
    }
  })();
  await assert.rejects(watched, (error) => {
    assert.ok(error instanceof ConnectError);
    assert.equal(error.code, Code.DeadlineExceeded);
    return true;
  });
});

test("what browsers load is nothing of Node.js", async () => {
  const seen = new Set<string>();
  const load = async (file: URL): Promise<void> => {
    if (seen.has(file.href)) return;
    seen.add(file.href);
    const text = await readFile(file, "utf8");
    assert.doesNotMatch(text, /\b(process\.|Buffer\b|require\()/, `${file} is for Node.js`);
    for (const [, from = ""] of text.matchAll(/(?:from|import) \(?"([^"]+)"/g)) {
      assert.ok(!from.startsWith("node:"), `${file} imports ${from}`);
      if (from.startsWith(".")) await load(new URL(from, file));
    }
  };
  await load(new URL(import.meta.resolve("@mneme/client/http")));
  assert.ok(seen.size > 10);
});
