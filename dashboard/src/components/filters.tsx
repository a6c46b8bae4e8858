/** Filters, which live in the address. */

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { key } from "../api/key";
import { useLoad } from "../api/load";
import { events } from "../api/services";
import { filter, setQuery } from "../router";

const TYPING_MS = 250;

/** The row that filters stand in. */
export function Filters({
  names,
  children,
}: {
  names: readonly string[];
  children: ComponentChildren;
}) {
  const set = names.filter((name) => filter(name));
  return (
    <search class="filters">
      {children}
      {set.length > 0 && (
        <button
          type="button"
          class="quiet"
          onClick={() => setQuery(Object.fromEntries(names.map((name) => [name, ""])))}
        >
          Clear {set.length === 1 ? "filter" : "filters"}
        </button>
      )}
    </search>
  );
}

/** A filter that is typed. The address follows a moment after the last key. */
export function TextFilter(props: {
  name: string;
  label: string;
  placeholder?: string;
  suggestions?: readonly string[] | undefined;
  wide?: boolean;
}) {
  const id = useId();
  const value = filter(props.name);
  const [typed, setTyped] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => setTyped(value), [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const apply = (text: string, wait: number): void => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setQuery({ [props.name]: text.trim() }), wait);
  };
  return (
    <div class={props.wide ? "field wide" : "field"}>
      <label for={id}>{props.label}</label>
      <input
        id={id}
        type="search"
        autoComplete="off"
        spellcheck={false}
        value={typed}
        placeholder={props.placeholder ?? "any"}
        list={props.suggestions && `${id}-known`}
        onInput={(event) => {
          setTyped(event.currentTarget.value);
          apply(event.currentTarget.value, TYPING_MS);
        }}
        onKeyDown={(event) => event.key === "Enter" && apply(event.currentTarget.value, 0)}
      />
      {props.suggestions && (
        <datalist id={`${id}-known`}>
          {props.suggestions.map((known) => (
            <option key={known} value={known} />
          ))}
        </datalist>
      )}
    </div>
  );
}

let agents: Promise<readonly string[]> | undefined;
let agentsOf = "";

/** The agents seen so far, asked for once for each key; none when that cannot be told. */
function knownAgents(): Promise<readonly string[]> {
  if (agentsOf !== key.value) agents = undefined;
  agentsOf = key.value;
  agents ??= Promise.resolve(events.listAgents({ pageSize: 200 })).then(
    (page) => (page.agents ?? []).flatMap((agent) => agent.id ?? []),
    () => {
      agents = undefined;
      return [];
    },
  );
  return agents;
}

/** The filter by agent (`?agent=`), which knows the agents. */
export function AgentFilter() {
  const known = useLoad(knownAgents, []);
  return <TextFilter name="agent" label="Agent" suggestions={known.data} />;
}

/** A filter that is one of a few. An empty value is the default, and not in the address. */
export function ChoiceFilter(props: {
  name: string;
  label: string;
  choices: readonly (readonly [value: string, text: string])[];
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      <select
        id={id}
        value={filter(props.name)}
        onChange={(event) => setQuery({ [props.name]: event.currentTarget.value })}
      >
        {props.choices.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

/** A filter that is on or off. */
export function Toggle({ name, label }: { name: string; label: string }) {
  return (
    <label class="toggle">
      <input
        type="checkbox"
        checked={filter(name) === "1"}
        onChange={(event) => setQuery({ [name]: event.currentTarget.checked ? "1" : "" })}
      />
      {label}
    </label>
  );
}

const DAY_MS = 86_400_000;
const RANGES: readonly (readonly [string, string, number])[] = [
  ["1h", "Last hour", DAY_MS / 24],
  ["24h", "Last 24 hours", DAY_MS],
  ["7d", "Last 7 days", 7 * DAY_MS],
  ["30d", "Last 30 days", 30 * DAY_MS],
  ["90d", "Last 90 days", 90 * DAY_MS],
];

/** A span of time up to now (`?range=7d`), or between two days (`?from=2026-11-01&to=…`). */
export function TimeFilter({ all = "Any time" }: { all?: string }) {
  const id = useId();
  const between = filter("range") === "days" || filter("from") || filter("to");
  const changed = (range: string): void => setQuery({ range, from: "", to: "" });
  return (
    <>
      <div class="field">
        <label for={id}>Time</label>
        <select
          id={id}
          value={between ? "days" : filter("range")}
          onChange={(event) => changed(event.currentTarget.value)}
        >
          <option value="">{all}</option>
          {RANGES.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
          <option value="days">Between days…</option>
        </select>
      </div>
      {between && (
        <>
          <DayField name="from" label="From" />
          <DayField name="to" label="To and with" />
        </>
      )}
    </>
  );
}

/** The parameters that `TimeFilter` sets. */
export const TIME_FILTERS = ["range", "from", "to"] as const;

function DayField({ name, label }: { name: string; label: string }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="date"
        value={filter(name)}
        onChange={(event) => setQuery({ range: "days", [name]: event.currentTarget.value })}
      />
    </div>
  );
}

/** Return what `TimeFilter` chose, as calls take it. */
export function timeRange(now = Date.now()): { startTime?: string; endTime?: string } {
  const span = RANGES.find(([name]) => name === filter("range"));
  if (span) return { startTime: new Date(now - span[2]).toISOString() };
  const from = new Date(`${filter("from")}T00:00`).getTime();
  const last = new Date(`${filter("to")}T00:00`);
  const until = last.setDate(last.getDate() + 1);
  return {
    ...(Number.isFinite(from) && { startTime: new Date(from).toISOString() }),
    ...(Number.isFinite(until) && { endTime: new Date(until).toISOString() }),
  };
}

/** What `timeRange` depends on, for the inputs of a load. */
export function timeKey(): string {
  return TIME_FILTERS.map(filter).join("|");
}
