/** States, actions and spaces of learning sessions, as people read and type them. */

import type { ActionJson, LearningSessionJson, SpaceJson, StateJson } from "@mneme/client/http";
import { count, num, plural } from "../../format";

const LISTED = 25;
const NAMED = 8;

/** A state or an action as text: its label, its number, or JSON. */
export function nameOf(value: StateJson | ActionJson | undefined): string {
  if (value?.label !== undefined) return value.label;
  if (value?.number !== undefined) return String(value.number);
  if (value?.numbers) return `[${value.numbers.values?.map(shortNumber).join(", ") ?? ""}]`;
  return value?.json ? JSON.stringify(value.json) : "";
}

function shortNumber(value: number | string): string {
  return String(Number(num(value).toPrecision(4)));
}

/** A reward or a value: four figures are enough to compare. */
export function figure(value: number | string | undefined): string {
  return num(value).toLocaleString(undefined, { maximumSignificantDigits: 4 });
}

/** What was typed as a state, or what is wrong with it. */
export type Typed = { readonly state: StateJson } | { readonly problem: string };

/** Read a state in the form that its space has. */
export function readState(text: string, space: SpaceJson | undefined): Typed {
  const typed = text.trim();
  if (space?.openLabels || space?.discrete?.labels?.length) return { state: { label: typed } };
  if (space?.discrete) {
    if (/^\d+$/.test(typed)) return { state: { number: typed } };
    return { problem: "A state of this session is a whole number from 0." };
  }
  const value = parsed(typed);
  if (space?.box || space?.multiDiscrete) {
    if (Array.isArray(value) && value.every((one) => typeof one === "number")) {
      return { state: { numbers: { values: value } } };
    }
    return { problem: "A state of this session is a list of numbers, such as [0.5, 2]." };
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return { state: { json: value as NonNullable<StateJson["json"]> } };
  }
  return { problem: 'A state of this session is a JSON object, such as {"task": "auth"}.' };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What a state looks like when it is typed. */
export function exampleOf(space: SpaceJson | undefined): string {
  if (space?.discrete?.labels?.length) return space.discrete.labels[0] ?? "";
  if (space?.openLabels) return "a label";
  if (space?.discrete) return "0";
  const size = space?.box?.low?.length ?? space?.multiDiscrete?.sizes?.length;
  if (size !== undefined) return `[${Array(Math.min(size, 4)).fill(0).join(", ")}]`;
  const keys = space?.dict?.spaces?.map((one) => one.key ?? "") ?? ["task_type"];
  return `{${keys.map((key) => `${JSON.stringify(key)}: …`).join(", ")}}`;
}

/** The states that can be listed, at most 25, as they are typed; none where there is no end of them. */
export function listedStates(space: SpaceJson | undefined): readonly string[] {
  const { labels = [], n } = space?.discrete ?? {};
  if (labels.length) return labels.slice(0, LISTED);
  return Array.from({ length: Math.min(num(n), LISTED) }, (_, at) => String(at));
}

/** How many states there are, where they can be counted. */
export function stateCount(space: SpaceJson | undefined): number {
  return space?.discrete?.labels?.length || num(space?.discrete?.n);
}

/** A space in words. */
export function describe(space: SpaceJson | undefined): string {
  const { discrete, multiDiscrete, box, dict } = space ?? {};
  if (discrete?.labels?.length) {
    const { labels } = discrete;
    const more = labels.length > NAMED ? ` and ${count(labels.length - NAMED)} more` : "";
    return labels.slice(0, NAMED).join(", ") + more;
  }
  if (discrete) return `whole numbers from 0 to ${count(num(discrete.n) - 1)}`;
  if (multiDiscrete) return `${plural(multiDiscrete.sizes?.length ?? 0, "whole number")}`;
  if (box) return plural(box.low?.length ?? 0, "real number");
  if (dict) return `objects with ${dict.spaces?.map((one) => one.key).join(", ")}`;
  return space?.openLabels ? "labels, collected as they are seen" : "any objects";
}

/** Whether there is anything to choose from. */
export function hasActions(session: LearningSessionJson): boolean {
  return Boolean(session.knownActions?.length || session.actionSpace?.box);
}
