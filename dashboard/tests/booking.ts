/** A session that failed, as the server tells it. */
export const SESSION = {
  id: "s-1",
  agentId: "builder",
  userId: "ann",
  project: "shop",
  status: "SESSION_STATUS_ERROR",
  startedAt: "2026-11-01T10:00:00Z",
  endedAt: "2026-11-01T10:05:00Z",
  eventCount: "4",
  errorCount: "1",
  totalCostUsd: 0.25,
};
/** Its events, in their order. */
export const EVENTS = [
  event("e1", 1, { eventType: "message", text: "Book a flight", payload: { role: "user" } }),
  event("e2", 2, { eventType: "llm_call", model: "m" }),
  event("e3", 3, {
    eventType: "tool_call",
    name: "book",
    callId: "c1",
    payload: { arguments: { to: "LIS" } },
  }),
  event("e4", 4, { eventType: "tool_error", name: "book", callId: "c1", error: "no seats left" }),
];

/** An event of it. */
export function event(id: string, sequence: number, more: object) {
  const timestamp = `2026-11-01T10:00:0${sequence}Z`;
  return {
    id,
    sessionId: "s-1",
    sequence: String(sequence),
    timestamp,
    hash: `hash-${id}`,
    ...more,
  };
}
