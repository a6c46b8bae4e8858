/** What rules watch, in words. */

import type { AlertConditionJson, AlertRuleJson, AlertTrendJson } from "@mneme/client/http";
import { cost, duration, num, percent, plural } from "../../format";

/** What is to be known of a condition. */
export interface Condition {
  readonly value: AlertConditionJson;
  readonly name: string;
  /** What the threshold is called; without one there is none. */
  readonly threshold?: string;
  /** Shares are typed in percent. */
  readonly share?: true;
  /** Whether it only concerns this moment: it has no scope and no window. */
  readonly now?: true;
  /** Whether what it was in the past is not kept, so that it cannot be tried. */
  readonly untried?: true;
}

export const CONDITIONS: readonly Condition[] = [
  {
    value: "ALERT_CONDITION_ERROR_RATE_EXCEEDS",
    name: "Error rate",
    threshold: "More than, in percent",
    share: true,
  },
  {
    value: "ALERT_CONDITION_COST_EXCEEDS",
    name: "Cost",
    threshold: "More than, in US dollars",
  },
  {
    value: "ALERT_CONDITION_LATENCY_EXCEEDS",
    name: "Average latency",
    threshold: "More than, in milliseconds",
  },
  {
    value: "ALERT_CONDITION_EVENT_COUNT_EXCEEDS",
    name: "Number of events",
    threshold: "More than",
  },
  { value: "ALERT_CONDITION_NO_EVENTS_FOR", name: "Silence" },
  {
    value: "ALERT_CONDITION_SESSION_FAILURES_EXCEED",
    name: "Failed sessions",
    threshold: "More than",
  },
  {
    value: "ALERT_CONDITION_ERROR_PATTERN_EXCEEDS",
    name: "Errors that say something",
    threshold: "More than",
  },
  {
    value: "ALERT_CONDITION_QUEUE_DEPTH_EXCEEDS",
    name: "Texts waiting to be embedded",
    threshold: "More than",
    now: true,
    untried: true,
  },
  {
    value: "ALERT_CONDITION_TREND_EXCEEDS",
    name: "A trend for the worse",
    threshold: "By more than, in percent",
    share: true,
    untried: true,
  },
];

export const TRENDS: readonly (readonly [AlertTrendJson, string])[] = [
  ["ALERT_TREND_SUCCESS_RATE", "The success rate falls"],
  ["ALERT_TREND_LATENCY", "The median latency rises"],
  ["ALERT_TREND_LATENCY_P95", "The latency’s 95th percentile rises"],
  ["ALERT_TREND_ERROR_RATE", "Errors per session rise"],
];

/** Return what is known of a condition; a newer server may have others. */
export function conditionOf(value: AlertConditionJson | undefined): Condition {
  const known = CONDITIONS.find((one) => one.value === value);
  return known ?? { value: value ?? "ALERT_CONDITION_UNSPECIFIED", name: value ?? "unknown" };
}

/** Return a value of what a condition watches, with its unit. */
export function figure(condition: AlertConditionJson | undefined, value: number): string {
  switch (condition) {
    case "ALERT_CONDITION_ERROR_RATE_EXCEEDS":
    case "ALERT_CONDITION_TREND_EXCEEDS":
      return percent(value);
    case "ALERT_CONDITION_COST_EXCEEDS":
      return cost(value);
    case "ALERT_CONDITION_LATENCY_EXCEEDS":
      return duration(value);
    case "ALERT_CONDITION_NO_EVENTS_FOR":
      return duration(value * 60_000);
    default:
      return value.toLocaleString();
  }
}

/** 90 as "90 minutes", 120 as "2 hours", 10080 as "7 days". */
export function span(minutes: number): string {
  if (minutes && minutes % 1440 === 0) return plural(minutes / 1440, "day");
  if (minutes && minutes % 60 === 0) return plural(minutes / 60, "hour");
  return plural(minutes, "minute");
}

/** Return when a rule triggers: "More than 20% of the events in 15 minutes are errors". */
export function sentence(rule: AlertRuleJson): string {
  const most = figure(rule.condition, num(rule.threshold));
  const window = span(num(rule.windowMinutes) || 60);
  switch (rule.condition) {
    case "ALERT_CONDITION_ERROR_RATE_EXCEEDS":
      return `More than ${most} of the events in ${window} are errors`;
    case "ALERT_CONDITION_COST_EXCEEDS":
      return `Events cost more than ${most} in ${window}`;
    case "ALERT_CONDITION_LATENCY_EXCEEDS":
      return `Events in ${window} take more than ${most} on average`;
    case "ALERT_CONDITION_EVENT_COUNT_EXCEEDS":
      return `${several(rule, "event", "events")} in ${window}`;
    case "ALERT_CONDITION_NO_EVENTS_FOR":
      return `No event for ${window}`;
    case "ALERT_CONDITION_SESSION_FAILURES_EXCEED":
      return `${several(rule, "session fails", "sessions fail")} in ${window}`;
    case "ALERT_CONDITION_ERROR_PATTERN_EXCEEDS":
      return `${several(rule, "error says", "errors say")} “${rule.pattern}” in ${window}`;
    case "ALERT_CONDITION_QUEUE_DEPTH_EXCEEDS":
      return `${several(rule, "text waits", "texts wait")} to be embedded`;
    case "ALERT_CONDITION_TREND_EXCEEDS":
      return `${trend(rule)} by more than ${most} over ${window}`;
    default:
      return conditionOf(rule.condition).name;
  }
}

/** Return what a rule looks at: "agent builder, project shop"; or "everything". */
export function scopeOf(rule: AlertRuleJson): string {
  const { agentId, project, tags = [] } = rule.scope ?? {};
  const parts = [
    agentId && `agent ${agentId}`,
    project && `project ${project}`,
    tags.length > 0 && `${tags.length === 1 ? "label" : "labels"} ${tags.join(", ")}`,
  ];
  return parts.filter(Boolean).join(", ") || "everything";
}

/** "Any session fails", "More than 1 session fails", "More than 3 sessions fail". */
function several(rule: AlertRuleJson, one: string, many: string): string {
  const most = num(rule.threshold);
  if (most === 0) return `Any ${one}`;
  return `More than ${figure(rule.condition, most)} ${most === 1 ? one : many}`;
}

function trend(rule: AlertRuleJson): string {
  return TRENDS.find(([value]) => value === rule.trend)?.[1] ?? "A measure gets worse";
}
