/** Where what was stored is shown. */

import { filter, to } from "./router";

const PAGES_OF: Readonly<Record<string, string>> = {
  session: "sessions",
  lesson: "lessons",
  reflection: "reflections",
  knowledge: "knowledge",
  memory: "memories",
  episode: "episodes",
  skill: "skills",
};

const ASKED = 300;

/** Return the address of something that Recall finds; undefined when no page shows it. */
export function sourceHref(source: {
  readonly sourceType?: string;
  readonly sourceId?: string;
  readonly sessionId?: string;
  readonly text?: string;
}): string | undefined {
  const { sourceType = "", sourceId = "", sessionId = "" } = source;
  if (sourceType === "event") return eventHref(sessionId, sourceId);
  const page = PAGES_OF[sourceType];
  const address = page && to(page, sourceId);
  // Knowledge is only found by asking: what it says is the question that finds it.
  const question = sourceType === "knowledge" ? (source.text ?? "").slice(0, ASKED) : "";
  return address && question ? `${address}?${new URLSearchParams({ q: question })}` : address;
}

/** Return the address of an event's place in its session. */
export function eventHref(sessionId: string, eventId: string): string {
  return `${to("sessions", sessionId)}?${new URLSearchParams({ event: eventId })}`;
}

/** The filters that mean the same on every page that has them. */
const SHARED = ["agent", "project", "range", "from", "to"] as const;

/** Return the address of a page with the filters of this one: what it shows is of the same. */
export function carrying(page: string, more: Readonly<Record<string, string>> = {}): string {
  const set = SHARED.map((name) => [name, filter(name)] as const).filter(([, value]) => value);
  const search = new URLSearchParams({ ...Object.fromEntries(set), ...more }).toString();
  return page + (search && `?${search}`);
}
