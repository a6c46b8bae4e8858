/** What happened in a session, step by step: a call and its answer are one step. */

import type { EventJson } from "@mneme/client/http";
import { durationMs, num } from "../../format";

export type StepKind = "message" | "call" | "error" | "model" | "state" | "other";

/** A step of a session. */
export interface Step {
  /** The event that names it. */
  readonly event: EventJson;
  readonly kind: StepKind;
  /** A call's answer. */
  readonly answer?: EventJson;
  readonly failed: boolean;
  /** Folded away unless it is asked for. */
  readonly noise: boolean;
  /** Events between what is known before it and itself that are not. */
  readonly missing: number;
}

/** Steps, those that are folded between them, and those before which events are left out. */
export type Row = Step | { readonly folded: readonly Step[] } | { readonly leftOut: Step };

const STATES = new Set(["session_started", "session_ended"]);
const MODELS = new Set(["llm_call", "llm_response"]);
const ANSWERS = new Set(["tool_response", "tool_error"]);

/** Return the steps of a session's events, which are in their order. */
export function stepsOf(events: readonly EventJson[]): Step[] {
  const steps: Step[] = [];
  const open = new Map<string, number>();
  let missing = 0;
  for (const [place, event] of events.entries()) {
    const between = missingBetween(events[place - 1], event);
    missing += between;
    if (between > 0) forgetNamed(open);
    const at = ANSWERS.has(event.eventType ?? "") ? open.get(callOf(event)) : undefined;
    const call = at === undefined ? undefined : steps[at];
    if (at !== undefined && call) {
      open.delete(callOf(event));
      steps[at] = { ...call, answer: event, failed: call.failed || isError(event), noise: false };
      continue;
    }
    if (event.eventType === "tool_call") open.set(callOf(event), steps.length);
    steps.push(stepOf(event, missing));
    missing = 0;
  }
  return steps;
}

// The open call of a tool may be among the events that are not known.
function forgetNamed(open: Map<string, number>): void {
  for (const call of open.keys()) if (call.startsWith("name ")) open.delete(call);
}

function missingBetween(before: EventJson | undefined, event: EventJson): number {
  return before ? Math.max(0, num(event.sequence) - num(before.sequence) - 1) : 0;
}

// Without a call's id, the answer belongs to the open call of the same tool.
function callOf(event: EventJson): string {
  return event.callId ? `id ${event.callId}` : `name ${event.name ?? ""}`;
}

function stepOf(event: EventJson, missing: number): Step {
  const failed = isError(event);
  const kind = kindOf(event);
  const silent = !event.text && (kind === "model" || kind === "other");
  const background = kind === "state" || roleOf(event) === "system";
  const noise = !failed && (silent || background || event.severity === "SEVERITY_DEBUG");
  return { event, kind, failed, noise, missing };
}

function kindOf(event: EventJson): StepKind {
  const type = event.eventType ?? "";
  if (type === "tool_call" || ANSWERS.has(type)) return "call";
  if (type === "message") return "message";
  if (MODELS.has(type)) return "model";
  if (STATES.has(type)) return "state";
  return isError(event) ? "error" : "other";
}

/** Whether an event counts as an error. */
export function isError(event: EventJson): boolean {
  const { eventType, severity } = event;
  return (
    eventType === "tool_error" ||
    eventType === "error" ||
    severity === "SEVERITY_ERROR" ||
    severity === "SEVERITY_CRITICAL"
  );
}

/** Who said a message: the role that its payload names. */
export function roleOf(event: EventJson): string {
  const role = event.payload?.["role"];
  return typeof role === "string" ? role : "";
}

/**
 * Fold what is noise, unless all is asked for; the chosen step is never folded. While not all events
 * are loaded, `partial`, rows tell where some are left out.
 */
export function rowsOf(
  steps: readonly Step[],
  all: boolean,
  chosen: string,
  partial = false,
): Row[] {
  const rows: Row[] = [];
  for (const step of steps) {
    if (partial && step.missing > 0) rows.push({ leftOut: step });
    const last = rows.at(-1);
    if (all || !step.noise || step.event.id === chosen) rows.push(step);
    else if (last && "folded" in last) rows[rows.length - 1] = { folded: [...last.folded, step] };
    else rows.push({ folded: [step] });
  }
  return rows;
}

/** Return what a call was given. */
export function argumentsOf({ payload, text }: EventJson): unknown {
  const given = payload?.["arguments"] ?? payload?.["args"] ?? payload?.["input"];
  return given ?? (payload && Object.keys(payload).length > 0 ? payload : text);
}

/** Return what a call was answered with. */
export function resultOf(event: EventJson): unknown {
  const { payload, error, text } = event;
  const given =
    payload?.["output"] ?? payload?.["result"] ?? payload?.["content"] ?? payload?.["response"];
  return given ?? (error || text);
}

/** Return what an error says. */
export function messageOf(event: EventJson): string {
  return event.error || event.text || event.name || "";
}

/** Return a line that stands for a step. */
export function titleOf({ event, kind }: Step): string {
  if (kind === "call") return inLine(argumentsOf(event));
  return inLine(event.text || event.error || event.model || event.name || event.eventType);
}

function inLine(value: unknown): string {
  if (typeof value === "string") return value.slice(0, 300);
  if (typeof value !== "object" || value === null) return "";
  return Object.entries(value)
    .map(([name, part]) => `${name}: ${typeof part === "string" ? part : JSON.stringify(part)}`)
    .join(", ")
    .slice(0, 300);
}

/** Return the milliseconds that a step took, as recorded or by its two events. */
export function msOf({ event, answer }: Step): number | undefined {
  const recorded = durationMs(answer?.duration) ?? durationMs(event.duration);
  if (recorded !== undefined || !answer?.timestamp || !event.timestamp) return recorded;
  return new Date(answer.timestamp).getTime() - new Date(event.timestamp).getTime();
}

/** Return what a step cost, in US dollars. */
export function costOf({ event, answer }: Step): number {
  return num(event.costUsd) + num(answer?.costUsd);
}

/** Return the step that an event belongs to. */
export function stepWith(steps: readonly Step[], eventId: string): Step | undefined {
  return steps.find((step) => step.event.id === eventId || step.answer?.id === eventId);
}
