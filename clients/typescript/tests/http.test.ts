/** The client over HTTP, as browsers have it. */

import assert from "node:assert/strict";
import { createServer } from "node:net";
import { after, before, test } from "node:test";
import {
  ConfigurationError,
  createMneme,
  createMnemeOf,
  eventMethods,
  MnemeError,
  recallMethods,
} from "@mneme/client/http";
import { Server } from "./support/server.js";

let server: Server;

before(async () => {
  server = await Server.startOverHttp();
});
after(() => server?.stop());

function failing(code: string) {
  return (error: unknown) => {
    assert.ok(error instanceof MnemeError, String(error));
    assert.equal(error.code, code);
    return true;
  };
}

test("what is written is read, and an error has its reason", async () => {
  const client = await server.tenant();
  await client.createLesson({ lessonId: "tokens", title: "Tokens", content: "Refresh them" });
  assert.match(client.consistencyToken, /./);
  assert.equal((await client.listLessons()).totalSize, 1n);
  await assert.rejects(client.getLesson({ lessonId: "nope" }), (error) => {
    assert.ok(error instanceof MnemeError);
    assert.deepEqual([error.code, error.reason], ["NOT_FOUND", "NOT_FOUND"]);
    return true;
  });
});

test("a client of two services has their methods and walks, and reads its own writes", async () => {
  const apiKey = await server.newKey();
  const client = createMnemeOf([eventMethods, recallMethods], { url: server.httpAddress, apiKey });
  const text = "the cents are lost in rounding";
  await client.recordEvents({ events: [{ sessionId: "s", eventType: "message", text }] });
  const { results } = await client.recall({ query: "lost cents" });
  assert.equal(results[0]?.text, text);
  const texts: string[] = [];
  for await (const event of client.iterEvents({ pageSize: 1 })) texts.push(event.text);
  assert.deepEqual(texts, [text]);
  assert.ok(!("createLesson" in client));
  // @ts-expect-error: lessons are another service's.
  client.createLesson;
  client.close();
  await assert.rejects(client.recall({ query: "lost cents" }), failing("CANCELLED"));
});

test("a watch sees what is recorded, and goes on when the server was restarted", async () => {
  const client = await server.tenant();
  const seen: string[] = [];
  for await (const { event } of client.watchEvents({})) {
    if (event) {
      seen.push(event.text);
      if (seen.length === 2) break;
      // The address stays: the port is the one that it had.
      await server.kill();
      await server.restart();
    }
    const text = `${seen.length}`;
    await client.recordEvents({ events: [{ sessionId: "s", eventType: "message", text }] });
  }
  assert.deepEqual(seen, ["0", "1"]);
});

test("an attempt and a chooser are the same over HTTP", async () => {
  const key = await server.newKey({ scopes: ["read", "write", "learn"] });
  const client = server.client({ apiKey: key });
  const done = await client.attempt("round the bill", { sessionId: "a" }, async (attempt) => {
    attempt.worked("rounding last");
    return "done";
  });
  assert.equal(done, "done");
  const chooser = client.chooser("style");
  const action = await chooser.choose(["short", "long"], {}, (choice) => choice.action);
  assert.ok(["short", "long"].includes(String(action)));
});

test("a call to nobody is UNAVAILABLE and tried again", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => taken.once("listening", resolve));
  const { port } = taken.address() as { port: number };
  await new Promise((resolve) => taken.close(resolve));
  let sent = 0;
  const client = createMneme({
    url: `http://127.0.0.1:${port}`,
    retries: 2,
    fetch: (...given) => {
      sent += 1;
      return fetch(...given);
    },
  });
  await assert.rejects(client.getStats(), failing("UNAVAILABLE"));
  assert.equal(sent, 3);
  client.close();
});

test("a closed client gives its calls and its watches up", async () => {
  const client = await server.tenant();
  const watching = (async () => {
    for await (const { cursor } of client.watchEvents({})) {
      assert.ok(cursor);
      client.close();
    }
  })();
  await assert.rejects(watching, failing("CANCELLED"));
  await assert.rejects(client.listLessons(), failing("CANCELLED"));
});

test("options that cannot be used are refused before anything is sent", () => {
  for (const url of ["", "memory.example", "ftp://memory.example"]) {
    assert.throws(() => createMneme({ url }), ConfigurationError);
  }
  const url = "http://memory.example";
  assert.throws(() => createMneme({ url, apiKey: "mn_x" }), /in the clear/);
  createMneme({ url, apiKey: "mn_x", insecure: true }).close();
  createMneme({ url: "https://memory.example", apiKey: "mn_x" }).close();
  createMneme({ url: "http://[::1]:8080", apiKey: "mn_x" }).close();
});
