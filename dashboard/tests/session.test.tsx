import { fireEvent, screen, waitFor, within } from "@testing-library/preact";
import { describe, expect, test, vi } from "vitest";
import { EVENTS, event, SESSION } from "./booking";
import { open } from "./opening";
import { failed, serve, streamed } from "./serving";

const ANSWERS = {
  "EventService/GetSession": () => ({ session: SESSION }),
  "EventService/ListEvents": () => ({ events: EVENTS }),
  "EventService/VerifyEvents": () => ({ valid: true, eventsChecked: "4", headHash: "hash-e4" }),
  "RecallService/Recall": ({ scopes }: Record<string, unknown>) => ({
    results: (scopes as string[]).includes("lesson")
      ? [
          {
            sourceType: "lesson",
            sourceId: "l-1",
            text: "Check seats first\nThen book.",
            score: 0.6,
          },
        ]
      : [],
  }),
};

describe("a session", () => {
  test("shows its steps, folds noise, and says that its chain verifies", async () => {
    serve(ANSWERS);
    open("/sessions/s-1");
    await screen.findByRole("heading", { name: "Book a flight", level: 1 });
    await screen.findByText("Record verified");
    const steps = screen.getByRole("list", { name: "Steps" });
    expect(within(steps).getAllByRole("link").length).toBe(2);
    within(steps).getByRole("button", { name: "llm call" });
  });

  test("leads from its error to the call, its answer, and the lesson about it", async () => {
    serve(ANSWERS);
    open("/sessions/s-1");
    const errors = await screen.findByRole("region", { name: "Errors" });
    fireEvent.click(within(errors).getByRole("link", { name: /no seats left/ }));
    const pane = await screen.findByRole("article", { name: "Details" });
    expect(location.search).toBe("?event=e4");
    within(pane).getByText("book: arguments");
    expect(pane.textContent).toContain('"to": "LIS"');
    const lesson = await within(pane).findByRole("link", { name: "Check seats first" });
    expect(lesson.getAttribute("href")).toBe("/lessons/l-1");
  });

  test("is walked by keys, however fast they come", async () => {
    serve(ANSWERS);
    open("/sessions/s-1?all=1");
    const steps = await screen.findByRole("list", { name: "Steps" });
    await within(steps).findByRole("link", { name: /Book a flight/ });
    await waitFor(() => {
      // The page listens once it has been drawn.
      if (!location.search.includes("event")) fireEvent.keyDown(document.body, { key: "j" });
      expect(location.search).toBe("?all=1&event=e1");
    });
    fireEvent.keyDown(document.body, { key: "j" });
    fireEvent.keyDown(document.body, { key: "j" });
    await waitFor(() => expect(location.search).toBe("?all=1&event=e3"));
    fireEvent.keyDown(document.body, { key: "k" });
    await waitFor(() => expect(location.search).toBe("?all=1&event=e2"));
    fireEvent.keyDown(document.body, { key: "Escape" });
    await waitFor(() => expect(location.search).toBe("?all=1"));
  });

  test("says which place of its chain was changed", async () => {
    const brokenChains = [
      { sessionId: "s-1", eventId: "e2", sequence: "2", reason: "the hash differs" },
    ];
    serve({ ...ANSWERS, "EventService/VerifyEvents": () => ({ brokenChains, brokenCount: "1" }) });
    open("/sessions/s-1");
    const alert = await screen.findByText("The record of this session was changed.");
    expect(alert.closest("[role=alert]")?.textContent).toContain("At place 2: the hash differs");
  });

  test("that runs shows what is recorded by itself", async () => {
    const late = event("e5", 5, { eventType: "message", text: "Found another flight" });
    let told = () => {};
    const began = new Promise<void>((resolve) => {
      told = resolve;
    });
    serve({
      ...ANSWERS,
      "EventService/GetSession": () => ({
        session: { ...SESSION, status: "SESSION_STATUS_ACTIVE", endedAt: undefined },
      }),
      "EventService/WatchEvents": async () => {
        await began;
        return streamed([{ cursor: "4" }, { cursor: "5", event: late }]);
      },
    });
    open("/sessions/s-1");
    await screen.findByRole("list", { name: "Steps" });
    expect(screen.queryByText("Found another flight")).toBeNull();
    told();
    await screen.findByText("Found another flight");
  });

  test("that runs and is long shows how much of it is left out, until it is loaded", async () => {
    const said = (sequence: number) =>
      event(`m${sequence}`, sequence, { eventType: "message", text: `said ${sequence}` });
    serve({
      ...ANSWERS,
      "EventService/GetSession": () => ({
        session: { ...SESSION, status: "SESSION_STATUS_ACTIVE", eventCount: "9" },
      }),
      "EventService/ListEvents": ({ descending, pageToken }) => {
        if (descending) return { events: [9, 8].map(said) };
        if (pageToken) return { events: [3, 4, 5, 6, 7].map(said), nextPageToken: "last" };
        return { events: [1, 2].map(said), nextPageToken: "second" };
      },
      "EventService/WatchEvents": () => streamed([{ cursor: "9" }]),
    });
    open("/sessions/s-1");
    const left = await screen.findByText("5 events not loaded");
    expect(left.previousElementSibling?.textContent).toContain("said 2");
    expect(left.nextElementSibling?.textContent).toContain("said 8");
    fireEvent.click(screen.getByRole("button", { name: "Load more" }));
    await screen.findByText("said 5");
    expect(screen.queryByText(/not loaded/)).toBeNull();
  });

  test("that runs is read anew when the server comes back with other data", async () => {
    let isOther = false;
    const message = (text: string, sequence: number) =>
      event(text, sequence, { eventType: "message", text });
    serve({
      ...ANSWERS,
      "EventService/GetSession": () => ({
        session: { ...SESSION, status: "SESSION_STATUS_ACTIVE" },
      }),
      "EventService/ListEvents": () => ({
        events: isOther ? [message("of now", 1)] : [message("begun", 1), message("lost", 2)],
      }),
      // A place that is ahead of all that is recorded is taken as it is, and nothing comes.
      "EventService/WatchEvents": ({ afterCursor = "" }) =>
        streamed([{ cursor: afterCursor || (isOther ? "1" : "2") }]),
    });
    open("/sessions/s-1");
    await screen.findByText("lost");
    await screen.findByText("Live");
    isOther = true;
    await screen.findByRole("heading", { name: "of now", level: 1 });
    expect(screen.queryByText("lost")).toBeNull();
  });

  test("that runs says when it can no longer be had", async () => {
    vi.useFakeTimers({ toFake: ["setInterval"] });
    let isGone = false;
    serve({
      ...ANSWERS,
      "EventService/GetSession": () =>
        isGone
          ? failed(404, "not_found", "there is no session s-1")
          : { session: { ...SESSION, status: "SESSION_STATUS_ACTIVE" } },
      "EventService/WatchEvents": () => new Promise(() => {}),
    });
    open("/sessions/s-1");
    await screen.findByRole("list", { name: "Steps" });
    isGone = true;
    vi.advanceTimersByTime(10_000);
    vi.useRealTimers();
    await screen.findByText("There is no session s-1.");
  });

  test("that is long says of which events its errors are counted", async () => {
    serve({
      ...ANSWERS,
      "EventService/ListEvents": () => ({ events: EVENTS, nextPageToken: "more" }),
    });
    open("/sessions/s-1");
    await screen.findByRole("heading", { name: "1 error among the events loaded" });
  });

  test("that is not there says so", async () => {
    serve({ "EventService/GetSession": () => failed(404, "not_found", "there is no session s-9") });
    open("/sessions/s-9");
    await screen.findByText("There is no session s-9.");
  });
});
