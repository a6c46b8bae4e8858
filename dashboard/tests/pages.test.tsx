import { fireEvent, screen, waitFor, within } from "@testing-library/preact";
import { describe, expect, test, vi } from "vitest";
import { EVENTS, event, SESSION } from "./booking";
import { open } from "./opening";
import { failed, serve, streamed, streaming } from "./serving";

describe("the search", () => {
  const result = {
    sourceType: "event",
    sourceId: "e4",
    sessionId: "s-1",
    score: 0.51,
    text: "book: no seats left",
    timestamp: "2026-11-01T10:00:04Z",
    metadata: { event_type: "tool_error" },
  };

  test("finds as one types, and shows kind, text, score and time", async () => {
    const asked = serve({
      "RecallService/Recall": () => ({ results: [result], searchedCount: "9" }),
    });
    open("/search");
    const field = await screen.findByRole("searchbox", { name: "Search" });
    fireEvent.input(field, { target: { value: "seats" } });
    await screen.findByText("1 result of 9 memories searched");
    expect(asked.at(-1)?.request).toMatchObject({ query: "seats", limit: 20 });
    expect(location.search).toBe("?q=seats");
    const results = screen.getByRole("list", { name: "Results" });
    const item = within(results).getByRole("listitem");
    expect(within(item).getByText("event").className).toContain("badge");
    expect(item.querySelector("mark")?.textContent).toBe("seats");
    expect(item.querySelector("time")?.dateTime).toBe(result.timestamp);
    expect(item.textContent).toContain("0.51");
    expect(within(item).getAllByRole("link")[0]?.getAttribute("href")).toBe(
      "/sessions/s-1?event=e4",
    );
  });

  test("asks with the scope and the filters of the address", async () => {
    const asked = serve({
      "RecallService/Recall": () => ({ outcome: "RECALL_OUTCOME_NOTHING_STORED" }),
    });
    open("/search?q=x&scope=lesson&project=shop&from=2026-11-01");
    await screen.findByText("Nothing of this kind is kept yet.");
    expect(asked[0]?.request).toMatchObject({ scopes: ["lesson"], project: "shop" });
    expect(asked[0]?.request["startTime"]).toBe(new Date("2026-11-01T00:00").toISOString());
  });

  test("explains a score when it is asked to", async () => {
    const terms = [{ name: "session_dense", value: 0.5, contribution: 0.25 }];
    const asked = serve({
      "RecallService/Recall": ({ explain }) => ({
        results: [explain ? { ...result, terms } : result],
      }),
    });
    open("/search?q=seats");
    fireEvent.click(await screen.findByRole("button", { name: "Why this score" }));
    const table = await screen.findByRole("table", { name: "Terms of the score" });
    expect(table.textContent).toContain("session dense0.5000.250");
    expect(asked.map(({ request }) => request["explain"])).toEqual([undefined, true]);
  });
});

test("events are listed newest first, with their place in the session", async () => {
  const asked = serve({ "EventService/ListEvents": () => ({ events: EVENTS }) });
  open("/events?severity=error&type=tool_error");
  const link = await screen.findByRole("link", { name: "no seats left" });
  expect(link.getAttribute("href")).toBe("/sessions/s-1?event=e4");
  expect(asked[0]?.request).toMatchObject({
    descending: true,
    minSeverity: "SEVERITY_ERROR",
    eventTypes: ["tool_error"],
  });
});

test("what comes while one looks is shown in a list that had nothing, if it passes the filters", async () => {
  const came = [
    { cursor: "1" },
    { event: event("e8", 8, { eventType: "message", text: "in time" }), cursor: "2" },
    {
      event: {
        ...event("e9", 9, { eventType: "message", text: "too late" }),
        timestamp: "2026-11-03T10:00:00Z",
      },
      cursor: "3",
    },
  ];
  serve({
    "EventService/ListEvents": () => ({}),
    "EventService/ListAgents": () => ({}),
    "EventService/WatchEvents": () => streamed(came),
  });
  open("/events?live=1&range=days&to=2026-11-01");
  await screen.findByRole("link", { name: "in time" });
  expect(screen.queryByText("too late")).toBeNull();
  await screen.findByText("1 event");
});

