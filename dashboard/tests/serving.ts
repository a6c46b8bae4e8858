/** A server's answers, for tests of components. */

import { vi } from "vitest";

type Answer = (request: Record<string, unknown>) => unknown;

/** Answers calls by their names, such as "EventService/ListSessions"; keeps what was asked. */
export function serve(answers: Readonly<Record<string, Answer>>) {
  const asked: { call: string; request: Record<string, unknown>; headers: Headers }[] = [];
  const fetched = async (path: string, init: RequestInit): Promise<Response> => {
    const call = path.replace("/mneme.v1.", "");
    const answer = answers[call];
    if (!answer) return failed(404, "unimplemented", `there is no ${call}`);
    const body = init.body as string | Uint8Array;
    const text = typeof body === "string" ? body : new TextDecoder().decode(body.subarray(5));
    const request = JSON.parse(text) as Record<string, unknown>;
    asked.push({ call, request, headers: new Headers(init.headers) });
    const value = await answer(request);
    return value instanceof Response ? value : Response.json(value);
  };
  vi.stubGlobal("fetch", fetched);
  return asked;
}

/** An answer that the call failed, as the server sends it. */
export function failed(status: number, code: string, message: string, reason = ""): Response {
  const details = reason ? [{ type: "google.rpc.ErrorInfo", debug: { reason } }] : [];
  return Response.json({ code, message, details }, { status, headers: { "x-request-id": "r-1" } });
}

/** An answer that is a stream of these messages. */
export function streamed(messages: readonly unknown[], end: unknown = {}): Response {
  const frames = [...messages.map((m) => frame(0, m)), frame(2, end)];
  return new Response(new Blob(frames));
}

/** An answer that is a stream of these messages, some at a time, each sent when they are there. */
export function streaming(messages: AsyncGenerator<readonly unknown[]>): Response {
  const body = new ReadableStream({
    async pull(controller) {
      const { done, value } = await messages.next();
      if (done) controller.close();
      else {
        const frames = new Blob(value.map((m) => frame(0, m)));
        controller.enqueue(new Uint8Array(await frames.arrayBuffer()));
      }
    },
  });
  return new Response(body);
}

function frame(flags: number, message: unknown): Uint8Array<ArrayBuffer> {
  const payload = new TextEncoder().encode(JSON.stringify(message));
  const bytes = new Uint8Array(5 + payload.length);
  bytes[0] = flags;
  new DataView(bytes.buffer).setUint32(1, payload.length);
  bytes.set(payload, 5);
  return bytes;
}
