/** What was triggered, and what became of telling about it. */

import type { AlertDeliveryJson, AlertHistoryEntryJson } from "@mneme/client/http";
import { usePages } from "../../api/load";
import { alerts } from "../../api/services";
import { Badge, Empty, Time, type Tone } from "../../components/basics";
import {
  ChoiceFilter,
  Filters,
  TIME_FILTERS,
  TimeFilter,
  timeKey,
  timeRange,
} from "../../components/filters";
import { Pages } from "../../components/table";
import { duration, num, plural, word } from "../../format";
import { filter, to } from "../../router";
import { figure } from "./wording";

type State = "" | "ok" | "triggered";
const STATES = [
  ["", "All"],
  ["triggered", "Still triggered"],
  ["ok", "Resolved"],
] as const;

/** All that was triggered, by any rule. */
export function History() {
  const filtered = ["state", ...TIME_FILTERS].some((name) => filter(name));
  return (
    <>
      <Filters names={["state", ...TIME_FILTERS]}>
        <ChoiceFilter name="state" label="State" choices={STATES} />
        <TimeFilter />
      </Filters>
      <div class="card">
        <Entries
          asked={{ ...stateOf(filter("state") as State), ...timeRange() }}
          inputs={[filter("state"), timeKey()]}
          size={50}
          named
          empty={
            <Empty
              title={filtered ? "Nothing like that was triggered." : "Nothing was triggered yet."}
            >
              <p>
                {filtered
                  ? "Take a filter away."
                  : "When a rule triggers, it is kept here, with whom it told."}
              </p>
            </Empty>
          }
        />
      </div>
    </>
  );
}

/** What one rule triggered. */
export function HistoryOf({ rule, round }: { rule: string; round: number }) {
  return (
    <section aria-label="Its history">
      <h3>History</h3>
      <Entries
        asked={{ ruleId: rule }}
        inputs={[rule, round]}
        size={5}
        empty={<p class="muted">It never triggered.</p>}
      />
    </section>
  );
}

function stateOf(state: State) {
  if (!state) return {};
  return { state: state === "ok" ? "ALERT_STATE_OK" : "ALERT_STATE_TRIGGERED" } as const;
}

function Entries(props: {
  asked: Parameters<typeof alerts.listAlertHistory>[0];
  inputs: readonly unknown[];
  size: number;
  named?: boolean;
  empty: preact.ComponentChild;
}) {
  const pages = usePages<AlertHistoryEntryJson>(async (pageToken, signal) => {
    const asked = { ...props.asked, pageSize: props.size, pageToken };
    const page = await alerts.listAlertHistory(asked, { signal });
    return { items: page.entries ?? [], next: page.nextPageToken, total: num(page.totalSize) };
  }, props.inputs);
  return (
    <Pages of={pages} names={["alert", "alerts"]} empty={props.empty}>
      {(entries) => (
        <ul class="rows" aria-label="Alerts">
          {entries.map((entry) => (
            <Entry key={entry.id} entry={entry} named={props.named ?? false} />
          ))}
        </ul>
      )}
    </Pages>
  );
}

function Entry({ entry, named }: { entry: AlertHistoryEntryJson; named: boolean }) {
  const { triggeredAt = "", resolvedAt, deliveries = [], ruleId = "" } = entry;
  const gone = entry.resolution === "ALERT_RESOLUTION_DELETED";
  return (
    <li class="entry">
      <div class="entry-head">
        {named &&
          (gone ? (
            <strong>{entry.ruleName}</strong>
          ) : (
            <a class="row-title" href={`/alerts?rule=${encodeURIComponent(ruleId)}`}>
              {entry.ruleName}
            </a>
          ))}
        <Badge tone={resolvedAt ? "plain" : "bad"}>{resolvedAt ? ended(entry) : "triggered"}</Badge>
        <span class="fine">
          <Time value={triggeredAt} exact />
          {resolvedAt && `, for ${duration(Date.parse(resolvedAt) - Date.parse(triggeredAt))}`}
        </span>
      </div>
      <p>{entry.message}</p>
      <p class="fine">
        {entry.resolvedValue !== undefined &&
          `Resolved at ${figure(entry.condition, num(entry.resolvedValue))}. `}
        <a href={to("sessions", `alerts-${ruleId}`)}>Its events</a>
        {deliveries.length === 0 && " · nobody was told: the rule had no channel"}
      </p>
      {deliveries.length > 0 && <Deliveries of={deliveries} />}
    </li>
  );
}

function ended(entry: AlertHistoryEntryJson): string {
  if (entry.resolution === "ALERT_RESOLUTION_DISABLED") return "rule disabled";
  if (entry.resolution === "ALERT_RESOLUTION_DELETED") return "rule deleted";
  return "recovered";
}

const TONES: Readonly<Record<string, Tone>> = { delivered: "good", failed: "bad", waiting: "warn" };

/** Messages to channels, and what became of each. */
export function Deliveries({ of }: { of: readonly AlertDeliveryJson[] }) {
  return (
    <ul class="deliveries" aria-label="Deliveries">
      {of.map((one) => {
        const state = word(one.state, "DELIVERY_STATE_");
        return (
          <li key={one.id}>
            <Badge tone={TONES[state] ?? "plain"}>{state}</Badge>
            <span class="fine">{(one.type ?? "").replace("alert.", "")}</span>
            <code>{one.channel}</code>
            <span class="fine">
              {one.deliveredAt && <Time value={one.deliveredAt} />}
              {num(one.attempts) > 1 && ` after ${plural(one.attempts, "attempt")}`}
              {one.nextAttemptAt && (
                <>
                  {" "}
                  · again <Time value={one.nextAttemptAt} />
                </>
              )}
            </span>
            {one.error && <span class="delivery-error">{one.error}</span>}
          </li>
        );
      })}
    </ul>
  );
}
