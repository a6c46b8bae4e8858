/** Calls are part of the trace of the application that makes them. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createMneme, type Mneme } from "@mneme/client";
import { createMneme as createOverHttp } from "@mneme/client/http";
import { propagation, trace } from "@opentelemetry/api";
import { NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { Server } from "./support/server.js";

const settings = { MNEME_LOG_LEVEL: "info", MNEME_LOG_FORMAT: "json" };
const provider = new NodeTracerProvider();
let server: Server;
let clients: Record<string, Mneme>;

before(async () => {
  server = await Server.start({ ...settings, MNEME_HTTP_LISTEN: "127.0.0.1:0" });
  const apiKey = await server.newKey();
  clients = {
    gRPC: createMneme({ address: server.address, apiKey }),
    HTTP: createOverHttp({ url: server.httpAddress, apiKey }),
  };
});
after(async () => {
  for (const client of Object.values(clients ?? {})) {
    client.close();
  }
  trace.disable();
  propagation.disable();
  await provider.shutdown();
  await server?.stop();
});

/** Waits for the line that the server logs of the last call of this method. */
async function logged(method: string, count: number): Promise<Record<string, unknown>> {
  for (;;) {
    const whole = server.log.split("\n").slice(0, -1); // The last one may still be coming.
    const lines = whole.filter((line) => line.includes(`/${method}"`));
    if (lines.length >= count) {
      return JSON.parse(lines[count - 1] ?? "");
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test("a call without OpenTelemetry carries no trace", async () => {
  await clients["gRPC"]?.listLessons();
  await clients["HTTP"]?.listLessons();
  assert.equal((await logged("ListLessons", 1))["trace_id"], undefined);
  assert.equal((await logged("ListLessons", 2))["trace_id"], undefined);
});

test("a call in a span is part of its trace, over gRPC and HTTP", async () => {
  provider.register(); // W3C's trace context and baggage, as it does unless told otherwise.
  const tracer = trace.getTracer("agent");
  let calls = 0;
  for (const over of ["gRPC", "HTTP"]) {
    calls += 1;
    await tracer.startActiveSpan("task", async (span) => {
      await clients[over]?.listSessions();
      assert.equal((await logged("ListSessions", calls))["trace_id"], span.spanContext().traceId);
      span.end();
    });
  }
});
