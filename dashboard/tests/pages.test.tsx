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

  test("explains a score by terms that add up to it, without asking again", async () => {
    const terms = [
      { name: "session_dense", value: 0.5, contribution: 1.5 },
      { name: "repeated", value: -1, contribution: -0.25 },
    ];
    const steps = { sum: 1.25, highest: 5, evidence: 0.64 };
    const asked = serve({
      "RecallService/Recall": () => ({ results: [{ ...result, terms, steps, score: 0.4 }] }),
    });
    open("/search?q=seats");
    fireEvent.click(await screen.findByRole("button", { name: "Why this score" }));
    const table = await screen.findByRole("table", { name: "How the score came to be" });
    const rows = within(table).getAllByRole("row").slice(1);
    expect(
      rows.map((row) => row.querySelector("td:last-child, th:last-child")?.textContent),
    ).toEqual(["+1.500", "−0.250", "1.250", "0.250", "0.160", "0.400"]);
    expect(rows[0]?.textContent).toContain("Session, meaning");
    expect(rows[4]?.textContent).toContain("× evidence, 0.640");
    expect(asked.map(({ request }) => request["explain"])).toEqual([true]);
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
      text: "Last session:\n  two spaces",
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
    "ContextService/GetContext": ({ topic }) => ({ text: `about ${topic}` }),
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
      operation: {
        done: true,
        response: dryRun ? { counts } : { id: "r-1", counts, erasedAt: "2026-11-02T10:00:00Z" },
      },
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

const OVERALL = {
  sessionCount: "219",
  knownCount: "100",
  successRate: 0.51,
  errorCount: "3",
  timedCount: "40",
  latencyP50Ms: 1500,
};

function overview(points: readonly object[], overall: object = OVERALL) {
  return serve({
    "AdminService/GetStats": () => ({ tenant: { sessionCount: "219" } }),
    "EventService/ListAgents": () => ({}),
    "EventService/ListSessions": () => ({ totalSize: "219", sessions: [SESSION] }),
    "ReflectService/Reflect": ({ analysis }) => ({
      ...(analysis === "ANALYSIS_PERFORMANCE_TRENDS" && {
        performanceTrends: { points, overall, bucketSeconds: "86400" },
      }),
      ...(analysis === "ANALYSIS_ERROR_PATTERNS" && { errorPatterns: { errorCount: "3" } }),
      ...(analysis === "ANALYSIS_COST_ANALYSIS" && {
        costAnalysis: { totalCostUsd: 1.6, averageCostPerSession: 0.16, costedSessions: "10" },
      }),
    }),
  });
}

const figureOf = async (name: string): Promise<Element | null> =>
  (await screen.findByText(name, { selector: ".figure-name" })).parentElement;

test("the overview's figures say of how many they are, over the range", async () => {
  overview([{ startTime: "2026-11-01T00:00:00Z", sessionCount: "219", latencyP50Ms: 9 }]);
  open("/");
  const succeeded = await figureOf("Succeeded");
  await waitFor(() => expect(succeeded?.textContent).toContain("51%of 100 that ended"));
  const latency = await figureOf("Median latency");
  await waitFor(() => expect(latency?.textContent).toContain("1.5 sof 40 timed events"));
  const cost = await figureOf("Cost");
  await waitFor(() => expect(cost?.textContent).toContain("$0.16 a session, of 10 priced"));
});

test("the overview counts errors as the server does, and leaves gaps where nothing is known", async () => {
  overview([
    {
      startTime: "2026-11-01T00:00:00Z",
      sessionCount: "915",
      errorsPerSession: 6.6,
      errorCount: "59",
    },
    { startTime: "2026-11-02T00:00:00Z" },
    { startTime: "2026-11-03T00:00:00Z", sessionCount: "2", latencyP50Ms: 20, timedCount: "7" },
  ]);
  open("/");
  const activity = await screen.findByRole("table", {
    name: "Sessions and errors over time",
    hidden: true,
  });
  const [first] = within(activity).getAllByRole("row", { hidden: true }).slice(1);
  expect(first?.textContent).toMatch(/91559$/);
  expect(screen.getByText("Errors: up to 59")).toBeTruthy();
  const latency = await screen.findByRole("table", { name: "Latency over time", hidden: true });
  const medians = within(latency).getAllByRole("row", { hidden: true }).slice(1);
  expect(medians.map((row) => row.children[1]?.textContent)).toEqual([
    "–",
    "–",
    "20 ms of 7 timed",
  ]);
});

test("every way out of the overview carries its filters along", async () => {
  overview([{ startTime: "2026-11-01T00:00:00Z" }]);
  open("/?range=24h&project=airline&agent=a%20b");
  const of = "agent=a+b&project=airline&range=24h";
  const href = (link: Element | null): string | null | undefined => link?.getAttribute("href");
  expect(href(await figureOf("Errors"))).toBe(`/events?${of}&severity=error`);
  expect(href(await figureOf("Sessions"))).toBe(`/sessions?${of}`);
  for (const [name, address] of [
    ["Failed ones", `/sessions?${of}&status=error`],
    ["All sessions", `/sessions?${of}`],
    ["All insights", `/insights?${of}`],
  ] as const) {
    expect(href(await screen.findByRole("link", { name }))).toBe(address);
  }
});

test("errors are neither good nor bad while nobody knows how many there are", async () => {
  serve({
    "AdminService/GetStats": () => ({ tenant: { sessionCount: "3" } }),
    "EventService/ListSessions": () => ({}),
    "ReflectService/Reflect": () => failed(503, "unavailable", "not now"),
  });
  open("/");
  const errors = await figureOf("Errors");
  await waitFor(() => expect(errors?.textContent).toContain("–"));
  expect(errors?.querySelector(".good, .bad")).toBeNull();
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
      ...(analysis === "ANALYSIS_PERFORMANCE_TRENDS" && {
        performanceTrends: { points, overall: points[0] },
      }),
      ...(analysis === "ANALYSIS_COST_ANALYSIS" && { costAnalysis: { totalCostUsd: 1.5 } }),
    }),
  });
  open("/");
  const link = await screen.findByRole("link", { name: "no seats <num>" });
  expect(link.getAttribute("href")).toBe("/sessions/s-1?event=e4");
  await screen.findByText("50%");
  await screen.findByText("$1.50");
});

test("lessons are looked for by words on the server, and nobody counts that as reading", async () => {
  const asked = serve({
    "LearnService/ListLessons": () => ({ totalSize: "0" }),
    "LearnService/SearchLessons": () => ({
      results: [{ lesson: { id: "l-1", title: "Repeat with a key", content: "x" } }],
    }),
    "LearnService/GetLesson": () => ({ lesson: { id: "l-1", title: "Repeat with a key" } }),
  });
  open("/lessons?q=idempotency&lesson=l-1");
  await screen.findByText(/No lesson that passes the filters has all the words “idempotency”/);
  await screen.findByRole("link", { name: /Repeat with a key/ });
  const of = (call: string) => asked.find((one) => one.call === `LearnService/${call}`)?.request;
  expect(of("ListLessons")).toMatchObject({ words: "idempotency" });
  expect(of("SearchLessons")).toMatchObject({ peek: true });
  expect(of("GetLesson")).toMatchObject({ peek: true });
});

test("events of a project are asked for by it", async () => {
  const asked = serve({ "EventService/ListEvents": () => ({ events: EVENTS }) });
  open("/events?project=airline");
  await screen.findByRole("link", { name: "no seats left" });
  expect(asked.at(0)?.request).toMatchObject({ project: "airline" });
});
