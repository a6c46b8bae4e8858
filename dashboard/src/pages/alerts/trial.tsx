/** Trying a rule against the past: how often it would have triggered, and when. */

import type { AlertRuleJson, TryAlertRuleResponseJson } from "@mneme/client/http";
import { useId, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../../api/errors";
import { alerts } from "../../api/services";
import { ErrorBox, Time } from "../../components/basics";
import { Lines } from "../../components/chart";
import { announce } from "../../components/live";
import { Table } from "../../components/table";
import { count, dateTime, num, plural } from "../../format";
import { conditionOf, figure } from "./wording";

const DAY_MS = 86_400_000;
const RANGES = [
  ["1", "the last 24 hours"],
  ["7", "the last 7 days"],
  ["30", "the last 30 days"],
  ["90", "the last 90 days"],
] as const;
const SHOWN = 50;

interface Outcome {
  /** What was tried, and over which days: another rule makes it void. */
  readonly of: string;
  readonly tried?: TryAlertRuleResponseJson;
  readonly error?: ApiError;
}

/** Tries a rule as it stands, whether it is kept or only written down so far. */
export function Trial({ rule, ready = true }: { rule: AlertRuleJson; ready?: boolean }) {
  const id = useId();
  const [days, setDays] = useState("7");
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<Outcome>();
  const watched = watchedOf(rule);
  const of = JSON.stringify([watched, days]);
  if (conditionOf(rule.condition).untried) {
    return (
      <p class="muted">It cannot be tried against the past: what the value was then is not kept.</p>
    );
  }
  const run = async (): Promise<void> => {
    setBusy(true);
    try {
      const startTime = new Date(Date.now() - Number(days) * DAY_MS).toISOString();
      const tried = await alerts.tryAlertRule({ rule: watched, startTime });
      setOutcome({ of, tried });
      announce(inWords(tried, days));
    } catch (failed) {
      setOutcome({ of, error: asApiError(failed) });
    }
    setBusy(false);
  };
  const shown = outcome?.of === of ? outcome : undefined;
  return (
    <section class="trial" aria-label="Try it against the past">
      <div class="trial-ask">
        <label for={id}>Would it have triggered in</label>
        <select id={id} value={days} onChange={(event) => setDays(event.currentTarget.value)}>
          {RANGES.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
        <button type="button" onClick={() => void run()} disabled={busy || !ready}>
          {busy ? "Trying…" : "Try it"}
        </button>
      </div>
      {shown?.error && <ErrorBox error={shown.error} />}
      {shown?.tried && <Result of={shown.tried} rule={rule} days={days} />}
    </section>
  );
}

/** "It would have triggered 3 times in the last 7 days." */
export function inWords(tried: TryAlertRuleResponseJson, days: string): string {
  const often = num(tried.alertCount);
  const range = RANGES.find(([value]) => value === days)?.[1] ?? plural(days, "day");
  const when =
    tried.truncated && tried.startTime ? `since ${dateTime(tried.startTime)}` : `in ${range}`;
  if (often === 0) return `It would not have triggered ${when}.`;
  return `It would have triggered ${often === 1 ? "once" : `${count(often)} times`} ${when}.`;
}

function Result(props: { of: TryAlertRuleResponseJson; rule: AlertRuleJson; days: string }) {
  const { of, rule, days } = props;
  const { points = [], alerts: found = [] } = of;
  const say = (value: number): string => figure(rule.condition, value);
  const silence = rule.condition === "ALERT_CONDITION_NO_EVENTS_FOR";
  const most = num(silence ? rule.windowMinutes : rule.threshold);
  const looked =
    rule.condition === "ALERT_CONDITION_SESSION_FAILURES_EXCEED" ? "ended session" : "event";
  return (
    <div class="stack">
      <div>
        <p class="trial-words">{inWords(of, days)}</p>
        <p class="fine">
          {num(of.searchedCount) === 0
            ? `There was no ${looked} to look at.`
            : `It was ${say(num(of.highestValue))} at most and is ${say(num(of.currentValue))} now; ${plural(of.searchedCount, looked)} looked at.`}
          {of.truncated && " There are more than a million: only the latest were looked at."}
        </p>
      </div>
      {num(of.searchedCount) > 0 && points.length > 1 && (
        <Lines
          title="The value over time"
          xName="Time"
          time
          x={points.map((point) => Date.parse(point.time ?? "") / 1000)}
          lines={[
            { name: "Value", values: points.map((point) => num(point.value)) },
            { name: "Threshold", values: points.map(() => most) },
          ]}
          format={say}
          formatX={(seconds) => dateTime(new Date(seconds * 1000))}
        />
      )}
      {found.length > 0 && (
        <details>
          <summary>When it would have triggered</summary>
          <Table
            caption="When it would have triggered"
            rows={found.slice(0, SHOWN)}
            keyOf={(row) => row.triggeredAt ?? ""}
            columns={[
              { name: "From", cell: (row) => <Time value={row.triggeredAt} exact /> },
              {
                name: "Until",
                cell: (row) =>
                  row.resolvedAt ? <Time value={row.resolvedAt} exact /> : "still going on",
              },
              { name: "Highest", right: true, cell: (row) => say(num(row.highestValue)) },
            ]}
          />
          {num(of.alertCount) > SHOWN && <p class="fine">The latest {SHOWN} are shown.</p>}
        </details>
      )}
    </div>
  );
}

/** What of a rule decides when it triggers. */
function watchedOf(rule: AlertRuleJson): AlertRuleJson {
  const { condition, threshold, resolveThreshold, minEvents, windowMinutes, scope, pattern } = rule;
  const all = { condition, threshold, resolveThreshold, minEvents, windowMinutes, scope, pattern };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}
