import { screen, waitFor } from "@testing-library/preact";
import { expect, test } from "vitest";
import { open } from "./opening";
import { serve } from "./serving";

const HOSTILE = `"'><img src=x onerror="broken=1"><script>broken=1</script><svg onload="broken=1">
javascript:broken=1 <a href="javascript:broken=1">x</a> https://a.example/"onmouseover="broken=1`;
const TIME = "2026-11-01T10:00:00Z";
const session = {
  id: HOSTILE,
  agentId: HOSTILE,
  agentName: HOSTILE,
  userId: HOSTILE,
  project: HOSTILE,
  tags: [HOSTILE],
  metadata: { [HOSTILE]: HOSTILE },
  status: "SESSION_STATUS_ERROR",
  startedAt: TIME,
};
const of = { sessionId: HOSTILE, timestamp: TIME, agentId: HOSTILE, hash: HOSTILE };
const events = [
  { ...of, id: "e1", eventType: "message", text: HOSTILE, payload: { role: HOSTILE } },
  { ...of, id: "e2", eventType: "tool_call", name: HOSTILE, payload: { arguments: HOSTILE } },
  { ...of, id: "e3", eventType: "tool_error", name: HOSTILE, error: HOSTILE, model: HOSTILE },
  { ...of, id: "e4", eventType: HOSTILE, metadata: { [HOSTILE]: [HOSTILE] } },
].map((event, at) => ({ ...event, sequence: String(at + 1) }));
const found = {
  sourceType: "event",
  sourceId: HOSTILE,
  sessionId: HOSTILE,
  agentId: HOSTILE,
  text: HOSTILE,
  metadata: { event_type: HOSTILE },
};
const summary = {
  sessionId: HOSTILE,
  summary: `${HOSTILE}\n${HOSTILE}`,
  outcome: "OUTCOME_FAILURE",
};
const claim = { type: HOSTILE, description: HOSTILE, sessionIds: [HOSTILE], eventIds: [HOSTILE] };
const ANSWERS = {
  "AdminService/GetStats": () => ({
    tenant: { tenantId: HOSTILE, sessionCount: "1" },
    server: { version: HOSTILE, embeddingModel: HOSTILE },
  }),
  "EventService/GetSession": () => ({ session }),
  "EventService/ListSessions": () => ({ sessions: [session], totalSize: "1" }),
  "EventService/ListEvents": () => ({ events }),
  "EventService/ListAgents": () => ({ agents: [{ id: HOSTILE, name: HOSTILE }] }),
  "EventService/VerifyEvents": () => ({ brokenChains: [{ eventId: HOSTILE, reason: HOSTILE }] }),
  "RecallService/Recall": () => ({ results: [found, { ...found, sourceType: HOSTILE }] }),
  "ContextService/GetTimeline": () => ({
    entries: [{ session, summary, related: [{ sessionId: HOSTILE, similarity: 0.5 }] }],
  }),
  "ContextService/WakeUp": () => ({
    text: HOSTILE,
    lastHandover: { ...summary, progress: [HOSTILE], decisions: [{ decision: HOSTILE }] },
    patterns: [claim],
    suggestions: [claim],
    related: [{ ...summary, score: 0.5 }],
  }),
  "ContextService/GetContext": () => ({
    text: HOSTILE,
    sessions: [{ ...summary, keyEvents: [{ eventId: HOSTILE, summary: HOSTILE }] }],
    lessons: [{ lesson: { id: HOSTILE, title: HOSTILE, content: HOSTILE, category: HOSTILE } }],
    skills: [{ skillId: HOSTILE, name: HOSTILE, description: HOSTILE }],
  }),
  "ReflectService/Reflect": () => ({
    errorPatterns: {
      patterns: [{ template: HOSTILE, toolName: HOSTILE, examples: [{ eventId: HOSTILE }] }],
    },
    performanceTrends: { points: [{ startTime: TIME, sessionCount: "1" }] },
    costAnalysis: { byModel: [{ key: HOSTILE, costUsd: 1 }] },
  }),
  "MemoryService/ListMemories": () => ({ memories: [{ id: HOSTILE, text: HOSTILE }] }),
  "SkillService/ListEpisodes": () => ({ episodes: [{ id: HOSTILE, task: HOSTILE }] }),
};
const ADDRESSES = [
  "/",
  "/sessions",
  "/sessions?view=timeline",
  "/sessions/s?all=1&event=e3",
  "/sessions/s?all=1&event=e4",
  "/events",
  `/search?q=${encodeURIComponent(HOSTILE)}`,
  "/context",
  `/context?view=topic&topic=${encodeURIComponent(HOSTILE)}`,
  "/agents",
  `/agents/${encodeURIComponent(HOSTILE)}`,
  `/agents/user/${encodeURIComponent(HOSTILE)}`,
];

const NAMED = ADDRESSES.map((address) => [address.slice(0, 40), address] as const);

test.each(NAMED)("%s shows scripts that were stored as text", async (_name, address) => {
  serve(ANSWERS);
  const { container } = open(address);
  await screen.findAllByRole("heading", { level: 1 });
  await waitFor(() => {
    expect(container.querySelector("[role=status][aria-label=Loading]")).toBeNull();
    expect(container.querySelector("main")?.textContent).toContain("<script>");
  });
  expect(container.querySelector("img, script, [onerror], [onload], [onmouseover]")).toBeNull();
  for (const link of container.querySelectorAll("a")) {
    expect(["http:", "https:", "blob:"]).toContain(new URL(link.href).protocol);
    const outside = new URL(link.href).origin !== location.origin;
    if (outside) expect(link.rel).toContain("noopener");
  }
  expect("broken" in globalThis).toBe(false);
});

const TURNED = "see \u202eexe.jpg\u202c and \u2067https://a.example/x\u202egpj.exe\u2069 \u200fend";
const SHOWN = "⟨U+202E⟩exe.jpg⟨U+202C⟩";

/** The same answers, with other stored text. */
function turned<T>(answers: T): T {
  return JSON.parse(
    JSON.stringify(answers).replaceAll(
      JSON.stringify(HOSTILE).slice(1, -1),
      JSON.stringify(TURNED).slice(1, -1),
    ),
  );
}

test.each(NAMED)(
  "%s shows what would turn texts around, and obeys none of it",
  async (_name, address) => {
    const answers = Object.entries(ANSWERS).map(([call, answer]) => [call, () => turned(answer())]);
    serve(Object.fromEntries(answers));
    const { container } = open(
      address.replaceAll(encodeURIComponent(HOSTILE), encodeURIComponent(TURNED)),
    );
    await screen.findAllByRole("heading", { level: 1 });
    await waitFor(() => {
      expect(container.querySelector("[role=status][aria-label=Loading]")).toBeNull();
      expect(container.querySelector("main")?.textContent).toContain(SHOWN);
    });
    expect(container.textContent).not.toMatch(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/);
    for (const titled of container.querySelectorAll("[title]")) {
      expect(titled.getAttribute("title")).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/);
    }
    const texts = document.createTreeWalker(container, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const place = texts.currentNode.parentElement;
      if (texts.currentNode.nodeValue?.includes(SHOWN) && place?.closest("option, svg") === null) {
        expect(place?.closest("[dir]")).toBe(place);
      }
    }
    for (const link of container.querySelectorAll<HTMLAnchorElement>("a[target=_blank]")) {
      expect(link.href).toBe("https://a.example/x");
    }
  },
);
