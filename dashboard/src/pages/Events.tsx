/** Events: everything that was recorded, newest first, and as it comes. */

import type { EventJson, SeverityJson } from "@mneme/client/http";
import { useEffect, useState } from "preact/hooks";
import { isAbort } from "../api/errors";
import { usePages } from "../api/load";
import { events } from "../api/services";
import { Badge, Empty, PageHeader, Time, type Tone } from "../components/basics";
import {
  AgentFilter,
  ChoiceFilter,
  Filters,
  TextFilter,
  TIME_FILTERS,
  TimeFilter,
  Toggle,
  timeKey,
  timeRange,
} from "../components/filters";
import { type Column, Pages, Table } from "../components/table";
import { Id } from "../components/text";
import { cost, num, word } from "../format";
import { eventHref } from "../links";
import { filter, narrowing, to } from "../router";
import { isError, messageOf } from "./session/steps";
import "../styles/sessions.css";

const ASKED = ["type", "severity", "agent", "project", "session", "name"] as const;
const NAMES = [...ASKED, "live", ...TIME_FILTERS] as const;
const KEPT = 200;
const RETRY_MS = 3000;
const TYPES = [
  "tool_call",
  "tool_response",
  "tool_error",
  "llm_call",
  "llm_response",
  "message",
  "error",
  "custom",
  "session_started",
  "session_ended",
  "alert_triggered",
  "alert_resolved",
];
const SEVERITIES = [
  ["", "Any"],
  ["warn", "Warnings and worse"],
  ["error", "Errors"],
  ["critical", "Critical"],
] as const;

export default function Events() {
  const inputs = [...ASKED.map(filter), timeKey()];
  const pages = usePages<EventJson>(async (pageToken, signal) => {
    const page = await events.listEvents(
      { ...asked(), ...timeRange(), descending: true, pageSize: 100, pageToken },
      { signal },
    );
    return { items: page.events ?? [], next: page.nextPageToken };
  }, inputs);
  const live = useLive(filter("live") === "1", inputs, pages.reload);
  // What came while one looks is part of the list: of one that had nothing, too.
  const shown = { ...pages, items: pages.items && joined(live.events, pages.items) };
  const filtered = inputs.some((value) => value.replaceAll("|", ""));
  return (
    <>
      <PageHeader
        title="Events"
        about="Everything that agents recorded, newest first."
        actions={live.on && <Badge tone="info">Live</Badge>}
      />
      <Filters names={NAMES}>
        <TextFilter name="type" label="Type" suggestions={TYPES} />
        <ChoiceFilter name="severity" label="Severity" choices={SEVERITIES} />
        <TextFilter name="name" label="Tool or name" />
        <AgentFilter />
        <TextFilter name="project" label="Project" />
        <TextFilter name="session" label="Session" />
        <TimeFilter />
        <Toggle name="live" label="Follow live" />
      </Filters>
      <div class="card">
        <Pages of={shown} names={["event", "events"]} empty={<Nothing filtered={filtered} />}>
          {(items) => (
            <Table
              caption="Events"
              columns={COLUMNS}
              rows={items}
              keyOf={(event) => event.id ?? ""}
            />
          )}
        </Pages>
      </div>
    </>
  );
}

function asked() {
  const severity = filter("severity").toUpperCase();
  return {
    ...narrowing({ sessionId: "session", agentId: "agent", project: "project" }),
    name: filter("name"),
    ...(filter("type") && { eventTypes: [filter("type")] }),
    ...(severity && { minSeverity: `SEVERITY_${severity}` as SeverityJson }),
  };
}

function joined(live: readonly EventJson[], listed: readonly EventJson[]): EventJson[] {
  const known = new Set(live.map((event) => event.id));
  return [...live, ...listed.filter((event) => !known.has(event.id))];
}

// What is watched has no span of time; what is listed may have.
function inRange({ timestamp = "" }: EventJson): boolean {
  const { startTime = "", endTime = "" } = timeRange();
  const at = Date.parse(timestamp);
  return !(at < Date.parse(startTime)) && !(at >= Date.parse(endTime));
}

/**
 * What is recorded while one looks; what passes the filters of the address. `relist` is called when
 * the list has to show what is not among it.
 */
function useLive(wanted: boolean, inputs: readonly string[], relist: () => void) {
  const [seen, setSeen] = useState<readonly EventJson[]>([]);
  const [on, setOn] = useState(false);
  useEffect(() => {
    setSeen([]);
    if (!wanted) return;
    const ending = new AbortController();
    const { name, ...watched } = asked();
    const follow = async (): Promise<void> => {
      while (!ending.signal.aborted) {
        let kept: readonly EventJson[] = [];
        try {
          for await (const { event } of events.watchEvents(watched, ending)) {
            setOn(true);
            // It goes on from now: the server may have come back with other data than before.
            if (!event || kept.length === KEPT) {
              kept = [];
              relist();
            }
            if (event && (!name || event.name === name) && inRange(event)) kept = [event, ...kept];
            setSeen(kept);
          }
        } catch (error) {
          if (isAbort(error)) return;
        }
        setOn(false);
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    };
    follow();
    return () => {
      ending.abort();
      setOn(false);
    };
  }, [wanted, ...inputs]);
  return { events: seen, on: on && wanted };
}

function Nothing({ filtered }: { filtered: boolean }) {
  return filtered ? (
    <Empty title="No event passes these filters.">
      <p>Take a filter away, or widen the time. A type is written as it was recorded.</p>
    </Empty>
  ) : (
    <Empty title="Nothing was recorded yet.">
      <p>Import transcripts, or let an agent record what it does:</p>
      <pre>
        <code>mneme import samples/invoices/sessions.jsonl</code>
      </pre>
    </Empty>
  );
}

function toneOf(event: EventJson): Tone {
  if (isError(event)) return "bad";
  return event.severity === "SEVERITY_WARN" ? "warn" : "plain";
}

const COLUMNS: readonly Column<EventJson>[] = [
  { name: "When", wide: true, cell: (event) => <Time value={event.timestamp} /> },
  {
    name: "Type",
    cell: (event) => (
      <Badge tone={toneOf(event)}>
        {event.eventType}
        {event.severity !== "SEVERITY_INFO" && (
          <span class="hidden">, {word(event.severity, "SEVERITY_")}</span>
        )}
      </Badge>
    ),
  },
  {
    name: "What",
    cell: (event) => (
      <a class="preview" href={eventHref(event.sessionId ?? "", event.id ?? "")}>
        {preview(event)}
      </a>
    ),
  },
  { name: "Agent", wide: true, cell: (event) => event.agentId || "–" },
  {
    name: "Session",
    wide: true,
    cell: (event) => (
      <Id value={event.sessionId ?? ""} href={to("sessions", event.sessionId ?? "")} />
    ),
  },
  {
    name: "Cost",
    right: true,
    wide: true,
    cell: (event) => (num(event.costUsd) ? cost(event.costUsd) : ""),
  },
];

function preview(event: EventJson): string {
  const text = isError(event) ? messageOf(event) : event.text;
  // The text of a call begins with its type, which stands beside it.
  const said = (text ?? "").replace(`${event.eventType}: `, "");
  return said.slice(0, 220) || event.name || event.model || (event.eventType ?? "");
}