test("events that are followed are listed anew when the server comes back with other data", async () => {
  let isOther = false;
  const message = (text: string) => event(text, 1, { eventType: "message", text });
  serve({
    "EventService/ListEvents": () => ({ events: [message(isOther ? "of now" : "listed")] }),
    "EventService/ListAgents": () => ({}),
    // A place that is ahead of all that is recorded is taken as it is, and nothing comes.
    "EventService/WatchEvents": ({ afterCursor = "" }) =>
      isOther
        ? streamed([{ cursor: afterCursor || "1" }])
        : streamed([{ cursor: "8" }, { event: message("came"), cursor: "9" }]),
  });
  open("/events?live=1");
  await screen.findByRole("link", { name: "listed" });
  await screen.findByRole("link", { name: "came" });
  isOther = true;
  await screen.findByRole("link", { name: "of now" });
  expect(screen.queryByText("listed")).toBeNull();
  expect(screen.queryByText("came")).toBeNull();
});

test("events that are followed leave no gap to those that are listed, however many come", async () => {
  const came = Array.from({ length: 250 }, (_, at) => ({
    ...event(`e${at}`, 1, { eventType: "message" }),
    text: `came ${at}`,
  }));
  let recorded = 0;
  let told = () => {};
  const began = new Promise<void>((resolve) => {
    told = resolve;
  });
  async function* watched() {
    yield [{ cursor: "0" }];
    await began;
    recorded = came.length;
    yield came.map((one) => ({ event: one, cursor: "1" }));
    await new Promise(() => {});
  }
  const asked = serve({
    "EventService/ListEvents": () => ({
      events: came.slice(Math.max(0, recorded - 100), recorded).reverse(),
      nextPageToken: recorded > 100 ? "more" : "",
    }),
    "EventService/ListAgents": () => ({}),
    "EventService/WatchEvents": () => streaming(watched()),
  });
  const { container } = open("/events?live=1");
  const lists = () => asked.filter(({ call }) => call === "EventService/ListEvents");
  await waitFor(() => expect(lists()).toHaveLength(2)); // Once more when the stream had begun.
  told();
  // Looked at now and then: after each event it would take long.
  const shown = () => [...container.querySelectorAll("a.preview")].map((one) => one.textContent);
  await vi.waitFor(() => expect(shown()[0]).toBe("came 249"), { timeout: 50_000 });
  await screen.findByText("Load more");
  const newest = came.map((one) => one.text).slice(-shown().length);
  expect(shown()).toEqual(newest.reverse());
});

test("the context is shown word for word, with what it rests on", async () => {
  serve({
    "ContextService/WakeUp": () => ({
      narrative: "Last session:\n  two spaces",
      suggestions: [
        { type: "open_todo", description: "Book it", sessionIds: ["s-1"], eventIds: ["e4"] },
      ],
    }),
  });
  const { container } = open("/context?project=shop");
  await screen.findByText("Book it");
  expect(container.querySelector("pre")?.textContent).toBe("Last session:\n  two spaces");
  expect(screen.getByRole("link", { name: "event e4" }).getAttribute("href")).toBe(
    "/sessions/s-1?event=e4",
  );
});

test("a text that was copied is not said to be when it is another", async () => {
  Object.defineProperty(navigator, "clipboard", {
    value: { writeText: async () => undefined },
    configurable: true,
  });
  serve({
    "ContextService/GetContext": ({ topic }) => ({ prompt: `about ${topic}` }),
    "EventService/ListAgents": () => ({}),
  });
  open("/context?view=topic&topic=one");
  fireEvent.click(await screen.findByRole("button", { name: "Copy" }));
  await screen.findByRole("button", { name: "Copied" });
  const topic = screen.getByLabelText("Topic");
  fireEvent.input(topic, { target: { value: "two" } });
  fireEvent.keyDown(topic, { key: "Enter" });
  await screen.findByText("about two");
  await screen.findByRole("button", { name: "Copy" });
});

test("a user is forgotten after a look at what would go, and the receipt is shown", async () => {
  const counts = [
    { kind: "session", count: "1" },
    { kind: "event", count: "4" },
  ];
  const asked = serve({
    "EventService/ListSessions": () => ({ sessions: [SESSION], totalSize: "1" }),
    "MemoryService/ListMemories": () => ({}),
    "SkillService/ListEpisodes": () => ({}),
    "AdminService/Forget": ({ dryRun }) => ({
      receipt: dryRun ? { counts } : { id: "r-1", counts, erasedAt: "2026-11-02T10:00:00Z" },
    }),
  });
  open("/agents/user/ann");
  await screen.findByRole("link", { name: "s-1" });
  fireEvent.click(screen.getByRole("button", { name: "Show what would be forgotten" }));
  await screen.findByText("This would be forgotten. Nothing has been yet.");
  fireEvent.click(screen.getByRole("button", { name: "Forget…" }));
  const typed = await screen.findByLabelText(/Type ann/);
  fireEvent.input(typed, { target: { value: "ann" } });
  const button = screen.getByRole<HTMLButtonElement>("button", {
    name: "Forget for good",
    hidden: true,
  });
  await waitFor(() => expect(button.disabled).toBe(false));
  fireEvent.submit(button.closest("form") as HTMLFormElement);
  await screen.findByText("Forgotten");
  const calls = asked.filter(({ call }) => call === "AdminService/Forget");
  expect(calls.map(({ request }) => request)).toEqual([
    { userId: "ann", dryRun: true },
    { userId: "ann" },
  ]);
});

