import { beforeEach, describe, expect, test } from "vitest";
import { ApiError } from "../src/api/errors";
import { followKey, keepKey, key, signInNeeded, takeKey } from "../src/api/key";
import { events, learn } from "../src/api/services";
import { failed, serve, streamed } from "./serving";

beforeEach(() => {
  keepKey("");
  signInNeeded.value = false;
});

describe("a call", () => {
  test("sends its request to the service's method and carries the key", async () => {
    keepKey("mn_secret");
    const asked = serve({ "EventService/ListSessions": () => ({ totalSize: "3" }) });
    expect(await events.listSessions({ pageSize: 2 })).toEqual({ totalSize: "3" });
    expect(asked[0]?.request).toEqual({ pageSize: 2 });
    expect(asked[0]?.headers.get("authorization")).toBe("Bearer mn_secret");
  });

  test("sees what was written before it", async () => {
    const asked = serve({
      "LearnService/CreateLesson": () =>
        Response.json({}, { headers: { "trailer-mneme-consistency-token": "token-1" } }),
      "LearnService/ListLessons": () => ({}),
    });
    await learn.createLesson({});
    await learn.listLessons({});
    expect(asked[1]?.headers.get("mneme-at-least-as-fresh")).toBe("token-1");
    keepKey("mn_of_another_tenant");
    await learn.listLessons({});
    expect(asked[2]?.headers.has("mneme-at-least-as-fresh")).toBe(false);
  });

  test("fails with a sentence, the reason and the request's id", async () => {
    serve({
      "EventService/GetSession": () =>
        failed(404, "not_found", "there is no session x", "SESSION_NOT_FOUND"),
    });
    const error = await events.getSession({ sessionId: "x" }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({
      code: "not_found",
      message: "There is no session x.",
      reason: "SESSION_NOT_FOUND",
      requestId: "r-1",
    });
  });

  test("that is refused before it is a call is told in the same way", async () => {
    const error = { code: 403, status: "PERMISSION_DENIED", message: "not from this page" };
    serve({ "EventService/ListSessions": () => Response.json({ error }, { status: 403 }) });
    await expect(events.listSessions({})).rejects.toMatchObject({
      code: "permission_denied",
      message: "Not from this page.",
    });
  });

  test("asks for a key when the server wants one", async () => {
    serve({
      "EventService/ListSessions": () => failed(401, "unauthenticated", "a key is missing"),
    });
    await expect(events.listSessions({})).rejects.toThrow("A key is missing.");
    expect(signInNeeded.value).toBe(true);
  });

  test("says that a server does not answer, and that an answer makes no sense", async () => {
    serve({ "EventService/ListSessions": () => Promise.reject(new TypeError("network")) });
    await expect(events.listSessions({})).rejects.toMatchObject({ code: "unreachable" });
    serve({ "EventService/ListSessions": () => new Response("<html>", { status: 502 }) });
    await expect(events.listSessions({})).rejects.toMatchObject({
      code: "unavailable",
      message: "The server answered with HTTP status 502.",
    });
  });
});

describe("a stream", () => {
  test("gives its messages and ends", async () => {
    serve({ "EventService/WatchEvents": () => streamed([{ cursor: "1" }, { cursor: "2" }]) });
    const cursors: unknown[] = [];
    for await (const message of events.watchEvents({})) cursors.push(message.cursor);
    expect(cursors).toEqual(["1", "2"]);
  });

  test("fails with the error that it ends with", async () => {
    const end = { error: { code: "unavailable", message: "shutting down" } };
    serve({ "EventService/WatchEvents": () => streamed([{ cursor: "1" }], end) });
    const watched = (async () => {
      for await (const _ of events.watchEvents({}));
    })();
    await expect(watched).rejects.toMatchObject({ code: "unavailable" });
  });
});

describe("the key", () => {
  test("of the address is kept for the tab and removed from the address", () => {
    history.replaceState(null, "", "/sessions?agent=a#key=mn_given");
    takeKey();
    expect(key.value).toBe("mn_given");
    expect(sessionStorage.getItem("mneme-key")).toBe("mn_given");
    expect(location.href).not.toContain("mn_given");
    expect(location.pathname + location.search).toBe("/sessions?agent=a");
  });

  test("of an address that is put into an open tab is taken and removed, too", () => {
    history.replaceState(null, "", "/sessions");
    let opened = 0;
    const unfollow = followKey(() => opened++);
    history.replaceState(null, "", "/sessions#main");
    dispatchEvent(new HashChangeEvent("hashchange"));
    expect([opened, key.value]).toEqual([0, ""]);
    history.replaceState(null, "", "/sessions#key=mn_later");
    dispatchEvent(new HashChangeEvent("hashchange"));
    expect([opened, key.value]).toEqual([1, "mn_later"]);
    expect(location.href).not.toContain("mn_later");
    unfollow();
  });

  test("of the tab is there after a reload", () => {
    sessionStorage.setItem("mneme-key", "mn_kept");
    takeKey();
    expect(key.value).toBe("mn_kept");
  });
});