test("the overview says what to do when nothing was recorded", async () => {
  serve({
    "AdminService/GetStats": () => ({ tenant: { tenantId: "default" }, server: {} }),
    "EventService/ListSessions": () => ({}),
    "ReflectService/Reflect": () => ({}),
  });
  open("/");
  await screen.findByText("No session was recorded yet.");
});

test("the overview's figures are those of its filters, or none", async () => {
  const stats = { tenant: { tenantId: "default", sessionCount: "9" } };
  let fails = false;
  serve({
    "AdminService/GetStats": () => stats,
    "EventService/ListAgents": () => ({}),
    "EventService/ListSessions": () =>
      fails ? failed(503, "unavailable", "stopping") : { sessions: [SESSION], totalSize: "9" },
    "ReflectService/Reflect": () =>
      fails ? failed(503, "unavailable", "stopping") : { errorPatterns: { errorCount: "7" } },
  });
  open("/");
  const figure = (name: string) =>
    screen.getByText(name, { selector: ".figure-name" }).parentElement?.textContent;
  await waitFor(() => expect(figure("Sessions")).toBe("Sessions9"));
  await waitFor(() => expect(figure("Errors")).toBe("Errors7"));
  fails = true;
  const project = screen.getByLabelText("Project");
  fireEvent.input(project, { target: { value: "shop" } });
  fireEvent.keyDown(project, { key: "Enter" });
  await waitFor(() => expect(figure("Sessions")).toBe("Sessions–"));
  await waitFor(() => expect(figure("Errors")).toBe("Errors–"));
});

test("the overview's share of successes is that of sessions whose outcome is known", async () => {
  const points = [
    { startTime: "2026-11-01T00:00:00Z", sessionCount: "100", knownCount: "1", successRate: 1 },
    { startTime: "2026-11-02T00:00:00Z", sessionCount: "99", knownCount: "99", successRate: 0.5 },
    { startTime: "2026-11-03T00:00:00Z", sessionCount: "20" },
  ];
  serve({
    "AdminService/GetStats": () => ({ tenant: { sessionCount: "219" } }),
    "EventService/ListAgents": () => ({}),
    "EventService/ListSessions": () => ({ totalSize: "219" }),
    "ReflectService/Reflect": () => ({ performanceTrends: { points, bucketSeconds: "86400" } }),
  });
  open("/");
  const named = await screen.findByText("Succeeded", { selector: ".figure-name" });
  await waitFor(() => expect(named.parentElement?.textContent).toBe("Succeeded51%"));
});

test("the overview leads to the errors that recur", async () => {
  const patterns = [
    {
      template: "no seats <num>",
      toolName: "book",
      count: "7",
      sessionsAffected: "3",
      examples: [{ eventId: "e4", sessionId: "s-1" }],
    },
  ];
  const points = [
    {
      startTime: "2026-11-01T00:00:00Z",
      sessionCount: "3",
      knownCount: "2",
      successRate: 0.5,
      errorsPerSession: 2,
    },
  ];
  serve({
    "AdminService/GetStats": () => ({ tenant: { sessionCount: "3" }, server: {} }),
    "EventService/ListSessions": () => ({ sessions: [SESSION] }),
    "ReflectService/Reflect": ({ analysis }) => ({
      ...(analysis === "ANALYSIS_ERROR_PATTERNS" && {
        errorPatterns: { patterns, errorCount: "7" },
      }),
      ...(analysis === "ANALYSIS_PERFORMANCE_TRENDS" && { performanceTrends: { points } }),
      ...(analysis === "ANALYSIS_COST_ANALYSIS" && { costAnalysis: { totalCostUsd: 1.5 } }),
    }),
  });
  open("/");
  const link = await screen.findByRole("link", { name: "no seats <num>" });
  expect(link.getAttribute("href")).toBe("/sessions/s-1?event=e4");
  await screen.findByText("50%");
  await screen.findByText("$1.50");
});
